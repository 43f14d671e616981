/* One key, one hook: over batches, restarts, crashes and failing disks, until it expires or is freed. */
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

static void start(void)
{
    struct error err;
    store = rig_start(&options);
    assert_int_equal(store_sink_id(store, "shop", "billing", &sink, &err), STATUS_OK);
}

static int setup(void **state)
{
    (void)state;
    fault_vfs_set(FAULT_NONE);
    dir = rig_make_dir();
    options = rig_options(dir);
    start();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fault_vfs_set(FAULT_NONE);
    store_close(store);
    rig_remove_dir(dir);
    return 0;
}

enum { TTL_MS = 3600 * 1000 };

static struct rig_hook *keyed(const char *key)
{
    struct rig_hook *rig = rig_hook_new(100);
    rig_hook_row(rig, sink, NULL);
    rig->hook.envelope->dedupe_key = bytes_str(key);
    rig->hook.dedupe_ttl_ms = TTL_MS;
    return rig;
}

static struct store_twin commit(struct rig_hook *rig)
{
    assert_int_equal(rig_commit(store, rig), STATUS_OK);
    struct store_twin twin = rig->hook.twin;
    return twin;
}

static struct store_twin put(const char *key)
{
    struct rig_hook *rig = keyed(key);
    struct store_twin twin = commit(rig);
    if (!twin.found) {
        twin.seq = rig->seq;
        twin.id = rig->hook.envelope->id;
    }
    rig_hook_free(rig);
    return twin;
}

static void assert_twin(struct store_twin twin, struct store_twin first)
{
    assert_true(twin.found);
    assert_int_equal(twin.seq, first.seq);
    assert_memory_equal(&twin.id, &first.id, sizeof first.id);
}

static uint64_t hooks(void)
{
    struct store_stats stats;
    store_stats(store, &stats);
    return stats.hooks;
}

static int64_t claims(void)
{
    char *path = mem_format("%s/store.db", dir);
    sqlite3 *db;
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM claims", -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t count = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    free(path);
    return count;
}

static void the_second_is_told_of_the_first(void **state)
{
    (void)state;
    struct store_twin first = put("evt_1");
    assert_false(first.found);
    assert_twin(put("evt_1"), first);
    assert_int_equal(hooks(), 1);
    struct store_twin other = put("evt_2");
    assert_false(other.found);
    assert_true(other.seq > first.seq);
    assert_twin(put("evt_1"), first);
    assert_int_equal(hooks(), 2);
}

/* The lengths are part of what is compared: no text can be moved from one to the next. */
static void a_key_belongs_to_its_tenant_and_source(void **state)
{
    (void)state;
    static const char *const owners[][3] = {
        {"a", "bc", "d"}, {"ab", "c", "d"}, {"a", "b", "cd"}, {"x", "bc", "d"}, {"a", "bc", "e"}};
    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++) {
        struct rig_hook *rig = keyed(owners[i][2]);
        rig->hook.envelope->tenant = bytes_str(owners[i][0]);
        rig->hook.envelope->source = bytes_str(owners[i][1]);
        assert_false(commit(rig).found);
        rig_hook_free(rig);
    }
    assert_int_equal(hooks(), 5);
}

static void without_a_key_or_a_time_nothing_is_claimed(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rig_hook *none = keyed(NULL), *empty = keyed(""), *flagged = keyed("evt");
        flagged->hook.dedupe_ttl_ms = 0;
        assert_false(commit(none).found);
        assert_false(commit(empty).found);
        assert_false(commit(flagged).found);
        rig_hook_free(none);
        rig_hook_free(empty);
        rig_hook_free(flagged);
    }
    assert_false(put("evt").found);
    assert_int_equal(hooks(), 7);
    assert_int_equal(claims(), 1);
}

static void of_many_at_once_one_is_first(void **state)
{
    (void)state;
    enum { MANY = 600 };
    struct rig_hook *rigs[MANY];
    for (size_t i = 0; i < MANY; i++) {
        rigs[i] = keyed(i % 2 ? "odd" : "even");
        assert_int_equal(store_commit(store, &rigs[i]->hook), STATUS_OK);
    }
    struct store_twin firsts[2] = {{0}};
    for (size_t i = 0; i < MANY; i++) {
        assert_true(rig_wait_done(rigs[i]));
        assert_int_equal(rigs[i]->status, STATUS_OK);
        if (rigs[i]->hook.twin.found)
            continue;
        assert_int_equal(firsts[i % 2].seq, 0);
        firsts[i % 2] = (struct store_twin){.seq = rigs[i]->seq, .id = rigs[i]->hook.envelope->id};
    }
    for (size_t i = 0; i < MANY; i++) {
        if (rigs[i]->hook.twin.found)
            assert_twin(rigs[i]->hook.twin, firsts[i % 2]);
        rig_hook_free(rigs[i]);
    }
    assert_int_equal(hooks(), 2);
    assert_int_equal(claims(), 2);
}

static void a_crash_and_a_restart_forget_nothing(void **state)
{
    (void)state;
    struct store_twin firsts[3];
    firsts[0] = put("a");
    firsts[1] = put("b");
    char *crashed = rig_copy_dir(dir);
    firsts[2] = put("c");
    store_close(store);
    start();
    assert_twin(put("a"), firsts[0]);
    assert_twin(put("c"), firsts[2]);
    store_close(store);

    rig_remove_dir(dir);
    dir = crashed;
    options = rig_options(dir);
    start();
    assert_twin(put("a"), firsts[0]);
    assert_twin(put("b"), firsts[1]);
    assert_false(put("c").found);
}

