/* The rules of order, retries, holds, fairness and operators, one promise a test. */
#include "play.h"

static void one_of_a_lane_is_in_flight_and_its_ok_wakes_the_next(void **state)
{
    (void)state;
    put(lane('a'), 1);
    put(lane('a'), 2);
    put(lane('b'), 3);
    struct sched_start first = expect(1), other = expect(3);
    expect_none();
    answer(first, SCHED_OK);
    assert_int_equal(said(1).state, SCHED_ROW_DONE);
    struct sched_start second = expect(2);
    assert_int_equal(second.previous_seq, 1);
    answer(second, SCHED_OK);
    answer(other, SCHED_OK);
    assert_int_equal(look().pending, 0);
}

static void a_retry_blocks_its_lane_and_nothing_else(void **state)
{
    (void)state;
    policy.concurrency = 1;
    sched_sink_set(sched, now, 1, &policy);
    put(lane('a'), 1);
    put(lane('a'), 2);
    answer(expect(1), SCHED_TRANSIENT);
    assert_int_equal(said(1).due_ms, now.unix_ms + 100);
    put(lane('b'), 3);
    answer(expect(3), SCHED_OK);
    expect_none();
    assert_int_equal(sched_next_due(sched), now.mono_ms + 100);
    pass(100);
    struct sched_start again = expect(1);
    assert_int_equal(again.number, 2);
    answer(again, SCHED_OK);
    expect(2);
}

static void backoff_doubles_is_capped_and_shaken(void **state)
{
    (void)state;
    put(lane('a'), 1);
    policy.retry.max_ms = 1000;
    policy.retry.jitter = true;
    sched_sink_set(sched, now, 1, &policy);
    static const int64_t full[] = {100, 200, 400, 800, 1000, 1000};
    for (size_t i = 0; i < 6; i++) {
        answer(expect(1), SCHED_TRANSIENT);
        int64_t wait_ms = said(1).due_ms - now.unix_ms;
        assert_in_range(wait_ms, full[i] / 2, full[i]);
        pass(wait_ms);
    }
    static const int64_t schedule[] = {7, 77};
    policy.retry.schedule_ms = schedule;
    policy.retry.schedule_count = 2;
    sched_sink_set(sched, now, 1, &policy);
    answer(expect(1), SCHED_TRANSIENT);
    assert_int_equal(said(1).due_ms, now.unix_ms + 77);
}

static void retry_after_is_never_earlier_than_backoff_nor_later_than_an_hour(void **state)
{
    (void)state;
    put(lane('a'), 1);
    static const int64_t asked[] = {1, 5000, 7200 * 1000}, waits[] = {100, 5000, 3600 * 1000};
    for (size_t i = 0; i < 3; i++) {
        struct sched_outcome outcome = {.cls = SCHED_RETRY_AFTER, .retry_after_ms = asked[i]};
        struct sched_start start = expect(1);
        sched_actions_done(sched);
        sched_outcome(sched, now, start.run, &outcome);
        assert_int_equal(said(1).due_ms - now.unix_ms, waits[i]);
        pass(waits[i]);
    }
}

static void give_up_counts_neither_pause_nor_breaker(void **state)
{
    (void)state;
    policy.retry = (struct retry_policy){.base_ms = 1000, .max_ms = 1000, .give_up_after_ms = 3500};
    sched_sink_set(sched, now, 1, &policy);
    struct sched_place a = lane('a');
    put(a, 1);
    answer(expect(1), SCHED_TRANSIENT); /* at 0 */
    pass(1000);
    answer(expect(1), SCHED_TRANSIENT);
    sched_sink_pause(sched, now, 1, 0);
    sched_lane_pause(sched, now, &a); /* both at once count once */
    pass(100000);
    expect_none();
    sched_sink_resume(sched, now, 1);
    pass(50000);
    expect_none();
    sched_lane_resume(sched, now, &a);
    answer(expect(1), SCHED_TRANSIENT);
    assert_int_equal(said(1).state, SCHED_ROW_PENDING);
    assert_int_equal(said(1).waived_ms, 150000);
    pass(1000);
    answer(expect(1), SCHED_TRANSIENT);
    assert_int_equal(said(1).state, SCHED_ROW_PENDING);
    pass(1000);
    answer(expect(1), SCHED_TRANSIENT); /* 3000 ms of its own time */
    assert_int_equal(said(1).state, SCHED_ROW_PENDING);
    pass(1000);
    answer(expect(1), SCHED_TRANSIENT);
    assert_int_equal(said(1).state, SCHED_ROW_HELD);
    assert_string_equal(said(1).cls, "exhausted");
}

