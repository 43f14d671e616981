/* A commit that fails at the log or its sync is answered neither yes nor no until its frames can't come back.
 * A copy of the files is what a crash at that moment would leave; opening it tells the truth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#include "fault_vfs.h"
#include "store_rig.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

static struct store_options options;
static struct store *store;
static uint32_t sink;
static char *dir;

static int setup(void **state)
{
    (void)state;
    fault_vfs_set(FAULT_NONE);
    dir = rig_make_dir();
    options = rig_options(dir);
    store = rig_start(&options);
    struct error err;
    return store_sink_id(store, "shop", "billing", &sink, &err) == STATUS_OK && rig_put(store, sink, 500) == 1
               ? 0
               : -1;
}

static int teardown(void **state)
{
    (void)state;
    fault_vfs_set(FAULT_NONE);
    store_close(store);
    rig_remove_dir(dir);
    return 0;
}

static uint64_t hooks_after_a_crash_now(uint64_t *next_seq)
{
    char *copy = rig_copy_dir(dir);
    struct store_options other = rig_options(copy);
    struct store *crashed = rig_open(&other);
    struct store_stats stats;
    store_stats(crashed, &stats);
    if (next_seq)
        *next_seq = stats.next_seq;
    store_close(crashed);
    rig_remove_dir(copy);
    return stats.hooks;
}

static bool undecided(void)
{
    struct store_stats stats;
    store_stats(store, &stats);
    return stats.undecided;
}

static void a_failed_commit_is_answered_only_once_it_was_replaced(enum fault fault)
{
    struct rig_hook *rig = rig_hook_new(9000), *other = rig_hook_new(10);
    rig_hook_row(rig, sink, NULL);
    fault_vfs_set(fault);
    assert_int_equal(store_commit(store, &rig->hook), STATUS_OK);
    assert_true(RIG_WAIT(undecided()));
    /* Some tries to replace it fail too; all that time nothing is answered and nothing is taken. */
    assert_true(RIG_WAIT(fault_vfs_count() >= 3));
    assert_int_equal(__atomic_load_n(&rig->done, __ATOMIC_ACQUIRE), 0);
    assert_int_equal(store_commit(store, &other->hook), STATUS_UNAVAILABLE);
    assert_false(store_available(store));

    fault_vfs_set(FAULT_NONE);
    assert_true(rig_wait_done(rig));
    assert_int_equal(rig->status, STATUS_UNAVAILABLE);
    assert_int_equal(rig->hook.envelope->seq, 0);
    uint64_t next_seq;
    assert_int_equal(hooks_after_a_crash_now(&next_seq), 1);
    assert_int_equal(next_seq, 3); /* 2 was the lost one's */

    assert_true(RIG_WAIT(store_available(store)));
    assert_int_equal(rig_commit(store, other), STATUS_OK);
    assert_int_equal(other->seq, 3);
    assert_int_equal(rig->done, 1);
    assert_int_equal(hooks_after_a_crash_now(NULL), 2);
    rig_hook_free(rig);
    rig_hook_free(other);
}

static void a_failed_write(void **state)
{
    (void)state;
    a_failed_commit_is_answered_only_once_it_was_replaced(FAULT_LOG_WRITE);
}

static void a_write_that_fails_half_way(void **state)
{
    (void)state;
    a_failed_commit_is_answered_only_once_it_was_replaced(FAULT_LOG_WRITE_HALF);
}

static void a_failed_sync(void **state)
{
    (void)state;
    a_failed_commit_is_answered_only_once_it_was_replaced(FAULT_LOG_SYNC);
}

static void a_full_disk(void **state)
{
    (void)state;
    a_failed_commit_is_answered_only_once_it_was_replaced(FAULT_LOG_FULL);
}

/* Why all this is needed: after a failed sync the frames may be whole, and a crash brings the hook back. It
 * must not have been answered 503 by then. */
