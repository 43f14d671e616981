/* The breaker: what opens it, what does not, who probes, and how it closes. */
#include "play.h"

static void fail_lanes(uint8_t from, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct sched_start start;
        put(lane((uint8_t)(from + i)), 100u + from + i);
        assert_true(next(&start));
        answer(start, SCHED_TRANSIENT);
    }
}

static void ten_lanes_failing_in_a_row_open_it(void **state)
{
    (void)state;
    fail_lanes(0, 9);
    assert_int_equal(look().breaker, BREAKER_CLOSED);
    fail_lanes(9, 1);
    assert_int_equal(look().breaker, BREAKER_OPEN);
    assert_true(heard(ACTION_BREAKER));
    put(lane(50), 999);
    expect_none();
    assert_int_equal(look().lanes[LANE_STATE_BREAKER_OPEN], 11);
}

static void an_ok_between_starts_the_count_anew(void **state)
{
    (void)state;
    fail_lanes(0, 9);
    put(lane(60), 500);
    answer(expect(500), SCHED_OK);
    fail_lanes(9, 9);
    assert_int_equal(look().breaker, BREAKER_CLOSED);
}

static void one_poison_head_never_opens_it_by_its_answers(void **state)
{
    (void)state;
    put(lane('a'), 1);
    for (unsigned i = 0; i < 100; i++) {
        answer(expect(1), SCHED_TRANSIENT);
        pass(60000);
    }
    assert_int_equal(look().breaker, BREAKER_CLOSED);
}

static void nor_by_timeouts_while_another_lane_is_due(void **state)
{
    (void)state;
    policy.concurrency = 1;
    sched_sink_set(sched, now, 1, &policy);
    put(lane('a'), 1);
    for (unsigned i = 0; i < 100; i++) {
        struct sched_start start = expect(1);
        put(lane('b'), 10 + i);
        time_out(start);
        pass(0);
        struct sched_place b = lane('b');
        assert_int_equal(look().breaker, BREAKER_CLOSED);
        assert_int_equal(sched_discard(sched, now, &b, 10 + i, false), SCHED_DONE);
        pass(60000);
    }
}

static void a_dead_endpoint_with_one_lane_opens_it(void **state)
{
    (void)state;
    put(lane('a'), 1);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(look().breaker, BREAKER_CLOSED);
        time_out(expect(1));
        pass(60000);
    }
    assert_int_equal(look().breaker, BREAKER_HALF_OPEN);
}

static void backpressure_never_counts(void **state)
{
    (void)state;
    for (uint8_t i = 0; i < 50; i++) {
        put(lane(i), 1u + i);
        struct sched_start start = expect(1u + i);
        struct sched_outcome outcome = {.cls = i % 2 ? SCHED_RETRY_AFTER : SCHED_TRANSIENT,
                                        .retry_after_ms = 1000,
                                        .too_many = i % 2 == 0};
        sched_outcome(sched, now, start.run, &outcome);
    }
    assert_int_equal(look().breaker, BREAKER_CLOSED);
}

static void a_storm_of_refusals_opens_it_and_a_refused_probe_does_not_close_it(void **state)
{
    (void)state;
    for (uint64_t seq = 1; seq <= 30; seq++)
        put(lane('a'), seq);
    for (uint64_t seq = 1; seq <= 20; seq++)
        answer(expect(seq), SCHED_REFUSED);
    assert_int_equal(look().breaker, BREAKER_OPEN);
    expect_none();
    pass(5000);
    struct sched_start probe = expect(21);
    assert_true(probe.probe);
    answer(probe, SCHED_REFUSED);
    assert_int_equal(look().breaker, BREAKER_OPEN);
    pass(9999);
    expect_none();
    pass(1);
    answer(expect(22), SCHED_OK);
    assert_int_equal(look().breaker, BREAKER_CLOSED);
}

static void it_opens_for_twice_as_long_each_time_and_one_probes(void **state)
{
    (void)state;
    fail_lanes(0, 10);
    int64_t open_ms = 5000;
    for (unsigned i = 0; i < 6; i++) {
        pass(open_ms - 1);
        expect_none();
        pass(1);
        struct sched_start probe;
        assert_true(next(&probe));
        assert_true(probe.probe);
        expect_none();
        answer(probe, SCHED_TRANSIENT);
        open_ms = open_ms * 2 > 60000 ? 60000 : open_ms * 2;
    }
}

static void the_head_with_the_fewest_attempts_probes_and_never_the_same_twice(void **state)
{
    (void)state;
    fail_lanes(0, 10);
    uint64_t last = 0;
    for (unsigned i = 0; i < 20; i++) {
        pass(60000);
        struct sched_start probe;
        assert_true(next(&probe));
        assert_int_equal(probe.number, 2 + i / 10);
        assert_true(probe.seq != last);
        last = probe.seq;
        answer(probe, SCHED_TRANSIENT);
    }
    pass(60000);
    put(lane(70), 5000);
    answer(expect(5000), SCHED_TRANSIENT); /* one never tried has the fewest */
}

