/* lanegate check: would serve take this file? */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cli/args.h"
#include "cli/check_keys.h"
#include "config/config.h"
#include "util/jsonw.h"
#include "util/mem.h"

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

/* What anybody can see of it. Whether the user of the service may write there is not known here: `check` is
 * often run by somebody else. */
static void check_data_dir(const struct config *config, struct buf *faults)
{
    struct stat facts;
    const char *fault = NULL;
    char *copy = mem_format("%s", config->data_dir);
    const char *parent = dirname(copy);
    if (stat(config->data_dir, &facts) == 0)
        fault = S_ISDIR(facts.st_mode) ? NULL : "is there, and is not one";
    else if (errno == ENOTDIR || (errno == ENOENT && stat(parent, &facts) != 0 && errno == ENOENT))
        fault = "the one around it must be there";
    if (fault)
        buf_putf(faults, "%s: data_dir: must be a folder, or the name of one to be made, got \"%s\": %s\n",
                 config->path, config->data_dir, fault);
    free(copy);
}

static int run(int argc, char **argv)
{
    const char *path = NULL, *admin = NULL;
    bool offline = false, json = false;
    const struct arg args[] = {{"config", ARG_TEXT, {.text = &path}},
                               {"admin", ARG_TEXT, {.text = &admin}},
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
    size_t tried = 0;
    if (status == STATUS_OK && !offline)
        check_data_dir(config, &faults);
    if (status == STATUS_OK && !offline)
        tried =
            check_keys(&verb_check, &(struct client_where){.admin = admin, .config = path}, config, &faults);
    bool ok = status == STATUS_OK && faults.len == 0;
    const char *name = config ? config->path : path ? path : "config.lua";
    if (json)
        print_json(ok, name, buf_bytes(&faults));
    else if (!ok)
        fputs(faults.len ? faults.at : status_text(status), stderr);
    else if (tried)
        printf("%s: ok; its Lua keys were tried on %zu stored hooks\n", name, tried);
    else
        printf("%s: ok\n", name);
    buf_free(&faults);
    if (config)
        config_unref(config);
    return ok ? CLI_OK : CLI_BAD_CONFIG;
}

const struct cli_verb verb_check = {
    .name = "check",
    .summary = "say everything that is wrong with a configuration",
    .help = "usage: lanegate check [--offline] [--json] [--admin URL] [--config FILE | FILE]\n"
            "\n"
            "Loads the configuration as serve would and prints every fault, one line each:\n"
            "  config.lua:14: sources.stripe.sinks.billing.ordering_key: must be ..., got ...\n"
            "When a gateway is running (at --admin, LANEGATE_ADMIN, or the file's admin.listen), every Lua "
            "key is called\n"
            "for up to 100 of its stored hooks a source, in two fresh states and a used one: a key whose "
            "answers differ is\n"
            "nondeterministic, and a fault. Exit code 0 when serve would take it, 78 otherwise.\n"
            "\n"
            "  --config FILE   default: ./config.lua, then /etc/lanegate/config.lua\n"
            "  --admin URL     the running gateway\n"
            "  --offline       accept unset environment variables and missing secret files; ask no gateway\n"
            "  --json          {\"ok\":..., \"config\":..., \"faults\":[...]} on stdout\n",
    .run = run,
};
