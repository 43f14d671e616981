/* lanegate hooks: what came in, and what became of it. */
#include <stdlib.h>
#include <string.h>

#include "cli/client.h"
#include "cli/confirm.h"
#include "cli/hook_fetch.h"
#include "cli/hook_show.h"
#include "cli/show.h"
#include "util/jsonw.h"
#include "util/mem.h"

static const struct grid_column columns[] = {{"RECEIVED", false}, {"TENANT", false}, {"SOURCE", false},
                                             {"HOOK", false},     {"SIZE", true},    {"DELIVERED", true},
                                             {"DEAD", true}};

static void print(const json_t *answer)
{
    struct grid *table = grid_new(columns, sizeof columns / sizeof columns[0]);
    size_t i;
    const json_t *hook;
    json_array_foreach(json_object_get(answer, "hooks"), i, hook)
    {
        show_cell_time(table, show_int(hook, "received_at"));
        show_cell_text(table, hook, "tenant");
        show_cell_text(table, hook, "source");
        show_cell_text(table, hook, "id");
        show_cell_bytes(table, show_int(hook, "size"));
        grid_cell(table, "%lld/%lld", (long long)show_int(hook, "done"), (long long)show_int(hook, "rows"));
        show_cell_int(table, hook, "dead");
    }
    show_list(table, answer, "hooks", "hooks");
    grid_free(table);
}

