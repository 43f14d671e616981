/* Which dead letters: the options that list, replay and discard have in common. */
#ifndef CLI_DLQ_FILTER_H
#define CLI_DLQ_FILTER_H

#include "cli/client.h"

struct dlq_filter {
    struct client_where where;
    const char *tenant, *source, *sink, *lane, *class, *since, *until;
    const char *named; /* what the one word beside the options says; NULL: nothing */
};

#define DLQ_FILTER_ARGS(filter)                                                                              \
    CLIENT_ARGS((filter).where), {"tenant", ARG_TEXT, {.text = &(filter).tenant}},                           \
        {"source", ARG_TEXT, {.text = &(filter).source}}, {"sink", ARG_TEXT, {.text = &(filter).sink}},      \
        {"lane", ARG_TEXT, {.text = &(filter).lane}}, {"class", ARG_TEXT, {.text = &(filter).class}},        \
        {"since", ARG_TEXT, {.text = &(filter).since}},                                                      \
    {                                                                                                        \
        "until", ARG_TEXT,                                                                                   \
        {                                                                                                    \
            .text = &(filter).until                                                                          \
        }                                                                                                    \
    }

/* Reads the arguments by the table, which has the rows above, and adds the query to `path`. CLI_OK, or
 * CLI_USAGE (already printed). */
int dlq_filter_read(int argc, char **argv, const struct arg *args, struct dlq_filter *filter,
                    struct buf *path);
/* Whether anything was said that leaves some dead letters out. */
bool dlq_filter_any(const struct dlq_filter *filter);

#endif
