/* lanegate dlq show, replay, discard. What is done to many is counted first, then done call by call until the
 * gateway says that nothing is left. */
#include "cli/dlq_act.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/confirm.h"
#include "cli/dlq_filter.h"
#include "cli/hook_show.h"
#include "cli/show.h"
#include "util/mem.h"
#include "util/uuid.h"

/* ---- show ---- */

static const struct grid_column columns[] = {{"LANE", false},  {"TENANT", false},  {"STATE", false},
                                             {"CLASS", false}, {"ATTEMPTS", true}, {"RECEIVED", false},
                                             {"DIED", false},  {"LATE", false},    {"REASON", false}};

static void print_entries(const json_t *dead)
{
    struct grid *table = grid_new(columns, sizeof columns / sizeof columns[0]);
    size_t i;
    const json_t *entry;
    json_array_foreach(json_object_get(dead, "entries"), i, entry)
    {
        show_cell_lane(table, entry);
        show_cell_text(table, entry, "tenant");
        show_cell_text(table, entry, "state");
        show_cell_text(table, entry, "class");
        show_cell_int(table, entry, "attempts");
        show_cell_time(table, show_int(entry, "received_at"));
        show_cell_time(table, show_int(entry, "dead_at"));
        grid_cell(table, "%s", json_is_true(json_object_get(entry, "late")) ? "yes" : "no");
        show_cell_text(table, entry, "reason");
    }
    grid_print(table, stdout, grid_width(stdout));
    grid_free(table);
}

static int print_dead(struct client *client, const char *id, bool json)
{
    json_t *dead = NULL, *attempts = NULL;
    char *dead_path = mem_format("/v1/dlq?hook=%s&limit=1000", id),
         *attempts_path = mem_format("/v1/hooks/%s/attempts", id);
    int code = client_get_list(client, dead_path, "entries", &dead);
    if (code == CLI_OK)
        code = client_get_list(client, attempts_path, "attempts", &attempts);
    if (code == CLI_OK && json) {
        json_object_set(dead, "attempts", json_object_get(attempts, "attempts"));
        show_json(dead);
    } else if (code == CLI_OK) {
        bool none = json_array_size(json_object_get(dead, "entries")) == 0;
        if (none) {
            fprintf(stderr, "hook %s is no dead letter; lanegate hooks show says what it is\n", id);
        } else {
            print_entries(dead);
            hook_show_attempts(attempts, stdout);
        }
        code = none ? CLI_FAILED : CLI_OK;
    }
    json_decref(dead);
    json_decref(attempts);
    free(dead_path);
    free(attempts_path);
    return code;
}

int dlq_show(int argc, char **argv)
{
    struct client_where where = {0};
    bool json = false;
    const struct arg args[] = {CLIENT_ARGS(where), {"json", ARG_FLAG, {.flag = &json}}, {0}};
    const char *id = NULL;
    size_t count;
    int code = cli_args(&verb_dlq, argc, argv, args, &id, 1, &count);
    if (code != CLI_OK)
        return code;
    struct uuid uuid;
    if (!count || !uuid_parse(bytes_str(id), &uuid))
        return cli_usage(&verb_dlq, "show needs the id of a hook, as dlq list shows it");
    struct client *client = NULL;
    code = client_open(&verb_dlq, &where, &client);
    if (code == CLI_OK)
        code = print_dead(client, id, json);
    client_close(client);
    return code;
}

/* ---- replay, discard ---- */

struct act {
    const char *word, *past;
    struct dlq_filter filter;
    const char *reason;
    bool all, forget, dry_run, yes, json;
    struct buf path; /* with the filters */
    int64_t matched, done, sink_gone;
};

static int count_first(struct act *act, struct client *client, json_t **sum)
{
    struct buf path = {0};
    buf_putb(&path, buf_bytes(&act->path));
    client_query(&path, "dry_run", BYTES("true"));
    int code = client_post(client, path.at, sum);
    buf_free(&path);
    return code;
}

/* What a person has to know before he says yes. */
static void put_sum(struct buf *out, const struct act *act, const json_t *sum)
{
    int64_t late = show_int(sum, "late");
    buf_putf(out, "%s %" PRId64 " dead letter%s", act->word, show_int(sum, "matched"),
             show_int(sum, "matched") == 1 ? "" : "s");
    if (late == 0)
        return;
    buf_putf(out, ", %" PRId64 " of them late: ", late);
    if (json_is_integer(json_object_get(sum, "delivered_after")))
        buf_putf(out, "%" PRId64 " later hooks of their lanes were delivered already",
                 show_int(sum, "delivered_after"));
    else
        buf_puts(out, "later hooks of their lanes were delivered already, too many to count");
}