static int list(int argc, char **argv)
{
    struct client_where where = {0};
    const char *tenant = NULL, *source = NULL, *since = NULL, *until = NULL, *dedupe_key = NULL,
               *state = NULL, *cursor = NULL;
    int64_t limit = 100;
    bool json = false;
    const struct arg args[] = {CLIENT_ARGS(where),
                               {"tenant", ARG_TEXT, {.text = &tenant}},
                               {"source", ARG_TEXT, {.text = &source}},
                               {"since", ARG_TEXT, {.text = &since}},
                               {"until", ARG_TEXT, {.text = &until}},
                               {"dedupe-key", ARG_TEXT, {.text = &dedupe_key}},
                               {"state", ARG_TEXT, {.text = &state}},
                               {"limit", ARG_COUNT, {.number = &limit}},
                               {"cursor", ARG_TEXT, {.text = &cursor}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    size_t count;
    int code = cli_args(&verb_hooks, argc, argv, args, NULL, 0, &count);
    if (code != CLI_OK)
        return code;

    struct buf path = {0}, key = {0};
    if (dedupe_key && !percent_decode(&key, bytes_str(dedupe_key))) {
        buf_free(&key);
        return cli_usage(&verb_hooks, "--dedupe-key must be percent-encoded as shown, got \"%s\"",
                         dedupe_key);
    }

    char since_ms[24], until_ms[24];
    buf_puts(&path, "/v1/hooks");
    client_query(&path, "tenant", bytes_str(tenant));
    client_query(&path, "source", bytes_str(source));
    client_query(&path, "since", bytes_str(show_moment(since, since_ms)));
    client_query(&path, "until", bytes_str(show_moment(until, until_ms)));
    client_query(&path, "dedupe_key", dedupe_key ? buf_bytes(&key) : BYTES_NONE);
    client_query(&path, "state", bytes_str(state));

    code = show_listing(&(struct listing){.verb = &verb_hooks,
                                          .where = &where,
                                          .path = path.at,
                                          .array = "hooks",
                                          .limit = limit,
                                          .cursor = cursor,
                                          .json = json,
                                          .print = print});
    buf_free(&path);
    buf_free(&key);
    return code;
}

/* With its last failures, which in JSON are its member "failures". */
static int show_whole(struct client *client, json_t *hook, bool json)
{
    json_t *attempts = NULL;
    char *path = mem_format("/v1/hooks/%s/attempts", show_text(hook, "id"));
    int code = client_get_list(client, path, "attempts", &attempts);
    if (code == CLI_OK && json) {
        json_object_set(hook, "failures", json_object_get(attempts, "attempts"));
        show_json(hook);
    } else if (code == CLI_OK) {
        hook_show(hook, stdout);
        hook_show_attempts(attempts, stdout);
    }
    json_decref(attempts);
    free(path);
    return code;
}

static int erase(int argc, char **argv)
{
    struct client_where where = {0};
    bool json = false, yes = false;
    const char *reason = NULL, *id = NULL;
    const struct arg args[] = {CLIENT_ARGS(where),
                               {"reason", ARG_TEXT, {.text = &reason}},
                               {"yes", ARG_FLAG, {.flag = &yes}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    size_t count;
    int code = cli_args(&verb_hooks, argc, argv, args, &id, 1, &count);
    if (code == CLI_OK)
        code = cli_check_id(&verb_hooks, "erase", id);
    if (code == CLI_OK)
        code = cli_confirm(&verb_hooks, yes, "erase hook %s for good, delivered or not", id);
    if (code != CLI_OK)
        return code;

    struct client *client = NULL;
    json_t *answer = NULL;
    struct buf path = {0};
    buf_putf(&path, "/v1/hooks/%s", id);
    client_query(&path, "reason", bytes_str(reason));
    code = client_open(&verb_hooks, &where, &client);
    if (code == CLI_OK)
        code = client_delete(client, path.at, &answer);
    if (code == CLI_OK && json)
        show_json(answer);
    else if (code == CLI_OK)
        printf("erased hook %s and its %lld deliveries%s\n", id, (long long)show_int(answer, "rows"),
               json_is_true(json_object_get(answer, "log_emptied"))
                   ? ""
                   : "; the store's log still has to be emptied, which goes on");
    json_decref(answer);
    client_close(client);
    buf_free(&path);
    return code;
}

static int show(int argc, char **argv)
{
    struct client_where where = {0};
    bool json = false, raw = false;
    const struct arg args[] = {
        CLIENT_ARGS(where), {"raw", ARG_FLAG, {.flag = &raw}}, {"json", ARG_FLAG, {.flag = &json}}, {0}};
    const char *id = NULL;
    size_t count;
    int code = cli_args(&verb_hooks, argc, argv, args, &id, 1, &count);
    if (code != CLI_OK)
        return code;
    if (json && raw)
        return cli_usage(&verb_hooks, "either --json or --raw");
    code = cli_check_id(&verb_hooks, "show", id);
    if (code != CLI_OK)
        return code;

    struct client *client = NULL;
    json_t *hook = NULL;
    char *path = mem_format("/v1/hooks/%s", id);
    code = client_open(&verb_hooks, &where, &client);
    if (code == CLI_OK)
        code = client_get(client, path, &hook);
    if (code == CLI_OK && raw)
        code = hook_fetch_raw(client, "/v1/hooks", hook);
    else if (code == CLI_OK)
        code = show_whole(client, hook, json);
    json_decref(hook);
    client_close(client);
    free(path);
    return code;
}

static int run(int argc, char **argv)
{
    static const struct cli_act acts[] = {{"list", list}, {"show", show}, {"erase", erase}, {0}};
    return cli_run_act(&verb_hooks, acts, argc, argv);
}

const struct cli_verb verb_hooks = {
    .name = "hooks",
    .summary = "what came in, and what became of it",
    .help =
        "usage: lanegate hooks list [options]\n"
        "       lanegate hooks show ID [--raw] [options]\n"
        "       lanegate hooks erase ID [--yes] [--reason TEXT] [options]\n"
        "\n"
        "list shows accepted hooks, newest first, and how many of their deliveries are done.\n"
        "\n"
        "  --tenant NAME    of one tenant\n"
        "  --source NAME    of one source\n"
        "  --since TIME     received since then: an age (30m, 2d), unix milliseconds, or a time like\n"
        "  --until TIME     2026-07-01T12:00:00Z; and before that\n"
        "  --dedupe-key KEY with that key, percent-encoded as it is shown\n"
        "  --state STATE    with a delivery that is pending, done, dead, held or discarded\n"
        "  --limit N        at most N (100)\n"
        "  --cursor TEXT    go on where an earlier list ended\n"
        "\n"
        "show prints one hook: its envelope, each delivery with lane, state and last error, and the last\n"
        "ten failures of each with what the receiver answered (scope payload).\n"
        "\n"
        "  --raw            the request as raw HTTP instead: head, blank line, body (scope payload)\n"
        "\n"
        "erase removes one hook for good, delivered or not: its deliveries, failures, headers and body are\n"
        "overwritten in the store's files. Not while an attempt of it is running. What remains: the line in\n"
        "the audit table, which has its id; what receivers got; backups, and what a file system or a disk\n"
        "keeps of blocks that were overwritten.\n"
        "\n"
        "  --yes            do not ask; needed where there is no terminal\n"
        "  --reason TEXT    why, for the audit table\n"
        "\n"
        "all:\n"
        "  --json           the API's JSON, one document\n" CLIENT_HELP "\n"
        "examples:\n"
        "  lanegate hooks list --source stripe --since 1h --state dead\n"
        "  lanegate hooks show 01890a5d-ac96-774b-bcce-b302099a8057 --raw > hook.http\n",
    .run = run,
};
