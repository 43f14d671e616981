/* Delivered hooks go when they are old, or when there are too many; what is owed stays; no seq comes again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "store/store_priv.h"
#include "store_rig.h"
#include "util/clock.h"

static struct store_options options;
static struct store *store;
static uint32_t sink;
static char *dir;

static int setup(void **state)
{
    (void)state;
    struct error err;
    dir = rig_make_dir();
    options = rig_options(dir);
    store = rig_start(&options);
    return store_sink_id(store, "shop", "billing", &sink, &err) == STATUS_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    store_close(store);
    rig_remove_dir(dir);
    return 0;
}

static void reopen(void)
{
    store_close(store);
    store = rig_start(&options);
}

static uint64_t hooks(void)
{
    struct store_stats stats;
    store_stats(store, &stats);
    return stats.hooks;
}

static void finish(uint64_t from, uint64_t to)
{
    for (uint64_t seq = from; seq < to; seq++)
        rig_change(store, seq, sink, ROW_DONE, "ok");
    assert_true(store_flush(store));
}

static bool is_there(uint64_t seq)
{
    struct store_reader *reader;
    struct error err;
    struct envelope *envelope;
    assert_int_equal(store_reader_open(store, &reader, &err), STATUS_OK);
    enum status status = store_read_hook(reader, seq, &envelope);
    store_reader_close(reader);
    envelope_unref(envelope);
    assert_true(status == STATUS_OK || status == STATUS_NOT_FOUND);
    return status == STATUS_OK;
}

static void old_hooks_go_unless_somebody_is_owed_one(void **state)
{
    (void)state;
    rig_put_many(store, sink, 2000, 3000);
    finish(1, 3001);
    rig_change(store, 10, sink, ROW_DEAD, "refused");
    rig_change(store, 1500, sink, ROW_HELD, "exhausted");
    rig_change(store, 2999, sink, ROW_PENDING, "transient");
    rig_change(store, 2000, sink, ROW_DISCARDED, NULL);
    assert_true(store_flush(store));
    assert_int_equal(hooks(), 3000);

    options.retention_ms = 1;
    reopen();
    assert_true(RIG_WAIT(hooks() == 3));
    assert_true(is_there(10));
    assert_true(is_there(1500));
    assert_true(is_there(2999));
    assert_false(is_there(11));
    assert_false(is_there(2000));

    /* What lets go later goes later, though the keeper has passed it. */
    rig_change(store, 1500, sink, ROW_DISCARDED, NULL);
    assert_true(store_flush(store));
    assert_true(RIG_WAIT(hooks() == 2));
    finish(10, 11);
    finish(2999, 3000);
    assert_true(RIG_WAIT(hooks() == 0));
    assert_int_equal(rig_put(store, sink, 10), 3001);
    reopen();
    assert_int_equal(hooks(), 1);
}

static void young_hooks_stay(void **state)
{
    (void)state;
    options.retention_ms = 600000;
    reopen();
    rig_put_many(store, sink, 10, 100);
    struct rig_hook *old = rig_hook_new(10);
    old->hook.envelope->received_at_ms -= 700000;
    assert_int_equal(rig_commit(store, old), STATUS_OK);
    rig_hook_free(old);
    finish(1, 101);
    /* The old one came after young ones: order of age is order of seq, so it waits for them. A control
     * follows. */
    assert_true(is_there(101));
    struct rig_hook *first = rig_hook_new(10);
    store_close(store);
    rig_remove_dir(dir);
    dir = rig_make_dir();
    options.data_dir = dir;
    store = rig_start(&options);
    first->hook.envelope->received_at_ms -= 700000;
    assert_int_equal(rig_commit(store, first), STATUS_OK);
    rig_hook_free(first);
    struct error err;
    assert_int_equal(store_sink_id(store, "shop", "billing", &sink, &err), STATUS_OK);
    rig_put_many(store, sink, 10, 100);
    finish(2, 102);
    assert_true(RIG_WAIT(hooks() == 100));
    assert_false(is_there(1));
    assert_true(is_there(2));
}

static void no_seq_is_given_twice_after_everything_was_removed(void **state)
{
    (void)state;
    rig_put_many(store, sink, 10, 1500);
    finish(1, 1501);
    options.retention_ms = 1;
    reopen();
    assert_true(RIG_WAIT(hooks() == 0));
    options.retention_ms = 600000;
    reopen();
    assert_int_equal(rig_put(store, sink, 10), 1501);

    /* And after a crash instead of a clean end. */
    finish(1501, 1502);
    options.retention_ms = 1;
    reopen();
    assert_true(RIG_WAIT(hooks() == 0));
    char *crashed = rig_copy_dir(dir);
    store_close(store);
    rig_remove_dir(dir);
    dir = crashed;
    options.data_dir = dir;
    options.retention_ms = 600000;
    store = rig_start(&options);
    assert_int_equal(rig_put(store, sink, 10), 1502);
}

static void the_oldest_go_when_the_store_is_over_its_size(void **state)
{
    (void)state;
    options.max_bytes = 2 << 20;
    reopen();
    for (int i = 0; i < 8; i++) {
        uint64_t first = rig_put_many(store, sink, 1000, 1000);
        finish(first + (i == 0), first + 1000); /* seq 1 stays owed */
    }
    assert_true(RIG_WAIT(hooks() < 2000));
    assert_true(is_there(1));
    assert_false(is_there(2));
    assert_true(is_there(8000));
    assert_true(hooks() > 1000);
    options.max_bytes = 0;
    uint64_t left = hooks();
    reopen();
    assert_true(hooks() <= left);
    assert_true(is_there(8000));
}

/* Commits go on while a lot is removed, and each is answered in good time. */
static void removal_does_not_hold_up_commits(void **state)
{
    (void)state;
    rig_put_many(store, sink, 1000, 9000);
    finish(1, 9001);
    options.retention_ms = 1;
    reopen();
    uint64_t committed = 0;
    while (hooks() > 100) {
        assert_int_not_equal(rig_put(store, sink, 10), 0);
        committed++;
        finish(9000 + committed, 9001 + committed);
    }
    assert_true(committed > 0);
}

/* A transaction removes whole ranges until a millisecond is over: a range of many large bodies was a second.
 */
static void large_bodies_go_a_few_at_a_time(void **state)
{
    (void)state;
    enum { COUNT = 60, BODY = 100 * 1000, FIT = RANGE_BYTES / BODY };
    rig_put_many(store, sink, BODY, COUNT);
    finish(1, COUNT + 1);
    options.retention_ms = 1;
    reopen();
    struct keeper *keeper = &store->keeper;
    struct range plan[PLAN_MAX];
    assert_true(RIG_WAIT(hooks() == 0));
    pthread_mutex_lock(&keeper->lock); /* what was planned stays to be seen when it is done */
    memcpy(plan, keeper->plan, sizeof plan);
    pthread_mutex_unlock(&keeper->lock);
    uint64_t before = 1;
    size_t len = 0;
    for (; len < PLAN_MAX && plan[len].to > 0; len++) {
        assert_in_range(plan[len].to - before, 1, FIT);
        before = plan[len].to;
    }
    assert_int_equal(len, COUNT / FIT);
}

int main(void)
{
#define FRESH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        FRESH(old_hooks_go_unless_somebody_is_owed_one),
        FRESH(young_hooks_stay),
        FRESH(no_seq_is_given_twice_after_everything_was_removed),
        FRESH(the_oldest_go_when_the_store_is_over_its_size),
        FRESH(removal_does_not_hold_up_commits),
        FRESH(large_bodies_go_a_few_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
