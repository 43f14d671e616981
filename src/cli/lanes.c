/* lanegate lanes: which lanes wait, for how long, and behind what. */
#include "cli/lane_name.h"
#include "cli/show.h"

static const struct grid_column columns[] = {{"TENANT", false}, {"LANE", false},      {"STATE", false},
                                             {"DEPTH", true},   {"AGE", true},        {"ATTEMPTS", true},
                                             {"DUE IN", true},  {"LAST ERROR", false}};

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
        show_cell_int(table, head, "attempts");
        show_cell_due(table, show_int(head, "due_at"));
        show_cell_text(table, head, "last_error");
    }
    show_list(table, answer, "lanes", "lanes");
    grid_free(table);
}

static int run(int argc, char **argv)
{
    struct client_where where = {0};
    const char *tenant = NULL, *source = NULL, *sink = NULL, *state = NULL, *sort = NULL, *cursor = NULL;
    int64_t limit = 100;
    bool json = false;
    const struct arg args[] = {CLIENT_ARGS(where),
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

    code = show_listing(&(struct listing){.verb = &verb_lanes,
                                          .where = &where,
                                          .path = path.at,
                                          .array = "lanes",
                                          .limit = limit,
                                          .cursor = cursor,
                                          .json = json,
                                          .print = print});
    buf_free(&path);
    return code;
}

const struct cli_verb verb_lanes = {
    .name = "lanes",
    .summary = "which lanes wait, for how long, and behind what",
    .help = "usage: lanegate lanes [SOURCE[/SINK[/KEY]]] [options]\n"
            "\n"
            "Lists the lanes that have something to deliver: state, how many hooks wait (DEPTH), since when\n"
            "the first of them does (AGE), its attempts, when it is due again, and what its last error was.\n"
            "A state is ready, running, retrying, held, paused, parked or breaker_open.\n"
            "\n"
            "  SOURCE/SINK/KEY  one lane, named as it is shown; the key may hold slashes. SOURCE/SINK/ with\n"
            "                   nothing behind it is the keyless lane, SOURCE/SINK every lane of that sink\n"
            "  --tenant NAME    of one tenant\n"
            "  --source NAME    of one source\n"
            "  --sink NAME      of sinks of that name\n"
            "  --state STATE    in one state\n"
            "  --sort age|depth oldest head first (the default), or deepest first\n"
            "  --limit N        at most N (100)\n"
            "  --cursor TEXT    go on where an earlier list ended\n"
            "  --json           the API's JSON, one document\n" CLIENT_HELP "\n"
            "examples:\n"
            "  lanegate lanes --state retrying --sort depth\n"
            "  lanegate lanes stripe/billing/cus_NffrFeUfNV2Hib\n",
    .run = run,
};
