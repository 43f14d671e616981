/* The disk hangs and the queue fills: one tenant gets no more of it than he leaves to the others. And what
 * people set for a tenant is there after a restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fault_vfs.h"
#include "store_rig.h"
#include "util/clock.h"

enum { QUEUE = 20, HOOKS_MAX = 64 };

static char *dir;
static struct store *store;
static uint32_t sink;
static struct rig_hook *hooks[HOOKS_MAX];
static size_t hook_count;

static void start(size_t max_queue_bytes)
{
    struct store_options options = rig_options(dir);
    options.max_queue = QUEUE;
    options.max_queue_bytes = max_queue_bytes;
    options.commit_timeout_ms = 600000; /* a hang is not told from a slow disk for long */
    store = rig_start(&options);
    struct error err;
    assert_int_equal(store_sink_id(store, "shop", "billing", &sink, &err), STATUS_OK);
}

static int setup(void **state)
{
    (void)state;
    dir = rig_make_dir();
    hook_count = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fault_vfs_set(FAULT_NONE);
    store_close(store);
    for (size_t i = 0; i < hook_count; i++)
        rig_hook_free(hooks[i]);
    rig_remove_dir(dir);
    return 0;
}

static enum status put(const char *tenant, size_t body_len, bool shares_queue)
{
    struct rig_hook *rig = rig_hook_new(body_len);
    rig->hook.envelope->tenant = bytes_str(tenant);
    rig->hook.shares_queue = shares_queue;
    rig_hook_row(rig, sink, NULL);
    enum status status = store_commit(store, &rig->hook);
    if (status == STATUS_OK)
        hooks[hook_count++] = rig;
    else
        rig_hook_free(rig);
    return status;
}

/* The writer is in a sync that does not end, with the hook of somebody else; the queue is empty. */
static void hang(void)
{
    fault_vfs_set(FAULT_LOG_HANG);
    assert_int_equal(put("first", 10, true), STATUS_OK);
    assert_true(RIG_WAIT(fault_vfs_count() > 0));
    struct store_stats stats;
    store_stats(store, &stats);
    assert_int_equal(stats.queued, 0);
}

static size_t flood(const char *tenant, size_t body_len, enum status until)
{
    size_t taken = 0;
    enum status status;
    while ((status = put(tenant, body_len, true)) == STATUS_OK)
        taken++;
    assert_int_equal(status, until);
    return taken;
}

static void all_are_stored_when_the_disk_comes_back(void)
{
    fault_vfs_set(FAULT_NONE);
    for (size_t i = 0; i < hook_count; i++) {
        assert_true(rig_wait_done(hooks[i]));
        assert_int_equal(hooks[i]->status, STATUS_OK);
    }
}

static void a_flood_leaves_as_much_as_it_takes(void **state)
{
    (void)state;
    start(1 << 24);
    hang();
    assert_int_equal(flood("loud", 10, STATUS_SHARE_FULL), QUEUE / 2);
    /* The next one too; and there is always a place for one who has none. */
    assert_int_equal(flood("second", 10, STATUS_SHARE_FULL), QUEUE / 4);
    assert_int_equal(put("quiet", 10, true), STATUS_OK);
    assert_int_equal(put("loud", 10, true), STATUS_SHARE_FULL);
    while (put("one_more", 10, true) == STATUS_OK)
        ;
    char name[32];
    for (int i = 0;; i++) {
        snprintf(name, sizeof name, "t%d", i);
        if (put(name, 10, true) == STATUS_FULL)
            break;
        assert_true(i < QUEUE); /* full is full, for everybody */
    }
    assert_int_equal(put("loud", 10, true), STATUS_FULL);
    all_are_stored_when_the_disk_comes_back();
    /* Nothing is left of it: the same again. */
    hang();
    assert_int_equal(flood("loud", 10, STATUS_SHARE_FULL), QUEUE / 2);
    all_are_stored_when_the_disk_comes_back();
}

static void bytes_are_shared_as_well(void **state)
{
    (void)state;
    start(100000);
    hang();
    assert_in_range(flood("loud", 10000, STATUS_SHARE_FULL), 4, 5);
    assert_int_equal(put("quiet", 20000, true), STATUS_OK);
    all_are_stored_when_the_disk_comes_back();
}

static void one_alone_always_fits(void **state)
{
    (void)state;
    start(100000);
    hang();
    assert_int_equal(put("loud", 150000, true), STATUS_OK);
    assert_int_equal(put("loud", 10, true), STATUS_FULL);
    all_are_stored_when_the_disk_comes_back();
}

static void who_has_no_neighbours_has_the_whole_queue(void **state)
{
    (void)state;
    start(1 << 24);
    hang();
    size_t taken = 0;
    while (put("alone", 10, false) == STATUS_OK)
        taken++;
    assert_int_equal(taken, QUEUE);
    all_are_stored_when_the_disk_comes_back();
}

/* ---- what people set ---- */

struct found {
    struct store_limit at[4];
    size_t count;
};

static void find(void *ctx, const struct store_limit *limit)
{
    struct found *found = ctx;
    assert_true(found->count < 4);
    found->at[found->count++] = *limit;
}

static struct found after_a_restart(void)
{
    struct error err;
    assert_true(store_flush(store));
    store_close(store);
    struct store_options options = rig_options(dir);
    store = rig_open(&options);
    struct found found = {.count = 0};
    assert_int_equal(store_limits(store, find, &found, &err), STATUS_OK);
    assert_int_equal(store_start(store, &err), STATUS_OK);
    return found;
}

static void limits_of_tenants_are_kept(void **state)
{
    (void)state;
    start(1 << 24);
    store_set_limit(store, &(struct store_limit){.tenant = "acme", .set = true, .rate = 0.5, .burst = 1});
    store_set_limit(store, &(struct store_limit){.tenant = "acme", .set = true, .rate = 12.25, .burst = 100});
    store_set_limit(store, &(struct store_limit){.tenant = "gone", .set = true, .rate = 1, .burst = 1});
    struct found found = after_a_restart();
    assert_int_equal(found.count, 2);
    assert_string_equal(found.at[0].tenant, "acme");
    assert_true(found.at[0].set && found.at[0].rate == 12.25 && found.at[0].burst == 100);
    store_set_limit(store, &(struct store_limit){.tenant = "gone"});
    store_set_limit(store, &(struct store_limit){.tenant = "never"});
    found = after_a_restart();
    assert_int_equal(found.count, 1);
    assert_string_equal(found.at[0].tenant, "acme");
}

int main(void)
{
    fault_vfs_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_flood_leaves_as_much_as_it_takes, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_are_shared_as_well, setup, teardown),
        cmocka_unit_test_setup_teardown(one_alone_always_fits, setup, teardown),
        cmocka_unit_test_setup_teardown(who_has_no_neighbours_has_the_whole_queue, setup, teardown),
        cmocka_unit_test_setup_teardown(limits_of_tenants_are_kept, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
