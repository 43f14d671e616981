/* Whose word counts for a tenant: the API's, then the file's, then the default; and buckets stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdio.h>

#include "limits/limits.h"

static const int64_t START = 86400LL * 1000000000;
static const struct limit five = {.rate = 0.001, .burst = 5}, two = {.rate = 0.001, .burst = 2}, none = {0};

static struct limits *limits;

static int setup(void **state)
{
    (void)state;
    limits = limits_open();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    limits_close(limits);
    return 0;
}

static struct limits_look look(const char *tenant)
{
    struct limits_look out;
    limits_look(limits, bytes_str(tenant), START, &out);
    return out;
}

static int taken(const char *tenant, int tries)
{
    struct limits_charge charge;
    enum limit_kind which;
    const struct limits_hook hook = {.tenant = bytes_str(tenant)};
    int count = 0;
    for (int i = 0; i < tries; i++)
        count += limits_charge(limits, &hook, START, &charge, &which) == 0;
    return count;
}

static void assert_from(const char *tenant, enum limit_origin origin, int64_t burst, int64_t without_api)
{
    struct limits_look found = look(tenant);
    assert_int_equal(found.origin, origin);
    assert_int_equal(found.limit.burst, burst);
    assert_int_equal(found.without_api.burst, without_api);
}

static void the_nearest_word_counts(void **state)
{
    (void)state;
    const struct limits_tenant file[] = {{"acme", five}, {"zeta", five}};
    assert_from("acme", LIMIT_FROM_NOTHING, 0, 0);
    assert_null(limit_origin_name(look("acme").origin));
    limits_configure(limits, two, file, 2);
    assert_from("acme", LIMIT_FROM_FILE, 5, 5);
    assert_from("other", LIMIT_FROM_DEFAULT, 2, 2);
    assert_int_equal(taken("acme", 9), 5);
    assert_int_equal(taken("other", 9), 2);

    assert_true(limits_put(limits, BYTES("acme"), (struct limit){.rate = 0.001, .burst = 7}));
    assert_from("acme", LIMIT_FROM_API, 7, 5);
    limits_configure(limits, none, NULL, 0); /* a reload: the API's stays */
    assert_from("acme", LIMIT_FROM_API, 7, 0);
    assert_from("other", LIMIT_FROM_NOTHING, 0, 0);
    assert_int_equal(taken("other", 9), 9);
    assert_true(limits_drop(limits, BYTES("acme")));
    assert_false(limits_drop(limits, BYTES("acme")));
    assert_from("acme", LIMIT_FROM_NOTHING, 0, 0);
    assert_int_equal(taken("acme", 9), 9);
}

static void a_change_elsewhere_fills_no_bucket(void **state)
{
    (void)state;
    limits_configure(limits, five, NULL, 0);
    assert_int_equal(taken("acme", 4), 4);
    const struct limits_tenant file[] = {{"zeta", two}};
    limits_configure(limits, five, file, 1);
    assert_true(limits_put(limits, BYTES("other"), two));
    assert_int_equal(look("acme").available, 1);
    assert_int_equal(taken("acme", 9), 1);
}

static void what_was_put_comes_back_at_once(void **state)
{
    (void)state;
    enum { COUNT = LIMITS_PUT_MAX };
    static char names[COUNT][16];
    static struct limits_tenant put[COUNT];
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        put[i] = (struct limits_tenant){names[i], {.rate = 1, .burst = i + 1}};
    }
    limits_restore(limits, put, COUNT);
    for (int i = 0; i < COUNT; i += 37)
        assert_from(names[i], LIMIT_FROM_API, i + 1, 0);
    assert_false(limits_put(limits, BYTES("one-more"), five));
    assert_true(limits_put(limits, BYTES("t7"), two));
    assert_from("t7", LIMIT_FROM_API, 2, 0);
    assert_true(limits_drop(limits, BYTES("t8")));
    assert_true(limits_put(limits, BYTES("one-more"), five));
    assert_int_equal(taken("one-more", 9), 5);
    assert_int_equal(taken("t3", 9), 4);
    assert_int_equal(taken("t8", 9), 9);
}

/* What a damaged store may bring: the first would be a division by zero, the last an overflow. */
static void only_limits_in_bounds_are_limits(void **state)
{
    (void)state;
    assert_true(limit_in_bounds(five) && limit_in_bounds((struct limit){LIMIT_RATE_MAX, LIMIT_BURST_MAX}));
    assert_false(limit_in_bounds((struct limit){1e10, 5}) || limit_in_bounds((struct limit){1e-300, 5}) ||
                 limit_in_bounds((struct limit){-1, 5}) || limit_in_bounds((struct limit){1, 0}) ||
                 limit_in_bounds((struct limit){1, INT64_MAX}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_nearest_word_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(a_change_elsewhere_fills_no_bucket, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_put_comes_back_at_once, setup, teardown),
        cmocka_unit_test(only_limits_in_bounds_are_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
