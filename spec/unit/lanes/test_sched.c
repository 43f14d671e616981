/* The rules of order, retries and holds, one promise a test. */
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
        PLAY(a_blocked_lane_is_told_of_once_and_again_when_it_goes_on),
        PLAY(a_clock_jump_neither_stalls_nor_storms),
        PLAY(an_idle_lane_is_forgotten_one_with_dead_letters_is_not),
        PLAY(a_pending_row_costs_what_was_promised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
