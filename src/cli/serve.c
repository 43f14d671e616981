/* lanegate serve: the gateway in the foreground. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/config_file.h"
#include "gateway/gateway.h"
#include "util/log.h"
#include "util/log_out.h"

enum { LAST_LINES_MS = 1000 };

static int run(int argc, char **argv)
{
    const char *path = NULL;
    const struct arg args[] = {{"config", ARG_TEXT, {.text = &path}}, {0}};
    const char *rest[1];
    size_t count;
    int code = cli_args(&verb_serve, argc, argv, args, rest, 0, &count);
    if (code != CLI_OK)
        return code;

    struct config *config;
    code = config_file_load(path, CONFIG_SERVE, &config);
    if (code != CLI_OK)
        return code;
    log_setup(config->log_level, config->log_json);
    if (!log_out_start())
        log_event(LOG_WARN, "log_waits", LOG_STR("reason", "no thread for log lines"));
    struct buf faults = {0};
    struct error err = {{0}};
    enum status status = gateway_run(config, &faults, &err);
    config_unref(config);
    log_out_drain(LAST_LINES_MS);
    code = status == STATUS_OK ? CLI_OK : faults.len ? CLI_BAD_CONFIG : CLI_FAILED;
    if (code == CLI_BAD_CONFIG)
        fputs(faults.at, stderr);
    else if (code == CLI_FAILED)
        fprintf(stderr, "lanegate serve: %s\n", err.text);
    buf_free(&faults);
    return code;
}

const struct cli_verb verb_serve = {
    .name = "serve",
    .summary = "run the gateway in the foreground",
    .help = "usage: lanegate serve [--config FILE]\n"
            "\n"
            "Runs the gateway until SIGTERM or SIGINT, then drains: what is queued is committed and "
            "answered, running\n"
            "attempts are finished (up to drain_timeout_ms), and the exit code is 0. A second signal ends it "
            "at once.\n"
            "Logs go to stderr, one JSON object a line (log.format = \"text\" for people).\n"
            "\n"
            "  --config FILE   default: ./config.lua, then /etc/lanegate/config.lua\n",
    .run = run,
};