static void a_refused_head_leaves_and_an_exhausted_one_holds(void **state)
{
    (void)state;
    policy.retry.max_attempts = 1;
    sched_sink_set(sched, now, 1, &policy);
    struct sched_place a = lane('a');
    for (uint64_t seq = 1; seq <= 4; seq++)
        put(a, seq);
    answer(expect(1), SCHED_REFUSED);
    assert_int_equal(said(1).state, SCHED_ROW_DEAD);
    struct sched_start second = expect(2);
    assert_int_equal(second.skipped, 1);
    answer(second, SCHED_TRANSIENT);
    assert_int_equal(said(2).state, SCHED_ROW_HELD);
    pass(1000000);
    expect_none();
    assert_int_equal(look().lanes[LANE_STATE_HELD], 1);
    assert_int_equal(look().dead, 2);
    sched_discard(sched, now, &a, 2, false);
    assert_int_equal(said(2).state, SCHED_ROW_DISCARDED);
    expect(3);
}

static void an_unordered_row_never_holds(void **state)
{
    (void)state;
    policy.retry.max_attempts = 1;
    sched_sink_set(sched, now, 1, &policy);
    put((struct sched_place){.sink = 1}, 1);
    put((struct sched_place){.sink = 1}, 2);
    struct sched_start first = expect(1), second = expect(2); /* nor waits for another */
    answer(first, SCHED_TRANSIENT);
    assert_int_equal(said(1).state, SCHED_ROW_DEAD);
    answer(second, SCHED_OK);
    assert_int_equal(look().dead, 1);
}

static void a_replayed_dead_letter_goes_first_keeps_its_seq_and_is_late(void **state)
{
    (void)state;
    struct sched_place a = lane('a');
    put(a, 1);
    put(a, 2);
    put(a, 3);
    put(a, 4);
    answer(expect(1), SCHED_REFUSED);
    answer(expect(2), SCHED_OK);
    assert_true(said(1).late); /* the store hears of it in the same breath */
    assert_int_equal(said(1).state, SCHED_ROW_DEAD);
    struct sched_start third = expect(3);
    struct sched_again again = {.seq = 1, .received_ms = epoch_ms, .dead = true, .late = true};
    assert_int_equal(sched_replay(sched, now, &a, &again), SCHED_DONE);
    assert_int_equal(sched_replay(sched, now, &a, &again), SCHED_NOTHING); /* not made twice */
    expect_none(); /* never beside the one that runs */
    answer(third, SCHED_OK);
    struct sched_start first = expect(1);
    assert_true(first.late);
    assert_int_equal(first.skipped, 0);
    answer(first, SCHED_OK);
    assert_int_equal(expect(4).previous_seq, 1);
}

static void a_rewound_lane_waits_for_its_job(void **state)
{
    (void)state;
    struct sched_place a = lane('a');
    put(a, 1);
    put(a, 2);
    answer(expect(1), SCHED_OK);
    answer(expect(2), SCHED_OK);
    sched_rewind(sched, now, &a, 0);
    put(a, 3);
    expect_none();
    struct sched_again again = {.seq = 1, .received_ms = epoch_ms, .job = 9};
    sched_replay(sched, now, &a, &again);
    sched_rewind(sched, now, &a, 1);
    struct sched_start first = expect(1);
    assert_int_equal(first.replay, 9);
    answer(first, SCHED_OK);
    expect_none(); /* the job has more to come */
    again.seq = 2;
    sched_replay(sched, now, &a, &again);
    sched_rewind(sched, now, &a, UINT64_MAX);
    answer(expect(2), SCHED_OK);
    expect(3);
}

