/* The registry. Series are found and made under one lock, by the text of their labels; counting touches only
 * relaxed atomics inside the series, so a number may be a moment old but is never lost. */
#include "metrics/metrics_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/check.h"
#include "util/hash.h"
#include "util/mem.h"

const struct metric_row metric_rows[METRIC_COUNT] = {
#define METRIC_ROW(id, kind, name, labels, help) {METRIC_##kind, name, labels, help},
    METRIC_TABLE(METRIC_ROW)
#undef METRIC_ROW
};

/* An attempt, an answer, a commit: from a tenth of a millisecond to a minute. */
static const double second_bounds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                       0.1,    0.25,    0.5,    1,     2.5,    5,     10,   30,    60};
/* From received to delivered: a receiver may be down for days. */
static const double lag_bounds[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,  1,     2.5,
                                    5,     10,   30,    60,   300, 1800, 7200, 21600, 86400};
/* A script's call is a matter of microseconds. */
static const double script_bounds[] = {0.000001, 0.0000025, 0.000005, 0.00001, 0.000025, 0.00005, 0.0001,
                                       0.00025,  0.0005,    0.001,    0.0025,  0.005,    0.01,    0.1};
static const double size_bounds[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096};

#define BOUNDS(array) ((struct bounds){array, sizeof array / sizeof *array})

static bool ends(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static struct bounds bounds_of(const struct metric_row *row)
{
    if (row->kind != METRIC_HISTOGRAM)
        return (struct bounds){0};
    if (ends(row->name, "_size"))
        return BOUNDS(size_bounds);
    if (ends(row->name, "_lag_seconds"))
        return BOUNDS(lag_bounds);
    if (strncmp(row->name, "script_", 7) == 0)
        return BOUNDS(script_bounds);
    return BOUNDS(second_bounds);
}

struct metrics *metrics_new(void)
{
    struct metrics *metrics = mem_zalloc(sizeof *metrics);
    CHECK(pthread_mutex_init(&metrics->lock, NULL) == 0);
    CHECK(pthread_mutex_init(&metrics->scrape_lock, NULL) == 0);
    /* What has no labels is shown from the start: a rate() over it must see its first step. */
    for (int m = 0; m < METRIC_COUNT; m++)
        if (!*metric_rows[m].labels && metric_rows[m].kind != METRIC_GAUGE)
            metrics_series(metrics, (enum metric)m, NULL);
    return metrics;
}

static void series_free(struct series *series)
{
    free((char *)series->labels);
    free(series);
}

void metrics_free(struct metrics *metrics)
{
    if (!metrics)
        return;
    for (int m = 0; m < METRIC_COUNT; m++)
        for (struct series *s = metrics->first[m], *next; s; s = next) {
            next = s->next;
            series_free(s);
        }
    VEC_FREE(&metrics->collectors);
    pthread_mutex_destroy(&metrics->scrape_lock);
    pthread_mutex_destroy(&metrics->lock);
    free(metrics);
}

static struct series *series_new(enum metric metric, const char *labels)
{
    struct bounds bounds = bounds_of(&metric_rows[metric]);
    size_t size = sizeof(struct series) + (bounds.len + 1) * sizeof(uint64_t);
    size = (size + 63) & ~(size_t)63;
    struct series *series = aligned_alloc(64, size);
    CHECK(series != NULL);
    memset(series, 0, size);
    series->metric = metric;
    series->bounds = bounds;
    series->labels = mem_strdup(labels);
    return series;
}

struct series *metrics_series(struct metrics *metrics, enum metric metric, const char *const *values)
{
    CHECK((unsigned)metric < METRIC_COUNT);
    struct buf labels = {0};
    text_labels(&labels, &metric_rows[metric], values);
    CHECK(!labels.overflow);
    struct bytes text = buf_bytes(&labels);
    size_t slot = hash_u64(hash_bytes(text), (uint64_t)metric) % METRICS_SLOTS;

    pthread_mutex_lock(&metrics->lock);
    struct series *series = metrics->slots[slot];
    while (series && !(series->metric == metric && bytes_eq(bytes_str(series->labels), text)))
        series = series->next_alike;
    if (!series) {
        series = series_new(metric, text.at);
        series->next_alike = metrics->slots[slot];
        metrics->slots[slot] = series;
        if (metrics->last[metric])
            metrics->last[metric]->next = series;
        else
            metrics->first[metric] = series;
        metrics->last[metric] = series;
    }
    pthread_mutex_unlock(&metrics->lock);

    buf_free(&labels);
    return series;
}

struct series *metrics_series3(struct metrics *metrics, enum metric metric, const char *a, const char *b,
                               const char *c)
{
    const char *values[] = {a, b, c, NULL};
    return metrics_series(metrics, metric, values);
}

void counter_add(struct series *series, uint64_t n)
{
    CHECK(metric_rows[series->metric].kind == METRIC_COUNTER);
    atomic_fetch_add_explicit(&series->count, n, memory_order_relaxed);
}

uint64_t counter_read(const struct series *series)
{
    return atomic_load_explicit(&series->count, memory_order_relaxed);
}

void gauge_set(struct series *series, double value)
{
    CHECK(metric_rows[series->metric].kind == METRIC_GAUGE);
    atomic_store_explicit(&series->number, value, memory_order_relaxed);
}

void histogram_observe(struct series *series, double value)
{
    CHECK(metric_rows[series->metric].kind == METRIC_HISTOGRAM);
    size_t i = 0;
    while (i < series->bounds.len && value > series->bounds.at[i])
        i++;
    atomic_fetch_add_explicit(&series->buckets[i], 1, memory_order_relaxed);

    double sum = atomic_load_explicit(&series->number, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&series->number, &sum, sum + value, memory_order_relaxed,
                                                  memory_order_relaxed))
        ; /* `sum` was read again */
}

void metrics_on_scrape(struct metrics *metrics, void (*collect)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&metrics->scrape_lock);
    VEC_PUSH(&metrics->collectors, ((struct collector){collect, ctx}));
    pthread_mutex_unlock(&metrics->scrape_lock);
}

/* The second number of statm is the resident pages. */
static void collect_memory(struct metrics *metrics)
{
    FILE *statm = fopen("/proc/self/statm", "re");
    if (!statm)
        return;
    long pages;
    if (fscanf(statm, "%*s %ld", &pages) == 1)
        gauge_set(metrics_series(metrics, METRIC_PROCESS_RSS, NULL),
                  (double)pages * (double)sysconf(_SC_PAGESIZE));
    fclose(statm);
}

void metrics_write(struct metrics *metrics, struct buf *out)
{
    pthread_mutex_lock(&metrics->scrape_lock);
    collect_memory(metrics);
    VEC_EACH (c, &metrics->collectors)
        c->collect(c->ctx);

    pthread_mutex_lock(&metrics->lock);
    for (int m = 0; m < METRIC_COUNT; m++)
        text_metric(out, &metric_rows[m], metrics->first[m]);
    pthread_mutex_unlock(&metrics->lock);
    pthread_mutex_unlock(&metrics->scrape_lock);
}
