/* lanegate tail: what happens, one line each, as it happens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/show.h"
#include "util/mem.h"
#include "util/units.h"

struct tail {
    bool json, colour;
    char last_id[24]; /* of the event printed last; "": none yet */
};

/* ---- a line for people ---- */

static const char *colour_of(const json_t *event)
{
    const char *kind = show_text(event, "event"), *outcome = show_text(event, "outcome");
    if (strcmp(kind, "delivered") == 0 || strcmp(kind, "lane_unblocked") == 0)
        return "\x1b[32m"; /* green */
    if (strcmp(kind, "dead") == 0 || strcmp(kind, "lane_blocked") == 0)
        return "\x1b[31m"; /* red */
    if (strcmp(kind, "attempt") == 0 && strcmp(outcome, "ok") != 0)
        return "\x1b[33m"; /* yellow */
    return "\x1b[2m";      /* faint */
}

static void put_text(struct buf *line, const char *before, const char *text)
{
    if (*text)
        buf_putf(line, "%s%s", before, text);
}

static void put_time(struct buf *line, int64_t at_ms)
{
    time_t s = at_ms / 1000;
    struct tm tm;
    char text[16] = "";
    if (localtime_r(&s, &tm))
        strftime(text, sizeof text, "%H:%M:%S", &tm);
    buf_putf(line, "%s.%03d", text, (int)(at_ms % 1000));
}

/* What a kind has beside time, place and hook. */
static void put_rest(struct buf *line, const json_t *event)
{
    char text[32];
    int64_t took_us = show_int(event, "duration_us"), status = show_int(event, "status");
    put_text(line, "  ", show_text(event, "outcome"));
    if (status)
        buf_putf(line, " %lld", (long long)status);
    if (took_us)
        buf_putf(line, "  %.1f ms", (double)took_us / 1000);
    if (show_int(event, "attempts") > 1)
        buf_putf(line, "  attempt %lld", (long long)show_int(event, "attempts"));
    if (show_int(event, "since")) {
        int64_t blocked_ms = show_int(event, "at") - show_int(event, "since");
        units_format_ms(blocked_ms > 0 ? blocked_ms : 0, text);
        buf_putf(line, "  for %s", text);
    }
    if (show_int(event, "behind"))
        buf_putf(line, "  %lld behind it", (long long)show_int(event, "behind"));
    put_text(line, "  ", show_text(event, "reason"));
}

static void print_line(const struct tail *tail, const json_t *event)
{
    struct buf line = {0};
    put_time(&line, show_int(event, "at"));
    buf_putf(&line, "  %-14s", show_text(event, "event"));
    if (strcmp(show_text(event, "tenant"), "default") != 0)
        put_text(&line, " ", show_text(event, "tenant"));
    put_text(&line, " ", show_text(event, "source"));
    put_text(&line, "/", show_text(event, "sink"));
    put_text(&line, "/", show_text(event, "key"));
    put_text(&line, "  ", show_text(event, "id"));
    if (!*show_text(event, "id") && show_int(event, "seq"))
        buf_putf(&line, "  seq %lld", (long long)show_int(event, "seq"));
    put_rest(&line, event);
    if (tail->colour)
        fputs(colour_of(event), stdout);
    print_harmless(stdout, line.at);
    puts(tail->colour ? "\x1b[0m" : "");
    buf_free(&line);
}

/* ---- the stream ---- */

/* One line of server-sent events. */
static bool take_line(void *ctx, struct bytes line)
{
    struct tail *tail = ctx;
    if (!bytes_starts(line, BYTES("data: ")))
        return true;
    struct bytes data = bytes_of(line.at + 6, line.len - 6);
    json_t *event = json_loadb(data.at, data.len, 0, NULL);
    if (strcmp(show_text(event, "event"), "missed") == 0)
        fprintf(stderr,
                "lanegate tail: some events are gone: more happened than the gateway keeps (10,000)\n");
    else if (event && tail->json)
        printf("%.*s\n", BYTES_ARG(data));
    else if (event)
        print_line(tail, event);
    if (show_int(event, "event_id"))
        snprintf(tail->last_id, sizeof tail->last_id, "%lld", (long long)show_int(event, "event_id"));
    json_decref(event);
    return fflush(stdout) == 0; /* a reader that has seen enough */
}

