/* lanegate lanes: which lanes wait, for how long, and behind what; and the acts on one. */
#include <string.h>

#include "cli/lane_act.h"
#include "cli/lane_name.h"
#include "cli/show.h"

static const struct grid_column columns[] = {{"TENANT", false},  {"LANE", false},   {"STATE", false},
                                             {"DEPTH", true},    {"AGE", true},     {"BLOCKED FOR", true},
                                             {"ATTEMPTS", true}, {"NEXT IN", true}, {"LAST ANSWER", false}};

static void print(const json_t *answer)
{
    struct grid *table = grid_new(columns, sizeof columns / sizeof columns[0]);
    size_t i;
    const json_t *lane;
    json_array_foreach(json_object_get(answer, "lanes"), i, lane)
    {
        const json_t *head = json_object_get(lane, "head");
        show_cell_text(table, lane, "tenant");
        show_cell_lane(table, lane);
        show_cell_text(table, lane, "state");
        show_cell_int(table, lane, "depth");
        show_cell_age(table, show_int(lane, "oldest_at"));
        show_cell_age(table, show_int(lane, "blocked_since"));
        show_cell_int(table, head, "attempts");
        show_cell_due(table, show_int(head, "due_at"));
        show_cell_text(table, head, "last_error");
    }
    show_list(table, answer, "lanes", "lanes");
    grid_free(table);
}

static int list(int argc, char **argv)
{
    struct client_where where = {0};
    const char *tenant = NULL, *source = NULL, *sink = NULL, *state = NULL, *sort = NULL, *cursor = NULL;
    int64_t limit = 100;
    bool json = false, watch = false;
    const struct arg args[] = {CLIENT_ARGS(where),
                               {"watch", ARG_FLAG, {.flag = &watch}},
                               {"tenant", ARG_TEXT, {.text = &tenant}},
                               {"source", ARG_TEXT, {.text = &source}},
                               {"sink", ARG_TEXT, {.text = &sink}},
                               {"state", ARG_TEXT, {.text = &state}},
                               {"sort", ARG_TEXT, {.text = &sort}},
                               {"limit", ARG_COUNT, {.number = &limit}},
                               {"cursor", ARG_TEXT, {.text = &cursor}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    const char *rest[1];
    size_t count;
    int code = cli_args(&verb_lanes, argc, argv, args, rest, 1, &count);
    if (code != CLI_OK)
        return code;
    struct lane_name name = {0};
    if (count && (source || sink))
        return cli_usage(&verb_lanes, "either %s or --source and --sink", rest[0]);
    if (count && !lane_name_parse(rest[0], &name))
        return cli_usage(&verb_lanes, "a lane is named source/sink/key, got \"%s\"", rest[0]);

    struct buf path = {0};
    buf_puts(&path, "/v1/lanes");
    client_query(&path, "tenant", bytes_str(tenant));
    client_query(&path, "source", bytes_str(count ? name.source : source));
    client_query(&path, "sink", bytes_str(count ? name.sink : sink));
    client_query(&path, "key", name.has_key ? buf_bytes(&name.key) : BYTES_NONE);
    client_query(&path, "state", bytes_str(state));
    client_query(&path, "sort", bytes_str(sort));
    lane_name_free(&name);

    const struct listing listing = {.verb = &verb_lanes,
                                    .where = &where,
                                    .path = path.at,
                                    .array = "lanes",
                                    .limit = limit,
                                    .cursor = cursor,
                                    .json = json,
                                    .print = print};
    code = watch ? show_watched(&listing) : show_listing(&listing);
    buf_free(&path);
    return code;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} acts[] = {
    {"list", list},      {"show", lane_show}, {"pause", lane_act},   {"resume", lane_act},
    {"retry", lane_act}, {"skip", lane_act},  {"rekey", lane_rekey},
};

static int run(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof acts / sizeof acts[0]; i++)
        if (strcmp(argv[1], acts[i].name) == 0)
            return acts[i].run(argc - 1, argv + 1);
    return list(argc, argv);
}

const struct cli_verb verb_lanes = {
    .name = "lanes",
    .summary = "which lanes wait, for how long, and behind what; pause, retry, skip",
    .help =
        "usage: lanegate lanes [list] [SOURCE[/SINK[/KEY]]] [options]\n"
        "       lanegate lanes show SOURCE/SINK/KEY [--tenant NAME]\n"
        "       lanegate lanes pause|resume|retry|skip SOURCE/SINK/KEY [--tenant NAME] [--reason TEXT]\n"
        "       lanegate lanes rekey SOURCE/SINK [--dry-run] [--reason TEXT]\n"
        "\n"
        "list shows the lanes that have something to deliver: state, how many hooks wait (DEPTH), since\n"
        "when the first of them does (AGE), since when it fails (BLOCKED FOR), its attempts, when the next\n"
        "one is, and what the last one was answered. A state is ready, running, retrying, held, paused,\n"
        "parked or breaker_open.\n"
        "\n"
        "show prints one lane with its next 20 hooks.\n"
        "pause stops a lane after the attempt that runs, over a restart too; resume lets it go on.\n"
        "retry makes the first hook due now; one that holds its lane gets a fresh budget.\n"
        "skip makes a dead letter of the first hook, and the lane goes on.\n"
        "rekey gives the hooks that wait for a sink the lanes that the running configuration gives new\n"
        "ones. They keep their order; the sink stands still meanwhile.\n"
        "\n"
        "In list:\n"
        "  SOURCE/SINK/KEY  one lane, named as it is shown; the key may hold slashes. SOURCE/SINK/ with\n"
        "                   nothing behind it is the keyless lane, SOURCE/SINK every lane of that sink\n"
        "  --tenant NAME    of one tenant\n"
        "  --source NAME    of one source\n"
        "  --sink NAME      of sinks of that name\n"
        "  --state STATE    in one state\n"
        "  --sort age|depth oldest head first (the default), or deepest first\n"
        "  --limit N        at most N (100)\n"
        "  --cursor TEXT    go on where an earlier list ended\n"
        "  --watch          on a terminal: the list again every second, until Ctrl-C\n"
        "\n"
        "In acts (SOURCE/SINK alone is the keyless lane):\n"
        "  --tenant NAME    whose lane (default)\n"
        "  --expect-head ID do nothing when the lane's first hook is another one by now (retry, skip)\n"
        "  --reason TEXT    kept in the audit table\n"
        "  --dry-run        only count (rekey)\n"
        "  --yes            don't ask (skip, rekey); needed where there is no terminal\n"
        "\n"
        "  --json           the API's JSON, one document\n" CLIENT_HELP "\n"
        "examples:\n"
        "  lanegate lanes --watch\n"
        "  lanegate lanes --state retrying --sort depth\n"
        "  lanegate lanes stripe/billing/cus_NffrFeUfNV2Hib\n"
        "  lanegate lanes skip stripe/billing/cus_NffrFeUfNV2Hib --reason \"poison, see OPS-12\"\n",
    .run = run,
};