static void a_rekeyed_row_takes_its_place_in_the_other_lane(void **state)
{
    (void)state;
    struct sched_place a = lane('a'), b = lane('b'), loose = {.sink = 1};
    put(a, 1);
    put(b, 2);
    put(a, 3);
    struct sched_start first = expect(1), second = expect(2);
    assert_int_equal(sched_rekey(sched, now, &a, 1, &b), SCHED_IN_FLIGHT);
    assert_int_equal(sched_rekey(sched, now, &a, 3, &b), SCHED_DONE);
    expect_none();
    answer(second, SCHED_OK);
    struct sched_start third = expect(3);
    assert_int_equal(third.previous_seq, 2);
    put(b, 4);
    assert_int_equal(sched_rekey(sched, now, &b, 4, &loose), SCHED_DONE);
    expect(4);
    answer(first, SCHED_OK);
    answer(third, SCHED_OK);
}

static void acts_tell_when_the_head_has_changed_or_flies(void **state)
{
    (void)state;
    struct sched_place a = lane('a');
    assert_int_equal(sched_lane_skip(sched, now, &a, 0), SCHED_NOT_FOUND);
    put(a, 1);
    put(a, 2);
    struct sched_start first = expect(1);
    assert_int_equal(sched_lane_skip(sched, now, &a, 1), SCHED_IN_FLIGHT);
    answer(first, SCHED_TRANSIENT);
    assert_int_equal(sched_lane_skip(sched, now, &a, 2), SCHED_HEAD_CHANGED);
    assert_int_equal(sched_lane_skip(sched, now, &a, 1), SCHED_DONE);
    struct sched_start second = expect(2);
    assert_int_equal(second.skipped, 1);
    answer(second, SCHED_TRANSIENT);
    expect_none();
    assert_int_equal(sched_lane_retry(sched, now, &a, 2), SCHED_DONE);
    expect(2);
}

static void slots_go_round_over_tenants_then_sinks_then_lanes(void **state)
{
    (void)state;
    struct sched_options options = {.seed = 1, .lane_idle_ms = 1000, .lane_idle_most = 10, .concurrency = 1};
    sched_free(sched);
    sched = sched_new(&options);
    sched_sink_set(sched, now, 1, &policy);
    sched_sink_set(sched, now, 2, &policy);
    uint64_t seq = 0;
    for (uint8_t l = 0; l < 100; l++) /* tenant 0 has much, at two sinks */
        for (uint32_t sink = 1; sink <= 2; sink++)
            put(lane_at(sink, 0, l), ++seq);
    put(lane_at(1, 1, 7), ++seq); /* tenant 1 has one */
    uint64_t theirs = seq;
    struct sched_start a, b, c;
    assert_true(next(&a));
    answer(a, SCHED_OK);
    assert_true(next(&b));
    answer(b, SCHED_OK);
    assert_true(next(&c));
    answer(c, SCHED_OK);
    assert_true(a.seq == theirs || b.seq == theirs); /* a turn, not a hundred */
    uint32_t sinks = (a.seq != theirs ? a.place.sink : b.place.sink) + c.place.sink;
    assert_int_equal(sinks, 3); /* both sinks of tenant 0 had theirs */
}

static void a_hanging_sink_holds_at_most_eight_slots(void **state)
{
    (void)state;
    for (uint8_t l = 0; l < 40; l++)
        put(lane(l), 1u + l);
    struct sched_start starts[33];
    for (unsigned i = 0; i < 32; i++)
        assert_true(next(&starts[i]));
    expect_none();
    pass(1001);
    for (unsigned i = 0; i < 24; i++) {
        answer(starts[i], SCHED_OK);
        expect_none(); /* 31 ... 8 run: none is free */
    }
    answer(starts[24], SCHED_OK);
    assert_true(next(&starts[32]));
    for (unsigned i = 25; i < 32; i++)
        answer(starts[i], SCHED_OK); /* whoever was slow is gone */
    expect(34);
}

/* Two hundred receivers take hooks and never answer, all within the first second, when nobody can know. */
static void no_set_of_hanging_sinks_takes_all_slots(void **state)
{
    (void)state;
    enum { HANGING = 200, SHARE = 8 };
    uint64_t seq = 1;
    for (uint32_t sink = 2; sink < 2 + HANGING; sink++)
        sched_sink_set(sched, now, sink, &policy);
    for (unsigned i = 0; i < 100; i++)
        for (uint32_t sink = 2; sink < 2 + HANGING; sink++)
            put((struct sched_place){.sink = sink}, seq++);
    struct sched_start start;
    while (next(&start))
        ;
    assert_int_equal(sched_running(sched), 4096 - SHARE); /* all but the share of the one that has no work */
    for (unsigned i = 0; i < 100; i++)
        put((struct sched_place){.sink = 1}, seq++);
    for (unsigned i = 0; i < 100 / SHARE; i++) {
        struct sched_start mine[SHARE];
        for (unsigned k = 0; k < SHARE; k++) {
            assert_true(next(&mine[k]));
            assert_int_equal(mine[k].place.sink, 1);
        }
        expect_none();
        for (unsigned k = 0; k < SHARE; k++)
            answer(mine[k], SCHED_OK);
    }
}

