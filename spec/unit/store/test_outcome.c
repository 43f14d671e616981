/* Outcomes reach their rows within 50 ms, and what is owed is found again at the next start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "stage.h"
#include "util/clock.h"

static uint32_t sink;

static int setup(void **state)
{
    (void)state;
    struct error err;
    stage_open();
    return store_sink_id(store, "shop", "billing", &sink, &err) == STATUS_OK ? 0 : -1;
}

static struct store_row_view seen;
static char seen_reason[128];

static bool take_row(void *ctx, const struct store_row_view *row)
{
    (void)ctx;
    seen = *row;
    memcpy(seen_reason, row->reason.at, row->reason.len);
    seen_reason[row->reason.len] = 0;
    return true;
}

static enum row_state state_of(uint64_t seq)
{
    assert_int_equal(store_row_of(reader, seq, sink, take_row, NULL), STATUS_OK);
    return seen.state;
}

static void an_outcome_is_kept_whole(void **state)
{
    (void)state;
    uint64_t seq = rig_put(store, sink, 10);
    struct store_change *change = store_change_new();
    *change = (struct store_change){
        .seq = seq,
        .sink = sink,
        .state = ROW_HELD,
        .late = true,
        .attempts = 7,
        .first_attempt_ms = 1700000000001,
        .due_ms = 1700000000002,
        .at_ms = 1700000000003,
        .waived_ms = 44,
        .cls = "exhausted",
        .http_status = 503,
        .duration_us = 123456,
        .reason = "the receiver answered 503",
    };
    struct list changes = LIST_INIT(changes);
    list_append(&changes, &change->node);
    store_changes(store, &changes);
    assert_true(list_empty(&changes));
    assert_true(store_flush(store));

    assert_int_equal(state_of(seq), ROW_HELD);
    assert_true(seen.late);
    assert_int_equal(seen.attempts, 7);
    assert_int_equal(seen.first_attempt_ms, 1700000000001);
    assert_int_equal(seen.due_ms, 1700000000002);
    assert_int_equal(seen.at_ms, 1700000000003);
    assert_int_equal(seen.waived_ms, 44);
    assert_string_equal(seen.cls, "exhausted");
    assert_int_equal(seen.http_status, 503);
    assert_int_equal(seen.duration_us, 123456);
    assert_string_equal(seen_reason, "the receiver answered 503");
    assert_string_equal(row_state_name(seen.state), "held");
}

static void an_outcome_without_a_class_leaves_the_one_that_is_there(void **state)
{
    (void)state;
    uint64_t seq = rig_put(store, sink, 10);
    rig_change(store, seq, sink, ROW_PENDING, "transient");
    rig_change(store, seq, sink, ROW_DISCARDED, NULL);
    assert_true(store_flush(store));
    assert_int_equal(state_of(seq), ROW_DISCARDED);
    assert_string_equal(seen.cls, "transient");
}

/* An ordered lane went on past a dead letter: the row learns that it is late, and why it died is still there
 * to be read. It was lost. */
static void a_note_on_a_dead_letter_leaves_why_and_when_it_died(void **state)
{
    (void)state;
    uint64_t seq = rig_put(store, sink, 10);
    struct store_change *died = store_change_new(), *late = store_change_new();
    *died = (struct store_change){.seq = seq,
                                  .sink = sink,
                                  .state = ROW_DEAD,
                                  .attempts = 1,
                                  .at_ms = 1700000000003,
                                  .cls = "refused",
                                  .http_status = 422,
                                  .duration_us = 77,
                                  .reason = "HTTP 422"};
    *late = (struct store_change){
        .seq = seq, .sink = sink, .state = ROW_DEAD, .late = true, .attempts = 1, .at_ms = 1700000009999};
    struct list changes = LIST_INIT(changes);
    list_append(&changes, &died->node);
    list_append(&changes, &late->node);
    store_changes(store, &changes);
    assert_true(store_flush(store));

    assert_int_equal(state_of(seq), ROW_DEAD);
    assert_true(seen.late);
    assert_string_equal(seen.cls, "refused");
    assert_int_equal(seen.http_status, 422);
    assert_int_equal(seen.duration_us, 77);
    assert_string_equal(seen_reason, "HTTP 422");
    assert_int_equal(seen.at_ms, 1700000000003);
}