/* One call. `cursor` is where it begins, and then where the next one does; NULL at the end. */
static int do_some(struct act *act, struct client *client, char **cursor)
{
    struct buf path = {0};
    json_t *answer = NULL;
    buf_putb(&path, buf_bytes(&act->path));
    client_query(&path, "reason", bytes_str(act->reason));
    client_query(&path, "cursor", bytes_str(*cursor));
    int code = client_post(client, path.at, &answer);
    buf_free(&path);
    free(*cursor);
    *cursor = NULL;
    if (code != CLI_OK)
        return code;
    act->matched += show_int(answer, "matched");
    act->done += show_int(answer, "done");
    act->sink_gone += show_int(answer, "sink_gone");
    const char *next = show_text(answer, "next_cursor"), *stopped = show_text(answer, "stopped");
    if (*stopped) {
        fprintf(stderr, "the gateway stopped (%s); the same command goes on later\n", stopped);
        code = CLI_FAILED;
    } else if (*next) {
        *cursor = mem_strdup(next);
    }
    json_decref(answer);
    return code;
}

static void say_done(const struct act *act)
{
    if (act->json) {
        json_t *sum =
            json_pack("{s:I, s:I}", "matched", (json_int_t)act->matched, "done", (json_int_t)act->done);
        if (act->sink_gone > 0)
            json_object_set_new(sum, "sink_gone", json_integer(act->sink_gone));
        show_json(sum);
        json_decref(sum);
        return;
    }
    printf("%s %" PRId64 " of %" PRId64 " dead letters\n", act->past, act->done, act->matched);
}

/* They stay as they are: nobody knows where they should go now. */
static void say_sink_gone(const struct act *act)
{
    fprintf(stderr,
            "%" PRId64
            " of them belong to a sink that the configuration does not name any more (lanegate dlq "
            "list says which).\n"
            "  to deliver them:   put the sink back, or give its heir was = \"the old name\"; reload; replay "
            "again\n"
            "  to give them up:   lanegate dlq discard SOURCE/SINK\n",
            act->sink_gone);
}

static int do_all(struct act *act, struct client *client)
{
    char *cursor = NULL;
    int code;
    do
        code = do_some(act, client, &cursor);
    while (code == CLI_OK && cursor);
    if (code == CLI_OK || act->matched > 0)
        say_done(act);
    if (act->sink_gone > 0)
        say_sink_gone(act);
    return code == CLI_OK && act->sink_gone > 0 ? CLI_FAILED : code;
}

static int count_and_do(struct act *act, struct client *client)
{
    json_t *sum = NULL;
    struct buf text = {0};
    int code = count_first(act, client, &sum);
    if (code != CLI_OK)
        return code;
    put_sum(&text, act, sum);
    bool none = show_int(sum, "matched") == 0;
    if (act->dry_run && act->json)
        show_json(sum);
    else if (act->dry_run)
        printf("would %s\n", text.at);
    else if (none)
        say_done(act);
    else
        code = cli_confirm(&verb_dlq, act->yes, "%s", text.at);
    if (code == CLI_OK && !act->dry_run && !none)
        code = do_all(act, client);
    buf_free(&text);
    json_decref(sum);
    return code;
}

static int run_act(int argc, char **argv, struct act *act)
{
    const struct arg args[] = {DLQ_FILTER_ARGS(act->filter),
                               {"all", ARG_FLAG, {.flag = &act->all}},
                               {"forget", ARG_FLAG, {.flag = &act->forget}},
                               {"dry-run", ARG_FLAG, {.flag = &act->dry_run}},
                               {"yes", ARG_FLAG, {.flag = &act->yes}},
                               {"reason", ARG_TEXT, {.text = &act->reason}},
                               {"json", ARG_FLAG, {.flag = &act->json}},
                               {0}};
    struct client *client = NULL;
    buf_putf(&act->path, "/v1/dlq/%s", act->word);
    int code = dlq_filter_read(argc, argv, args, &act->filter, &act->path);
    if (code == CLI_OK && !act->all && !dlq_filter_any(&act->filter))
        code = cli_usage(&verb_dlq, "say which: a lane, a hook, a filter, or --all");
    if (code == CLI_OK && act->forget && strcmp(act->word, "discard") != 0)
        code = cli_usage(&verb_dlq, "--forget is for discard: a replay keeps the key");
    if (code == CLI_OK && act->forget)
        client_query(&act->path, "forget", BYTES("true"));
    if (code == CLI_OK && act->all)
        client_query(&act->path, "all", BYTES("true"));
    if (code == CLI_OK)
        code = client_open(&verb_dlq, &act->filter.where, &client);
    if (code == CLI_OK)
        code = count_and_do(act, client);
    client_close(client);
    buf_free(&act->path);
    return code;
}

int dlq_replay(int argc, char **argv)
{
    return run_act(argc, argv, &(struct act){.word = "replay", .past = "replayed"});
}

int dlq_discard(int argc, char **argv)
{
    return run_act(argc, argv, &(struct act){.word = "discard", .past = "discarded"});
}
