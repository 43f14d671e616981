/* lanegate reload: the running gateway reads its configuration again. */
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/show.h"

static void print_list(FILE *out, const json_t *list, const char *before)
{
    size_t i;
    const json_t *line;
    json_array_foreach(list, i, line)
        fprintf(out, "%s%s\n", before, json_string_value(line) ? json_string_value(line) : "");
}

static void print_done(const json_t *answer)
{
    const json_t *changed = json_object_get(answer, "changed");
    size_t count = json_array_size(changed);
    printf("reloaded: generation %lld, ", (long long)show_int(answer, "generation"));
    if (count == 0)
        printf("nothing in the configuration has changed\n");
    else
        printf("%zu change%s\n", count, count == 1 ? "" : "s");
    print_list(stdout, changed, "  ");
}

/* What is wrong with the file is its author's, as for `check`; a restart is somebody's decision. */
static int print_refused(const json_t *answer)
{
    const char *error = show_text(answer, "error");
    print_list(stderr, json_object_get(answer, "faults"), "");
    bool file = strcmp(error, "bad_config") == 0 || strcmp(error, "hooks_owed") == 0;
    fprintf(stderr, "lanegate reload: refused%s; what ran before runs on\n",
            strcmp(error, "needs_restart") == 0 ? ": it needs a restart" : "");
    return file ? CLI_BAD_CONFIG : CLI_FAILED;
}

static int run(int argc, char **argv)
{
    struct client_where where = {0};
    const char *reason = NULL;
    bool json = false;
    const struct arg args[] = {CLIENT_ARGS(where),
                               {"reason", ARG_TEXT, {.text = &reason}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    size_t count;
    int code = cli_args(&verb_reload, argc, argv, args, NULL, 0, &count);
    if (code != CLI_OK)
        return code;
    struct client *client;
    code = client_open(&verb_reload, &where, &client);
    if (code != CLI_OK)
        return code;
    struct buf path = {0};
    buf_puts(&path, "/v1/reload");
    client_query(&path, "reason", reason ? bytes_str(reason) : BYTES_NONE);
    json_t *answer = NULL;
    code = client_post_for(client, path.at, "generation", &answer);
    if (code == CLI_OK && json)
        show_json(answer);
    if (code == CLI_OK && json_object_get(answer, "error"))
        code = print_refused(answer);
    else if (code == CLI_OK && !json)
        print_done(answer);
    json_decref(answer);
    buf_free(&path);
    client_close(client);
    return code;
}

const struct cli_verb verb_reload = {
    .name = "reload",
    .summary = "make the running gateway read its configuration again",
    .help =
        "usage: lanegate reload [--reason TEXT] [options]\n"
        "\n"
        "The gateway loads its own file (the one it was started with) as serve does. A good one replaces "
        "what\n"
        "runs, without dropping a connection or a hook: new hooks go by it, what waits keeps its lane. A "
        "bad\n"
        "one changes nothing, and every fault is printed. The same happens at SIGHUP, told in the log.\n"
        "\n"
        "data_dir, store, admin.listen, and http's listen, threads, sizes and timeouts can't change while\n"
        "it runs, nor can a sink that is owed hooks get another name (was).\n"
        "\n"
        "Exit code 0 when it was done, 78 when the file is bad or would leave hooks behind, 1 when it needs "
        "a\n"
        "restart or the gateway refused, 69 when no gateway answers.\n"
        "\n"
        "  --reason TEXT    kept in the audit table\n"
        "  --json           the API's answer, one document\n" CLIENT_HELP "\n"
        "example:\n"
        "  lanegate check && lanegate reload --reason \"new key for shop\"\n",
    .run = run,
};