/* Nobody flushes and no hook comes. */
static void an_outcome_is_written_soon_without_any_hook(void **state)
{
    (void)state;
    uint64_t seq = rig_put(store, sink, 10);
    rig_change(store, seq, sink, ROW_DONE, "ok");
    assert_true(RIG_WAIT(state_of(seq) == ROW_DONE));
}

static void an_outcome_of_a_row_that_is_gone_is_nothing(void **state)
{
    (void)state;
    rig_change(store, 12345, sink, ROW_DONE, "ok");
    assert_true(store_flush(store));
    assert_int_equal(store_row_of(reader, 12345, sink, take_row, NULL), STATUS_NOT_FOUND);
}

static void flush_without_anything_to_write_says_yes(void **state)
{
    (void)state;
    assert_true(store_flush(store));
}

/* ---- the scan at start ------------------------------------------------------------------------------------
 */

struct owed {
    size_t count, pending, dead, held;
    uint64_t first, last;
    bool descending;
    size_t stop_at;
};

static bool take_owed(void *ctx, const struct store_owed *row)
{
    struct owed *owed = ctx;
    owed->descending |= row->seq < owed->last;
    owed->first = owed->count == 0 ? row->seq : owed->first;
    owed->last = row->seq;
    owed->pending += row->state == ROW_PENDING;
    owed->dead += row->state == ROW_DEAD;
    owed->held += row->state == ROW_HELD;
    return ++owed->count != owed->stop_at;
}

static struct owed scan_after_restart(void)
{
    struct error err;
    struct owed owed = {0};
    stop();
    store = rig_open(&options);
    assert_int_equal(store_scan(store, take_owed, &owed, &err), STATUS_OK);
    assert_false(owed.descending);
    assert_int_equal(store_start(store, &err), STATUS_OK);
    assert_int_equal(store_reader_open(store, &reader, &err), STATUS_OK);
    return owed;
}

static void change_all(uint64_t from, uint64_t to, enum row_state is, const char *cls)
{
    for (uint64_t seq = from; seq < to; seq++)
        rig_change(store, seq, sink, is, cls);
    assert_true(store_flush(store));
}

static void what_is_owed_is_found_again(void **state)
{
    (void)state;
    rig_put_many(store, sink, 10, 5000); /* seqs 1 to 5000, some in blocks that are full */
    change_all(1, 4501, ROW_DONE, "ok");
    rig_change(store, 7, sink, ROW_DEAD, "refused");
    rig_change(store, 2500, sink, ROW_HELD, "exhausted");
    assert_true(store_flush(store));

    struct owed owed = scan_after_restart();
    assert_int_equal(owed.pending, 500);
    assert_int_equal(owed.dead, 1);
    assert_int_equal(owed.held, 1);
    assert_int_equal(owed.first, 7);
    assert_int_equal(owed.last, 5000);

    /* Again, now that blocks have said in the store that they are settled. */
    change_all(4501, 5001, ROW_DONE, "ok");
    rig_put_many(store, sink, 10, 2000);
    owed = scan_after_restart();
    assert_int_equal(owed.pending, 2000);
    assert_int_equal(owed.dead + owed.held, 2);

    struct store_stats stats;
    store_stats(store, &stats);
    assert_int_equal(stats.dead, 2);
    assert_int_equal(stats.hooks, 7000);
}

/* A dead letter replayed long after everything around it was done: the block it lies in is settled, and must
 * say otherwise in the same transaction. */
static void a_row_owed_again_in_a_settled_block_is_found(void **state)
{
    (void)state;
    rig_put_many(store, sink, 10, 5000);
    change_all(1, 5001, ROW_DONE, "ok");
    change_all(100, 102, ROW_DEAD, "refused");
    assert_int_equal(scan_after_restart().dead, 2);
    rig_put_many(store, sink, 10, 10); /* carries what blocks have to say */
    assert_int_equal(scan_after_restart().pending, 10);

    rig_change(store, 100, sink, ROW_PENDING, NULL);
    assert_true(store_flush(store));
    char *crashed = rig_copy_dir(dir);
    stop();
    rig_remove_dir(dir);
    dir = crashed;
    options.data_dir = dir;
    struct error err;
    struct owed owed = {0};
    store = rig_open(&options);
    assert_int_equal(store_scan(store, take_owed, &owed, &err), STATUS_OK);
    assert_int_equal(owed.first, 100);
    assert_int_equal(owed.pending, 11);
    assert_int_equal(owed.dead, 1);
    assert_int_equal(store_start(store, &err), STATUS_OK);
    assert_int_equal(store_reader_open(store, &reader, &err), STATUS_OK);

    change_all(100, 101, ROW_DONE, "ok");
    rig_put_many(store, sink, 10, 10);
    owed = scan_after_restart();
    assert_int_equal(owed.pending, 20);
    assert_int_equal(owed.first, 101);
}

