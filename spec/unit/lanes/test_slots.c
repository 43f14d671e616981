/* Who gets a slot: turns of tenants, sinks and lanes, shares, rates, and whoever hangs. One promise a test.
 */
#include "play.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY(slots_go_round_over_tenants_then_sinks_then_lanes),
        PLAY(a_hanging_sink_holds_at_most_eight_slots),
        PLAY(no_set_of_hanging_sinks_takes_all_slots),
        PLAY(a_sink_that_is_offered_a_slot_without_a_token_starts_when_it_has_one),
        PLAY(a_rate_is_kept),
        PLAY(a_crowded_sink_has_one_attempt_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
