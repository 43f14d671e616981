/* lanegate quarantine: hooks that failed verification, and what becomes of them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client.h"
#include "cli/confirm.h"
#include "cli/hook_fetch.h"
#include "cli/hook_show.h"
#include "cli/show.h"
#include "util/mem.h"

struct which {
    struct client_where where;
    const char *tenant, *source, *failure, *since, *until, *id;
};

#define WHICH_ARGS(which)                                                                                    \
    CLIENT_ARGS((which).where), {"tenant", ARG_TEXT, {.text = &(which).tenant}},                             \
        {"source", ARG_TEXT, {.text = &(which).source}}, {"failure", ARG_TEXT, {.text = &(which).failure}},  \
        {"since", ARG_TEXT, {.text = &(which).since}},                                                       \
    {                                                                                                        \
        "until", ARG_TEXT,                                                                                   \
        {                                                                                                    \
            .text = &(which).until                                                                           \
        }                                                                                                    \
    }

/* Reads the arguments by the table, which has the rows above, and adds the query to `path`. */
static int read_which(int argc, char **argv, const struct arg *args, struct which *which, struct buf *path)
{
    size_t count;
    char since_ms[24], until_ms[24];
    int code = cli_args(&verb_quarantine, argc, argv, args, &which->id, 1, &count);
    if (code == CLI_OK && which->id)
        code = cli_check_id(&verb_quarantine, "", which->id);
    if (code != CLI_OK)
        return code;
    client_query(path, "hook", bytes_str(which->id));
    client_query(path, "tenant", bytes_str(which->tenant));
    client_query(path, "source", bytes_str(which->source));
    client_query(path, "failure", bytes_str(which->failure));
    client_query(path, "since", bytes_str(show_moment(which->since, since_ms)));
    client_query(path, "until", bytes_str(show_moment(which->until, until_ms)));
    return CLI_OK;
}

/* ---- list, show ---- */

static const struct grid_column columns[] = {{"RECEIVED", false}, {"TENANT", false}, {"SOURCE", false},
                                             {"HOOK", false},     {"SIZE", true},    {"REASON", false}};

static void print(const json_t *answer)
{
    struct grid *table = grid_new(columns, sizeof columns / sizeof columns[0]);
    size_t i;
    const json_t *entry;
    json_array_foreach(json_object_get(answer, "entries"), i, entry)
    {
        show_cell_time(table, show_int(entry, "received_at"));
        show_cell_text(table, entry, "tenant");
        show_cell_text(table, entry, "source");
        show_cell_text(table, entry, "id");
        show_cell_bytes(table, show_int(entry, "size"));
        show_cell_text(table, entry, "reason");
    }
    show_list(table, answer, "entries", "hooks in quarantine");
    grid_free(table);
}