static void a_crash_while_undecided_may_bring_the_hook_back(void **state)
{
    (void)state;
    struct rig_hook *rig = rig_hook_new(9000);
    rig_hook_row(rig, sink, NULL);
    fault_vfs_set(FAULT_LOG_SYNC);
    assert_int_equal(store_commit(store, &rig->hook), STATUS_OK);
    assert_true(RIG_WAIT(undecided()));
    char *copy = rig_copy_dir(dir);
    assert_int_equal(__atomic_load_n(&rig->done, __ATOMIC_ACQUIRE), 0);

    fault_vfs_set(FAULT_NONE);
    assert_true(rig_wait_done(rig));
    assert_int_equal(rig->status, STATUS_UNAVAILABLE);
    assert_int_equal(hooks_after_a_crash_now(NULL), 1);

    struct store_options other = rig_options(copy);
    struct store *crashed = rig_open(&other);
    struct store_stats stats;
    store_stats(crashed, &stats);
    assert_int_equal(stats.hooks, 2);
    store_close(crashed);
    rig_remove_dir(copy);
    rig_hook_free(rig);
}

static void past_its_timeout_nobody_knows(void **state)
{
    (void)state;
    store_close(store);
    options.commit_timeout_ms = 250;
    store = rig_start(&options);
    struct rig_hook *rig = rig_hook_new(10);
    rig_hook_row(rig, sink, NULL);
    fault_vfs_set(FAULT_LOG_SYNC);
    int64_t began_ms = clock_mono_ms();
    assert_int_equal(store_commit(store, &rig->hook), STATUS_OK);
    assert_true(rig_wait_done(rig));
    assert_int_equal(rig->status, STATUS_IO);
    assert_true(clock_mono_ms() - began_ms >= 250);
    assert_false(store_available(store));

    fault_vfs_set(FAULT_NONE);
    assert_true(RIG_WAIT(store_available(store)));
    assert_int_equal(rig->done, 1);
    assert_int_equal(hooks_after_a_crash_now(NULL), 1);
    rig_hook_free(rig);
}

/* A disk that does not come back fails nothing: only the clock says so. */
static void a_sync_that_hangs_makes_it_unavailable(void **state)
{
    (void)state;
    store_close(store);
    options.commit_timeout_ms = 300; /* a third of it is patience */
    store = rig_start(&options);
    struct rig_hook *rig = rig_hook_new(10), *other = rig_hook_new(10);
    rig_hook_row(rig, sink, NULL);
    fault_vfs_set(FAULT_LOG_HANG);
    assert_int_equal(store_commit(store, &rig->hook), STATUS_OK);
    assert_true(RIG_WAIT(fault_vfs_count() == 1));
    assert_true(RIG_WAIT(!store_available(store)));
    assert_false(store_writes(store));
    assert_int_equal(store_commit(store, &other->hook), STATUS_UNAVAILABLE);
    struct store_stats stats;
    store_stats(store, &stats);
    assert_true(stats.hung && !stats.available && !stats.undecided);
    assert_int_equal(__atomic_load_n(&rig->done, __ATOMIC_ACQUIRE), 0);

    fault_vfs_set(FAULT_NONE);
    assert_true(rig_wait_done(rig));
    assert_int_equal(rig->status, STATUS_OK); /* it was slow, and it was done */
    assert_true(RIG_WAIT(store_available(store)));
    assert_int_equal(rig_commit(store, other), STATUS_OK);
    rig_hook_free(rig);
    rig_hook_free(other);
}

static bool take_state(void *ctx, const struct store_row_view *row)
{
    *(enum row_state *)ctx = row->state;
    return true;
}

static void outcomes_of_a_failed_commit_are_written_again(void **state)
{
    (void)state;
    struct rig_hook *rig = rig_hook_new(10);
    rig_hook_row(rig, sink, NULL);
    fault_vfs_set(FAULT_LOG_SYNC);
    rig_change(store, 1, sink, ROW_DONE, "ok");
    assert_int_equal(store_commit(store, &rig->hook), STATUS_OK);
    assert_true(RIG_WAIT(undecided()));
    rig_change(store, 1, sink, ROW_DONE, "ok"); /* twice does no harm */
    assert_false(store_flush(store));

    fault_vfs_set(FAULT_NONE);
    assert_true(RIG_WAIT(store_available(store)));
    assert_true(store_flush(store));
    struct store_reader *reader;
    struct error err;
    enum row_state is = ROW_PENDING;
    assert_int_equal(store_reader_open(store, &reader, &err), STATUS_OK);
    assert_int_equal(store_row_of(reader, 1, sink, take_state, &is), STATUS_OK);
    assert_int_equal(is, ROW_DONE);
    store_reader_close(reader);
    assert_true(rig_wait_done(rig));
    rig_hook_free(rig);
}

