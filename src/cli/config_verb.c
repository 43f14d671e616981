/* lanegate config: the effective configuration, redacted, of a file or of the running gateway. */
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/config_file.h"
#include "cli/token.h"
#include "util/check.h"

static int from_file(const char *path, json_t **out)
{
    struct config *config;
    int code = config_file_load(path, CONFIG_OFFLINE, &config);
    if (code != CLI_OK)
        return code;
    struct buf text = {0};
    config_write_json(config, &text);
    config_unref(config);
    *out = json_loadb(text.at ? text.at : "", text.len, 0, NULL);
    buf_free(&text);
    CHECK(*out); /* what config writes is JSON */
    return CLI_OK;
}

static int from_gateway(const struct client_where *where, json_t **out)
{
    struct client *client;
    int code = client_open(&verb_config, where, &client);
    if (code != CLI_OK)
        return code;
    code = client_get(client, "/v1/config", out);
    client_close(client);
    return code;
}

static int run(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "token") == 0)
        return token_run(&verb_config, argc - 1, argv + 1);
    struct client_where where = {0};
    bool running = false, json = false;
    const struct arg args[] = {CLIENT_ARGS(where),
                               {"running", ARG_FLAG, {.flag = &running}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    size_t count;
    int code = cli_args(&verb_config, argc, argv, args, NULL, 0, &count);
    if (code != CLI_OK)
        return code;
    if (where.admin)
        running = true;

    json_t *document = NULL;
    code = running ? from_gateway(&where, &document) : from_file(where.config, &document);
    if (code != CLI_OK)
        return code;
    json_dumpf(document, stdout,
               (json ? JSON_COMPACT : JSON_INDENT(2)) | JSON_SORT_KEYS | JSON_REAL_PRECISION(15));
    putchar('\n');
    json_decref(document);
    return CLI_OK;
}

const struct cli_verb verb_config = {
    .name = "config",
    .summary = "the effective configuration, every default filled in, secrets left out",
    .help =
        "usage: lanegate config [--config FILE] [--json]\n"
        "       lanegate config --running [--admin URL] [--json]\n"
        "       lanegate config token [--name NAME] [--scopes read,payload,operate,config] [--json]\n"
        "\n"
        "Prints the whole configuration as JSON, defaults filled in. Only values that are known to be "
        "public\n"
        "are shown; everything else reads \"(set)\". Environment and secret files are not needed.\n"
        "\n"
        "  --running        of the gateway that runs, which may differ from the file; --admin implies it\n"
        "  --json           on one line\n" CLIENT_HELP "\n"
        "token makes a token for the admin API and the line of admin.tokens that lets it in; nothing is\n"
        "stored. NAME is who it is in the audit table (operator); the scope is read, unless others are "
        "named.\n"
        "\n"
        "example:\n"
        "  diff <(lanegate config) <(lanegate config --running)\n",
    .run = run,
};
