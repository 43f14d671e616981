/* What the files of this room share. */
#ifndef DELIVER_DELIVER_PRIV_H
#define DELIVER_DELIVER_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "deliver/deliver.h"

struct loop;

/* An own copy of rules. Replaced ones stay until the end, since a loop may be reading them: a reload costs
 * some bytes. */
struct egress_copy {
    struct egress_copy *older;
    struct egress_rules rules;
};

struct deliver {
    struct egress_copy *_Atomic egress;
    struct metrics *metrics;
    deliver_round round; /* written once, before has_round */
    void *round_ctx;
    atomic_bool has_round;
    unsigned threads;
    struct loop **loops;
    atomic_uint next; /* where the next batch begins */
    pthread_mutex_t
        gate; /* held while attempts go to the loops, so that stopping has a before and an after */
    bool stopped;
};

/* The head of every type's own struct. */
struct sink {
    const struct sink_type *type;
    struct deliver *deliver;
    atomic_uint refs;
    void (*released)(void *ctx); /* of its options */
    void *ctx;
    struct series *duration[OUTCOME_CLASS_COUNT]; /* NULL without metrics */
};

extern const struct sink_type sink_type_http, sink_type_log;

/* Fills a sink's head. */
void sink_init(struct sink *sink, const struct sink_type *type, struct deliver *deliver,
               const struct sink_options *options);

void outcome_set(struct outcome *outcome, enum outcome_class cls, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The last thing done with an attempt: counts it and calls done(). The outcome is filled. */
void attempt_finish(struct attempt *attempt);
/* Ends one that was never begun, since the process goes down. */
void attempt_turn_away(struct attempt *attempt);

#endif
