#include "cli/replay_start.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/confirm.h"
#include "cli/lane_name.h"
#include "cli/show.h"
#include "util/mem.h"
#include "util/units.h"

enum { FOLLOW_EVERY_MS = 500, BAR_CELLS = 30 };

/* ---- following ---- */

static bool is_over(const json_t *job)
{
    return strcmp(show_text(job, "state"), "running") != 0;
}

static double share_done(const json_t *job)
{
    double looked = json_number_value(json_object_get(job, "progress"));
    int64_t made = show_int(job, "made"), left = show_int(job, "outstanding");
    return made > 0 ? looked * (double)(made - left) / (double)made : looked;
}

static bool from_pen(const json_t *job)
{
    return strcmp(show_text(job, "from"), "quarantine") == 0;
}

static void print_counts(FILE *out, const json_t *job)
{
    if (from_pen(job))
        fprintf(out, "%" PRId64 " released, %" PRId64 " failed again; ",
                show_int(job, "released") + show_int(job, "duplicates"), show_int(job, "failed"));
    fprintf(out, "%" PRId64 " delivered, %" PRId64 " on their way, %" PRId64 " dead", show_int(job, "done"),
            show_int(job, "outstanding"), show_int(job, "dead"));
    if (*show_text(job, "waits") && strcmp(show_text(job, "waits"), "deliveries") != 0)
        fprintf(out, ", waits: %s", show_text(job, "waits"));
}

static void draw(const json_t *job)
{
    double share = share_done(job);
    int cells = (int)(share * BAR_CELLS);
    fputs("\r\033[K[", stderr);
    for (int i = 0; i < BAR_CELLS; i++)
        fputc(i < cells ? '#' : '.', stderr);
    fprintf(stderr, "] %3d%%  ", (int)(share * 100));
    print_counts(stderr, job);
    fflush(stderr);
}

static void tell(const json_t *job, int *tenths)
{
    int now = (int)(share_done(job) * 10);
    if (now == *tenths && !is_over(job))
        return;
    *tenths = now;
    fprintf(stderr, "%3d%%  ", now * 10);
    print_counts(stderr, job);
    fputc('\n', stderr);
}

int replay_follow(struct client *client, json_t **job)
{
    char *path = mem_format("/v1/replays/%s", show_text(*job, "id"));
    bool bar = isatty(STDERR_FILENO);
    int tenths = -1, code = CLI_OK;
    for (;;) {
        if (bar)
            draw(*job);
        else
            tell(*job, &tenths);
        if (is_over(*job))
            break;
        nanosleep(&(struct timespec){.tv_nsec = FOLLOW_EVERY_MS * 1000000L}, NULL);
        json_t *next = NULL;
        code = client_get(client, path, &next);
        if (code != CLI_OK)
            break;
        json_decref(*job);
        *job = next;
    }
    if (bar)
        fputc('\n', stderr);
    free(path);
    return code;
}

/* ---- starting ---- */

struct start {
    struct client_where where;
    const char *tenant, *source, *sink, *failure, *since, *until, *reason;
    int64_t rate; /* -1: the gateway's own */
    int64_t max_lag_ms;
    bool pen, all, dry_run, yes, json, follow;
};

static void put_path(struct buf *path, const struct start *start)
{
    char number[32];
    buf_puts(path, "/v1/replays");
    client_query(path, "from", start->pen ? BYTES("quarantine") : BYTES_NONE);
    client_query(path, "tenant", bytes_str(start->tenant));
    client_query(path, "source", bytes_str(start->source));
    client_query(path, "sink", bytes_str(start->sink));
    client_query(path, "failure", bytes_str(start->failure));
    client_query(path, "since", bytes_str(start->since)); /* as it is said: the same again is the same */
    client_query(path, "until", bytes_str(start->until));
    if (start->rate >= 0) { /* 0 is for the gateway to refuse */
        snprintf(number, sizeof number, "%" PRId64, start->rate);
        client_query(path, "rate", bytes_str(number));
    }
    if (start->max_lag_ms) {
        snprintf(number, sizeof number, "%" PRId64 "ms", start->max_lag_ms);
        client_query(path, "max_lag", bytes_str(number));
    }
    if (start->all)
        client_query(path, "all", BYTES("true"));
}

