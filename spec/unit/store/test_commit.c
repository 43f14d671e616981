/* A hook answered OK is on the disk, whole; one that is refused is not taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store_rig.h"
#include "util/clock.h"

static int make_dir(void **state)
{
    *state = rig_make_dir();
    return 0;
}

static int remove_dir(void **state)
{
    rig_remove_dir(*state);
    return 0;
}

static uint32_t sink_of(struct store *store, const char *name)
{
    uint32_t id;
    struct error err;
    assert_int_equal(store_sink_id(store, "shop", name, &id, &err), STATUS_OK);
    return id;
}

static struct store_reader *reader_of(struct store *store)
{
    struct store_reader *reader;
    struct error err;
    assert_int_equal(store_reader_open(store, &reader, &err), STATUS_OK);
    return reader;
}

static void a_committed_hook_is_read_back_whole(void **state)
{
    struct store_options options = rig_options(*state);
    struct store *store = rig_start(&options);
    struct rig_hook *rig = rig_hook_new(100000);
    assert_int_equal(rig_commit(store, rig), STATUS_OK);
    assert_int_equal(rig->done, 1);
    assert_int_equal(rig->hook.envelope->seq, 1);
    assert_string_equal(store_tenant_name(store, rig->hook.tenant), "default");

    struct store_reader *reader = reader_of(store);
    struct envelope *back;
    assert_int_equal(store_read_hook(reader, 1, &back), STATUS_OK);
    assert_memory_equal(&back->id, &rig->hook.envelope->id, sizeof back->id);
    assert_int_equal(back->seq, 1);
    assert_int_equal(back->received_at_ms, rig->hook.envelope->received_at_ms);
    assert_true(bytes_eq(back->tenant, BYTES("default")));
    assert_true(bytes_eq(back->source, BYTES("shop")));
    assert_true(bytes_eq(back->body, rig->hook.envelope->body));
    assert_int_equal(back->header_count, rig->hook.envelope->header_count);
    assert_true(bytes_eq(envelope_header(back, BYTES("x-shopify-topic")), BYTES("orders/create")));
    envelope_unref(back);

    assert_int_equal(store_read_hook(reader, 2, &back), STATUS_NOT_FOUND);
    assert_null(back);
    store_reader_close(reader);
    store_close(store);
    rig_hook_free(rig);
}

static bool take_row(void *ctx, const struct store_row_view *row)
{
    struct store_row_view *rows = ctx;
    while (rows->seq)
        rows++;
    *rows = *row;
    rows->key = row->key.at
                    ? bytes_of(memcpy(test_malloc(row->key.len + 1), row->key.at, row->key.len), row->key.len)
                    : BYTES_NONE;
    return true;
}

static void rows_carry_lane_and_key_byte_for_byte(void **state)
{
    struct store_options options = rig_options(*state);
    struct store *store = rig_start(&options);
    struct rig_hook *rig = rig_hook_new(10);
    rig_hook_row(rig, sink_of(store, "plain"), NULL);
    rig_hook_row(rig, sink_of(store, "keyed"), "cus_1");
    rig->rows[1].key = BYTES("a\0b\r\n*");
    rig_hook_row(rig, sink_of(store, "keyless"), "-");
    rig->rows[2].key = BYTES_NONE;
    assert_int_equal(rig_commit(store, rig), STATUS_OK);

    struct store_row_view rows[5] = {0};
    struct store_reader *reader = reader_of(store);
    assert_int_equal(store_rows_of(reader, rig->seq, take_row, rows), STATUS_OK);
    assert_string_equal(rows[0].sink_name, "plain");
    assert_string_equal(rows[0].source, "shop");
    assert_string_equal(rows[0].tenant_name, "default");
    assert_false(rows[0].ordered);
    assert_null(rows[0].key.at);
    assert_int_equal(rows[0].body_size, 10);
    assert_memory_equal(&rows[0].id, &rig->hook.envelope->id, 16);
    assert_true(rows[1].ordered);
    assert_memory_equal(rows[1].lane, rig->rows[1].lane, 16);
    assert_true(bytes_eq(rows[1].key, BYTES("a\0b\r\n*")));
    assert_true(rows[2].ordered);
    assert_null(rows[2].key.at);
    assert_int_equal(rows[2].state, ROW_PENDING);
    assert_int_equal(rows[3].seq, 0);
    test_free((void *)rows[1].key.at);

    struct store_row_view one[2] = {0};
    assert_int_equal(store_row_of(reader, rig->seq, rows[2].sink, take_row, one), STATUS_OK);
    assert_string_equal(one[0].sink_name, "keyless");
    assert_int_equal(store_row_of(reader, rig->seq, 99, take_row, one), STATUS_NOT_FOUND);
    store_reader_close(reader);
    store_close(store);
    rig_hook_free(rig);
}

static void seqs_ascend_over_a_restart_and_names_and_epoch_stay(void **state)
{
    struct store_options options = rig_options(*state);
    struct store *store = rig_start(&options);
    struct uuid epoch = store_epoch(store);
    uint32_t billing = sink_of(store, "billing"), audit = sink_of(store, "audit");
    assert_int_not_equal(billing, audit);
    uint64_t first = rig_put_many(store, billing, 100, 3000);
    assert_int_equal(first, 1);
    store_close(store);

    store = rig_start(&options);
    struct uuid again = store_epoch(store);
    assert_memory_equal(&epoch, &again, sizeof epoch);
    assert_int_equal(sink_of(store, "audit"), audit);
    assert_int_equal(sink_of(store, "billing"), billing);
    uint32_t tenant;
    assert_true(store_tenant_find(store, BYTES("default"), &tenant));
    assert_false(store_tenant_find(store, BYTES("nobody"), &tenant));
    const char *source, *sink;
    assert_true(store_sink_name(store, audit, &source, &sink));
    assert_string_equal(source, "shop");
    assert_string_equal(sink, "audit");
    assert_false(store_sink_name(store, 12345, &source, &sink));
    assert_false(store_sink_name(store, tenant, &source, &sink));
    assert_int_equal(rig_put(store, billing, 10), 3001);
    struct store_stats stats;
    store_stats(store, &stats);
    assert_int_equal(stats.hooks, 3001);
    assert_int_equal(stats.next_seq, 3002);
    assert_true(stats.disk_bytes > 0);
    assert_true(stats.available);
    store_close(store);
}

/* Both in blocks that have a row and in the youngest ones, which have none. */
static void a_hook_is_found_by_its_id(void **state)
{
    struct store_options options = rig_options(*state);
    struct store *store = rig_start(&options);
    uint32_t sink = sink_of(store, "billing");
    struct rig_hook *hooks[4];
    for (int i = 0; i < 4; i++) {
        hooks[i] = rig_hook_new(10);
        assert_int_equal(rig_commit(store, hooks[i]), STATUS_OK);
        rig_put_many(store, sink, 10, 1500);
    }
    struct store_reader *reader = reader_of(store);
    for (int i = 0; i < 4; i++) {
        uint64_t seq;
        assert_int_equal(store_find_hook(reader, &hooks[i]->hook.envelope->id, &seq), STATUS_OK);
        assert_int_equal(seq, hooks[i]->seq);
    }
    struct uuid other = uuid_new(hooks[0]->hook.envelope->received_at_ms);
    uint64_t seq;
    assert_int_equal(store_find_hook(reader, &other, &seq), STATUS_NOT_FOUND);
    store_reader_close(reader);
    store_close(store);
    for (int i = 0; i < 4; i++)
        rig_hook_free(hooks[i]);
}

