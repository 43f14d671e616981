/* lanegate verify-order: proves from a receiver's log that each lane came in order. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/cli.h"
#include "cli/order_check.h"
#include "util/buf.h"
#include "util/jsonw.h"

static void print_json(const struct order_report *r)
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
    jsonw_end_object(&w);
    puts(text.at);
    buf_free(&text);
}

static void print_text(const struct order_report *r)
{
    const struct {
        const char *what;
        uint64_t count;
    } rows[] = {
        {"attempts", r->attempts},
        {"answered otherwise than 2xx, or not at all", r->failed},
        {"lanes", r->lanes},
        {"first deliveries on time", r->first},
        {"repeats of a delivery", r->repeats},
        {"late ones, marked so", r->late},
        {"replays", r->replays},
        {"deliveries without a lane", r->unordered},
        {"attempts that the gateway gave up on", r->cut_off},
        {"previous_seq is the delivery before", r->previous_right},
        {"previous_seq is an earlier one", r->previous_fits},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        printf("%10llu  %s\n", (unsigned long long)rows[i].count, rows[i].what);
    if (r->problems)
        printf("NOT IN ORDER: %llu problems, the first:\n%s\n", (unsigned long long)r->problems, r->problem);
    else
        printf("in order: first deliveries ascend in all %llu lanes, one at a time\n",
               (unsigned long long)r->lanes);
}

static int run(int argc, char **argv)
{
    bool json = false;
    const struct arg args[] = {{"json", ARG_FLAG, {.flag = &json}}, {0}};
    const char *path = NULL;
    size_t count;
    int code = cli_args(&verb_verify_order, argc, argv, args, &path, 1, &count);
    if (code != CLI_OK)
        return code;
    if (count == 0)
        return cli_usage(&verb_verify_order, "which log? \"-\" reads from the standard input");
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (!file) {
        fprintf(stderr, "lanegate verify-order: can't read %s: %s\n", path, strerror(errno));
        return CLI_FAILED;
    }

    struct order_check *check = order_check_new();
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    while ((len = getline(&line, &size, file)) >= 0) {
        if (line[len - 1] == '\n')
            len--;
        else if (line[len - 1] != '}')
            break; /* half a line, left by a receiver that was killed: that delivery had no answer */
        order_check_line(check, bytes_of(line, (size_t)len));
    }
    bool broken = ferror(file) != 0;
    free(line);
    if (file != stdin)
        fclose(file);

    struct order_report report;
    order_check_finish(check, &report);
    order_check_free(check);
    if (broken) {
        fprintf(stderr, "lanegate verify-order: can't read %s to its end\n", path);
        return CLI_FAILED;
    }
    (json ? print_json : print_text)(&report);
    return report.problems ? CLI_FAILED : CLI_OK;
}

const struct cli_verb verb_verify_order = {
    .name = "verify-order",
    .summary = "proves from a receiver's log that each lane came in order",
    .help =
        "usage: lanegate verify-order FILE [--json]\n"
        "\n"
        "Reads what `lanegate receive --log FILE` wrote (\"-\": the standard input) and asks of every lane:\n"
        "do first deliveries ascend, is previous_seq a delivery seen before, did no two run at once? "
        "Repeats,\n"
        "late ones and replays are told apart and counted.\n"
        "\n"
        "  --json           the counts as one JSON object\n"
        "\n"
        "exit codes: 0 in order, 1 not in order or not readable, 2 usage\n",
    .run = run,
};