/* Found by the simulation: a sink that had asked for a slot of nobody's share had no token when its turn to
 * get one came, was crossed out, and no timer was set for its next token: it waited for an attempt of its own
 * to end. */
static void a_sink_that_is_offered_a_slot_without_a_token_starts_when_it_has_one(void **state)
{
    (void)state;
    enum { ALL = 16, SHARE = 2 };
    struct sched_options options = {
        .seed = 7, .lane_idle_ms = 900000, .lane_idle_most = 1000, .concurrency = ALL};
    sched_set_bounds(sched, &options);
    sched_sink_set(sched, now, 2, &policy);
    sched_sink_set(sched, now, 3, &policy); /* has no work: its share stays free */
    uint64_t seq = 1;
    for (; seq <= ALL; seq++)
        put((struct sched_place){.sink = 2}, seq);
    struct sched_start others[ALL], mine[2 * SHARE];
    unsigned count = 0;
    while (next(&others[count]))
        count++;
    assert_int_equal(count, ALL - 2 * SHARE);
    policy.rate = 2 * SHARE;
    sched_sink_set(sched, now, 1, &policy);
    pass(900); /* its bucket is full */
    for (; seq <= 2 * ALL; seq++)
        put((struct sched_place){.sink = 1}, seq);
    for (unsigned i = 0; i < SHARE; i++)
        assert_true(next(&mine[i]));
    expect_none(); /* it has tokens, and asks for a slot beyond its share */
    for (unsigned i = 0; i < SHARE; i++)
        answer(mine[i], SCHED_OK);
    for (unsigned i = 0; i < SHARE; i++)
        assert_true(next(&mine[i])); /* its last tokens, on slots of its share: these hang */
    for (unsigned i = 0; i < count; i++)
        answer(others[i], SCHED_OK);
    while (next(&others[0]))
        assert_int_equal(others[0].place.sink, 2);
    pass(300);
    assert_true(next(&mine[0]));
    assert_int_equal(mine[0].place.sink, 1);
}

static void a_rate_is_kept(void **state)
{
    (void)state;
    policy.rate = 10;
    policy.concurrency = 1000;
    sched_sink_set(sched, now, 1, &policy);
    for (uint64_t seq = 1; seq <= 200; seq++)
        put((struct sched_place){.sink = 1}, seq);
    unsigned started = 0;
    struct sched_start start;
    for (unsigned ms = 0; ms <= 5000; ms += 10) {
        while (next(&start)) {
            answer(start, SCHED_OK);
            started++;
        }
        pass(10);
    }
    assert_in_range(started, 50, 61); /* five seconds, and the bucket at the start */
}

static void a_blocked_lane_is_told_of_once_and_again_when_it_goes_on(void **state)
{
    (void)state;
    policy.retry.max_ms = 1000;
    sched_sink_set(sched, now, 1, &policy);
    put(lane('a'), 1);
    put(lane('a'), 2);
    unsigned blocked = 0;
    int64_t began_ms = now.unix_ms;
    for (unsigned s = 0; s < 600; s++) {
        struct sched_start start;
        if (next(&start))
            answer(start, SCHED_TRANSIENT);
        sched_actions_done(sched);
        pass(1000);
        blocked += heard(ACTION_LANE_BLOCKED);
        if (s < 295)
            assert_int_equal(blocked, 0);
    }
    assert_int_equal(blocked, 1);
    assert_int_equal(look().rows_behind_blocked, 1);
    assert_int_equal(look().blocked_since_ms, began_ms);
    answer(expect(1), SCHED_OK);
    assert_true(heard(ACTION_LANE_UNBLOCKED));
    assert_int_equal(look().blocked_since_ms, 0);
}