struct seen {
    uint64_t last_seq;
    size_t hooks;
    bool done_before, descending;
};

static void look_at_committed(void *ctx, struct store_hook *const *hooks, size_t count)
{
    struct seen *seen = ctx;
    for (size_t i = 0; i < count; i++) {
        seen->descending |= hooks[i]->envelope->seq <= seen->last_seq;
        seen->last_seq = hooks[i]->envelope->seq;
        seen->done_before |= LIST_OWNER(hooks[i], struct rig_hook, hook)->done > 0;
        seen->hooks++;
    }
}

static void committed_hooks_are_handed_over_in_order_and_before_they_are_answered(void **state)
{
    struct seen seen = {0};
    struct store_options options = rig_options(*state);
    options.committed = look_at_committed;
    options.ctx = &seen;
    options.max_batch = 7;
    struct store *store = rig_start(&options);
    rig_put_many(store, sink_of(store, "billing"), 10, 500);
    store_close(store);
    assert_int_equal(seen.hooks, 500);
    assert_int_equal(seen.last_seq, 500);
    assert_false(seen.descending);
    assert_false(seen.done_before);
}

static void a_second_process_is_refused_with_the_pid_of_the_first(void **state)
{
    struct store_options options = rig_options(*state);
    struct store *store = rig_start(&options), *second;
    struct error err = {""};
    char pid[32];
    snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    assert_int_equal(store_open(&options, &second, &err), STATUS_BUSY);
    assert_null(second);
    assert_non_null(strstr(err.text, pid));
    assert_int_equal(rig_put(store, sink_of(store, "billing"), 10), 1);
    store_close(store);

    store = rig_start(&options); /* the control: free again */
    store_close(store);
}

