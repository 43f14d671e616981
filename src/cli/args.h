/* Long options for all verbs, in one way: a table of struct arg, then cli_args. "--name value" and
 * "--name=value";
 * "--" ends options; "--help" is handled by cli_main. An unknown option is a usage error with a "did you
 * mean". */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"

enum arg_kind { ARG_FLAG, ARG_TEXT, ARG_COUNT, ARG_DURATION, ARG_LIST };

/* Where a value goes. ARG_LIST may be given many times. */
struct arg_list {
    const char **items;
    size_t len;
};

struct arg {
    const char *name; /* without dashes; the last row has NULL */
    enum arg_kind kind;
    union {
        bool *flag;
        const char **text;
        int64_t *number; /* ARG_COUNT: whole, not negative; ARG_DURATION: ms from "30s" */
        struct arg_list *list;
    } to;
};

/* What is left beside options, in order: at most `max` (more is a usage error). CLI_OK, or CLI_USAGE (already
 * printed). Lists are malloc'd and live as long as the process. */
int cli_args(const struct cli_verb *verb, int argc, char **argv, const struct arg *args, const char **rest,
             size_t max, size_t *count);

#endif