static void a_clock_jump_neither_stalls_nor_storms(void **state)
{
    (void)state;
    put(lane('a'), 1);
    answer(expect(1), SCHED_TRANSIENT);
    now.unix_ms -= 3600 * 1000;
    sched_tick(sched, now);
    expect_none();
    pass(100);
    answer(expect(1), SCHED_TRANSIENT);
    now.unix_ms += 2 * 3600 * 1000;
    sched_tick(sched, now);
    expect_none();
    pass(200);
    expect(1);
}

static void an_idle_lane_is_forgotten_one_with_dead_letters_is_not(void **state)
{
    (void)state;
    put(lane('a'), 1);
    answer(expect(1), SCHED_OK);
    put(lane('b'), 2);
    answer(expect(2), SCHED_REFUSED);
    pass(900001);
    put(lane('a'), 3);
    put(lane('b'), 4);
    struct sched_start a = expect(3), b = expect(4);
    assert_int_equal(a.previous_seq, 0);
    assert_int_equal(b.skipped, 1);
}

static void a_pending_row_costs_what_was_promised(void **state)
{
    (void)state;
    enum { LANES = 20000 };
    for (unsigned rows = 1; rows <= 10; rows += 9) {
        size_t before = sched_memory(sched);
        uint64_t seq = rows * 1000000;
        for (unsigned r = 0; r < rows; r++) {
            for (uint32_t l = 0; l < LANES; l++) {
                struct sched_place place = lane((uint8_t)rows);
                memcpy(place.lane, &l, sizeof l);
                put(place, ++seq);
            }
        }
        size_t each = (sched_memory(sched) - before) / (LANES * rows);
        assert_true(each <= (rows == 1 ? 200 : 64));
    }
}

static void a_restart_finds_everything_due_and_knows_what_was_spent(void **state)
{
    (void)state;
    struct sched_place a = lane('a'), b = lane('b');
    struct sched_owed dead = {.seq = 1, .received_ms = epoch_ms, .state = OWED_DEAD, .attempts = 1};
    struct sched_owed tried = {.seq = 2,
                               .received_ms = epoch_ms,
                               .attempts = 3,
                               .first_attempt_ms = epoch_ms - 5000,
                               .waived_ms = 1000};
    struct sched_owed held = {.seq = 3, .received_ms = epoch_ms, .state = OWED_HELD, .attempts = 4};
    sched_restore(sched, now, &a, &dead);
    sched_restore(sched, now, &a, &tried);
    sched_restore(sched, now, &b, &held);
    put(b, 4);
    struct sched_start start = expect(2);
    assert_int_equal(start.number, 4);
    assert_int_equal(start.skipped, 1);
    expect_none();
    policy.retry.give_up_after_ms = 3999;
    sched_sink_set(sched, now, 1, &policy);
    answer(start, SCHED_TRANSIENT);
    assert_int_equal(said(2).state, SCHED_ROW_HELD);
}

static void a_retired_sink_buries_all_it_owes(void **state)
{
    (void)state;
    put(lane('a'), 1);
    put(lane('a'), 2);
    put((struct sched_place){.sink = 1}, 3);
    struct sched_start first = expect(1);
    sched_actions_done(sched);
    size_t cursor = 0;
    while (sched_sink_retire(sched, now, 1, "sink_gone", &cursor, 1)) /* in slices */
        ;
    assert_int_equal(said(2).state, SCHED_ROW_DEAD);
    assert_string_equal(said(3).cls, "sink_gone");
    expect_none();
    answer(first, SCHED_TRANSIENT); /* what ran may end; it is not tried again */
    assert_string_equal(said(1).cls, "sink_gone");
    assert_int_equal(look().pending, 0);
    assert_int_equal(look().dead, 3);
}

static void an_unreadable_hook_leaves_and_one_put_back_has_spent_nothing(void **state)
{
    (void)state;
    put(lane('a'), 1);
    put(lane('a'), 2);
    struct sched_start first = expect(1);
    sched_put_back(sched, now, first.run, false, 1000);
    expect_none();
    pass(1000);
    first = expect(1);
    assert_int_equal(first.number, 1);
    sched_actions_done(sched);
    sched_give_up(sched, now, first.run, "unreadable");
    assert_int_equal(said(1).state, SCHED_ROW_DEAD);
    assert_int_equal(said(1).attempts, 0);
    expect(2);
}

