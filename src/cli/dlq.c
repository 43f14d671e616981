/* lanegate dlq: the dead letters, what was given up on. */
#include "cli/lane_name.h"
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
    struct client_where where = {0};
    const char *tenant = NULL, *source = NULL, *sink = NULL, *lane = NULL, *class = NULL, *since = NULL,
               *until = NULL, *cursor = NULL;
    int64_t limit = 100;
    bool json = false;
    const struct arg args[] = {CLIENT_ARGS(where),
                               {"tenant", ARG_TEXT, {.text = &tenant}},
                               {"source", ARG_TEXT, {.text = &source}},
                               {"sink", ARG_TEXT, {.text = &sink}},
                               {"lane", ARG_TEXT, {.text = &lane}},
                               {"class", ARG_TEXT, {.text = &class}},
                               {"since", ARG_TEXT, {.text = &since}},
                               {"until", ARG_TEXT, {.text = &until}},
                               {"limit", ARG_COUNT, {.number = &limit}},
                               {"cursor", ARG_TEXT, {.text = &cursor}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    const char *rest[1];
    size_t count;
    int code = cli_args(&verb_dlq, argc, argv, args, rest, 1, &count);
    if (code != CLI_OK)
        return code;
    struct lane_name name = {0};
    if (count && (source || sink || lane))
        return cli_usage(&verb_dlq, "either %s or --source, --sink and --lane", rest[0]);
    if (count && !lane_name_parse(rest[0], &name))
        return cli_usage(&verb_dlq, "a lane is named source/sink/key, got \"%s\"", rest[0]);

    struct buf path = {0};
    char since_ms[24], until_ms[24];
    buf_puts(&path, "/v1/dlq");
    client_query(&path, "tenant", bytes_str(tenant));
    client_query(&path, "source", bytes_str(count ? name.source : source));
    client_query(&path, "sink", bytes_str(count ? name.sink : sink));
    client_query(&path, "key", name.has_key ? buf_bytes(&name.key) : BYTES_NONE);
    client_query(&path, "lane", bytes_str(lane));
    client_query(&path, "class", bytes_str(class));
    client_query(&path, "since", bytes_str(show_moment(since, since_ms)));
    client_query(&path, "until", bytes_str(show_moment(until, until_ms)));
    lane_name_free(&name);

    code = show_listing(&(struct listing){.verb = &verb_dlq,
                                          .where = &where,
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
    if (argc > 1 && strcmp(argv[1], "list") == 0)
        return list(argc - 1, argv + 1);
    if (argc > 1)
        return cli_usage(&verb_dlq, "no act \"%s\"; there is list", argv[1]);
    return cli_usage(&verb_dlq, "what to do is missing: list");
}

const struct cli_verb verb_dlq = {
    .name = "dlq",
    .summary = "the dead letters: what was given up on, and why",
    .help = "usage: lanegate dlq list [SOURCE[/SINK[/KEY]]] [options]\n"
            "\n"
            "Lists dead letters, oldest hook first. A lane goes on behind one in state dead, and waits "
            "behind one\n"
            "in state held.\n"
            "\n"
            "  SOURCE/SINK/KEY  of one lane, named as it is shown; SOURCE/SINK of all lanes of a sink\n"
            "  --tenant NAME    of one tenant\n"
            "  --source NAME    of one source\n"
            "  --sink NAME      of sinks of that name\n"
            "  --lane ID        of the lane with that id (32 hex digits)\n"
            "  --class CLASS    refused, exhausted, ...\n"
            "  --since TIME     that died since then: an age (30m, 2d), unix milliseconds, or a time like\n"
            "  --until TIME     2026-07-01T12:00:00Z; and before that\n"
            "  --limit N        at most N (100)\n"
            "  --cursor TEXT    go on where an earlier list ended\n"
            "  --json           the API's JSON, one document\n" CLIENT_HELP "\n"
            "examples:\n"
            "  lanegate dlq list stripe/billing --class exhausted --since 2h\n"
            "  lanegate dlq list --json | jq -r '.entries[].id'\n",
    .run = run,
};