static void a_hook_over_a_bound_is_not_taken(void **state)
{
    struct store_options options = rig_options(*state);
    options.max_queue = 2;
    options.max_queue_bytes = 5000;
    struct store *store = rig_open(&options);
    struct rig_hook *rig = rig_hook_new(10);
    assert_int_equal(store_commit(store, &rig->hook), STATUS_UNAVAILABLE); /* not started */
    assert_false(store_available(store));
    struct error err;
    assert_int_equal(store_start(store, &err), STATUS_OK);
    assert_true(store_available(store));

    store_set_backlog_full(store, true);
    assert_int_equal(store_commit(store, &rig->hook), STATUS_BACKLOG_FULL);
    store_set_backlog_full(store, false);
    assert_int_equal(rig_commit(store, rig), STATUS_OK);

    /* One hook alone always fits; a flood finds the bound. */
    uint32_t sink = sink_of(store, "billing");
    assert_int_not_equal(rig_put(store, sink, 20000), 0);
    struct rig_hook *flood[5000];
    enum status said[5000];
    size_t taken = 0, full = 0;
    for (size_t i = 0; i < 5000; i++) {
        flood[i] = rig_hook_new(10);
        said[i] = store_commit(store, &flood[i]->hook);
        taken += said[i] == STATUS_OK;
        full += said[i] == STATUS_FULL;
    }
    assert_int_equal(taken + full, 5000);
    assert_true(full > 0);
    for (size_t i = 0; i < 5000; i++) {
        if (said[i] == STATUS_OK)
            assert_true(rig_wait_done(flood[i]));
        assert_int_equal(flood[i]->done, said[i] == STATUS_OK);
        rig_hook_free(flood[i]);
    }
    struct store_stats stats;
    store_stats(store, &stats);
    assert_int_equal(stats.hooks, taken + 2);
    assert_int_equal(stats.queued, 0);
    assert_int_equal(stats.queued_bytes, 0);

    store_stop(store);
    struct rig_hook *late = rig_hook_new(10);
    assert_int_not_equal(store_commit(store, &late->hook), STATUS_OK);
    assert_int_equal(late->done, 0);
    store_close(store);
    rig_hook_free(late);
    rig_hook_free(rig);
}

static void a_full_disk_is_said_before_anything_is_promised(void **state)
{
    struct store_options options = rig_options(*state);
    options.min_free_bytes = INT64_MAX;
    struct store *store = rig_start(&options);
    struct rig_hook *rig = rig_hook_new(10);
    assert_int_equal(store_commit(store, &rig->hook), STATUS_DISK_FULL);
    assert_false(store_available(store));
    store_close(store);
    rig_hook_free(rig);
}