/* A crash would forget the end of the first, and the receiver would take it for an old one after the second.
 */
static void a_lane_goes_on_behind_a_skipped_row_when_that_is_on_the_disk(void **state)
{
    (void)state;
    disk_is_slow = true;
    put(lane('a'), 1);
    put(lane('a'), 2);
    put(lane('b'), 3);
    answer(expect(1), SCHED_REFUSED);
    struct sched_start other = expect(3); /* nobody else waits for it */
    expect_none();
    uint64_t rows_said;
    assert_true(sched_awaits_durable(sched, &rows_said));
    sched_durable(sched, now, rows_said - 1);
    expect_none();
    sched_durable(sched, now, rows_said);
    assert_false(sched_awaits_durable(sched, &rows_said));
    answer(expect(2), SCHED_OK);
    answer(other, SCHED_OK);
}

static void a_lane_is_paused_before_its_first_hook_and_such_lanes_are_bounded(void **state)
{
    (void)state;
    struct sched_place a = lane('a'), other = a;
    assert_int_equal(sched_lane_pause(sched, now, &a), SCHED_DONE);
    for (uint32_t i = 1; i < SCHED_PAUSED_MOST; i++) {
        memcpy(other.lane, &i, sizeof i);
        assert_int_equal(sched_lane_pause(sched, now, &other), SCHED_DONE);
    }
    struct sched_place last = lane('z');
    assert_int_equal(sched_lane_pause(sched, now, &last), SCHED_FULL);
    put(a, 1);
    expect_none();
    assert_int_equal(sched_lane_resume(sched, now, &other), SCHED_DONE);
    assert_int_equal(sched_lane_pause(sched, now, &last), SCHED_DONE);
    assert_int_equal(sched_lane_resume(sched, now, &a), SCHED_DONE);
    answer(expect(1), SCHED_OK);
}

/* What became of a higher seq that was sent is not known: it may have been applied. */
static void a_dead_letter_is_late_when_a_higher_seq_was_sent(void **state)
{
    (void)state;
    put(lane('a'), 1);
    put(lane('a'), 2);
    answer(expect(1), SCHED_REFUSED);
    time_out(expect(2));
    struct sched_place place = lane('a');
    struct sched_again again = {.seq = 1, .received_ms = now.unix_ms, .dead = true};
    assert_int_equal(sched_replay(sched, now, &place, &again), SCHED_DONE);
    struct sched_start start = expect(1);
    assert_true(start.late);
    answer(start, SCHED_OK);
}

/* Nobody was there to take the higher one: the fence stands below both, and people are asked nothing. */
static void a_dead_letter_is_not_late_when_the_higher_seq_never_left(void **state)
{
    (void)state;
    put(lane('a'), 1);
    put(lane('a'), 2);
    answer(expect(1), SCHED_REFUSED);
    struct sched_outcome nobody = {.cls = SCHED_TRANSIENT, .unreachable = true, .unsent = true};
    sched_actions_done(sched);
    sched_outcome(sched, now, expect(2).run, &nobody);
    struct sched_place place = lane('a');
    struct sched_again again = {.seq = 1, .received_ms = now.unix_ms, .dead = true};
    assert_int_equal(sched_replay(sched, now, &place, &again), SCHED_DONE);
    struct sched_start start = expect(1);
    assert_false(start.late);
    answer(start, SCHED_OK);
}

/* Hook 2 was in flight when the gateway was killed: it may have been applied, and nothing says so. */
static void a_dead_letter_found_at_the_start_is_late_below_a_row_that_was_found(void **state)
{
    (void)state;
    struct sched_place a = lane('a'), b = lane('b');
    struct sched_owed dead = {.seq = 1, .received_ms = epoch_ms, .state = OWED_DEAD, .attempts = 1};
    struct sched_owed alone = dead, pending = {.seq = 3, .received_ms = epoch_ms};
    alone.seq = 2;
    sched_restore(sched, now, &a, &dead);
    sched_restore(sched, now, &b, &alone);
    sched_restore(sched, now, &a, &pending);
    put(b, 4); /* this one came in this life */
    struct sched_again again = {.seq = 2, .received_ms = now.unix_ms, .dead = true};
    assert_int_equal(sched_replay(sched, now, &b, &again), SCHED_DONE);
    again.seq = 1;
    assert_int_equal(sched_replay(sched, now, &a, &again), SCHED_DONE);
    struct sched_start first = {0}, second = {0};
    assert_true(next(&first) && next(&second));
    assert_int_equal(first.late, first.seq == 1);
    assert_int_equal(second.late, second.seq == 1);
    answer(first, SCHED_OK);
    answer(second, SCHED_OK);
}

