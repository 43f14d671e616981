#include "cli/lane_act.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/confirm.h"
#include "cli/lane_name.h"
#include "cli/show.h"
#include "order/order.h"

/* ---- addresses ---- */

/* "/v1/lanes/TENANT/ID" of a lane as people write it: its id comes from its name, so that a lane can be named
 * that nothing waits in. */
static void lane_path(struct buf *path, const char *tenant, const struct lane_name *name)
{
    struct arena *arena = arena_new(256);
    bool keyless = !name->has_key || name->key.len == 0;
    struct bytes key = keyless ? BYTES_NONE : order_key_stamp(buf_bytes(&name->key), arena);
    struct lane_id id = lane_id_of(bytes_str(name->source), bytes_str(name->sink), key);
    char hex[2 * LANE_ID_SIZE + 1];
    hex_encode(id.bytes, sizeof id.bytes, hex);
    buf_putf(path, "/v1/lanes/%s/%s", tenant, hex);
    arena_free(arena);
}

static int lane_named(const char *text, struct lane_name *name)
{
    if (!text)
        return cli_usage(&verb_lanes, "which lane? source/sink/key");
    if (!lane_name_parse(text, name))
        return cli_usage(&verb_lanes, "a lane is named source/sink/key, got \"%s\"", text);
    if (name->sink)
        return CLI_OK;
    lane_name_free(name);
    return cli_usage(&verb_lanes, "a lane is named source/sink/key, got \"%s\" without a sink", text);
}

int act_post(const struct cli_verb *verb, const struct client_where *where, struct buf *path,
             const char *reason, bool json, json_t **answer)
{
    struct client *client = NULL;
    client_query(path, "reason", bytes_str(reason));
    int code = client_open(verb, where, &client);
    if (code != CLI_OK)
        return code;
    code = client_post(client, path->at, answer);
    client_close(client);
    if (code == CLI_OK && json)
        show_json(*answer);
    return code;
}

static int get_lane(const struct client_where *where, const char *path, json_t **lane)
{
    struct client *client = NULL;
    int code = client_open(&verb_lanes, where, &client);
    if (code == CLI_OK)
        code = client_get(client, path, lane);
    client_close(client);
    return code;
}

/* ---- show ---- */

static const struct grid_column row_columns[] = {{"HOOK", false}, {"SEQ", true},      {"STATE", false},
                                                 {"WAITS", true}, {"ATTEMPTS", true}, {"SIZE", true}};

static void line(const char *name, const char *text)
{
    printf("%-14s ", name);
    print_harmless(stdout, *text ? text : "-");
    putchar('\n');
}

static void moment(const char *name, int64_t at_ms)
{
    char text[32] = "";
    if (at_ms)
        show_time(at_ms, text);
    line(name, text);
}

static void print_lane(const json_t *lane)
{
    const json_t *head = json_object_get(lane, "head");
    struct buf text = {0};
    const char *key = show_text(lane, "key");
    buf_putf(&text, "%s/%s%s%s", show_text(lane, "source"), show_text(lane, "sink"), *key ? "/" : "", key);
    line("lane", text.at);
    line("tenant", show_text(lane, "tenant"));
    line("id", show_text(lane, "lane"));
    line("state", show_text(lane, "state"));
    printf("%-14s %" PRId64 "\n", "depth", show_int(lane, "depth"));
    moment("blocked since", show_int(lane, "blocked_since"));
    if (show_int(lane, "paused_since"))
        moment("paused since", show_int(lane, "paused_since"));
    printf("%-14s %" PRId64 "\n", "attempts", show_int(head, "attempts"));
    moment("last attempt", show_int(head, "last_attempt_at"));
    line("last answer", show_text(head, "last_error"));
    moment("next attempt", show_int(head, "due_at"));
    buf_free(&text);

    struct grid *table = grid_new(row_columns, sizeof row_columns / sizeof row_columns[0]);
    size_t i;
    const json_t *row;
    json_array_foreach(json_object_get(lane, "rows"), i, row)
    {
        show_cell_text(table, row, "id");
        show_cell_int(table, row, "seq");
        show_cell_text(table, row, "state");
        show_cell_age(table, show_int(row, "received_at"));
        show_cell_int(table, row, "attempts");
        show_cell_bytes(table, show_int(row, "size"));
    }
    putchar('\n');
    grid_print(table, stdout, grid_width(stdout));
    grid_free(table);
}

