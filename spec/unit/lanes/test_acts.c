/* What operators do to lanes and rows: pauses, rekeys, replays, retired sinks. One promise a test. */
#include "play.h"

static void a_hook_that_a_job_let_out_of_the_quarantine_is_the_jobs(void **state)
{
    (void)state;
    struct sched_place a = lane('a'), unordered = {.sink = 1};
    put(a, 1);
    sched_commit(sched, now, &a, 2, now.unix_ms - 99000, 7);
    sched_commit(sched, now, &unordered, 3, now.unix_ms - 99000, 7);
    put(a, 4);
    assert_int_equal(look().pending, 4);
    assert_int_equal(look().oldest_ms, now.unix_ms); /* what waited in quarantine did not wait here */
    struct sched_start live = expect(1), loose = expect(3);
    assert_int_equal(live.replay, 0);
    assert_int_equal(loose.replay, 7);
    answer(loose, SCHED_OK);
    assert_int_equal(said(3).job, 7);
    answer(live, SCHED_OK);
    assert_int_equal(said(1).job, 0);
    live = expect(2);
    assert_int_equal(live.replay, 7);
    assert_false(live.late);
    answer(live, SCHED_OK);
    assert_int_equal(said(2).job, 7);
    assert_int_equal(expect(4).replay, 0);
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
    sched_commit(sched, now, &unordered, 4, now.unix_ms, 0);
    assert_int_equal(sched_may_discard(sched, &unordered, 4, false), SCHED_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY(a_hook_that_a_job_let_out_of_the_quarantine_is_the_jobs),
        PLAY(a_rewound_lane_waits_for_its_job),
        PLAY(a_rekeyed_row_takes_its_place_in_the_other_lane),
        PLAY(acts_tell_when_the_head_has_changed_or_flies),
        PLAY(a_retired_sink_buries_all_it_owes),
        PLAY(an_unreadable_hook_leaves_and_one_put_back_has_spent_nothing),
        PLAY(a_lane_is_paused_before_its_first_hook_and_such_lanes_are_bounded),
        PLAY(pauses_are_told_and_come_back),
        PLAY(an_idle_lane_has_nothing_to_discard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