/* Goes on where it was when a gateway comes back. */
static int follow(struct client *client, struct tail *tail, const char *filters, const char *after)
{
    enum { AGAIN_US = 500 * 1000 };
    int code = CLI_OK;
    for (bool first = true;; first = false) {
        struct buf path = {0};
        buf_puts(&path, filters);
        client_query(&path, "after", *tail->last_id ? bytes_str(tail->last_id) : bytes_str(after));
        code = client_stream(client, path.at, !first, take_line, tail);
        buf_free(&path);
        if (ferror(stdout))
            return CLI_OK;
        if (code != CLI_OK && (first || code != CLI_UNREACHABLE))
            return code;
        if (code == CLI_OK)
            fprintf(stderr, "lanegate tail: the gateway ended the stream; waiting for it to come back\n");
        usleep(AGAIN_US);
    }
}

static int run(int argc, char **argv)
{
    struct client_where where = {0};
    struct tail tail = {0};
    const char *tenant = NULL, *source = NULL, *sink = NULL, *key = NULL, *lane = NULL, *event = NULL,
               *after = NULL;
    const struct arg args[] = {CLIENT_ARGS(where),
                               {"tenant", ARG_TEXT, {.text = &tenant}},
                               {"source", ARG_TEXT, {.text = &source}},
                               {"sink", ARG_TEXT, {.text = &sink}},
                               {"key", ARG_TEXT, {.text = &key}},
                               {"lane", ARG_TEXT, {.text = &lane}},
                               {"event", ARG_TEXT, {.text = &event}},
                               {"after", ARG_TEXT, {.text = &after}},
                               {"json", ARG_FLAG, {.flag = &tail.json}},
                               {0}};
    size_t count;
    int code = cli_args(&verb_tail, argc, argv, args, NULL, 0, &count);
    if (code != CLI_OK)
        return code;
    bool terminal = isatty(STDOUT_FILENO);
    tail.colour = terminal && !getenv("NO_COLOR");
    tail.json = tail.json || !terminal;

    struct buf path = {0};
    buf_puts(&path, "/v1/events");
    client_query(&path, "tenant", bytes_str(tenant));
    client_query(&path, "source", bytes_str(source));
    client_query(&path, "sink", bytes_str(sink));
    client_query(&path, "key", bytes_str(key));
    client_query(&path, "lane", bytes_str(lane));
    client_query(&path, "event", bytes_str(event));
    struct client *client = NULL;
    code = client_open(&verb_tail, &where, &client);
    if (code == CLI_OK)
        code = follow(client, &tail, path.at, after);
    client_close(client);
    buf_free(&path);
    return code;
}

const struct cli_verb verb_tail = {
    .name = "tail",
    .summary = "what happens, one line each, as it happens",
    .help =
        "usage: lanegate tail [options]\n"
        "\n"
        "Hooks that are accepted, attempts, deliveries, dead letters, and lanes that block and unblock. "
        "Lines for people\n"
        "on a terminal; elsewhere, or with --json, one JSON object a line. It goes on when a gateway comes "
        "back.\n"
        "\n"
        "  --tenant NAME    of one tenant\n"
        "  --source NAME    of one source\n"
        "  --sink NAME      of sinks of that name\n"
        "  --key KEY        of lanes with that key, percent-encoded as it is shown\n"
        "  --lane ID        of the lane with that id (32 hex digits)\n"
        "  --event KINDS    only these, joined by commas: accepted, attempt, delivered, dead, lane_blocked,\n"
        "                   lane_unblocked\n"
        "  --after ID       begin behind that event_id; 0: with the oldest of the last 10,000\n"
        "  --json           one JSON object a line\n" CLIENT_HELP "\n"
        "examples:\n"
        "  lanegate tail --source stripe\n"
        "  lanegate tail --event dead,lane_blocked --json | notify\n",
    .run = run,
};
