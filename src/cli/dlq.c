/* lanegate dlq: the dead letters, what was given up on. */
#include <string.h>

#include "cli/dlq_act.h"
#include "cli/dlq_filter.h"
#include "cli/show.h"

static const struct grid_column columns[] = {{"DEAD FOR", true}, {"TENANT", false}, {"LANE", false},
                                             {"STATE", false},   {"HOOK", false},   {"CLASS", false},
                                             {"ATTEMPTS", true}, {"REASON", false}};

static void print(const json_t *answer)
{
    struct grid *table = grid_new(columns, sizeof columns / sizeof columns[0]);
    size_t i;
    const json_t *entry;
    json_array_foreach(json_object_get(answer, "entries"), i, entry)
    {
        show_cell_age(table, show_int(entry, "dead_at"));
        show_cell_text(table, entry, "tenant");
        show_cell_lane(table, entry);
        show_cell_text(table, entry, "state");
        show_cell_text(table, entry, "id");
        show_cell_text(table, entry, "class");
        show_cell_int(table, entry, "attempts");
        show_cell_text(table, entry, "reason");
    }
    show_list(table, answer, "entries", "dead letters");
    grid_free(table);
}

static int list(int argc, char **argv)
{
    struct dlq_filter filter = {0};
    const char *cursor = NULL;
    int64_t limit = 100;
    bool json = false;
    const struct arg args[] = {DLQ_FILTER_ARGS(filter),
                               {"limit", ARG_COUNT, {.number = &limit}},
                               {"cursor", ARG_TEXT, {.text = &cursor}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    struct buf path = {0};
    buf_puts(&path, "/v1/dlq");
    int code = dlq_filter_read(argc, argv, args, &filter, &path);
    if (code == CLI_OK)
        code = show_listing(&(struct listing){.verb = &verb_dlq,
                                              .where = &filter.where,
                                              .path = path.at,
                                              .array = "entries",
                                              .limit = limit,
                                              .cursor = cursor,
                                              .json = json,
                                              .print = print});
    buf_free(&path);
    return code;
}

static int run(int argc, char **argv)
{
    static const struct cli_act acts[] = {
        {"list", list}, {"show", dlq_show}, {"replay", dlq_replay}, {"discard", dlq_discard}, {0}};
    return cli_run_act(&verb_dlq, acts, argc, argv);
}

const struct cli_verb verb_dlq = {
    .name = "dlq",
    .summary = "the dead letters: what was given up on, and why",
    .help =
        "usage: lanegate dlq list [SOURCE[/SINK[/KEY]] | ID] [options]\n"
        "       lanegate dlq show ID [options]\n"
        "       lanegate dlq replay|discard [SOURCE[/SINK[/KEY]] | ID] [options]\n"
        "\n"
        "list shows dead letters, oldest hook first. A lane goes on behind one in state dead, and waits\n"
        "behind one in state held.\n"
        "\n"
        "  SOURCE/SINK/KEY  of one lane, named as it is shown; SOURCE/SINK of all lanes of a sink\n"
        "  ID               of one hook\n"
        "  --tenant NAME    of one tenant\n"
        "  --source NAME    of one source\n"
        "  --sink NAME      of sinks of that name\n"
        "  --lane ID        of the lane with that id (32 hex digits)\n"
        "  --class CLASS    refused, exhausted, ...\n"
        "  --since TIME     that died since then: an age (30m, 2d), unix milliseconds, or a time like\n"
        "  --until TIME     2026-07-01T12:00:00Z; and before that\n"
        "  --limit N        list: at most N (100)\n"
        "  --cursor TEXT    list: go on where an earlier list ended\n"
        "\n"
        "show prints the dead letters of one hook, with its last failures and what the receiver answered.\n"
        "\n"
        "replay makes them owed again, with a fresh budget. A hook keeps its place: it goes before newer\n"
        "ones of its lane that still wait. Where newer ones were delivered already it comes late; how many\n"
        "those are is said before anything is done. A lane that one of them holds goes on with it.\n"
        "\n"
        "discard gives them up for good. A lane that one of them holds goes on with the next.\n"
        "\n"
        "Both count first, and ask on a terminal. They take the filters of list, and:\n"
        "\n"
        "  --all            where there is no filter: every dead letter\n"
        "  --forget         discard: their dedupe keys are free, so that a provider may send them again\n"
        "  --dry-run        count, and do nothing\n"
        "  --yes            do not ask; needed where there is no terminal\n"
        "  --reason TEXT    why, for the audit table\n"
        "\n"
        "all:\n"
        "  --json           the API's JSON, one document\n" CLIENT_HELP "\n"
        "examples:\n"
        "  lanegate dlq list stripe/billing --class exhausted --since 2h\n"
        "  lanegate dlq replay stripe/billing/cus_NffrFeUfNV2Hib --dry-run\n"
        "  lanegate dlq discard --source shop --until 30d --yes --reason 'older than the books'\n",
    .run = run,
};