static void a_probe_that_is_ok_makes_all_heads_due_and_slots_grow_from_one(void **state)
{
    (void)state;
    policy.retry.base_ms = policy.retry.max_ms = 50000;
    sched_sink_set(sched, now, 1, &policy);
    fail_lanes(0, 10);
    pass(5000);
    struct sched_start probe, second, third;
    assert_true(next(&probe));
    answer(probe, SCHED_OK);
    assert_int_equal(look().breaker, BREAKER_CLOSED);
    assert_true(next(&second)); /* its backoff had 45 s to go */
    expect_none();
    answer(second, SCHED_OK);
    assert_true(next(&second));
    assert_true(next(&third));
    expect_none();
    answer(second, SCHED_OK);
    answer(third, SCHED_OK);
    unsigned running = 0;
    while (next(&third))
        running++;
    assert_int_equal(running, 4);
}

static void wrong_configuration_parks_and_spends_nothing(void **state)
{
    (void)state;
    policy.retry.max_attempts = 1;
    sched_sink_set(sched, now, 1, &policy);
    put(lane('a'), 1);
    put(lane('b'), 2);
    struct sched_start first = expect(1), second = expect(2);
    answer(first, SCHED_CONFIG);
    assert_int_equal(said(1).state, SCHED_ROW_PENDING);
    assert_int_equal(said(1).attempts, 0);
    answer(second, SCHED_CONFIG);
    assert_int_equal(look().lanes[LANE_STATE_PARKED], 2);
    expect_none();
    pass(5000);
    struct sched_start probe;
    assert_true(next(&probe));
    assert_int_equal(probe.number, 1);
    answer(probe, SCHED_CONFIG);
    pass(9999);
    expect_none();
    pass(1);
    assert_true(next(&probe));
    answer(probe, SCHED_OK);
    assert_int_equal(look().lanes[LANE_STATE_PARKED], 0);
}

static void an_open_breaker_spends_no_time_budget(void **state)
{
    (void)state;
    policy.retry = (struct retry_policy){.base_ms = 100, .max_ms = 100, .give_up_after_ms = 1000};
    sched_sink_set(sched, now, 1, &policy);
    fail_lanes(0, 10);
    for (unsigned i = 0; i < 12; i++) {
        pass(60000);
        struct sched_start probe;
        assert_true(next(&probe));
        answer(probe, SCHED_TRANSIENT);
        assert_int_equal(said(probe.seq).state, SCHED_ROW_PENDING);
    }
    assert_int_equal(look().dead, 0);
}

static void it_survives_a_restart(void **state)
{
    (void)state;
    fail_lanes(0, 10);
    size_t count;
    struct breaker_record record = {0};
    const struct sched_action *actions = sched_actions(sched, &count);
    for (size_t i = 0; i < count; i++)
        if (actions[i].kind == ACTION_BREAKER)
            record = actions[i].record;
    assert_int_equal(record.opens, 1);
    sched_free(sched);
    play_open(NULL);
    sched_sink_restore(sched, now, 1, &record, &(struct pause_record){.paused = false});
    put(lane('a'), 1);
    expect_none();
    pass(5000);
    assert_true(expect(1).probe);
}

static void an_operator_closes_it(void **state)
{
    (void)state;
    fail_lanes(0, 10);
    sched_sink_retry(sched, now, 1);
    struct sched_start start;
    assert_true(next(&start));
    assert_false(start.probe);
    assert_int_equal(look().breaker, BREAKER_CLOSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY(ten_lanes_failing_in_a_row_open_it),
        PLAY(an_ok_between_starts_the_count_anew),
        PLAY(one_poison_head_never_opens_it_by_its_answers),
        PLAY(nor_by_timeouts_while_another_lane_is_due),
        PLAY(a_dead_endpoint_with_one_lane_opens_it),
        PLAY(backpressure_never_counts),
        PLAY(a_storm_of_refusals_opens_it_and_a_refused_probe_does_not_close_it),
        PLAY(it_opens_for_twice_as_long_each_time_and_one_probes),
        PLAY(the_head_with_the_fewest_attempts_probes_and_never_the_same_twice),
        PLAY(a_probe_that_is_ok_makes_all_heads_due_and_slots_grow_from_one),
        PLAY(wrong_configuration_parks_and_spends_nothing),
        PLAY(an_open_breaker_spends_no_time_budget),
        PLAY(it_survives_a_restart),
        PLAY(an_operator_closes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