static void a_scan_may_be_stopped_and_done_again(void **state)
{
    (void)state;
    rig_put_many(store, sink, 10, 3000);
    stop();
    struct error err;
    struct owed some = {.stop_at = 5}, all = {0};
    store = rig_open(&options);
    assert_int_equal(store_scan(store, take_owed, &some, &err), STATUS_OK);
    assert_int_equal(some.count, 5);
    assert_int_equal(store_scan(store, take_owed, &all, &err), STATUS_OK);
    assert_int_equal(all.count, 3000);
    assert_int_equal(store_start(store, &err), STATUS_OK);
    assert_int_equal(store_reader_open(store, &reader, &err), STATUS_OK);
    change_all(1, 3001, ROW_DONE, "ok");
    assert_int_equal(scan_after_restart().count, 0);
}

static struct store_owed kept;

static bool keep_owed(void *ctx, const struct store_owed *row)
{
    (void)ctx;
    kept = *row;
    return true;
}

static void an_owed_row_tells_lanes_all_they_need(void **state)
{
    (void)state;
    struct rig_hook *rig = rig_hook_new(10);
    rig_hook_row(rig, sink, "cus_42");
    assert_int_equal(rig_commit(store, rig), STATUS_OK);
    struct store_change *change = store_change_new();
    change->seq = rig->seq;
    change->sink = sink;
    change->state = ROW_PENDING;
    change->attempts = 3;
    change->first_attempt_ms = 1700000000001;
    change->waived_ms = 5;
    change->at_ms = 1700000000003;
    change->late = true;
    change->cls = "transient";
    change->http_status = 500;
    struct list changes = LIST_INIT(changes);
    list_append(&changes, &change->node);
    store_changes(store, &changes);
    assert_true(store_flush(store));
    stop();

    struct error err;
    store = rig_open(&options);
    assert_int_equal(store_scan(store, keep_owed, NULL, &err), STATUS_OK);
    assert_int_equal(kept.seq, rig->seq);
    assert_int_equal(kept.sink, sink);
    assert_string_equal(store_tenant_name(store, kept.tenant), "default");
    assert_int_equal(kept.state, ROW_PENDING);
    assert_true(kept.ordered);
    assert_true(kept.late);
    assert_memory_equal(kept.lane, rig->rows[0].lane, 16);
    assert_int_equal(kept.attempts, 3);
    assert_int_equal(kept.first_attempt_ms, 1700000000001);
    assert_int_equal(kept.waived_ms, 5);
    assert_int_equal(kept.at_ms, 1700000000003);
    assert_int_equal(kept.received_at_ms, rig->hook.envelope->received_at_ms);
    rig_hook_free(rig);
    assert_int_equal(store_start(store, &err), STATUS_OK);
    assert_int_equal(store_reader_open(store, &reader, &err), STATUS_OK);
}

struct attempts {
    size_t count;
    uint32_t first, last; /* attempt numbers */
    char response[1100];
    size_t response_len;
    bool has_response;
};

static bool take_attempt(void *ctx, const struct store_attempt_view *view)
{
    struct attempts *attempts = ctx;
    assert_int_equal(view->sink, sink);
    assert_string_equal(view->sink_name, "billing");
    if (attempts->count++ == 0)
        attempts->first = view->attempt;
    attempts->last = view->attempt;
    attempts->has_response = view->response.at != NULL;
    attempts->response_len = view->response.len;
    if (view->response.len)
        memcpy(attempts->response, view->response.at, view->response.len);
    return true;
}

static struct attempts attempts_of(uint64_t seq)
{
    struct attempts attempts = {0};
    assert_int_equal(store_attempts_of(reader, seq, take_attempt, &attempts), STATUS_OK);
    return attempts;
}

static void fail_attempt(uint64_t seq, uint32_t number, struct bytes response)
{
    struct store_change *change = store_change_new();
    *change = (struct store_change){.seq = seq,
                                    .sink = sink,
                                    .state = ROW_PENDING,
                                    .attempts = number,
                                    .at_ms = 1000 + number,
                                    .cls = "transient",
                                    .http_status = 503,
                                    .duration_us = 77,
                                    .reason = "HTTP 503",
                                    .failed = true};
    if (response.at) {
        char *copy = malloc(response.len + 1);
        memcpy(copy, response.at, response.len);
        change->response = bytes_of(copy, response.len);
    }
    struct list changes = LIST_INIT(changes);
    list_append(&changes, &change->node);
    store_changes(store, &changes);
}

