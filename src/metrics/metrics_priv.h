/* Private to the room: what a series looks like to the registry (metrics.c) and to the text (text.c). */
#ifndef METRICS_METRICS_PRIV_H
#define METRICS_METRICS_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "metrics/metrics.h"
#include "util/vec.h"

struct metric_row {
    enum metric_kind kind;
    const char *name;   /* without the prefix */
    const char *labels; /* "source,sink", or "" */
    const char *help;
};

extern const struct metric_row metric_rows[METRIC_COUNT];

/* Upper bounds of a histogram's buckets, ascending; the bucket of everything above (+Inf) is not among them.
 */
struct bounds {
    const double *at;
    size_t len;
};

/* Each starts on a cache line of its own: two threads that count different things do not slow each other. */
struct series {
    _Alignas(64) _Atomic uint64_t count; /* counter */
    _Atomic double number;               /* gauge: its value; histogram: the sum of what was observed */
    enum metric metric;
    struct bounds bounds;
    const char *labels;         /* source="a",sink="b": what identifies it within its metric; owned */
    struct series *next;        /* of the same metric, in the order they were made */
    struct series *next_alike;  /* in the same slot of the table */
    _Atomic uint64_t buckets[]; /* bounds.len + 1 */
};

struct collector {
    void (*collect)(void *ctx);
    void *ctx;
};

enum { METRICS_SLOTS = 4096 };

struct metrics {
    pthread_mutex_t lock; /* of everything but the numbers inside series */
    struct series *slots[METRICS_SLOTS];
    struct series *first[METRIC_COUNT];
    struct series *last[METRIC_COUNT];

    pthread_mutex_t scrape_lock;      /* one scrape at a time; taken before `lock` */
    VEC(struct collector) collectors; /* under scrape_lock */
};

/* Appends source="a",sink="b" for a row's label names and these values, escaped. */
void text_labels(struct buf *out, const struct metric_row *row, const char *const *values);
/* HELP, TYPE and every series of one metric. */
void text_metric(struct buf *out, const struct metric_row *row, const struct series *first);

#endif