static void stopping_commits_what_is_queued(void **state)
{
    struct store_options options = rig_options(*state);
    struct store *store = rig_start(&options);
    struct rig_hook *hooks[400];
    for (int i = 0; i < 400; i++) {
        hooks[i] = rig_hook_new(1000);
        assert_int_equal(store_commit(store, &hooks[i]->hook), STATUS_OK);
    }
    store_stop(store);
    for (int i = 0; i < 400; i++) {
        assert_int_equal(hooks[i]->done, 1);
        assert_int_equal(hooks[i]->status, STATUS_OK);
        rig_hook_free(hooks[i]);
    }
    store_close(store);

    /* And the log was copied into the database: nothing is left to do at the next start. */
    char path[4096];
    snprintf(path, sizeof path, "%s/store.db-wal", (char *)*state);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* Bodies over many pages, in batches that are cut by their bytes. */
static void large_bodies_come_back_whole(void **state)
{
    struct store_options options = rig_options(*state);
    options.max_batch_bytes = 1 << 20;
    struct store *store = rig_start(&options);
    struct rig_hook *hooks[12];
    for (int i = 0; i < 12; i++) {
        hooks[i] = rig_hook_new((size_t)i * 400001);
        memset((char *)hooks[i]->hook.envelope->body.at, 'a' + i, (size_t)i * 400001);
        assert_int_equal(store_commit(store, &hooks[i]->hook), STATUS_OK);
    }
    struct store_reader *reader = reader_of(store);
    for (int i = 0; i < 12; i++) {
        struct envelope *back;
        assert_true(rig_wait_done(hooks[i]));
        assert_int_equal(store_read_hook(reader, hooks[i]->seq, &back), STATUS_OK);
        assert_true(bytes_eq(back->body, hooks[i]->hook.envelope->body));
        envelope_unref(back);
        rig_hook_free(hooks[i]);
    }
    store_reader_close(reader);
    store_close(store);
}

/* Once, writes to the database were gathered like those to the log, and readers met pages that a checkpoint
 * had spoken of and not yet written: CORRUPT, now and then. So: read what was just committed while the log is
 * copied. */
static void readers_see_whole_hooks_while_the_log_is_copied(void **state)
{
    struct store_options options = rig_options(*state);
    struct store *store = rig_start(&options);
    struct store_reader *reader = reader_of(store);
    for (int round = 0; round < 60; round++) {
        uint64_t first = rig_put_many(store, sink_of(store, "billing"), 5000, 100);
        for (uint64_t seq = first; seq < first + 100; seq += 3) {
            struct envelope *back;
            struct store_row_view rows[2] = {0};
            uint64_t found;
            assert_int_equal(store_read_hook(reader, seq, &back), STATUS_OK);
            assert_int_equal(back->body.len, 5000);
            assert_int_equal(store_row_of(reader, seq, sink_of(store, "billing"), take_row, rows), STATUS_OK);
            if (seq == first)
                assert_int_equal(store_find_hook(reader, &back->id, &found), STATUS_OK);
            envelope_unref(back);
        }
    }
    store_reader_close(reader);
    store_close(store);
}

/* Where it does is the pace of the thread that copies it, some 35 MiB in peace. At 512 MiB the writer would
 * copy all of it itself, which is for a disk that does not keep up. */
static void the_log_starts_again_under_load(void **state)
{
    enum { STARTS = 3, HARD_BYTES = 512 << 20 };
    struct store_options options = rig_options(*state);
    struct store *store = rig_start(&options);
    struct store_stats stats;
    int64_t longest = 0, before = 0;
    for (int starts = 0; starts < STARTS && longest < HARD_BYTES; before = stats.log_bytes) {
        rig_put_many(store, sink_of(store, "billing"), 20000, 50);
        store_stats(store, &stats);
        longest = stats.log_bytes > longest ? stats.log_bytes : longest;
        starts += stats.log_bytes < before;
    }
    assert_true(longest > 0);
    assert_true(longest < HARD_BYTES);
    store_close(store);
}

static void metrics_count_commits(void **state)
{
    struct metrics *metrics = metrics_new();
    struct store_options options = rig_options(*state);
    options.metrics = metrics;
    struct store *store = rig_start(&options);
    rig_put_many(store, sink_of(store, "billing"), 10, 20);
    struct buf out = {0};
    metrics_write(metrics, &out);
    assert_non_null(strstr(out.at, "lanegate_store_commit_batch_size_sum 20\n"));
    assert_non_null(strstr(out.at, "lanegate_store_commit_failures_total 0\n"));
    assert_non_null(strstr(out.at, "\nlanegate_disk_free_bytes "));
    assert_null(strstr(out.at, "\nlanegate_store_disk_bytes 0\n"));
    buf_free(&out);
    store_close(store);
    metrics_free(metrics);
}

static void another_program_s_database_is_left_alone(void **state)
{
    struct store_options options = rig_options(*state);
    char command[4096];
    snprintf(command, sizeof command, "%s/store.db", (char *)*state);
    FILE *file = fopen(command, "wb");
    fputs("This is not a database, and long enough not to be taken for an empty one. ", file);
    for (int i = 0; i < 100; i++)
        fputs("................................................................", file);
    fclose(file);
    struct store *store;
    struct error err = {""};
    assert_int_equal(store_open(&options, &store, &err), STATUS_CORRUPT);
    assert_null(store);
    assert_true(err.text[0] != 0);
}

static void put_file(const char *dir, const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "wb");
    fputs(text, file);
    fclose(file);
}

