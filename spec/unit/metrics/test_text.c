/* The scrape is Prometheus text 0.0.4: what a scraper would trip over is tried here. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "metrics/metrics.h"

static char *scrape(struct metrics *m)
{
    struct buf out = {0};
    metrics_write(m, &out);
    assert_false(out.overflow);
    return out.at; /* free() it */
}

#define assert_line(text, line)                                                                              \
    do {                                                                                                     \
        if (!strstr(text, "\n" line "\n"))                                                                   \
            fail_msg("no line \"%s\" in:\n%s", line, text);                                                  \
    } while (0)

static size_t occurrences(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        n++;
    return n;
}

static void every_metric_has_one_help_and_one_type(void **state)
{
    struct metrics *m = *state;
    metrics_series3(m, METRIC_DISPATCH_LANES, "a", "b", "ready");
    metrics_series3(m, METRIC_DISPATCH_LANES, "a", "b", "held");
    char *text = scrape(m);
    assert_int_equal(occurrences(text, "# HELP lanegate_"), METRIC_COUNT);
    assert_int_equal(occurrences(text, "# TYPE lanegate_"), METRIC_COUNT);
    assert_line(text, "# TYPE lanegate_ingest_requests_total counter");
    assert_line(text, "# TYPE lanegate_dispatch_lanes gauge");
    assert_line(text, "# TYPE lanegate_ingest_duration_seconds histogram");
    assert_int_equal(occurrences(text, "# TYPE lanegate_dispatch_lanes gauge"), 1);
    free(text);
}

static void a_counter_is_there_before_it_counts(void **state)
{
    struct metrics *m = *state;
    char *text = scrape(m);
    assert_line(text, "lanegate_store_commit_failures_total 0");
    assert_line(text, "lanegate_ingest_duration_seconds_count 0");
    assert_null(strstr(text, "\nlanegate_verify_failures_total")); /* its labels are not known yet */
    free(text);

    metrics_series3(m, METRIC_VERIFY_FAILURES, "stripe", "bad_signature", NULL);
    text = scrape(m);
    assert_line(text, "lanegate_verify_failures_total{source=\"stripe\",reason=\"bad_signature\"} 0");
    free(text);
}

static void label_values_are_escaped(void **state)
{
    struct metrics *m = *state;
    counter_add(metrics_series3(m, METRIC_INGEST_REFUSED, "a\"b\\c\nd", NULL, NULL), 7);
    char *text = scrape(m);
    assert_line(text, "lanegate_ingest_refused_total{reason=\"a\\\"b\\\\c\\nd\"} 7");
    free(text);
}

static void large_counts_are_exact(void **state)
{
    struct metrics *m = *state;
    struct series *c = metrics_series3(m, METRIC_INGEST_REFUSED, "x", NULL, NULL);
    counter_add(c, (1ULL << 53) + 1);
    char *text = scrape(m);
    assert_line(text, "lanegate_ingest_refused_total{reason=\"x\"} 9007199254740993");
    free(text);
}

static void gauges_take_any_number(void **state)
{
    static const struct {
        double value;
        const char *line;
    } cases[] = {
        {0, "\nlanegate_queue_pending 0\n"},
        {-1.5, "\nlanegate_queue_pending -1.5\n"},
        {0.1, "\nlanegate_queue_pending 0.1\n"},
        {12884901888, "\nlanegate_queue_pending 12884901888\n"},
        {INFINITY, "\nlanegate_queue_pending +Inf\n"},
        {-INFINITY, "\nlanegate_queue_pending -Inf\n"},
        {NAN, "\nlanegate_queue_pending NaN\n"},
    };
    struct metrics *m = *state;
    struct series *g = metrics_series(m, METRIC_QUEUE_PENDING, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gauge_set(g, cases[i].value);
        char *text = scrape(m);
        if (!strstr(text, cases[i].line))
            fail_msg("no line %s", cases[i].line);
        free(text);
    }
}

static void buckets_are_cumulative_and_include_their_bound(void **state)
{
    struct metrics *m = *state;
    struct series *h = metrics_series(m, METRIC_STORE_COMMIT_BATCH, NULL);
    histogram_observe(h, 1);
    histogram_observe(h, 2);
    histogram_observe(h, 3);
    histogram_observe(h, 1e9);
    char *text = scrape(m);
    assert_line(text, "lanegate_store_commit_batch_size_bucket{le=\"1\"} 1");
    assert_line(text, "lanegate_store_commit_batch_size_bucket{le=\"2\"} 2");
    assert_line(text, "lanegate_store_commit_batch_size_bucket{le=\"4\"} 3");
    assert_line(text, "lanegate_store_commit_batch_size_bucket{le=\"4096\"} 3");
    assert_line(text, "lanegate_store_commit_batch_size_bucket{le=\"+Inf\"} 4");
    assert_line(text, "lanegate_store_commit_batch_size_sum 1000000006");
    assert_line(text, "lanegate_store_commit_batch_size_count 4");
    free(text);
}

static void le_stands_behind_the_labels(void **state)
{
    struct metrics *m = *state;
    histogram_observe(metrics_series3(m, METRIC_DISPATCH_ATTEMPT_DURATION, "a", "b", "ok"), 0.3);
    char *text = scrape(m);
    assert_line(text, "lanegate_dispatch_attempt_duration_seconds_bucket"
                      "{source=\"a\",sink=\"b\",result=\"ok\",le=\"0.25\"} 0");
    assert_line(text, "lanegate_dispatch_attempt_duration_seconds_bucket"
                      "{source=\"a\",sink=\"b\",result=\"ok\",le=\"0.5\"} 1");
    assert_line(text,
                "lanegate_dispatch_attempt_duration_seconds_sum{source=\"a\",sink=\"b\",result=\"ok\"} 0.3");
    free(text);
}

static void collect(void *ctx)
{
    struct series *g = ctx;
    gauge_set(g, 17);
}

static void collectors_run_before_the_text_is_written(void **state)
{
    struct metrics *m = *state;
    metrics_on_scrape(m, collect, metrics_series(m, METRIC_QUEUE_INFLIGHT, NULL));
    char *text = scrape(m);
    assert_line(text, "lanegate_queue_inflight 17");
    free(text);
}

static void the_process_tells_its_memory(void **state)
{
    struct metrics *m = *state;
    char *text = scrape(m);
    const char *line = strstr(text, "\nlanegate_process_resident_memory_bytes ");
    assert_non_null(line);
    double bytes = strtod(strchr(line, ' ') + 1, NULL);
    assert_true(bytes > 100e3 && bytes < 1e12);
    free(text);
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
        WITH(every_metric_has_one_help_and_one_type),
        WITH(a_counter_is_there_before_it_counts),
        WITH(label_values_are_escaped),
        WITH(large_counts_are_exact),
        WITH(gauges_take_any_number),
        WITH(buckets_are_cumulative_and_include_their_bound),
        WITH(le_stands_behind_the_labels),
        WITH(collectors_run_before_the_text_is_written),
        WITH(the_process_tells_its_memory),
    };
    return cmocka_run_group_tests_name("metrics: text", tests, NULL, NULL);
}
