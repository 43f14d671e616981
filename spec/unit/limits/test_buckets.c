/* More keys than places: nobody gets more than an exact bucket would give him, and while there is room it is
 * exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>

#include "limits/buckets.h"
#include "util/hash.h"
#include "util/mem.h"

enum { SECOND = 1000000000 };
static const int64_t START = 86400LL * SECOND;

static struct buckets *buckets;

static int setup(void **state)
{
    (void)state;
    buckets = buckets_open();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    buckets_close(buckets);
    return 0;
}

/* Keys of one set: they agree in their low bits. */
static uint64_t neighbour(uint64_t i)
{
    return 77 + i * BUCKETS_MAX;
}

static void exact_while_there_is_room(void **state)
{
    (void)state;
    struct pace pace = pace_of((struct limit){.rate = 1, .burst = 2});
    for (uint64_t i = 0; i < BUCKETS_WAYS; i++)
        for (int k = 0; k < 2; k++)
            assert_int_equal(buckets_take(buckets, neighbour(i), pace, START), 0);
    for (uint64_t i = 0; i < BUCKETS_WAYS; i++) {
        assert_int_equal(buckets_take(buckets, neighbour(i), pace, START), SECOND);
        assert_int_equal(buckets_level(buckets, neighbour(i), pace, START + SECOND), 1);
    }
}

static void who_is_full_makes_room_and_costs_nobody_anything(void **state)
{
    (void)state;
    struct pace pace = pace_of((struct limit){.rate = 1, .burst = 2});
    for (uint64_t i = 0; i < 100 * BUCKETS_WAYS; i++) {
        int64_t now =
            START + (int64_t)i * SECOND / BUCKETS_WAYS * 2; /* each is full again before it has to go */
        assert_int_equal(buckets_take(buckets, neighbour(i), pace, now), 0);
        assert_int_equal(buckets_level(buckets, neighbour(i), pace, now), 1);
    }
}

/* The attack that a table with plain eviction falls to: so many addresses that each is forgotten before it
 * comes again. Here the newcomer inherits, so that together they get what the places have, and no more. */
static void being_pushed_out_gives_no_fresh_burst(void **state)
{
    (void)state;
    struct pace pace = pace_of((struct limit){.rate = 0.001, .burst = 5});
    int taken = 0;
    for (int round = 0; round < 1000; round++)
        for (uint64_t i = 0; i < 4 * BUCKETS_WAYS; i++)
            taken += buckets_take(buckets, neighbour(i), pace, START) == 0;
    assert_int_equal(taken, 5 * BUCKETS_WAYS);
}

static void an_exhausted_one_stays_so_whoever_comes(void **state)
{
    (void)state;
    struct pace pace = pace_of((struct limit){.rate = 0.001, .burst = 5});
    for (int i = 0; i < 5; i++)
        assert_int_equal(buckets_take(buckets, neighbour(0), pace, START), 0);
    for (uint64_t i = 1; i < 10000; i++)
        buckets_take(buckets, neighbour(i), pace, START);
    assert_true(buckets_take(buckets, neighbour(0), pace, START) > 0);
}

/* At random, beside exact buckets: never more than those give. */
static void never_more_than_exact(void **state)
{
    (void)state;
    enum { KEYS = 40, STEPS = 200000 };
    static int64_t exact[KEYS];
    struct pace pace = pace_of((struct limit){.rate = 10, .burst = 4});
    int64_t now = START, given = 0, owed = 0;
    srand(11);
    for (int i = 0; i < STEPS; i++) {
        uint64_t key = (uint64_t)(rand() % KEYS);
        now += rand() % (SECOND / 400);
        int64_t exact_wait = bucket_wait_ns(exact[key], pace, now);
        int64_t wait = buckets_take(buckets, neighbour(key), pace, now);
        assert_true(wait >= exact_wait);
        given += wait == 0;
        owed += exact_wait == 0;
        if (wait == 0)
            assert_int_equal(bucket_take(&exact[key], pace, now), 0);
    }
    assert_true(given > 0 && owed >= given);
}

static void what_is_given_back_can_be_taken_again(void **state)
{
    (void)state;
    struct pace pace = pace_of((struct limit){.rate = 0.001, .burst = 1});
    assert_int_equal(buckets_take(buckets, 5, pace, START), 0);
    assert_true(buckets_take(buckets, 5, pace, START) > 0);
    buckets_give_back(buckets, 5, pace.every_ns);
    assert_int_equal(buckets_take(buckets, 5, pace, START), 0);
    buckets_give_back(buckets, 6, pace.every_ns); /* of nobody */
    assert_int_equal(buckets_level(buckets, 6, pace, START), 1);
}

static void what_is_only_looked_at_takes_no_place(void **state)
{
    (void)state;
    struct pace pace = pace_of((struct limit){.rate = 0.001, .burst = 1});
    for (uint64_t i = 0; i < BUCKETS_WAYS; i++)
        buckets_take(buckets, neighbour(i), pace, START);
    for (uint64_t i = 100; i < 200; i++)
        assert_int_equal(buckets_wait_ns(buckets, neighbour(i), pace, START), 0);
    for (uint64_t i = 0; i < BUCKETS_WAYS; i++)
        assert_true(buckets_wait_ns(buckets, neighbour(i), pace, START) > 0);
}

static void the_one_known_for_the_shortest_goes_first(void **state)
{
    (void)state;
    for (uint64_t i = 0; i <= BUCKETS_WAYS; i++)
        buckets_know(buckets, neighbour(i), START + (int64_t)i);
    assert_int_equal(buckets_known_until(buckets, neighbour(0)), 0);
    for (uint64_t i = 1; i <= BUCKETS_WAYS; i++)
        assert_int_equal(buckets_known_until(buckets, neighbour(i)), START + (int64_t)i);
}

/* ---- from several threads ---- */

enum { THREADS = 4, TRIES = 20000, SHARED_BURST = 5000 };
static atomic_int taken_by_all;

static void *take_many(void *arg)
{
    (void)arg;
    struct pace pace = pace_of((struct limit){.rate = 0.001, .burst = SHARED_BURST});
    for (int i = 0; i < TRIES; i++) {
        if (buckets_take(buckets, 9, pace, START) == 0)
            atomic_fetch_add(&taken_by_all, 1);
        buckets_take(buckets, hash_u64((uint64_t)i, 3), pace, START);
    }
    return NULL;
}

static void threads_share_one_bucket(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    taken_by_all = 0;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_many, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(taken_by_all, SHARED_BURST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(exact_while_there_is_room, setup, teardown),
        cmocka_unit_test_setup_teardown(who_is_full_makes_room_and_costs_nobody_anything, setup, teardown),
        cmocka_unit_test_setup_teardown(being_pushed_out_gives_no_fresh_burst, setup, teardown),
        cmocka_unit_test_setup_teardown(an_exhausted_one_stays_so_whoever_comes, setup, teardown),
        cmocka_unit_test_setup_teardown(never_more_than_exact, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_given_back_can_be_taken_again, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_only_looked_at_takes_no_place, setup, teardown),
        cmocka_unit_test_setup_teardown(the_one_known_for_the_shortest_goes_first, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_share_one_bucket, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