static void the_last_ten_failures_are_kept_with_what_was_answered(void **state)
{
    (void)state;
    uint64_t seq = rig_put(store, sink, 10), other = rig_put(store, sink, 10);
    static const char bytes[] = "no\0\xff";
    for (uint32_t i = 1; i <= 12; i++)
        fail_attempt(seq, i, i == 12 ? bytes_of(bytes, 4) : BYTES("busy"));
    fail_attempt(other, 1, BYTES_NONE);
    assert_true(store_flush(store));
    struct attempts attempts = attempts_of(seq);
    assert_int_equal(attempts.count, 10);
    assert_int_equal(attempts.first, 3);
    assert_int_equal(attempts.last, 12);
    assert_int_equal(attempts.response_len, 4);
    assert_memory_equal(attempts.response, bytes, 4);
    attempts = attempts_of(other);
    assert_int_equal(attempts.count, 1);
    assert_false(attempts.has_response);

    /* A fresh budget counts from one again, and the bound is the same. */
    fail_attempt(seq, 1, BYTES(""));
    assert_true(store_flush(store));
    attempts = attempts_of(seq);
    assert_int_equal(attempts.count, 10);
    assert_int_equal(attempts.first, 4);
    assert_int_equal(attempts.last, 1);
    assert_true(attempts.has_response);
    stop();
    start();
    assert_int_equal(attempts_of(seq).count, 10);
}

static void a_success_leaves_no_failure_behind(void **state)
{
    (void)state;
    uint64_t seq = rig_put(store, sink, 10);
    rig_change(store, seq, sink, ROW_DONE, "ok");
    assert_true(store_flush(store));
    assert_int_equal(attempts_of(seq).count, 0);
}

static bool count_any(void *ctx, const struct store_owed *row)
{
    (void)row;
    ++*(int *)ctx;
    return true;
}

static void sql(const char *text)
{
    char path[4096];
    sqlite3 *db;
    snprintf(path, sizeof path, "%s/store.db", options.data_dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* What lanes would be made of has to be one of ours. */
static void a_damaged_row_ends_the_start(void **state)
{
    (void)state;
    static const char *const damages[] = {"lane = x'0102'", "lane = x''",         "state = -1",
                                          "tenant = 77",    "sink = 77",          "sink = 0, tenant = 0",
                                          "sink = tenant",  "lane = zeroblob(17)"};
    rig_put(store, sink, 10);
    stop();
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "CREATE TABLE good AS SELECT * FROM rows; UPDATE rows SET %s",
                 damages[i]);
        sql(text);
        struct error err = {""};
        int found = 0;
        store = rig_open(&options);
        assert_int_equal(store_scan(store, count_any, &found, &err), STATUS_CORRUPT);
        assert_int_equal(found, 0);
        assert_string_equal(err.text, "what is owed can't be read: a row is damaged");
        store_close(store);
        sql("DELETE FROM rows; INSERT INTO rows SELECT * FROM good; DROP TABLE good");
    }
    struct error err;
    store = rig_open(&options);
    assert_int_equal(store_start(store, &err), STATUS_OK);
    assert_int_equal(store_reader_open(store, &reader, &err), STATUS_OK);
}

int main(void)
{
#define FRESH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        FRESH(an_outcome_is_kept_whole),
        FRESH(an_outcome_without_a_class_leaves_the_one_that_is_there),
        FRESH(a_note_on_a_dead_letter_leaves_why_and_when_it_died),
        FRESH(an_outcome_is_written_soon_without_any_hook),
        FRESH(an_outcome_of_a_row_that_is_gone_is_nothing),
        FRESH(flush_without_anything_to_write_says_yes),
        FRESH(what_is_owed_is_found_again),
        FRESH(a_row_owed_again_in_a_settled_block_is_found),
        FRESH(a_scan_may_be_stopped_and_done_again),
        FRESH(an_owed_row_tells_lanes_all_they_need),
        FRESH(a_damaged_row_ends_the_start),
        FRESH(the_last_ten_failures_are_kept_with_what_was_answered),
        FRESH(a_success_leaves_no_failure_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
