/* Replay jobs in the store: a step makes rows owed again and moves the cursor, together or not at all; what
 * becomes of the rows is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stage.h"
#include "util/clock.h"

static uint32_t billing, fresh;

static int setup(void **state)
{
    (void)state;
    struct error err;
    stage_open();
    return store_sink_id(store, "shop", "billing", &billing, &err) == STATUS_OK &&
                   store_sink_id(store, "shop", "fresh", &fresh, &err) == STATUS_OK
               ? 0
               : -1;
}

static struct store_replay begin(uint32_t number)
{
    struct store_stats stats;
    store_stats(store, &stats);
    struct store_replay replay = {.number = number, .rate = 50, .last = stats.next_seq - 1, .source = "shop"};
    replay.id = uuid_new(clock_unix_ms());
    store_put_replay(store, &replay);
    assert_true(store_flush(store));
    return replay;
}

static bool take(void *ctx, const struct store_replay *replay)
{
    *(struct store_replay *)ctx = *replay;
    return false;
}

static struct store_replay look(uint32_t number)
{
    struct store_replay replay = {.number = 0};
    assert_true(store_flush(store));
    assert_int_equal(store_list_replays(reader, number, number, take, &replay), STATUS_OK);
    return replay;
}

static void done(struct store_replay_step *step, bool durable)
{
    atomic_store((atomic_int *)step->ctx, durable ? 1 : -1);
}

static void make(uint32_t number, uint64_t cursor, struct store_replay_row *rows, size_t count)
{
    atomic_int over = 0;
    struct store_replay_step step = {.number = number,
                                     .cursor = cursor,
                                     .hooks = count,
                                     .rows = rows,
                                     .count = count,
                                     .done = done,
                                     .ctx = &over};
    store_step_replay(store, &step);
    assert_true(RIG_WAIT(atomic_load(&over) != 0));
    assert_int_equal(over, 1);
}

static void end_row(uint64_t seq, uint32_t sink, enum row_state state, uint32_t number)
{
    struct store_change *change = store_change_new();
    struct list changes = LIST_INIT(changes);
    change->seq = seq;
    change->sink = sink;
    change->state = state;
    change->replay = number;
    change->cls = state == ROW_DONE ? "ok" : "refused";
    change->attempts = 1;
    change->at_ms = clock_unix_ms();
    list_append(&changes, &change->node);
    store_changes(store, &changes);
}

static bool take_row(void *ctx, const struct store_row_view *row)
{
    *(struct store_row_view *)ctx = *row;
    return false;
}

static enum row_state state_of(uint64_t seq, uint32_t sink)
{
    struct store_row_view row;
    assert_true(store_flush(store));
    assert_int_equal(store_row_of(reader, seq, sink, take_row, &row), STATUS_OK);
    return row.state;
}

static void what_is_owed_is_not_made_twice(void **state)
{
    (void)state;
    uint64_t first = rig_put_many(store, billing, 10, 3);
    rig_change(store, first, billing, ROW_DONE, "ok");
    rig_change(store, first + 1, billing, ROW_DEAD, "refused");
    struct store_replay replay = begin(1);
    struct store_replay_row rows[] = {
        {.seq = first, .sink = billing},
        {.seq = first + 1, .sink = billing},
        {.seq = first + 2, .sink = billing},
        {.seq = first + 2, .sink = fresh, .ordered = true, .lane = "lane of a key..", .key = BYTES("k")},
        {.seq = first + 99, .sink = billing}};
    make(replay.number, first + 2, rows, 5);
    assert_true(rows[0].made && rows[0].was == ROW_DONE);
    assert_true(rows[1].made && rows[1].was == ROW_DEAD);
    assert_true(!rows[2].made && rows[2].was == ROW_PENDING);
    assert_true(rows[3].made && rows[3].was == -1);
    assert_true(!rows[4].made); /* its hook is not stored */
    assert_int_equal(state_of(first, billing), ROW_PENDING);
    assert_int_equal(state_of(first + 1, billing), ROW_PENDING);
    assert_int_equal(state_of(first + 2, fresh), ROW_PENDING);
    replay = look(1);
    assert_int_equal(replay.cursor, first + 2);
    assert_int_equal(replay.first, first);
    assert_int_equal(replay.made, 3);
    assert_int_equal(replay.owed, 2);
    struct store_stats stats;
    store_stats(store, &stats);
    assert_int_equal(stats.dead, 0);
}

