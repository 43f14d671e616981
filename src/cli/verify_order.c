/* lanegate verify-order: proves from a receiver's log that each lane came in order, and against a running
 * gateway that nothing is missing in it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/cli.h"
#include "cli/order_against.h"
#include "cli/order_check.h"
#include "util/buf.h"
#include "util/jsonw.h"

/* -- saying it
 * --------------------------------------------------------------------------------------------------- */

static void put_rows(struct jsonw *w, const char *name, const struct order_row *rows, size_t count)
{
    jsonw_array(w, name);
    for (const struct order_row *row = rows; row < rows + count; row++) {
        char id[UUID_TEXT];
        uuid_format(&row->id, id);
        jsonw_object(w, NULL);
        jsonw_str(w, "id", id);
        jsonw_uint(w, "seq", row->seq);
        jsonw_str(w, "source", row->sink->source);
        jsonw_str(w, "sink", row->sink->name);
        jsonw_str(w, "state", row->state);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void print_json(const struct order_report *r, const struct order_against_report *against)
{
    struct buf text = {0};
    struct jsonw w = jsonw_on(&text);
    jsonw_object(&w, NULL);
    jsonw_bool(&w, "in_order", r->problems == 0);
    jsonw_uint(&w, "attempts", r->attempts);
    jsonw_uint(&w, "failed", r->failed);
    jsonw_uint(&w, "lanes", r->lanes);
    jsonw_uint(&w, "first_deliveries", r->first);
    jsonw_uint(&w, "repeats", r->repeats);
    jsonw_uint(&w, "late", r->late);
    jsonw_uint(&w, "replays", r->replays);
    jsonw_uint(&w, "unordered", r->unordered);
    jsonw_uint(&w, "cut_off", r->cut_off);
    jsonw_uint(&w, "previous_right", r->previous_right);
    jsonw_uint(&w, "previous_fits", r->previous_fits);
    jsonw_uint(&w, "problems", r->problems);
    jsonw_str(&w, "problem", r->problems ? r->problem : NULL);
    if (against) {
        jsonw_object(&w, "against");
        jsonw_bool(&w, "complete", against->missing == 0);
        jsonw_uint(&w, "hooks", against->hooks);
        jsonw_uint(&w, "delivered", against->delivered);
        jsonw_uint(&w, "missing", against->missing);
        put_rows(&w, "missing_rows", against->missing_rows, against->missing_listed);
        jsonw_uint(&w, "undelivered", against->undelivered);
        jsonw_uint(&w, "dead", against->dead);
        put_rows(&w, "undelivered_rows", against->undelivered_rows, against->undelivered_listed);
        jsonw_end_object(&w);
    }
    jsonw_end_object(&w);
    puts(text.at);
    buf_free(&text);
}

static void print_count(uint64_t count, const char *what)
{
    printf("%10llu  %s\n", (unsigned long long)count, what);
}

static void print_order(const struct order_report *r)
{
    print_count(r->attempts, "attempts");
    print_count(r->failed, "answered otherwise than 2xx, or not at all");
    print_count(r->lanes, "lanes");
    print_count(r->first, "first deliveries on time");
    print_count(r->repeats, "repeats of a delivery");
    print_count(r->late, "late ones, marked so");
    print_count(r->replays, "replays");
    print_count(r->unordered, "deliveries without a lane");
    print_count(r->cut_off, "attempts that the gateway gave up on");
    print_count(r->previous_right, "previous_seq is the delivery before");
    print_count(r->previous_fits, "previous_seq is an earlier one");
    if (r->problems)
        printf("NOT IN ORDER: %llu problems, the first:\n%s\n", (unsigned long long)r->problems, r->problem);
    else
        printf("in order: first deliveries ascend in all %llu lanes, one at a time\n",
               (unsigned long long)r->lanes);
}

static void print_rows(const struct order_row *rows, size_t count, uint64_t of)
{
    for (const struct order_row *row = rows; row < rows + count; row++) {
        char id[UUID_TEXT];
        uuid_format(&row->id, id);
        printf("  %s  seq %llu  %s/%s  %s\n", id, (unsigned long long)row->seq, row->sink->source,
               row->sink->name, row->state);
    }
    if (of > count)
        printf("  and %llu more\n", (unsigned long long)(of - count));
}

static void print_against(const struct order_against_report *r)
{
    print_count(r->hooks, "hooks that the gateway keeps");
    print_count(r->delivered, "deliveries that it calls done");
    print_count(r->undelivered, "not delivered yet");
    print_count(r->dead, "of them dead letters");
    print_rows(r->undelivered_rows, r->undelivered_listed, r->undelivered);
    if (r->missing)
        printf("MISSING: %llu deliveries are not in this log:\n", (unsigned long long)r->missing);
    else
        printf("complete: the log has every delivery that the gateway calls done\n");
    print_rows(r->missing_rows, r->missing_listed, r->missing);
}

/* -- reading the log
 * --------------------------------------------------------------------------------------------- */

enum { LINE_MAX_BYTES = 1 << 20 }; /* far more than a delivery needs: beyond it this is no log of ours */

struct log {
    FILE *file;
    struct buf half; /* a line whose end is not read yet */
};

static void take_part(struct log *log, struct order_check *check, struct bytes part)
{
    const char *end;
    while (!log->half.overflow && (end = memchr(part.at, '\n', part.len))) {
        size_t len = (size_t)(end - part.at);
        struct bytes line = bytes_of(part.at, len);
        if (log->half.len) {
            buf_put(&log->half, part.at, len);
            line = buf_bytes(&log->half);
        }
        order_check_line(check, line);
        buf_clear(&log->half);
        part = bytes_of(end + 1, part.len - len - 1);
    }
    buf_put(&log->half, part.at, part.len);
}

/* Up to where the file ends by now. Half a line at its end is kept for the next time, when its receiver has
 * written the rest; at the last time it is one of a receiver that was killed: that delivery had no answer. */
static bool read_lines(struct log *log, struct order_check *check, bool last)
{
    char part[65536];
    clearerr(log->file);
    for (size_t n; !log->half.overflow && (n = fread(part, 1, sizeof part, log->file)) > 0;)
        take_part(log, check, bytes_of(part, n));
    if (last && log->half.len && log->half.at[log->half.len - 1] == '}')
        order_check_line(check, buf_bytes(&log->half));
    return !ferror(log->file) && !log->half.overflow;
}

/* The log, the gateway's hooks, and what the log got meanwhile. */
static int compare(struct log *log, const char *path, struct order_check *check,
                   struct order_against *against)
{
    bool good = read_lines(log, check, !against);
    if (good && against) {
        int code = order_against_ask(against);
        if (code != CLI_OK)
            return code;
        good = read_lines(log, check, true);
    }
    if (!good)
        fprintf(stderr, "lanegate verify-order: can't read %s to its end%s\n", path,
                log->half.overflow ? ": a line has more than 1 MiB, so it is no log of lanegate receive"
                                   : "");
    return good ? CLI_OK : CLI_FAILED;
}

/* -- the verb
 * ---------------------------------------------------------------------------------------------------- */

static int verify(const char *path, struct order_against *against, bool json)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (!file) {
        fprintf(stderr, "lanegate verify-order: can't read %s: %s\n", path, strerror(errno));
        return CLI_FAILED;
    }
    struct order_check *check = order_check_new();
    if (against)
        order_check_tell(check, order_against_taken(against));
    struct log log = {.file = file, .half.max = LINE_MAX_BYTES};
    int code = compare(&log, path, check, against);
    buf_free(&log.half);
    if (file != stdin)
        fclose(file);

    struct order_report order;
    struct order_against_report complete = {0};
    order_check_finish(check, &order);
    order_check_free(check);
    if (code != CLI_OK)
        return code;
    if (against)
        order_against_finish(against, &complete);
    if (json)
        print_json(&order, against ? &complete : NULL);
    else
        print_order(&order);
    if (against && !json)
        print_against(&complete);
    return order.problems || complete.missing ? CLI_FAILED : CLI_OK;
}

static int run(int argc, char **argv)
{
    bool json = false;
    struct client_where where = {0};
    struct arg_list sinks = {0};
    const struct arg args[] = {{"json", ARG_FLAG, {.flag = &json}},
                               {"against", ARG_TEXT, {.text = &where.admin}},
                               {"sink", ARG_LIST, {.list = &sinks}},
                               {0}};
    const char *path = NULL;
    size_t count;
    struct client *client = NULL;
    struct order_against *against = NULL;
    int code = cli_args(&verb_verify_order, argc, argv, args, &path, 1, &count);
    if (code == CLI_OK && count == 0)
        code = cli_usage(&verb_verify_order, "which log? \"-\" reads from the standard input");
    if (code == CLI_OK && sinks.len && !where.admin)
        code = cli_usage(&verb_verify_order, "--sink goes with --against");
    if (code == CLI_OK && where.admin)
        code = client_open(&verb_verify_order, &where, &client);
    if (code == CLI_OK && client)
        code = order_against_open(&verb_verify_order, client, &sinks, &against);
    if (code == CLI_OK)
        code = verify(path, against, json);
    order_against_close(against);
    client_close(client);
    free(sinks.items);
    return code;
}

const struct cli_verb verb_verify_order = {
    .name = "verify-order",
    .summary = "proves from a receiver's log that each lane came in order",
    .help =
        "usage: lanegate verify-order FILE [--against URL] [--json]\n"
        "\n"
        "Reads what `lanegate receive --log FILE` wrote (\"-\": the standard input) and asks of every lane:\n"
        "do first deliveries ascend, is previous_seq a delivery seen before, did no two run at once? "
        "Repeats,\n"
        "late ones and replays are told apart and counted.\n"
        "\n"
        "  --against URL    asks the gateway with this admin address for every hook it keeps: what it calls\n"
        "                   delivered must be in the log, else it is named as missing; what is not delivered "
        "yet\n"
        "                   is listed. LANEGATE_TOKEN holds the token, where the gateway asks for one\n"
        "  --sink SOURCE/SINK\n"
        "                   of that gateway, whose receiver wrote the log; may be given many times. Default: "
        "all\n"
        "                   but those of type log. Unordered sinks of one source can't be told apart\n"
        "  --json           the counts as one JSON object\n"
        "\n"
        "exit codes: 0 in order and nothing missing, 1 not so or not readable, 2 usage, 69 gateway "
        "unreachable\n",
    .run = run,
};
