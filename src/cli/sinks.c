/* lanegate sinks: every sink, how much waits for it, and whether its breaker is open; and the acts on one. */
#include <string.h>

#include "cli/lane_act.h"
#include "cli/lane_name.h"
#include "cli/show.h"
#include "util/clock.h"
#include "util/units.h"

static const struct grid_column columns[] = {{"SINK", false},    {"TYPE", false},   {"ORDERED", false},
                                             {"PENDING", true},  {"RUNNING", true}, {"DEAD", true},
                                             {"BREAKER", false}, {"OLDEST", true},  {"LAST ERROR", false}};

/* " for 29m" until a moment to come; nothing for one that is not known. */
static void cell_until(struct grid *table, const char *state, const char *word, int64_t until_ms)
{
    char text[32];
    int64_t left_ms = until_ms - clock_unix_ms();
    units_format_ms(left_ms > 0 ? left_ms : 0, text);
    if (until_ms)
        grid_cell(table, "%s%s%s", state, word, text);
    else
        grid_cell(table, "%s", state);
}

/* A sink that was stopped by a person, or by its own configuration, says so where the breaker stands. */
static void cell_breaker(struct grid *table, const json_t *sink)
{
    if (json_is_true(json_object_get(sink, "paused")))
        cell_until(table, "paused", " for ", show_int(sink, "paused_until"));
    else
        cell_until(table,
                   json_is_true(json_object_get(sink, "parked")) ? "parked" : show_text(sink, "breaker"),
                   ", probe in ", show_int(sink, "probe_at"));
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
        cell_breaker(table, sink);
        show_cell_age(table, show_int(sink, "oldest_at"));
        show_cell_text(table, sink, "last_error");
    }
    show_list(table, answer, "sinks", "sinks");
    grid_free(table);
}

static int list(int argc, char **argv)
{
    struct client_where where = {0};
    bool json = false;
    const struct arg args[] = {CLIENT_ARGS(where), {"json", ARG_FLAG, {.flag = &json}}, {0}};
    size_t count;
    int code = cli_args(&verb_sinks, argc, argv, args, NULL, 0, &count);
    if (code != CLI_OK)
        return code;

    return show_listing(&(struct listing){.verb = &verb_sinks,
                                          .where = &where,
                                          .path = "/v1/sinks",
                                          .array = "sinks",
                                          .whole = true,
                                          .json = json,
                                          .print = print});
}

static int act(int argc, char **argv)
{
    struct client_where where = {0};
    const char *name = argv[0], *reason = NULL, *text = NULL;
    int64_t for_ms = 0;
    bool json = false;
    const struct arg args[] = {CLIENT_ARGS(where),
                               {"for", ARG_DURATION, {.number = &for_ms}},
                               {"reason", ARG_TEXT, {.text = &reason}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    size_t count;
    struct lane_name sink;
    int code = cli_args(&verb_sinks, argc, argv, args, &text, 1, &count);
    if (code != CLI_OK)
        return code;
    if (for_ms && strcmp(name, "pause") != 0)
        return cli_usage(&verb_sinks, "--for is for pause");
    if (!count)
        return cli_usage(&verb_sinks, "which sink? source/sink");
    if (!lane_name_parse(text, &sink))
        return cli_usage(&verb_sinks, "a sink is named source/sink, got \"%s\"", text);
    struct buf path = {0};
    char duration[24];
    json_t *answer = NULL;
    if (!sink.sink || sink.has_key) {
        code = cli_usage(&verb_sinks, "a sink is named source/sink, got \"%s\"", text);
    } else {
        buf_putf(&path, "/v1/sinks/%s/%s/%s", sink.source, sink.sink, name);
        snprintf(duration, sizeof duration, "%lldms", (long long)for_ms);
        client_query(&path, "for", for_ms ? bytes_str(duration) : BYTES_NONE);
        code = act_post(&verb_sinks, &where, &path, reason, json, &answer);
    }
    if (code == CLI_OK && !json)
        printf("%s %s\n",
               *name == 'p'                  ? "paused"
               : strcmp(name, "resume") == 0 ? "resumed"
                                             : "retrying",
               text);
    json_decref(answer);
    lane_name_free(&sink);
    buf_free(&path);
    return code;
}

static int run(int argc, char **argv)
{
    static const char *const acts[] = {"pause", "resume", "retry"};
    for (size_t i = 0; argc > 1 && i < sizeof acts / sizeof acts[0]; i++)
        if (strcmp(argv[1], acts[i]) == 0)
            return act(argc - 1, argv + 1);
    bool named = argc > 1 && strcmp(argv[1], "list") == 0;
    return list(argc - named, argv + named);
}

const struct cli_verb verb_sinks = {
    .name = "sinks",
    .summary = "every sink, how much waits for it, and its breaker; pause, resume, retry",
    .help =
        "usage: lanegate sinks [list] [options]\n"
        "       lanegate sinks pause SOURCE/SINK [--for 30m] [--reason TEXT]\n"
        "       lanegate sinks resume|retry SOURCE/SINK [--reason TEXT]\n"
        "\n"
        "pause starts no attempt any more, over a restart too; with --for it ends by itself.\n"
        "retry closes the breaker and makes everything due that waits for another attempt.\n"
        "\n"
        "list: one line a configured sink: hooks that wait (PENDING), attempts running now, dead letters, "
        "the\n"
        "breaker (closed, open, half_open; paused or parked when it is), and since when the oldest waits.\n"
        "\n"
        "  --for DURATION   how long to pause: 90s, 30m, 12h\n"
        "  --reason TEXT    kept in the audit table\n"
        "  --json           the API's JSON, one document\n" CLIENT_HELP "\n"
        "example:\n"
        "  lanegate sinks --admin http://gateway.internal:4002\n"
        "  lanegate sinks pause stripe/billing --for 30m --reason \"database upgrade\"\n",
    .run = run,
};