static bool is_there(const char *dir, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

/* A store is made aside and then named: what a start that was cut off has left never counts. */
static void a_first_start_that_was_cut_off_is_begun_again(void **state)
{
    struct store_options options = rig_options(*state);
    put_file(*state, "store.db", "");
    put_file(*state, "store.db.part", "Half of a store, that nobody has named.");
    struct store *store = rig_start(&options);
    assert_false(is_there(*state, "store.db.part"));
    assert_int_equal(rig_put(store, sink_of(store, "billing"), 10), 1);
    store_close(store);

    for (int round = 0; round < 24; round++) {
        char *dir = rig_make_dir();
        options = rig_options(dir);
        pid_t child = fork();
        if (child == 0) {
            struct error err;
            _exit(store_open(&options, &store, &err) == STATUS_OK ? 0 : 1);
        }
        usleep((useconds_t)round * 300);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        store = rig_start(&options);
        assert_int_equal(rig_put(store, sink_of(store, "billing"), 10), 1);
        store_close(store);
        rig_remove_dir(dir);
    }
}

static void a_log_without_its_store_is_not_begun_anew(void **state)
{
    struct store_options options = rig_options(*state);
    put_file(*state, "store.db-wal", "What was answered may be in here.");
    struct store *store;
    struct error err = {""};
    assert_int_equal(store_open(&options, &store, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "accepted hooks may be in it"));
    assert_false(is_there(*state, "store.db"));
}

int main(void)
{
#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        WITH_DIR(a_committed_hook_is_read_back_whole),
        WITH_DIR(rows_carry_lane_and_key_byte_for_byte),
        WITH_DIR(seqs_ascend_over_a_restart_and_names_and_epoch_stay),
        WITH_DIR(a_hook_is_found_by_its_id),
        WITH_DIR(committed_hooks_are_handed_over_in_order_and_before_they_are_answered),
        WITH_DIR(a_second_process_is_refused_with_the_pid_of_the_first),
        WITH_DIR(a_hook_over_a_bound_is_not_taken),
        WITH_DIR(a_full_disk_is_said_before_anything_is_promised),
        WITH_DIR(stopping_commits_what_is_queued),
        WITH_DIR(large_bodies_come_back_whole),
        WITH_DIR(readers_see_whole_hooks_while_the_log_is_copied),
        WITH_DIR(the_log_starts_again_under_load),
        WITH_DIR(metrics_count_commits),
        WITH_DIR(another_program_s_database_is_left_alone),
        WITH_DIR(a_first_start_that_was_cut_off_is_begun_again),
        WITH_DIR(a_log_without_its_store_is_not_begun_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
