/* GET /v1/sinks: every configured sink, how much waits for it, and whether its breaker is open. */
#include "admin/admin_priv.h"
#include "util/check.h"

static const char *breaker_name(const struct lanes_sink_view *view)
{
    switch (view->breaker) {
    case BREAKER_CLOSED:
        return "closed";
    case BREAKER_OPEN:
        return "open";
    case BREAKER_HALF_OPEN:
        return "half_open";
    }
    UNREACHABLE();
}

static void write_sink(struct ask *ask, const struct admin_sink *sink, const struct lanes_sink_view *view)
{
    struct jsonw *w = &ask->json;
    jsonw_object(w, NULL);
    jsonw_str(w, "source", sink->source);
    jsonw_str(w, "sink", sink->name);
    jsonw_str(w, "type", sink->type);
    jsonw_bool(w, "ordered", sink->ordered);
    jsonw_uint(w, "concurrency", sink->concurrency);
    jsonw_str(w, "breaker", breaker_name(view));
    bool stopped = view->breaker != BREAKER_CLOSED;
    jsonw_str(w, "breaker_cause", stopped ? breaker_cause_name(view->record.cause) : NULL);
    ask_time(ask, "breaker_since", view->record.since_ms);
    ask_time(ask, "probe_at", view->breaker == BREAKER_OPEN ? view->record.probe_at_ms : 0);
    jsonw_bool(w, "paused", view->pause.paused);
    ask_time(ask, "paused_since", view->pause.since_ms);
    ask_time(ask, "paused_until", view->pause.until_ms);
    jsonw_bool(w, "parked", view->parked);
    jsonw_uint(w, "pending", view->pending);
    jsonw_uint(w, "running", view->running);
    jsonw_uint(w, "dead", view->dead);
    jsonw_uint(w, "lanes", view->lanes);
    jsonw_uint(w, "retrying", view->retrying);
    jsonw_uint(w, "held", view->held);
    jsonw_uint(w, "lane_depth_max", view->lane_depth_max);
    jsonw_uint(w, "rows_behind_blocked", view->rows_behind_blocked);
    ask_time(ask, "oldest_at", view->oldest_ms);
    ask_time(ask, "blocked_since", view->blocked_since_ms);
    jsonw_str(w, "last_error", view->last_error[0] ? view->last_error : NULL);
    jsonw_end_object(w);
}

void get_sinks(struct ask *ask)
{
    const struct admin_rules *rules = ask->rules;
    jsonw_object(&ask->json, NULL);
    jsonw_array(&ask->json, "sinks");
    for (size_t i = 0; i < rules->sink_count; i++) {
        struct lanes_sink_view view;
        if (lanes_sink_look(ask->admin->options.lanes, rules->sinks[i].id, &view))
            write_sink(ask, &rules->sinks[i], &view);
    }
    jsonw_end_array(&ask->json);
    jsonw_end_object(&ask->json);
}
