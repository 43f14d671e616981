/* lanegate version: this program, and the libraries it runs with. */
#include <curl/curl.h>
#include <stdio.h>

#include "cli/args.h"
#include "cli/show.h"

static int run(int argc, char **argv)
{
    bool json = false;
    const struct arg args[] = {{"json", ARG_FLAG, {.flag = &json}}, {0}};
    size_t count;
    int code = cli_args(&verb_version, argc, argv, args, NULL, 0, &count);
    if (code != CLI_OK)
        return code;

    const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
    const struct {
        const char *name, *version;
    } rows[] = {{"lanegate", LANEGATE_VERSION},
                {"compiler", __VERSION__},
                {"libcurl", curl->version},
                {"tls", curl->ssl_version},
                {"jansson", jansson_version_str()}};
    json_t *document = json_object();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *version = rows[i].version ? rows[i].version : "none";
        json_object_set_new(document, rows[i].name, json_string(version));
        if (!json)
            printf("%-9s %s\n", rows[i].name, version);
    }
    if (json)
        show_json(document);
    json_decref(document);
    return CLI_OK;
}

const struct cli_verb verb_version = {
    .name = "version",
    .summary = "the version of this program and of the libraries it runs with",
    .help = "usage: lanegate version [--json]\n"
            "\n"
            "  --json           one object, a member a line of the text\n",
    .run = run,
};
