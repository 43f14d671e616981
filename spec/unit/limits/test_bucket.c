/* One bucket: a burst at once, then its rate, exactly; and how long to wait, to the nanosecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "limits/bucket.h"

enum { SECOND = 1000000000 };
static const int64_t START = 86400LL * SECOND;

static void a_burst_then_one_at_a_time(void **state)
{
    (void)state;
    struct pace pace = pace_of((struct limit){.rate = 10, .burst = 3});
    int64_t full_at = 0;
    for (int i = 3; i > 0; i--) {
        assert_int_equal(bucket_level(full_at, pace, START), i);
        assert_int_equal(bucket_take(&full_at, pace, START), 0);
    }
    assert_int_equal(bucket_level(full_at, pace, START), 0);
    assert_int_equal(bucket_take(&full_at, pace, START), SECOND / 10);
    assert_int_equal(bucket_take(&full_at, pace, START + SECOND / 10 - 1), 1); /* a refusal costs nothing */
    assert_int_equal(bucket_take(&full_at, pace, START + SECOND / 10), 0);
    assert_int_equal(bucket_wait_ns(full_at, pace, START + SECOND / 10), SECOND / 10);
}

/* Against an exact count: a hook a nanosecond step of any size, over a long time. */
static void no_drift(void **state)
{
    (void)state;
    static const double rates[] = {0.001, 0.3, 1, 7, 1000, 999999, 1000000};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        struct pace pace = pace_of((struct limit){.rate = rates[r], .burst = 5});
        int64_t full_at = 0, now = START, taken = 0;
        srand(7);
        for (int i = 0; i < 100000; i++) {
            now += (int64_t)(rand() % 1000) * pace.every_ns / 700;
            while (bucket_take(&full_at, pace, now) == 0)
                taken++;
        }
        /* All that came back since the start was taken, and the burst at it. */
        assert_true(llabs(taken - 5 - (now - START) / pace.every_ns) <= 1);
        assert_true(llabs((int64_t)(1e9 / rates[r]) - pace.every_ns) <= 1);
    }
}

static void the_wait_that_is_told_is_right(void **state)
{
    (void)state;
    struct pace pace = pace_of((struct limit){.rate = 3, .burst = 4});
    int64_t full_at = 0, now = START;
    for (int i = 0; i < 1000; i++) {
        int64_t wait = bucket_take(&full_at, pace, now);
        if (wait > 0) {
            assert_int_equal(bucket_wait_ns(full_at, pace, now + wait - 1), 1);
            now += wait;
            assert_int_equal(bucket_take(&full_at, pace, now), 0);
        }
        now += i % 100 * 1000003LL;
    }
}

static void a_lowered_limit_leaves_it_empty_never_in_debt(void **state)
{
    (void)state;
    struct pace slow = pace_of((struct limit){.rate = 0.001, .burst = 100});
    struct pace fast = pace_of((struct limit){.rate = 100, .burst = 2});
    int64_t full_at = 0;
    for (int i = 0; i < 100; i++)
        assert_int_equal(bucket_take(&full_at, slow, START), 0);
    assert_int_equal(bucket_level(full_at, fast, START), 0);
    assert_int_equal(bucket_take(&full_at, fast, START), SECOND / 100); /* and not a day */
}

static void the_largest_of_everything_fits(void **state)
{
    (void)state;
    struct pace pace = pace_of((struct limit){.rate = LIMIT_RATE_MIN, .burst = LIMIT_BURST_MAX});
    int64_t ten_years = 10LL * 366 * 86400 * SECOND, full_at = 0;
    for (int i = 0; i < LIMIT_BURST_MAX; i++)
        assert_int_equal(bucket_take(&full_at, pace, ten_years), 0);
    assert_int_equal(bucket_take(&full_at, pace, ten_years), 1000LL * SECOND);
    assert_int_equal(bucket_level(full_at, pace, ten_years + 5000LL * SECOND), 5);
}

static void a_burst_that_was_not_said_is_a_second(void **state)
{
    (void)state;
    assert_int_equal(limit_burst_of(50), 50);
    assert_int_equal(limit_burst_of(0.5), 1);
    assert_int_equal(limit_burst_of(1.5), 2);
    assert_int_equal(limit_burst_of(LIMIT_RATE_MAX), LIMIT_BURST_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_then_one_at_a_time),
        cmocka_unit_test(no_drift),
        cmocka_unit_test(the_wait_that_is_told_is_right),
        cmocka_unit_test(a_lowered_limit_leaves_it_empty_never_in_debt),
        cmocka_unit_test(the_largest_of_everything_fits),
        cmocka_unit_test(a_burst_that_was_not_said_is_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