/* What a person has to know before he says yes. */
static void put_pace(struct buf *out, const json_t *counts)
{
    bool more = !json_is_true(json_object_get(counts, "complete"));
    int64_t rate = show_int(counts, "rate"), hooks = show_int(counts, "hooks");
    char took[32];
    units_format_ms(rate > 0 ? (hooks + rate - 1) / rate * 1000 : 0, took);
    buf_putf(out, ", at %" PRId64 " a second (%s%s)", rate, more ? "more than " : "", took);
}

static void put_pen_counts(struct buf *out, const json_t *counts)
{
    bool more = !json_is_true(json_object_get(counts, "complete"));
    int64_t hooks = show_int(counts, "hooks"), good = show_int(counts, "verified");
    buf_putf(out, "verify %s%" PRId64 " hook%s of the quarantine again", more ? "more than " : "", hooks,
             hooks == 1 ? "" : "s");
    put_pace(out, counts);
    buf_putf(out,
             ", and release what is good: %s%" PRId64 " now, as new hooks with new seqs; %" PRId64
             " would stay",
             more ? "more than " : "", good, show_int(counts, "failed"));
}

static void put_counts(struct buf *out, const json_t *counts)
{
    const json_t *sinks = json_object_get(counts, "sinks"), *sink;
    bool more = !json_is_true(json_object_get(counts, "complete"));
    int64_t hooks = show_int(counts, "hooks");
    size_t i;
    if (from_pen(counts)) {
        put_pen_counts(out, counts);
        return;
    }
    buf_putf(out, "send %s%" PRId64 " stored hook%s again", more ? "more than " : "", hooks,
             hooks == 1 ? "" : "s");
    put_pace(out, counts);
    json_array_foreach(sinks, i, sink)
    {
        bool ordered = json_is_true(json_object_get(sink, "ordered"));
        buf_putf(out, "%s%" PRId64 " to %s/%s", i == 0 ? ": " : ", ", show_int(sink, "rows"),
                 show_text(sink, "source"), show_text(sink, "sink"));
        if (ordered)
            buf_putf(out, " (%" PRId64 " lane%s rewound: newer hooks of them wait meanwhile)",
                     show_int(sink, "lanes"), show_int(sink, "lanes") == 1 ? "" : "s");
    }
    if (json_array_size(sinks) > 0)
        buf_puts(out, "; receivers get them with replay-id");
}

static int count_first(struct client *client, const struct start *start, json_t **counts)
{
    struct buf path = {0};
    put_path(&path, start);
    client_query(&path, "dry_run", BYTES("true"));
    int code = client_post(client, path.at, counts);
    buf_free(&path);
    return code;
}

static int begin(struct client *client, const struct start *start)
{
    struct buf path = {0};
    json_t *job = NULL;
    put_path(&path, start);
    client_query(&path, "reason", bytes_str(start->reason));
    int code = client_post(client, path.at, &job);
    buf_free(&path);
    if (code == CLI_OK && !start->json)
        printf("replay %s is %s%s\n", show_text(job, "id"), show_text(job, "state"),
               json_is_true(json_object_get(job, "existing")) ? " already" : "");
    if (code == CLI_OK && start->follow) {
        fflush(stdout);
        code = replay_follow(client, &job);
    }
    if (code == CLI_OK && start->json)
        show_json(job);
    if (code == CLI_OK && start->follow && strcmp(show_text(job, "state"), "done") != 0) {
        fprintf(stderr, "the replay is %s%s%s\n", show_text(job, "state"), *show_text(job, "why") ? ": " : "",
                show_text(job, "why"));
        code = CLI_FAILED;
    }
    json_decref(job);
    return code;
}