int lane_show(int argc, char **argv)
{
    struct client_where where = {0};
    const char *tenant = "default", *text = NULL;
    bool json = false;
    const struct arg args[] = {CLIENT_ARGS(where),
                               {"tenant", ARG_TEXT, {.text = &tenant}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    size_t count;
    struct lane_name name;
    int code = cli_args(&verb_lanes, argc, argv, args, &text, 1, &count);
    if (code == CLI_OK)
        code = lane_named(text, &name);
    if (code != CLI_OK)
        return code;
    struct buf path = {0};
    json_t *lane = NULL;
    lane_path(&path, tenant, &name);
    code = get_lane(&where, path.at, &lane);
    if (code == CLI_OK && json)
        show_json(lane);
    else if (code == CLI_OK)
        print_lane(lane);
    json_decref(lane);
    lane_name_free(&name);
    buf_free(&path);
    return code;
}

/* ---- pause, resume, retry, skip ---- */

/* Asks with the head in sight, and holds the act to that head. */
static int confirm_skip(const struct client_where *where, const char *path, const char *text, bool yes,
                        char expect[64])
{
    json_t *lane = NULL;
    int code = get_lane(where, path, &lane);
    if (code != CLI_OK)
        return code;
    const json_t *head = json_object_get(lane, "head");
    const char *error = show_text(head, "last_error");
    snprintf(expect, 64, "%s", show_text(head, "id"));
    code = cli_confirm(&verb_lanes, yes,
                       "make a dead letter of hook %s, the first of %" PRId64 " in %s (%" PRId64
                       " attempts; last answer: %s)",
                       expect, show_int(lane, "depth"), text, show_int(head, "attempts"),
                       *error ? error : "none");
    json_decref(lane);
    return code;
}

static void say(const char *act, const char *text, const json_t *answer)
{
    bool unchanged = strcmp(show_text(answer, "status"), "unchanged") == 0;
    const char *state = show_text(answer, "state");
    int64_t depth = show_int(answer, "depth");
    printf("%s ", unchanged ? "nothing to do for" : act);
    print_harmless(stdout, text);
    if (*state)
        printf(": %s, %" PRId64 " waiting", state, depth);
    putchar('\n');
}

int lane_act(int argc, char **argv)
{
    struct client_where where = {0};
    const char *act = argv[0], *tenant = "default", *expect_head = NULL, *reason = NULL, *text = NULL;
    bool yes = false, json = false;
    const struct arg args[] = {CLIENT_ARGS(where),
                               {"tenant", ARG_TEXT, {.text = &tenant}},
                               {"expect-head", ARG_TEXT, {.text = &expect_head}},
                               {"reason", ARG_TEXT, {.text = &reason}},
                               {"yes", ARG_FLAG, {.flag = &yes}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    size_t count;
    struct lane_name name;
    bool of_head = strcmp(act, "retry") == 0 || strcmp(act, "skip") == 0;
    int code = cli_args(&verb_lanes, argc, argv, args, &text, 1, &count);
    if (code == CLI_OK && expect_head && !of_head)
        code = cli_usage(&verb_lanes, "--expect-head is for retry and skip");
    if (code == CLI_OK)
        code = lane_named(text, &name);
    if (code != CLI_OK)
        return code;

    struct buf path = {0};
    char seen[64];
    json_t *answer = NULL;
    lane_path(&path, tenant, &name);
    if (strcmp(act, "skip") == 0) {
        code = confirm_skip(&where, path.at, text, yes, seen);
        expect_head = expect_head ? expect_head : seen;
    }
    buf_putf(&path, "/%s", act);
    if (strcmp(act, "pause") == 0) { /* by name too: before its first hook only a name says where it is */
        client_query(&path, "source", bytes_str(name.source));
        client_query(&path, "sink", bytes_str(name.sink));
        client_query(&path, "key", buf_bytes(&name.key));
    }
    client_query(&path, "expect_head", bytes_str(expect_head));
    if (code == CLI_OK)
        code = act_post(&verb_lanes, &where, &path, reason, json, &answer);
    if (code == CLI_OK && !json) {
        static const char *const done[][2] = {
            {"pause", "paused"}, {"resume", "resumed"}, {"retry", "retrying"}, {"skip", "skipped"}};
        for (size_t i = 0; i < sizeof done / sizeof done[0]; i++)
            if (strcmp(act, done[i][0]) == 0)
                say(done[i][1], text, answer);
    }
    json_decref(answer);
    lane_name_free(&name);
    buf_free(&path);
    return code;
}

/* ---- rekey ---- */

static int rekey_post(const struct client_where *where, const struct lane_name *name, const char *reason,
                      bool dry_run, bool json, json_t **answer)
{
    struct buf path = {0};
    buf_putf(&path, "/v1/sinks/%s/%s/rekey", name->source, name->sink);
    client_query(&path, "dry_run", dry_run ? BYTES("true") : BYTES_NONE);
    int code = act_post(&verb_lanes, where, &path, reason, json, answer);
    buf_free(&path);
    return code;
}

int lane_rekey(int argc, char **argv)
{
    struct client_where where = {0};
    const char *reason = NULL, *text = NULL;
    bool yes = false, dry_run = false, json = false;
    const struct arg args[] = {CLIENT_ARGS(where),
                               {"reason", ARG_TEXT, {.text = &reason}},
                               {"dry-run", ARG_FLAG, {.flag = &dry_run}},
                               {"yes", ARG_FLAG, {.flag = &yes}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    size_t count;
    struct lane_name name;
    int code = cli_args(&verb_lanes, argc, argv, args, &text, 1, &count);
    if (code == CLI_OK)
        code = lane_named(text, &name);
    if (code != CLI_OK)
        return code;
    json_t *plan = NULL, *answer = NULL;
    if (name.has_key)
        code = cli_usage(&verb_lanes, "rekey takes a whole sink: source/sink");
    if (code == CLI_OK)
        code = rekey_post(&where, &name, NULL, true, dry_run && json, &plan);
    int64_t moving = show_int(plan, "moving"), matched = show_int(plan, "matched"),
            keyless = show_int(plan, "keyless");
    if (code == CLI_OK && dry_run && !json)
        printf("%" PRId64 " of %" PRId64 " waiting hooks of %s would move, %" PRId64
               " of them into the keyless lane\n",
               moving, matched, text, keyless);
    if (code == CLI_OK && !dry_run)
        code = cli_confirm(&verb_lanes, yes,
                           "move %" PRId64 " of %" PRId64 " waiting hooks of %s to other lanes, %" PRId64
                           " of them into the keyless one",
                           moving, matched, text, keyless);
    if (code == CLI_OK && !dry_run)
        code = rekey_post(&where, &name, reason, false, json, &answer);
    if (code == CLI_OK && !dry_run && !json)
        printf("%" PRId64 " of %" PRId64 " waiting hooks of %s moved\n", show_int(answer, "done"),
               show_int(answer, "matched"), text);
    json_decref(plan);
    json_decref(answer);
    lane_name_free(&name);
    return code;
}
