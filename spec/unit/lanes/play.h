/* A stage for the pure scheduler: one sink, a clock that the test turns, and short words for what happens. */
#ifndef SPEC_LANES_PLAY_H
#define SPEC_LANES_PLAY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "lanes/sched.h"

static struct sched *sched;
static struct sched_time now;
static struct sched_policy policy;
static const int64_t epoch_ms = 1700000000000;
static bool disk_is_slow; /* it is quick here, unless a test says otherwise */

static inline struct sched_place lane_at(uint32_t sink, uint32_t tenant, uint8_t lane)
{
    struct sched_place place = {.sink = sink, .tenant = tenant, .ordered = true};
    memset(place.lane, lane, sizeof place.lane);
    return place;
}

static inline struct sched_place lane(uint8_t name)
{
    return lane_at(1, 0, name);
}

static inline int play_open(void **state)
{
    (void)state;
    disk_is_slow = false;
    now = (struct sched_time){1000, epoch_ms};
    policy = (struct sched_policy){.concurrency = 32,
                                   .retry = {.base_ms = 100, .max_ms = 60000},
                                   .breaker = {.failures = 10, .open_ms = 5000, .max_open_ms = 60000},
                                   .on_refused = ON_DEAD_SKIP,
                                   .on_exhausted = ON_DEAD_HOLD};
    struct sched_options options = {
        .seed = 7, .lane_idle_ms = 900000, .lane_idle_most = 1000, .concurrency = 4096};
    sched = sched_new(&options);
    sched_sink_set(sched, now, 1, &policy);
    return 0;
}

static inline int play_close(void **state)
{
    (void)state;
    sched_audit(sched, now);
    sched_free(sched);
    return 0;
}

static inline void pass(int64_t ms)
{
    now.mono_ms += ms;
    now.unix_ms += ms;
    sched_tick(sched, now);
}

static inline void put(struct sched_place place, uint64_t seq)
{
    sched_commit(sched, now, &place, seq, now.unix_ms, 0);
}

/* Everything that was said is on the disk. */
static inline void sync_all(void)
{
    uint64_t rows_said;
    sched_awaits_durable(sched, &rows_said);
    sched_durable(sched, now, rows_said);
}

static inline bool next(struct sched_start *start)
{
    if (!disk_is_slow)
        sync_all();
    return sched_next_start(sched, now, start);
}

/* The next attempt must be of this seq. */
static inline struct sched_start expect(uint64_t seq)
{
    struct sched_start start = {0};
    assert_true(next(&start));
    assert_int_equal(start.seq, seq);
    return start;
}

static inline void expect_none(void)
{
    struct sched_start start;
    assert_false(next(&start));
}

static inline void answer(struct sched_start start, int cls)
{
    struct sched_outcome outcome = {.cls = cls};
    sched_actions_done(sched);
    sched_outcome(sched, now, start.run, &outcome);
}

static inline void time_out(struct sched_start start)
{
    struct sched_outcome outcome = {.cls = SCHED_TRANSIENT, .timed_out = true, .unreachable = true};
    sched_actions_done(sched);
    sched_outcome(sched, now, start.run, &outcome);
}

/* What was said of a row since the last answer. */
static inline struct sched_action said(uint64_t seq)
{
    size_t count;
    const struct sched_action *actions = sched_actions(sched, &count);
    struct sched_action found = {0};
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        if (actions[i].kind == ACTION_ROW && actions[i].seq == seq) {
            found = actions[i];
            any = true;
        }
    }
    assert_true(any);
    return found;
}

static inline bool heard(enum sched_action_kind kind)
{
    size_t count;
    const struct sched_action *actions = sched_actions(sched, &count);
    for (size_t i = 0; i < count; i++)
        if (actions[i].kind == kind)
            return true;
    return false;
}

static inline struct sched_sink_view look(void)
{
    struct sched_sink_view view;
    sched_sink_look(sched, now, 1, &view);
    return view;
}

/* A test on a fresh stage, audited at its end. */
#define PLAY(f) cmocka_unit_test_setup_teardown(f, play_open, play_close)

#endif