static void outcomes_are_counted_once(void **state)
{
    (void)state;
    uint64_t first = rig_put_many(store, billing, 10, 3);
    for (uint64_t i = 0; i < 3; i++)
        rig_change(store, first + i, billing, ROW_DONE, "ok");
    begin(1);
    struct store_replay_row rows[] = {{.seq = first, .sink = billing},
                                      {.seq = first + 1, .sink = billing},
                                      {.seq = first + 2, .sink = billing}};
    make(1, first + 2, rows, 3);
    end_row(first, billing, ROW_DONE, 1);
    end_row(first, billing, ROW_DONE, 1);
    end_row(first + 1, billing, ROW_HELD, 1);
    end_row(first + 2, billing, ROW_DEAD, 1);
    struct store_replay replay = look(1);
    assert_int_equal(replay.done, 1);
    assert_int_equal(replay.dead, 2);
    assert_int_equal(replay.dead_run, 2);
    end_row(first + 1, billing, ROW_PENDING, 1); /* a hold that is lifted is no death */
    end_row(first + 1, billing, ROW_DONE, 1);
    replay = look(1);
    assert_int_equal(replay.done, 2);
    assert_int_equal(replay.dead, 1);
    assert_int_equal(replay.dead_run, 0);
    end_row(first + 2, billing, ROW_PENDING, 0); /* from the dead letters: not the job's any more */
    struct store_row_view row;
    assert_int_equal(state_of(first + 2, billing), ROW_PENDING);
    assert_int_equal(store_row_of(reader, first + 2, billing, take_row, &row), STATUS_OK);
    assert_int_equal(row.replay, 0);
}

static bool count_owed(void *ctx, const struct store_owed *row)
{
    *(unsigned *)ctx += row->state == ROW_PENDING && row->replay == 7;
    return true;
}

static bool count_owed_by_3(void *ctx, const struct store_owed *row)
{
    *(unsigned *)ctx += row->state == ROW_PENDING && row->replay == 3;
    return true;
}

static bool take_pen_id(void *ctx, const struct store_pen_view *entry)
{
    *(uint64_t *)ctx = entry->id;
    return false;
}

static void count_lane(void *ctx, uint32_t sink, uint32_t tenant, const uint8_t lane[16])
{
    (void)tenant;
    *(unsigned *)ctx += sink == billing && memcmp(lane, "lane of a key..", 16) == 0;
}

static void a_restart_finds_all_of_it(void **state)
{
    (void)state;
    struct error err;
    uint64_t first = rig_put_many(store, billing, 10, 2);
    rig_change(store, first, billing, ROW_DONE, "ok");
    rig_change(store, first + 1, billing, ROW_DONE, "ok");
    begin(7);
    struct store_replay_row rows[] = {
        {.seq = first, .sink = billing, .ordered = true, .lane = "lane of a key..", .key = BYTES("k")}};
    make(7, first, rows, 1);
    stop();
    unsigned owed = 0, lanes = 0;
    store = rig_open(&options);
    assert_int_equal(store_scan(store, count_owed, &owed, &err), STATUS_OK);
    assert_int_equal(owed, 1);
    assert_int_equal(store_start(store, &err), STATUS_OK);
    assert_int_equal(store_reader_open(store, &reader, &err), STATUS_OK);
    struct store_replay replay = look(7);
    assert_int_equal(replay.cursor, first);
    assert_int_equal(replay.state, REPLAY_RUNNING);
    assert_int_equal(store_replayed_lanes(reader, &replay, count_lane, &lanes), STATUS_OK);
    assert_int_equal(lanes, 1);
}

static void a_change_leaves_counts_alone(void **state)
{
    (void)state;
    uint64_t seq = rig_put(store, billing, 10);
    rig_change(store, seq, billing, ROW_DONE, "ok");
    struct store_replay replay = begin(1);
    struct store_replay_row rows[] = {{.seq = seq, .sink = billing}};
    make(1, seq, rows, 1);
    replay.state = REPLAY_PAUSED;
    replay.rate = 9;
    strcpy(replay.why, "because");
    store_put_replay(store, &replay);
    replay = look(1);
    assert_int_equal(replay.state, REPLAY_PAUSED);
    assert_int_equal(replay.rate, 9);
    assert_int_equal(replay.made, 1);
    assert_int_equal(replay.cursor, seq);
    assert_string_equal(replay.why, "because");
}

static uint64_t pen_one(void)
{
    struct rig_hook *hook = rig_hook_new(10);
    hook->hook.pen_reason = "bad_signature";
    hook->hook.pen_share_bytes = 1 << 20;
    assert_int_equal(rig_commit(store, hook), STATUS_OK);
    struct uuid id = hook->hook.envelope->id;
    rig_hook_free(hook);
    struct store_pen_filter filter = {.hook = &id, .limit = 1};
    uint64_t pen_id = 0;
    bool end;
    assert_int_equal(store_walk_pen(reader, &filter, take_pen_id, &pen_id, &end), STATUS_OK);
    assert_int_not_equal(pen_id, 0);
    return pen_id;
}