static void a_key_is_free_when_its_time_is_over(void **state)
{
    (void)state;
    struct rig_hook *old = keyed("evt");
    old->hook.envelope->received_at_ms -= TTL_MS;
    assert_false(commit(old).found);
    rig_hook_free(old);
    struct store_twin first = put("evt");
    assert_false(first.found);
    assert_twin(put("evt"), first);
    store_close(store);
    start();
    assert_twin(put("evt"), first);
}

/* Rows go a few at a time, whether hooks come or not; what comes meanwhile stays. */
static void expired_keys_leave_the_disk(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    struct rig_hook *rigs[MANY];
    int64_t received_ms = clock_unix_ms() - TTL_MS + 2000;
    for (size_t i = 0; i < MANY; i++) {
        char *key = mem_format("evt_%zu", i);
        rigs[i] = keyed(NULL);
        rigs[i]->hook.envelope->dedupe_key = arena_copy(rigs[i]->hook.envelope->arena, bytes_str(key));
        rigs[i]->hook.envelope->received_at_ms = received_ms;
        free(key);
        assert_int_equal(store_commit(store, &rigs[i]->hook), STATUS_OK);
    }
    for (size_t i = 0; i < MANY; i++) {
        assert_true(rig_wait_done(rigs[i]));
        rig_hook_free(rigs[i]);
    }
    assert_int_equal(claims(), MANY);
    assert_true(RIG_WAIT(claims() == 0));
    assert_int_equal(hooks(), MANY);
    struct store_twin first = put("evt_1");
    assert_false(first.found);
    assert_twin(put("evt_1"), first);
    assert_int_equal(claims(), 1);
}

static void a_freed_key_is_claimed_anew(void **state)
{
    (void)state;
    struct store_twin first = put("evt"), other = put("other");
    store_forget_key(store, first.seq);
    store_forget_key(store, 4711); /* nobody's */
    assert_true(store_flush(store));
    struct store_twin second = put("evt");
    assert_false(second.found);
    assert_true(second.seq > first.seq);
    assert_twin(put("evt"), second);
    assert_twin(put("other"), other);
    store_close(store);
    start();
    assert_twin(put("evt"), second);
    assert_int_equal(claims(), 2);
}

static void dead_rows_of_the_first_are_told(void **state)
{
    (void)state;
    struct store_twin first = put("evt");
    rig_change(store, first.seq, sink, ROW_DEAD, "refused");
    assert_true(store_flush(store));
    assert_true(put("evt").dead);
    rig_change(store, first.seq, sink, ROW_HELD, "exhausted");
    assert_true(store_flush(store));
    assert_true(put("evt").dead);
    rig_change(store, first.seq, sink, ROW_PENDING, NULL);
    assert_true(store_flush(store));
    assert_false(put("evt").dead);
}

/* What was erased, or was too old to be kept, is not brought back by a provider that asks again. */
static void an_erased_hook_keeps_its_key(void **state)
{
    (void)state;
    struct store_twin first = put("evt");
    assert_int_equal(store_erase(store, first.seq), STATUS_OK);
    assert_int_equal(hooks(), 0);
    assert_twin(put("evt"), first);
    store_close(store);
    start();
    assert_twin(put("evt"), first);
}

/* The first is undecided: nobody may be told that it is there, and when it is not, the next one is first. */
static void a_first_that_was_not_stored_claims_nothing(void **state)
{
    (void)state;
    put("warm");
    struct rig_hook *first = keyed("evt"), *twin = keyed("evt"), *late = keyed("evt");
    fault_vfs_set(FAULT_LOG_SYNC);
    assert_int_equal(store_commit(store, &first->hook), STATUS_OK);
    enum status status = store_commit(store, &twin->hook); /* in its batch, or behind it */
    assert_true(RIG_WAIT(fault_vfs_count() >= 2));
    assert_int_equal(__atomic_load_n(&first->done, __ATOMIC_ACQUIRE), 0);
    assert_int_equal(store_commit(store, &late->hook), STATUS_UNAVAILABLE);
    fault_vfs_set(FAULT_NONE);
    assert_true(rig_wait_done(first));
    assert_int_equal(first->status, STATUS_UNAVAILABLE);
    if (status == STATUS_OK) {
        assert_true(rig_wait_done(twin));
        assert_int_equal(twin->status, STATUS_UNAVAILABLE);
        assert_false(twin->hook.twin.found);
    }
    assert_true(RIG_WAIT(store_available(store)));
    struct store_twin again = put("evt");
    assert_false(again.found);
    assert_twin(put("evt"), again);
    assert_int_equal(claims(), 2);
    rig_hook_free(first);
    rig_hook_free(twin);
    rig_hook_free(late);
}

int main(void)
{
    fault_vfs_install();
    log_setup(LOG_ERROR + 1, true); /* the failures are meant */
#define FRESH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        FRESH(the_second_is_told_of_the_first),
        FRESH(a_key_belongs_to_its_tenant_and_source),
        FRESH(without_a_key_or_a_time_nothing_is_claimed),
        FRESH(of_many_at_once_one_is_first),
        FRESH(a_crash_and_a_restart_forget_nothing),
        FRESH(a_key_is_free_when_its_time_is_over),
        FRESH(expired_keys_leave_the_disk),
        FRESH(a_freed_key_is_claimed_anew),
        FRESH(dead_rows_of_the_first_are_told),
        FRESH(an_erased_hook_keeps_its_key),
        FRESH(a_first_that_was_not_stored_claims_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
