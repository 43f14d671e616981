/* What is replaced while others use it: nobody sees a released one, and each is released once. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/current.h"

struct thing {
    int number;
    atomic_int released;
};

static void release(void *ctx, void *value)
{
    (void)ctx;
    struct thing *thing = value;
    atomic_fetch_add(&thing->released, 1);
}

static void one_is_released_when_its_last_user_drops_it(void **state)
{
    (void)state;
    struct thing things[2] = {{.number = 1}, {.number = 2}};
    struct current current;
    current_init(&current, release, NULL);
    current_set(&current, &things[0]);
    struct current_hold *old = current_take(&current), *again = current_take(&current);
    current_set(&current, &things[1]);
    struct current_hold *newer = current_take(&current);
    assert_ptr_equal(old->value, &things[0]);
    assert_ptr_equal(newer->value, &things[1]);
    current_drop(&current, old);
    assert_int_equal(things[0].released, 0);
    current_drop(&current, again);
    assert_int_equal(things[0].released, 1);
    current_drop(&current, newer);
    assert_int_equal(things[1].released, 0);
    current_close(&current);
    assert_int_equal(things[1].released, 1);
}

enum { THINGS = 2000, READERS = 3 };

struct race {
    struct current current;
    struct thing things[THINGS];
    atomic_bool over;
    atomic_int wrong;
    atomic_uint reads;
};

static void *read_on(void *ctx)
{
    struct race *race = ctx;
    while (!race->over) {
        struct current_hold *hold = current_take(&race->current);
        struct thing *thing = hold->value;
        race->wrong += thing->released != 0;
        current_drop(&race->current, hold);
        race->reads++;
    }
    return NULL;
}

static void readers_never_meet_a_released_one(void **state)
{
    (void)state;
    struct race *race = calloc(1, sizeof *race);
    current_init(&race->current, release, NULL);
    current_set(&race->current, &race->things[0]);
    pthread_t threads[READERS];
    for (int i = 0; i < READERS; i++)
        pthread_create(&threads[i], NULL, read_on, race);
    for (int i = 1; i < THINGS; i++) {
        unsigned reads = race->reads;
        current_set(&race->current, &race->things[i]);
        while (i % 100 == 0 && race->reads == reads) /* somebody is at it */
            ;
    }
    race->over = true;
    for (int i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    current_close(&race->current);
    assert_int_equal(race->wrong, 0);
    for (int i = 0; i < THINGS; i++)
        assert_int_equal(race->things[i].released, 1);
    free(race);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_is_released_when_its_last_user_drops_it),
        cmocka_unit_test(readers_never_meet_a_released_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