/* The next start will not find it, and what was below it must be late then too. */
static void what_was_found_leaves_word_when_it_goes(void **state)
{
    (void)state;
    struct sched_place a = lane('a'), b = lane('b');
    struct sched_owed dead = {.seq = 1, .received_ms = epoch_ms, .state = OWED_DEAD, .attempts = 1};
    struct sched_owed pending = {.seq = 3, .received_ms = epoch_ms};
    sched_restore(sched, now, &a, &dead);
    sched_restore(sched, now, &a, &pending);
    assert_int_equal(sched_discard(sched, now, &a, 3, false), SCHED_DONE);
    assert_true(said(1).late);
    assert_int_equal(said(1).state, SCHED_ROW_DEAD);
    sched_actions_done(sched);

    dead.seq = 4, pending.seq = 5;
    sched_restore(sched, now, &b, &dead);
    sched_restore(sched, now, &b, &pending);
    assert_int_equal(sched_rekey(sched, now, &b, 5, &a), SCHED_DONE);
    assert_true(said(4).late);
    assert_true(expect(5).late); /* what was delivered there before, nobody knows */
}

/* Its move is not on the disk yet: after a crash it would be in its old lane again, below what went on there.
 */
static void a_lane_goes_on_without_a_rekeyed_row_when_the_move_is_on_the_disk(void **state)
{
    (void)state;
    struct sched_place a = lane('a'), b = lane('b');
    disk_is_slow = true;
    sched_sink_pause(sched, now, 1, 0);
    put(a, 1);
    put(a, 2);
    assert_int_equal(sched_rekey(sched, now, &a, 1, &b), SCHED_DONE);
    sched_sink_resume(sched, now, 1);
    expect(1);
    expect_none();
    sync_all();
    expect(2);
}

static void a_crowded_sink_has_one_attempt_and_no_more(void **state)
{
    (void)state;
    put(lane('a'), 1);
    put(lane('b'), 2);
    put(lane('c'), 3);
    struct sched_start first = expect(1);
    sched_sink_crowd(sched, now, 1, true);
    expect_none();
    answer(first, SCHED_OK);
    first = expect(2);
    expect_none();
    sched_sink_crowd(sched, now, 1, false);
    answer(expect(3), SCHED_OK);
    answer(first, SCHED_OK);
}

/* The record of a pause is what the store keeps; a lane without rows is paused too. */
static void pauses_are_told_and_come_back(void **state)
{
    (void)state;
    struct sched_place place = lane('a');
    put(place, 1);
    sched_actions_done(sched);
    assert_int_equal(sched_lane_pause(sched, now, &place), SCHED_DONE);
    sched_sink_pause(sched, now, 1, 5000);
    size_t count;
    const struct sched_action *said_now = sched_actions(sched, &count);
    assert_int_equal(count, 2);
    assert_int_equal(said_now[0].kind, ACTION_LANE_PAUSE);
    assert_int_equal(said_now[1].kind, ACTION_SINK_PAUSE);
    struct pause_record of_lane = said_now[0].pause, of_sink = said_now[1].pause;
    assert_true(of_sink.until_ms == now.unix_ms + 5000);

    sched_free(sched);
    play_open(NULL);
    now.unix_ms += 1000;
    sched_sink_restore(sched, now, 1, &(struct breaker_record){.opens = 0}, &of_sink);
    sched_lane_restore(sched, now, &place, &of_lane);
    put(place, 1);
    put(lane('b'), 2);
    expect_none();
    pass(4000);
    answer(expect(2), SCHED_OK);
    expect_none();
    assert_true(heard(ACTION_SINK_PAUSE) || !look().pause.paused);
    assert_int_equal(sched_lane_resume(sched, now, &place), SCHED_DONE);
    answer(expect(1), SCHED_OK);
}