static void hooks_that_wait_behind_a_failed_commit_are_refused(void **state)
{
    (void)state;
    store_close(store);
    options.max_batch = 1;
    store = rig_start(&options);
    struct rig_hook *hooks[50];
    enum status said[50];
    fault_vfs_set(FAULT_LOG_SYNC);
    size_t taken = 0;
    for (int i = 0; i < 50; i++) {
        hooks[i] = rig_hook_new(10);
        said[i] = store_commit(store, &hooks[i]->hook);
        taken += said[i] == STATUS_OK;
    }
    assert_true(taken > 0);
    assert_true(RIG_WAIT(undecided()));
    fault_vfs_set(FAULT_NONE);
    assert_true(RIG_WAIT(store_available(store)));
    for (int i = 0; i < 50; i++) {
        if (said[i] == STATUS_OK)
            assert_true(rig_wait_done(hooks[i]));
        assert_int_equal(said[i] == STATUS_OK ? hooks[i]->status : said[i], STATUS_UNAVAILABLE);
        rig_hook_free(hooks[i]);
    }
    assert_int_equal(hooks_after_a_crash_now(NULL), 1);
}

static void a_stop_while_undecided_ends(void **state)
{
    (void)state;
    store_close(store);
    options.commit_timeout_ms = 200;
    store = rig_start(&options);
    struct rig_hook *rig = rig_hook_new(10);
    fault_vfs_set(FAULT_LOG_WRITE);
    assert_int_equal(store_commit(store, &rig->hook), STATUS_OK);
    assert_true(RIG_WAIT(undecided()));
    rig_change(store, 1, sink, ROW_DONE, "ok");
    store_stop(store);
    assert_int_equal(rig->done, 1);
    assert_int_equal(rig->status, STATUS_IO);
    fault_vfs_set(FAULT_NONE);
    rig_hook_free(rig);
}

/* What replaces a failed commit is small: it fits where the outcomes did not, again and again. */
static void a_stop_ends_when_outcomes_never_fit(void **state)
{
    (void)state;
    enum { HOOKS = 3000 };
    uint64_t first = rig_put_many(store, sink, 10, HOOKS);
    struct list changes = LIST_INIT(changes);
    for (uint64_t i = 0; i < HOOKS; i++) {
        struct store_change *change = store_change_new();
        *change = (struct store_change){.seq = first + i, .sink = sink, .state = ROW_DONE, .cls = "ok"};
        list_append(&changes, &change->node);
    }
    fault_vfs_set(FAULT_LOG_TIGHT);
    store_changes(store, &changes);
    assert_true(RIG_WAIT(fault_vfs_count() >= 1));
    store_stop(store);
    assert_true(fault_vfs_count() >= 3);
    fault_vfs_set(FAULT_NONE);
    assert_int_equal(hooks_after_a_crash_now(NULL), HOOKS + 1);
}

/* Somebody else holds the database: the hook is refused for certain, and the store says that it can't be had.
 * Once it can, it says so without being asked to write anything. */
static void a_store_that_others_hold_is_not_available(void **state)
{
    (void)state;
    sqlite3 *other;
    char *path = mem_format("%s/store.db", dir);
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    struct rig_hook *rig = rig_hook_new(10);
    assert_int_equal(rig_commit(store, rig), STATUS_UNAVAILABLE);
    assert_false(store_available(store));
    assert_false(undecided());

    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_true(RIG_WAIT(store_available(store)));
    assert_int_equal(hooks_after_a_crash_now(NULL), 1);
    free(path);
    rig_hook_free(rig);
}

int main(void)
{
    fault_vfs_install();
    log_setup(LOG_ERROR + 1, true); /* the failures are meant */
#define FRESH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        FRESH(a_failed_write),
        FRESH(a_write_that_fails_half_way),
        FRESH(a_failed_sync),
        FRESH(a_full_disk),
        FRESH(a_crash_while_undecided_may_bring_the_hook_back),
        FRESH(past_its_timeout_nobody_knows),
        FRESH(a_sync_that_hangs_makes_it_unavailable),
        FRESH(outcomes_of_a_failed_commit_are_written_again),
        FRESH(hooks_that_wait_behind_a_failed_commit_are_refused),
        FRESH(a_stop_while_undecided_ends),
        FRESH(a_stop_ends_when_outcomes_never_fit),
        FRESH(a_store_that_others_hold_is_not_available),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