static int count_and_begin(struct client *client, const struct start *start)
{
    json_t *counts = NULL;
    struct buf text = {0};
    int code = count_first(client, start, &counts);
    if (code != CLI_OK)
        return code;
    put_counts(&text, counts);
    bool none = show_int(counts, "hooks") == 0 && json_is_true(json_object_get(counts, "complete"));
    if (start->dry_run && start->json)
        show_json(counts);
    else if (start->dry_run)
        printf("would %s\n", text.at);
    else if (none)
        fputs(start->pen ? "no hook in quarantine matches: nothing was done\n"
                         : "no stored hook matches: nothing was done\n",
              stderr);
    else
        code = cli_confirm(&verb_replay, start->yes, "%s", text.at);
    if (code == CLI_OK && !start->dry_run && !none)
        code = begin(client, start);
    buf_free(&text);
    json_decref(counts);
    return code;
}

/* "source" or "source/sink", beside --source and --sink. */
static int name_sink(struct start *start, const char *text, struct lane_name *name)
{
    if (!lane_name_parse(text, name))
        return cli_usage(&verb_replay, "a sink is named source/sink, got \"%s\"", text);
    if (name->has_key || start->source || start->sink)
        return cli_usage(&verb_replay,
                         "name a source or source/sink, once; a replay takes all keys of a sink");
    start->source = name->source;
    start->sink = name->sink;
    return CLI_OK;
}

int replay_start(int argc, char **argv)
{
    struct start start = {.rate = -1};
    const struct arg args[] = {CLIENT_ARGS(start.where),
                               {"tenant", ARG_TEXT, {.text = &start.tenant}},
                               {"source", ARG_TEXT, {.text = &start.source}},
                               {"sink", ARG_TEXT, {.text = &start.sink}},
                               {"quarantine", ARG_FLAG, {.flag = &start.pen}},
                               {"failure", ARG_TEXT, {.text = &start.failure}},
                               {"since", ARG_TEXT, {.text = &start.since}},
                               {"until", ARG_TEXT, {.text = &start.until}},
                               {"rate", ARG_COUNT, {.number = &start.rate}},
                               {"max-lag", ARG_DURATION, {.number = &start.max_lag_ms}},
                               {"all", ARG_FLAG, {.flag = &start.all}},
                               {"dry-run", ARG_FLAG, {.flag = &start.dry_run}},
                               {"follow", ARG_FLAG, {.flag = &start.follow}},
                               {"yes", ARG_FLAG, {.flag = &start.yes}},
                               {"reason", ARG_TEXT, {.text = &start.reason}},
                               {"json", ARG_FLAG, {.flag = &start.json}},
                               {0}};
    const char *text = NULL;
    struct lane_name name = {0};
    struct client *client = NULL;
    size_t count;
    int code = cli_args(&verb_replay, argc, argv, args, &text, 1, &count);
    if (code == CLI_OK && count)
        code = name_sink(&start, text, &name);
    bool any = start.all || start.tenant || start.source || start.sink || start.failure || start.since ||
               start.until;
    if (code == CLI_OK && !any)
        code = cli_usage(&verb_replay, "say which hooks: --since, a source or a sink, or --all");
    if (code == CLI_OK && start.pen && start.sink)
        code = cli_usage(&verb_replay,
                         "a hook out of the quarantine goes to every sink of its source: name no sink");
    if (code == CLI_OK && start.failure && !start.pen)
        code = cli_usage(&verb_replay, "--failure needs --quarantine");
    if (code == CLI_OK)
        code = client_open(&verb_replay, &start.where, &client);
    if (code == CLI_OK)
        code = count_and_begin(client, &start);
    client_close(client);
    lane_name_free(&name);
    return code;
}
