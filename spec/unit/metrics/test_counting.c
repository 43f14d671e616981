/* Promises of the registry: one series for one set of labels, and not one count lost however many threads
 * count. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "metrics/metrics.h"

static void same_labels_give_the_same_series(void **state)
{
    struct metrics *m = *state;
    struct series *a = metrics_series3(m, METRIC_INGEST_REQUESTS, "shop", "accepted", NULL);
    assert_ptr_equal(a, metrics_series3(m, METRIC_INGEST_REQUESTS, "shop", "accepted", NULL));
    assert_ptr_not_equal(a, metrics_series3(m, METRIC_INGEST_REQUESTS, "shop", "refused", NULL));
    assert_ptr_not_equal(a, metrics_series3(m, METRIC_INGEST_REQUESTS, "accepted", "shop", NULL));
    /* the same values under another metric */
    assert_ptr_not_equal(a, metrics_series3(m, METRIC_VERIFY_FAILURES, "shop", "accepted", NULL));
}

static void values_that_would_run_together_stay_apart(void **state)
{
    struct metrics *m = *state;
    struct series *a = metrics_series3(m, METRIC_INGEST_REQUESTS, "a\",outcome=\"b", "c", NULL);
    struct series *b = metrics_series3(m, METRIC_INGEST_REQUESTS, "a", "b\",outcome=\"c", NULL);
    assert_ptr_not_equal(a, b);
}

static void a_counter_counts(void **state)
{
    struct metrics *m = *state;
    struct series *c = metrics_series3(m, METRIC_INGEST_REFUSED, "not_found", NULL, NULL);
    assert_int_equal(counter_read(c), 0);
    counter_add(c, 1);
    counter_add(c, 41);
    assert_int_equal(counter_read(c), 42);
}

static void many_series_are_all_found_again(void **state)
{
    struct metrics *m = *state;
    enum { MANY = 20000 };
    char name[32];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "source-%d", i);
        counter_add(metrics_series3(m, METRIC_DISPATCH_FILTERED, name, "sink", NULL), (uint64_t)i);
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "source-%d", i);
        assert_int_equal(counter_read(metrics_series3(m, METRIC_DISPATCH_FILTERED, name, "sink", NULL)), i);
    }
}

enum { THREADS = 8, ROUNDS = 20000 };

struct crowd {
    struct metrics *metrics;
    pthread_barrier_t start;
};

static void *count(void *arg)
{
    struct crowd *crowd = arg;
    pthread_barrier_wait(&crowd->start);
    struct series *counter = metrics_series3(crowd->metrics, METRIC_DISPATCH_UNORDERED, "s", "k", NULL);
    struct series *histogram = metrics_series3(crowd->metrics, METRIC_DISPATCH_LAG, "s", "k", NULL);
    for (int i = 0; i < ROUNDS; i++) {
        counter_add(counter, 3);
        histogram_observe(histogram, 0.5);
        if (i % 5000 == 0) { /* scrapes and new series in the middle of it */
            struct buf out = {0};
            metrics_write(crowd->metrics, &out);
            buf_free(&out);
            char name[32];
            snprintf(name, sizeof name, "new-%d", i);
            counter_add(metrics_series3(crowd->metrics, METRIC_DISPATCH_UNORDERED, name, "k", NULL), 1);
        }
    }
    return NULL;
}

static void no_count_is_lost_between_threads(void **state)
{
    struct crowd crowd = {.metrics = *state};
    pthread_t threads[THREADS];
    pthread_barrier_init(&crowd.start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count, &crowd), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&crowd.start);

    struct series *counter = metrics_series3(crowd.metrics, METRIC_DISPATCH_UNORDERED, "s", "k", NULL);
    assert_int_equal(counter_read(counter), 3 * THREADS * ROUNDS);
    struct series *fresh = metrics_series3(crowd.metrics, METRIC_DISPATCH_UNORDERED, "new-5000", "k", NULL);
    assert_int_equal(counter_read(fresh), THREADS);

    struct buf out = {0};
    metrics_write(crowd.metrics, &out);
    /* halves add up exactly in a double */
    assert_non_null(strstr(out.at, "lanegate_dispatch_lag_seconds_sum{source=\"s\",sink=\"k\"} 80000\n"));
    assert_non_null(strstr(out.at, "lanegate_dispatch_lag_seconds_count{source=\"s\",sink=\"k\"} 160000\n"));
    buf_free(&out);
}

static int open_metrics(void **state)
{
    *state = metrics_new();
    return 0;
}

static int close_metrics(void **state)
{
    metrics_free(*state);
    return 0;
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_metrics, close_metrics)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(same_labels_give_the_same_series),
        WITH(values_that_would_run_together_stay_apart),
        WITH(a_counter_counts),
        WITH(many_series_are_all_found_again),
        WITH(no_count_is_lost_between_threads),
    };
    return cmocka_run_group_tests_name("metrics: counting", tests, NULL, NULL);
}