/* Gives its seq; 0: it did not become a hook. */
static uint64_t release(uint64_t pen_id, uint32_t number, const char *dedupe_key)
{
    struct rig_hook *hook = rig_hook_new(10);
    rig_hook_row(hook, billing, "k");
    rig_hook_row(hook, fresh, NULL);
    hook->hook.pen_id = pen_id;
    hook->hook.replay = number;
    if (dedupe_key) {
        hook->hook.envelope->dedupe_key = bytes_str(dedupe_key);
        hook->hook.dedupe_ttl_ms = 60000;
    }
    enum status status = rig_commit(store, hook);
    assert_true(status == STATUS_OK || status == STATUS_NOT_FOUND);
    uint64_t seq = status == STATUS_OK && !hook->hook.twin.found ? hook->seq : 0;
    rig_hook_free(hook);
    return seq;
}

static void what_leaves_the_pen_is_counted_with_it(void **state)
{
    (void)state;
    begin(3);
    uint64_t first = pen_one(), second = pen_one(), third = pen_one();
    uint64_t seq = release(first, 3, "same");
    assert_int_not_equal(seq, 0);
    assert_int_equal(release(first, 3, NULL), 0); /* it is not there any more: nothing is counted */
    assert_int_equal(release(second, 3, "same"), 0);
    assert_int_not_equal(release(third, 0, NULL), 0); /* by hand: not the job's */
    struct store_replay replay = look(3);
    assert_int_equal(replay.hooks, 2);
    assert_int_equal(replay.released, 1);
    assert_int_equal(replay.duplicates, 1);
    assert_int_equal(replay.made, 2);
    end_row(seq, billing, ROW_DONE, 3);
    assert_int_equal(look(3).done, 1);

    stop(); /* and a start knows whose the other row is */
    struct error err;
    unsigned owed = 0;
    store = rig_open(&options);
    assert_int_equal(store_scan(store, count_owed_by_3, &owed, &err), STATUS_OK);
    assert_int_equal(owed, 1);
    assert_int_equal(store_start(store, &err), STATUS_OK);
    assert_int_equal(store_reader_open(store, &reader, &err), STATUS_OK);
}

static void what_was_planned_and_what_is_gone_only_rise(void **state)
{
    (void)state;
    struct store_replay replay = begin(4);
    replay.planned = 10;
    store_put_replay(store, &replay);
    replay.planned = replay.gone = 3;
    store_put_replay(store, &replay);
    replay.gone = 0;
    store_put_replay(store, &replay);
    replay = look(4);
    assert_int_equal(replay.planned, 10);
    assert_int_equal(replay.gone, 3);
}

static void take_seq(void *ctx, uint64_t seq)
{
    (void)seq;
    ++*(unsigned *)ctx;
}

static void a_walk_gives_what_a_job_asks_for(void **state)
{
    (void)state;
    unsigned count = 0;
    bool end = false;
    uint64_t after = 0;
    rig_put_many(store, billing, 10, 3000);
    struct store_replay replay = begin(1);
    while (!end)
        assert_int_equal(store_walk_hooks(reader, &replay, &after, 700, take_seq, &count, &end), STATUS_OK);
    assert_int_equal(count, 3000);
    assert_int_equal(after, replay.last);
    count = 0;
    after = 0;
    end = false;
    replay.since_ms = clock_unix_ms() + 3600000; /* of whole blocks it only sees the times */
    while (!end)
        assert_int_equal(store_walk_hooks(reader, &replay, &after, 700, take_seq, &count, &end), STATUS_OK);
    assert_int_equal(count, 0);
    strcpy(replay.source, "mail");
    replay.since_ms = 0;
    after = 0;
    assert_int_equal(store_walk_hooks(reader, &replay, &after, 9, take_seq, &count, &end), STATUS_OK);
    assert_int_equal(count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_owed_is_not_made_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(outcomes_are_counted_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_restart_finds_all_of_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_change_leaves_counts_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(what_leaves_the_pen_is_counted_with_it, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_planned_and_what_is_gone_only_rise, setup, teardown),
        cmocka_unit_test_setup_teardown(a_walk_gives_what_a_job_asks_for, setup, teardown),
    };
    return cmocka_run_group_tests_name("store/replay", tests, NULL, NULL);
}