static void an_idle_lane_has_nothing_to_discard(void **state)
{
    (void)state;
    struct sched_place unordered = {.sink = 1}, to = lane('b');
    pass(7000000); /* a time that is no address */
    put(lane('a'), 1);
    answer(expect(1), SCHED_OK);
    assert_int_equal(sched_may_discard(sched, &(struct sched_place){.sink = 1, .ordered = true}, 1, false),
                     SCHED_NOT_FOUND);
    struct sched_place place = lane('a');
    assert_int_equal(sched_may_discard(sched, &place, 1, false), SCHED_NOT_FOUND);
    assert_int_equal(sched_discard(sched, now, &place, 1, false), SCHED_NOT_FOUND);
    assert_int_equal(sched_rekey(sched, now, &place, 1, &to), SCHED_NOT_FOUND);
    assert_int_equal(sched_may_discard(sched, &unordered, 5, true), SCHED_NOT_FOUND);

    put(place, 2);
    put(place, 3);
    struct sched_start running = expect(2);
    assert_int_equal(sched_may_discard(sched, &place, 2, false), SCHED_IN_FLIGHT);
    assert_int_equal(sched_may_discard(sched, &place, 3, false), SCHED_DONE);
    assert_int_equal(look().pending, 2); /* asking changes nothing */
    answer(running, SCHED_REFUSED);
    assert_int_equal(sched_may_discard(sched, &place, 2, true), SCHED_DONE);
    sched_commit(sched, now, &unordered, 4, now.unix_ms);
    assert_int_equal(sched_may_discard(sched, &unordered, 4, false), SCHED_DONE);
}

#define PLAY(f) cmocka_unit_test_setup_teardown(f, play_open, play_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY(one_of_a_lane_is_in_flight_and_its_ok_wakes_the_next),
        PLAY(a_retry_blocks_its_lane_and_nothing_else),
        PLAY(backoff_doubles_is_capped_and_shaken),
        PLAY(retry_after_is_never_earlier_than_backoff_nor_later_than_an_hour),
        PLAY(give_up_counts_neither_pause_nor_breaker),
        PLAY(a_refused_head_leaves_and_an_exhausted_one_holds),
        PLAY(an_unordered_row_never_holds),
        PLAY(a_replayed_dead_letter_goes_first_keeps_its_seq_and_is_late),
        PLAY(a_rewound_lane_waits_for_its_job),
        PLAY(a_rekeyed_row_takes_its_place_in_the_other_lane),
        PLAY(acts_tell_when_the_head_has_changed_or_flies),
        PLAY(slots_go_round_over_tenants_then_sinks_then_lanes),
        PLAY(a_hanging_sink_holds_at_most_eight_slots),
        PLAY(no_set_of_hanging_sinks_takes_all_slots),
        PLAY(a_sink_that_is_offered_a_slot_without_a_token_starts_when_it_has_one),
        PLAY(a_rate_is_kept),
        PLAY(a_blocked_lane_is_told_of_once_and_again_when_it_goes_on),
        PLAY(a_clock_jump_neither_stalls_nor_storms),
        PLAY(an_idle_lane_is_forgotten_one_with_dead_letters_is_not),
        PLAY(a_pending_row_costs_what_was_promised),
        PLAY(a_retired_sink_buries_all_it_owes),
        PLAY(an_unreadable_hook_leaves_and_one_put_back_has_spent_nothing),
        PLAY(a_restart_finds_everything_due_and_knows_what_was_spent),
        PLAY(an_idle_lane_has_nothing_to_discard),
        PLAY(a_lane_goes_on_behind_a_skipped_row_when_that_is_on_the_disk),
        PLAY(a_lane_is_paused_before_its_first_hook_and_such_lanes_are_bounded),
        PLAY(a_dead_letter_is_late_when_a_higher_seq_was_sent),
        PLAY(a_dead_letter_is_not_late_when_the_higher_seq_never_left),
        PLAY(a_dead_letter_found_at_the_start_is_late_below_a_row_that_was_found),
        PLAY(what_was_found_leaves_word_when_it_goes),
        PLAY(a_lane_goes_on_without_a_rekeyed_row_when_the_move_is_on_the_disk),
        PLAY(a_crowded_sink_has_one_attempt_and_no_more),
        PLAY(pauses_are_told_and_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
