/* The registry of metrics and its Prometheus text. Every metric is a row of table.h. A series is made when
 * configuration is loaded, under a lock, and then counted on by any thread without one; it lives as long as
 * the registry. Label values come from configuration or from constants, never from a request. */
#ifndef METRICS_METRICS_H
#define METRICS_METRICS_H

#include <stdint.h>

#include "metrics/table.h"
#include "util/buf.h"

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

enum metric {
#define METRIC_ENUM(id, kind, name, labels, help) METRIC_##id,
    METRIC_TABLE(METRIC_ENUM)
#undef METRIC_ENUM
        METRIC_COUNT
};

struct metrics;
struct series;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);

/* The series of a metric with these label values, one per label of its row, in that order (NULL values when
 * it has none). Made on first use: a counter shows 0 from then on. Never NULL. Any thread. */
struct series *metrics_series(struct metrics *metrics, enum metric metric, const char *const *values);

/* Convenience for at most three labels; unused ones NULL. */
struct series *metrics_series3(struct metrics *metrics, enum metric metric, const char *a, const char *b,
                               const char *c);

void counter_add(struct series *series, uint64_t n);
uint64_t counter_read(const struct series *series);
void gauge_set(struct series *series, double value);
/* Histograms of *_seconds take seconds; *_size takes a count. Buckets by the row's name, see metrics.c. */
void histogram_observe(struct series *series, double value);

/* Called at the head of every scrape, to set gauges; one scrape runs at a time. `collect` must be quick and
 * must not scan anything; it may call metrics_series. There is no way to take it back: `ctx` outlives the
 * last scrape. */
void metrics_on_scrape(struct metrics *metrics, void (*collect)(void *ctx), void *ctx);

/* Prometheus text format 0.0.4 (HELP and TYPE once a metric, even without series). Any thread. */
void metrics_write(struct metrics *metrics, struct buf *out);

#endif