static int list(int argc, char **argv)
{
    struct which which = {0};
    const char *cursor = NULL;
    int64_t limit = 100;
    bool json = false;
    const struct arg args[] = {WHICH_ARGS(which),
                               {"limit", ARG_COUNT, {.number = &limit}},
                               {"cursor", ARG_TEXT, {.text = &cursor}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    struct buf path = {0};
    buf_puts(&path, "/v1/quarantine");
    int code = read_which(argc, argv, args, &which, &path);
    if (code == CLI_OK)
        code = show_listing(&(struct listing){.verb = &verb_quarantine,
                                              .where = &which.where,
                                              .path = path.at,
                                              .array = "entries",
                                              .limit = limit,
                                              .cursor = cursor,
                                              .json = json,
                                              .print = print});
    buf_free(&path);
    return code;
}

static int show(int argc, char **argv)
{
    struct client_where where = {0};
    bool json = false, raw = false;
    const char *id = NULL;
    const struct arg args[] = {
        CLIENT_ARGS(where), {"raw", ARG_FLAG, {.flag = &raw}}, {"json", ARG_FLAG, {.flag = &json}}, {0}};
    size_t count;
    struct client *client = NULL;
    json_t *hook = NULL;
    int code = cli_args(&verb_quarantine, argc, argv, args, &id, 1, &count);
    if (code == CLI_OK)
        code = cli_check_id(&verb_quarantine, "show", id);
    if (code == CLI_OK)
        code = client_open(&verb_quarantine, &where, &client);
    if (code != CLI_OK)
        return code;
    char *path = mem_format("/v1/quarantine/%s", id);
    code = client_get(client, path, &hook);
    if (code == CLI_OK && raw)
        code = hook_fetch_raw(client, "/v1/quarantine", hook);
    else if (code == CLI_OK && json)
        show_json(hook);
    else if (code == CLI_OK)
        hook_show(hook, stdout);
    json_decref(hook);
    free(path);
    client_close(client);
    return code;
}

/* ---- release, discard ---- */

struct act {
    const char *word, *past;
    struct which which;
    const char *reason;
    bool all, dry_run, yes, json;
    struct buf path; /* with the filters */
    int64_t matched, done, duplicates, failed, verified;
};

/* Call by call until the gateway says that nothing is left. */
static int do_all(struct act *act, struct client *client, bool dry_run)
{
    char *cursor = NULL;
    int code = CLI_OK;
    act->matched = act->done = act->duplicates = act->failed = act->verified = 0;
    do {
        struct buf path = {0};
        json_t *answer = NULL;
        buf_putb(&path, buf_bytes(&act->path));
        client_query(&path, "dry_run", dry_run ? BYTES("true") : BYTES_NONE);
        client_query(&path, "reason", dry_run ? BYTES_NONE : bytes_str(act->reason));
        client_query(&path, "cursor", bytes_str(cursor));
        code = client_post(client, path.at, &answer);
        buf_free(&path);
        free(cursor);
        cursor = NULL;
        if (code != CLI_OK)
            break;
        act->matched += show_int(answer, "matched");
        act->done += show_int(answer, "done");
        act->duplicates += show_int(answer, "duplicates");
        act->failed += show_int(answer, "failed");
        act->verified += show_int(answer, "verified");
        const char *next = show_text(answer, "next_cursor"), *stopped = show_text(answer, "stopped");
        if (*stopped) {
            fprintf(stderr, "the gateway stopped: %s; the same command goes on later\n", stopped);
            code = CLI_FAILED;
        } else if (*next) {
            cursor = mem_strdup(next);
        }
        json_decref(answer);
    } while (code == CLI_OK && cursor);
    free(cursor);
    return code;
}

static void say(const struct act *act, bool dry_run)
{
    bool releases = strcmp(act->word, "release") == 0;
    if (act->json) {
        json_t *sum = json_pack("{s:b, s:I, s:I}", "dry_run", dry_run, "matched", (json_int_t)act->matched,
                                "done", (json_int_t)act->done);
        if (releases) {
            json_object_set_new(sum, "verified", json_integer(act->verified));
            json_object_set_new(sum, "duplicates", json_integer(act->duplicates));
            json_object_set_new(sum, "failed", json_integer(act->failed));
        }
        show_json(sum);
        json_decref(sum);
        return;
    }
    if (dry_run && releases)
        printf("would release %" PRId64 " of %" PRId64 " hooks; %" PRId64 " fail verification again\n",
               act->verified, act->matched, act->failed);
    else if (dry_run)
        printf("would discard %" PRId64 " hooks\n", act->matched);
    else
        printf("%s %" PRId64 " of %" PRId64 " hooks\n", act->past, act->done, act->matched);
    if (!dry_run && act->duplicates > 0)
        printf("%" PRId64 " of them were duplicates of hooks that came since\n", act->duplicates);
    if (!dry_run && act->failed > 0)
        printf("%" PRId64 " failed verification again and stay; lanegate quarantine list says why\n",
               act->failed);
}

static int count_and_do(struct act *act, struct client *client)
{
    int code = do_all(act, client, true);
    if (code != CLI_OK)
        return code;
    if (act->dry_run || act->matched == 0) {
        say(act, act->dry_run);
        return CLI_OK;
    }
    bool one = act->which.id != NULL;
    if (strcmp(act->word, "release") == 0)
        code = cli_confirm(&verb_quarantine, act->yes || one,
                           "release %" PRId64 " of %" PRId64 " hooks, the others fail verification again",
                           act->verified, act->matched);
    else
        code = cli_confirm(&verb_quarantine, act->yes, "discard %" PRId64 " hooks for good", act->matched);
    if (code == CLI_OK)
        code = do_all(act, client, false);
    if (code == CLI_OK || act->matched > 0)
        say(act, false);
    return code == CLI_OK && one && act->failed > 0 ? CLI_FAILED : code;
}

static int run_act(int argc, char **argv, struct act *act)
{
    const struct arg args[] = {WHICH_ARGS(act->which),
                               {"all", ARG_FLAG, {.flag = &act->all}},
                               {"dry-run", ARG_FLAG, {.flag = &act->dry_run}},
                               {"yes", ARG_FLAG, {.flag = &act->yes}},
                               {"reason", ARG_TEXT, {.text = &act->reason}},
                               {"json", ARG_FLAG, {.flag = &act->json}},
                               {0}};
    struct client *client = NULL;
    buf_putf(&act->path, "/v1/quarantine/%s", act->word);
    int code = read_which(argc, argv, args, &act->which, &act->path);
    const struct which *w = &act->which;
    if (code == CLI_OK && !act->all && !w->id && !w->tenant && !w->source && !w->failure && !w->since &&
        !w->until)
        code = cli_usage(&verb_quarantine, "say which: a hook, a filter, or --all");
    if (code == CLI_OK && act->all)
        client_query(&act->path, "all", BYTES("true"));
    if (code == CLI_OK)
        code = client_open(&verb_quarantine, &act->which.where, &client);
    if (code == CLI_OK)
        code = count_and_do(act, client);
    client_close(client);
    buf_free(&act->path);
    return code;
}

static int release(int argc, char **argv)
{
    return run_act(argc, argv, &(struct act){.word = "release", .past = "released"});
}

static int discard(int argc, char **argv)
{
    return run_act(argc, argv, &(struct act){.word = "discard", .past = "discarded"});
}

static int run(int argc, char **argv)
{
    static const struct cli_act acts[] = {
        {"list", list}, {"show", show}, {"release", release}, {"discard", discard}, {0}};
    return cli_run_act(&verb_quarantine, acts, argc, argv);
}

const struct cli_verb verb_quarantine = {
    .name = "quarantine",
    .summary = "hooks that failed verification, kept for a person to look at",
    .help =
        "usage: lanegate quarantine list [ID] [options]\n"
        "       lanegate quarantine show ID [--raw] [options]\n"
        "       lanegate quarantine release|discard [ID] [options]\n"
        "\n"
        "list shows them, oldest first, and why they are there.\n"
        "\n"
        "  ID               that hook\n"
        "  --tenant NAME    of one tenant\n"
        "  --source NAME    of one source\n"
        "  --failure WORD   that failed for that reason: bad_signature, ...\n"
        "  --since TIME     received since then: an age (30m, 2d), unix milliseconds, or a time like\n"
        "  --until TIME     2026-07-01T12:00:00Z; and before that\n"
        "  --limit N        list: at most N (100)\n"
        "  --cursor TEXT    list: go on where an earlier list ended\n"
        "  --raw            show: the request as it came, which lanegate verify can judge\n"
        "\n"
        "release verifies them again, with the secrets of today at the time they came. What is good now\n"
        "becomes a hook, in the order of now; what fails again stays, with its reason.\n"
        "\n"
        "discard gives them up for good.\n"
        "\n"
        "Both count first, and ask on a terminal where more than a release of one is meant. They take the\n"
        "filters of list, and:\n"
        "\n"
        "  --all            where there is no filter: all of them\n"
        "  --dry-run        count, and do nothing\n"
        "  --yes            do not ask; needed where there is no terminal\n"
        "  --reason TEXT    why, for the audit table\n"
        "\n"
        "all:\n"
        "  --json           the API's JSON, one document\n" CLIENT_HELP "\n"
        "examples:\n"
        "  lanegate quarantine list --source stripe --since 2h\n"
        "  lanegate quarantine release --source stripe --dry-run\n"
        "  lanegate quarantine discard --source shop --failure bad_signature --yes\n",
    .run = run,
};
