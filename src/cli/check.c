/* lanegate check: would serve take this file? */
#include <stdio.h>

#include "cli/args.h"
#include "config/config.h"
#include "util/jsonw.h"

/* The faults as a JSON array of lines. */
static void print_json(bool ok, const char *path, struct bytes faults)
{
    struct buf text = {0};
    struct jsonw w = jsonw_on(&text);
    jsonw_object(&w, NULL);
    jsonw_bool(&w, "ok", ok);
    jsonw_str(&w, "config", path);
    jsonw_array(&w, "faults");
    while (faults.len) {
        const char *end = memchr(faults.at, '\n', faults.len);
        size_t len = end ? (size_t)(end - faults.at) : faults.len;
        jsonw_bytes(&w, NULL, bytes_of(faults.at, len));
        size_t taken = len + (end ? 1 : 0);
        faults = bytes_of(faults.at + taken, faults.len - taken);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    printf("%s\n", text.at);
    buf_free(&text);
}

static int run(int argc, char **argv)
{
    const char *path = NULL;
    bool offline = false, json = false;
    const struct arg args[] = {{"config", ARG_TEXT, {.text = &path}},
                               {"offline", ARG_FLAG, {.flag = &offline}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    const char *rest[1];
    size_t count;
    int code = cli_args(&verb_check, argc, argv, args, rest, 1, &count);
    if (code != CLI_OK)
        return code;
    if (count == 1 && path)
        return cli_usage(&verb_check, "two files: --config %s and %s", path, rest[0]);
    if (count == 1)
        path = rest[0];

    struct config *config = NULL;
    struct buf faults = {0};
    enum status status = config_load(path, offline ? CONFIG_OFFLINE : CONFIG_SERVE, &config, &faults);
    bool ok = status == STATUS_OK;
    const char *name = ok ? config->path : path ? path : "config.lua";
    if (json)
        print_json(ok, name, buf_bytes(&faults));
    else if (!ok)
        fputs(faults.len ? faults.at : status_text(status), stderr);
    else
        printf("%s: ok\n", name);
    buf_free(&faults);
    if (ok)
        config_unref(config);
    return ok ? CLI_OK : CLI_BAD_CONFIG;
}

const struct cli_verb verb_check = {
    .name = "check",
    .summary = "say everything that is wrong with a configuration",
    .help = "usage: lanegate check [--offline] [--json] [--config FILE | FILE]\n"
            "\n"
            "Loads the configuration as serve would and prints every fault, one line each:\n"
            "  config.lua:14: sources.stripe.sinks.billing.ordering_key: must be ..., got ...\n"
            "Exit code 0 when serve would take it, 78 otherwise.\n"
            "\n"
            "  --config FILE   default: ./config.lua, then /etc/lanegate/config.lua\n"
            "  --offline       accept unset environment variables and missing secret files\n"
            "  --json          {\"ok\":..., \"config\":..., \"faults\":[...]} on stdout\n",
    .run = run,
};
