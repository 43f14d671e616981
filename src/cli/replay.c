/* lanegate replay: jobs that send stored hooks again. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/replay_start.h"
#include "cli/show.h"
#include "util/mem.h"
#include "util/uuid.h"

static const struct grid_column columns[] = {
    {"REPLAY", false}, {"STATE", false}, {"OF", false},  {"STARTED", true}, {"LOOKED", true},
    {"MADE", true},    {"DONE", true},   {"DEAD", true}, {"RATE", true},    {"WHY", false}};

static void cell_of(struct grid *table, const json_t *job)
{
    const char *source = show_text(job, "source"), *sink = show_text(job, "sink"),
               *tenant = show_text(job, "tenant");
    bool pen = strcmp(show_text(job, "from"), "quarantine") == 0;
    grid_cell(table, "%s%s%s%s%s%s", pen ? "quarantine of " : "", *source ? source : "*", *sink ? "/" : "",
              sink, *tenant ? " of " : "", tenant);
}

static void row_of(struct grid *table, const json_t *job)
{
    const char *why = show_text(job, "why");
    show_cell_text(table, job, "id");
    show_cell_text(table, job, "state");
    cell_of(table, job);
    show_cell_age(table, show_int(job, "created_at"));
    grid_cell(table, "%d%%", (int)(100 * json_number_value(json_object_get(job, "progress"))));
    show_cell_int(table, job, "made");
    show_cell_int(table, job, "done");
    show_cell_int(table, job, "dead");
    show_cell_int(table, job, "rate");
    grid_cell(table, "%s", *why ? why : show_text(job, "waits"));
}

static void print(const json_t *answer)
{
    struct grid *table = grid_new(columns, sizeof columns / sizeof columns[0]);
    size_t i;
    const json_t *job;
    json_array_foreach(json_object_get(answer, "replays"), i, job) row_of(table, job);
    show_list(table, answer, "replays", "replays");
    grid_free(table);
}

static int list(int argc, char **argv)
{
    struct client_where where = {0};
    const char *cursor = NULL, *state = NULL;
    int64_t limit = 100;
    bool json = false;
    const struct arg args[] = {CLIENT_ARGS(where),
                               {"state", ARG_TEXT, {.text = &state}},
                               {"limit", ARG_COUNT, {.number = &limit}},
                               {"cursor", ARG_TEXT, {.text = &cursor}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    struct buf path = {0};
    size_t count;
    int code = cli_args(&verb_replay, argc, argv, args, NULL, 0, &count);
    buf_puts(&path, "/v1/replays");
    client_query(&path, "state", bytes_str(state));
    if (code == CLI_OK)
        code = show_listing(&(struct listing){.verb = &verb_replay,
                                              .where = &where,
                                              .path = path.at,
                                              .array = "replays",
                                              .limit = limit,
                                              .cursor = cursor,
                                              .json = json,
                                              .print = print});
    buf_free(&path);
    return code;
}

/* ---- one job ---- */

static void print_time(const char *name, int64_t at_ms, const char *otherwise)
{
    char text[32];
    show_time(at_ms, text);
    printf("%-14s %s\n", name, at_ms ? text : otherwise);
}

static void print_job(const json_t *job)
{
    static const char *const texts[] = {"state",  "why",  "waits",   "from", "tenant",
                                        "source", "sink", "failure", "who",  "reason"};
    static const char *const counts[] = {
        "rate", "planned", "hooks",     "gone",        "released", "duplicates",   "failed",       "made",
        "done", "dead",    "discarded", "outstanding", "lanes",    "owed_already", "lanes_rewound"};
    printf("%-14s %s\n", "replay", show_text(job, "id"));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (!*show_text(job, texts[i]))
            continue;
        printf("%-14s ", texts[i]);
        print_harmless(stdout, show_text(job, texts[i]));
        putchar('\n');
    }
    print_time("since", show_int(job, "since"), "the oldest");
    print_time("until", show_int(job, "until"), "its start");
    print_time("started", show_int(job, "created_at"), "-");
    printf("%-14s %d%%\n", "looked at", (int)(100 * json_number_value(json_object_get(job, "progress"))));
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (json_is_integer(json_object_get(job, counts[i])))
            printf("%-14s %" PRId64 "\n", counts[i], show_int(job, counts[i]));
}

struct one {
    struct client_where where;
    const char *id, *reason;
    int64_t rate;
    bool json, follow;
};

static int parse_one(int argc, char **argv, struct one *one)
{
    const struct arg args[] = {CLIENT_ARGS(one->where),
                               {"rate", ARG_COUNT, {.number = &one->rate}},
                               {"follow", ARG_FLAG, {.flag = &one->follow}},
                               {"reason", ARG_TEXT, {.text = &one->reason}},
                               {"json", ARG_FLAG, {.flag = &one->json}},
                               {0}};
    size_t count;
    struct uuid id;
    int code = cli_args(&verb_replay, argc, argv, args, &one->id, 1, &count);
    if (code != CLI_OK)
        return code;
    if (!count || !uuid_parse(bytes_str(one->id), &id))
        return cli_usage(&verb_replay, "%s needs the id of a replay, as list shows it", argv[0]);
    return CLI_OK;
}

static int show(int argc, char **argv)
{
    struct one one = {.id = NULL};
    struct client *client = NULL;
    json_t *job = NULL;
    int code = parse_one(argc, argv, &one);
    if (code == CLI_OK && (one.rate || one.reason))
        code = cli_usage(&verb_replay, "show takes --follow and --json");
    if (code == CLI_OK)
        code = client_open(&verb_replay, &one.where, &client);
    char *path = mem_format("/v1/replays/%s", one.id ? one.id : "");
    if (code == CLI_OK)
        code = client_get(client, path, &job);
    if (code == CLI_OK && one.follow)
        code = replay_follow(client, &job);
    if (code == CLI_OK && one.json)
        show_json(job);
    else if (code == CLI_OK)
        print_job(job);
    free(path);
    json_decref(job);
    client_close(client);
    return code;
}

