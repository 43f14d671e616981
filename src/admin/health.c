/* Does the process answer, is it ready for hooks, what does it count? */
#include "admin/admin_priv.h"

enum { REASONS_MAX = 8 };

void get_health(struct ask *ask)
{
    jsonw_object(&ask->json, NULL);
    jsonw_str(&ask->json, "status", "ok");
    jsonw_end_object(&ask->json);
}

void get_ready(struct ask *ask)
{
    const struct admin_options *options = &ask->admin->options;
    const char *reasons[REASONS_MAX];
    size_t count = options->not_ready(options->ctx, reasons, REASONS_MAX);
    ask->status = count ? 503 : 200;
    jsonw_object(&ask->json, NULL);
    jsonw_str(&ask->json, "status", count ? "not_ready" : "ready");
    if (count) {
        jsonw_array(&ask->json, "reasons");
        for (size_t i = 0; i < count; i++)
            jsonw_str(&ask->json, NULL, reasons[i]);
        jsonw_end_array(&ask->json);
    }
    jsonw_end_object(&ask->json);
}

void get_metrics(struct ask *ask)
{
    ask->type = "text/plain; version=0.0.4; charset=utf-8";
    metrics_write(ask->admin->options.metrics, &ask->body);
}

/* The configuration room redacts: what is written is fit to be shown. */
void get_config(struct ask *ask)
{
    ask->admin->options.config_json(ask->rules->of, &ask->body);
}
