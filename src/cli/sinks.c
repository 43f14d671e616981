/* lanegate sinks: every sink, how much waits for it, and whether its breaker is open. */
#include "cli/show.h"

static const struct grid_column columns[] = {{"SINK", false},    {"TYPE", false},   {"ORDERED", false},
                                             {"PENDING", true},  {"RUNNING", true}, {"DEAD", true},
                                             {"BREAKER", false}, {"OLDEST", true},  {"LAST ERROR", false}};

/* A sink that was stopped by a person, or by its own configuration, says so where the breaker stands. */
static const char *breaker_of(const json_t *sink)
{
    if (json_is_true(json_object_get(sink, "paused")))
        return "paused";
    if (json_is_true(json_object_get(sink, "parked")))
        return "parked";
    return show_text(sink, "breaker");
}

static void print(const json_t *answer)
{
    struct grid *table = grid_new(columns, sizeof columns / sizeof columns[0]);
    size_t i;
    const json_t *sink;
    json_array_foreach(json_object_get(answer, "sinks"), i, sink)
    {
        show_cell_lane(table, sink);
        show_cell_text(table, sink, "type");
        grid_cell(table, "%s", json_is_true(json_object_get(sink, "ordered")) ? "yes" : "no");
        show_cell_int(table, sink, "pending");
        show_cell_int(table, sink, "running");
        show_cell_int(table, sink, "dead");
        grid_cell(table, "%s", breaker_of(sink));
        show_cell_age(table, show_int(sink, "oldest_at"));
        show_cell_text(table, sink, "last_error");
    }
    show_list(table, answer, "sinks", "sinks");
    grid_free(table);
}

static int run(int argc, char **argv)
{
    struct client_where where = {0};
    bool json = false;
    const struct arg args[] = {CLIENT_ARGS(where), {"json", ARG_FLAG, {.flag = &json}}, {0}};
    size_t count;
    int code = cli_args(&verb_sinks, argc, argv, args, NULL, 0, &count);
    if (code != CLI_OK)
        return code;

    return show_listing(&(struct listing){
        .verb = &verb_sinks, .where = &where, .path = "/v1/sinks", .json = json, .print = print});
}

const struct cli_verb verb_sinks = {
    .name = "sinks",
    .summary = "every sink, how much waits for it, and its breaker",
    .help =
        "usage: lanegate sinks [options]\n"
        "\n"
        "One line a configured sink: hooks that wait (PENDING), attempts running now, dead letters, the\n"
        "breaker (closed, open, half_open; paused or parked when it is), and since when the oldest waits.\n"
        "\n"
        "  --json           the API's JSON, one document\n" CLIENT_HELP "\n"
        "example:\n"
        "  lanegate sinks --admin http://gateway.internal:4002\n",
    .run = run,
};