/* pause, resume, cancel, rate. */
static int change(int argc, char **argv)
{
    const char *word = argv[0], *state = strcmp(word, "pause") == 0    ? "paused"
                                         : strcmp(word, "resume") == 0 ? "running"
                                         : strcmp(word, "cancel") == 0 ? "cancelled"
                                                                       : NULL;
    struct one one = {.id = NULL};
    struct client *client = NULL;
    struct buf path = {0};
    json_t *job = NULL;
    char number[24];
    int code = parse_one(argc, argv, &one);
    if (code == CLI_OK && !state && !one.rate)
        code = cli_usage(&verb_replay, "rate needs --rate N");
    if (code == CLI_OK)
        code = client_open(&verb_replay, &one.where, &client);
    buf_putf(&path, "/v1/replays/%s", one.id ? one.id : "");
    client_query(&path, "state", bytes_str(state));
    snprintf(number, sizeof number, "%" PRId64, one.rate);
    client_query(&path, "rate", one.rate ? bytes_str(number) : BYTES_NONE);
    client_query(&path, "reason", bytes_str(one.reason));
    if (code == CLI_OK)
        code = client_patch(client, path.at, &job);
    if (code == CLI_OK && one.json)
        show_json(job);
    else if (code == CLI_OK)
        printf("replay %s is %s, %" PRId64 " hooks a second; %" PRId64 " deliveries that it made are %s\n",
               one.id, show_text(job, "state"), show_int(job, "rate"), show_int(job, "outstanding"),
               state && strcmp(state, "cancelled") == 0 ? "taken back, but for those under way"
                                                        : "still owed");
    buf_free(&path);
    json_decref(job);
    client_close(client);
    return code;
}

static int run(int argc, char **argv)
{
    static const struct cli_act acts[] = {
        {"start", replay_start}, {"list", list},     {"show", show},   {"pause", change},
        {"resume", change},      {"cancel", change}, {"rate", change}, {0}};
    return cli_run_act(&verb_replay, acts, argc, argv);
}

const struct cli_verb verb_replay = {
    .name = "replay",
    .summary = "sends stored hooks again, at a pace: start, list, show, pause, resume, cancel",
    .help =
        "usage: lanegate replay start [SOURCE[/SINK]] [options]\n"
        "       lanegate replay start --quarantine [SOURCE] [options]\n"
        "       lanegate replay list [--state STATE] [--limit N] [--cursor TEXT] [--json]\n"
        "       lanegate replay show ID [--follow] [--json]\n"
        "       lanegate replay pause|resume|cancel ID [--rate N] [--reason TEXT]\n"
        "       lanegate replay rate ID --rate N [--reason TEXT]\n"
        "\n"
        "start sends hooks that are still stored to their sinks once more, oldest first. Id, seq and\n"
        "idempotency key stay what they were, and every delivery carries replay-id. The sinks, filters and\n"
        "keys are those of the running configuration. What a sink is still owed is not sent twice; a dead\n"
        "letter of the window comes back. On an ordered sink a lane is rewound: from its first hook of the\n"
        "replay until its last one is done, newer hooks of that lane wait.\n"
        "\n"
        "start --quarantine verifies hooks in quarantine again, with today's secrets at the time they came.\n"
        "Each that is good becomes a new hook with a new seq and goes to all sinks of its source; those "
        "that\n"
        "fail again stay, and are counted. Nothing is rewound.\n"
        "\n"
        "It counts first, and asks on a terminal. It goes on over a restart. The same command again, in the\n"
        "same words, gives the replay that is running. When 10 of its deliveries in a row die, it pauses\n"
        "itself.\n"
        "\n"
        "  SOURCE/SINK        of one sink; SOURCE of all sinks of a source\n"
        "  --tenant NAME      of one tenant\n"
        "  --source NAME      the same as SOURCE; --sink NAME: sinks of that name\n"
        "  --since TIME       received since then: an age (30m, 2d), unix milliseconds, or a time like\n"
        "  --until TIME       2026-07-01T12:00:00Z; and before that\n"
        "  --failure WORD     of the quarantine: of those that are there for that reason, as bad_signature\n"
        "  --all              where there is no filter: every stored hook, or all of the quarantine\n"
        "  --rate N           hooks a second (50)\n"
        "  --max-lag TIME     wait while a sink's own oldest hook has been waiting longer than that\n"
        "  --dry-run          count, and do nothing\n"
        "  --follow           watch it until it is over: a bar on a terminal\n"
        "  --yes              do not ask; needed where there is no terminal\n"
        "  --reason TEXT      why, for the audit table\n"
        "\n"
        "pause makes no more of it, and what it has rewound goes on waiting; resume goes on; cancel ends "
        "it,\n"
        "lets its lanes go, and takes back what it has made and not begun to send (what was a dead letter "
        "is\n"
        "one again; hooks that left the quarantine stay stored). rate changes its pace.\n"
        "\n"
        "  --json             the API's JSON, one document\n" CLIENT_HELP "\n"
        "examples:\n"
        "  lanegate replay start stripe/billing --since 2h --dry-run\n"
        "  lanegate replay start stripe/billing --since 2h --rate 20 --max-lag 10s --follow\n"
        "  lanegate replay start --quarantine stripe --since 1d --dry-run\n"
        "  lanegate replay list --state running\n",
    .run = run,
};
