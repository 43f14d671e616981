/* Catches what a function prints. */
#ifndef CLI_SUPPORT_H
#define CLI_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>

struct caught {
    FILE *out;
    char *text;
    size_t len;
};

static inline FILE *caught_open(struct caught *caught)
{
    caught->text = NULL;
    caught->len = 0;
    caught->out = open_memstream(&caught->text, &caught->len);
    return caught->out;
}

/* What was printed so far; yours until caught_free. */
static inline const char *caught_text(struct caught *caught)
{
    fflush(caught->out);
    return caught->text;
}

static inline void caught_free(struct caught *caught)
{
    fclose(caught->out);
    free(caught->text);
}

#endif
