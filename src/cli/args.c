#include "cli/args.h"

#include <stdlib.h>
#include <string.h>

#include "util/bytes.h"
#include "util/mem.h"
#include "util/units.h"

/* How many single-letter edits apart (Levenshtein, two rows); long texts count as far. */
static size_t distance(const char *a, const char *b)
{
    enum { MAX = 32 };
    size_t la = strlen(a), lb = strlen(b);
    if (la >= MAX || lb >= MAX)
        return MAX;
    size_t row[MAX], above, left;
    for (size_t j = 0; j <= lb; j++)
        row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        above = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            left = row[j - 1] + 1;
            size_t best = above + (a[i - 1] != b[j - 1]);
            above = row[j];
            if (left < best)
                best = left;
            if (above + 1 < best)
                best = above + 1;
            row[j] = best;
        }
    }
    return row[lb];
}

static int unknown(const struct cli_verb *verb, const struct arg *args, const char *name)
{
    const char *near = NULL;
    size_t best = 3;
    for (; args->name; args++) {
        size_t d = distance(name, args->name);
        if (d < best) {
            best = d;
            near = args->name;
        }
    }
    if (near)
        return cli_usage(verb, "unknown option --%s; did you mean --%s?", name, near);
    return cli_usage(verb, "unknown option --%s", name);
}

static int store_value(const struct cli_verb *verb, const struct arg *arg, const char *value)
{
    switch (arg->kind) {
    case ARG_FLAG:
        *arg->to.flag = true;
        break;
    case ARG_TEXT:
        *arg->to.text = value;
        break;
    case ARG_COUNT:
        if (!units_parse_u63(bytes_str(value), arg->to.number))
            return cli_usage(verb, "--%s must be a whole number, got \"%s\"", arg->name, value);
        break;
    case ARG_DURATION:
        if (!units_parse_ms(bytes_str(value), arg->to.number))
            return cli_usage(verb, "--%s must be a duration such as 30s, 5m or 72h, got \"%s\"", arg->name,
                             value);
        break;
    case ARG_LIST:
        arg->to.list->items = mem_resize(arg->to.list->items, (arg->to.list->len + 1) * sizeof(char *));
        arg->to.list->items[arg->to.list->len++] = value;
        break;
    }
    return CLI_OK;
}

int cli_args(const struct cli_verb *verb, int argc, char **argv, const struct arg *args, const char **rest,
             size_t max, size_t *count)
{
    bool only_rest = false;
    *count = 0;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (!only_rest && strcmp(word, "--") == 0) {
            only_rest = true;
            continue;
        }
        if (only_rest || word[0] != '-' || word[1] == 0) {
            if (*count == max)
                return cli_usage(verb, "unexpected \"%s\"", word);
            rest[(*count)++] = word;
            continue;
        }
        if (strncmp(word, "--", 2) != 0)
            return cli_usage(verb, "unknown option %s; options are long: --name", word);

        char *name = mem_strdup(word + 2);
        char *equals = strchr(name, '=');
        const char *value = NULL;
        if (equals) {
            *equals = 0;
            value = word + 2 + (equals - name) + 1;
        }
        const struct arg *arg = args;
        while (arg->name && strcmp(arg->name, name) != 0)
            arg++;
        int code = CLI_OK;
        if (!arg->name)
            code = unknown(verb, args, name);
        else if (arg->kind == ARG_FLAG && value)
            code = cli_usage(verb, "--%s takes no value", name);
        else if (arg->kind != ARG_FLAG && !value && i + 1 == argc)
            code = cli_usage(verb, "--%s needs a value", name);
        else
            code = store_value(verb, arg, arg->kind == ARG_FLAG ? NULL : value ? value : argv[++i]);
        free(name);
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}
