/* An attempt ends: what became of its row, what its sink learns of it, and a slot that is free. */
#include <stdlib.h>

#include "lanes/sched_priv.h"

static void row_ok(struct sched *sched, struct lane *lane, const struct sched_run *run)
{
    bool late = lane->highest_sent > run->seq;
    lane_sent(sched, lane, run->seq);
    struct note *note = note_find(lane, run->seq);
    struct sched_action *action = say_row(sched, lane, run->seq, note, SCHED_ROW_DONE, "ok");
    action->by_outcome = true;
    action->late |= late;
    action->attempts++;
    if (!action->first_attempt_ms)
        action->first_attempt_ms = run->started_unix_ms;
    lane_take(sched, lane, run->seq);
    lane->last_ok = run->seq;
}

/* One attempt more is on the row's account. */
static struct note *count_attempt(struct sched *sched, struct lane *lane, const struct sched_run *run)
{
    struct note *note = note_get(sched, lane, run->seq);
    if (!note->first_unix_ms) {
        note->first_ms = run->started_ms;
        note->first_unix_ms = run->started_unix_ms;
        note->stopped_base_ms = sink_stopped(sched, lane->flow->sink);
    }
    note->attempts++;
    note->late |= lane->highest_sent > run->seq;
    return note;
}

static void bury_run(struct sched *sched, struct lane *lane, const struct sched_run *run,
                     enum on_dead on_dead, const char *cls)
{
    size_t said = sched->actions.len;
    lane_bury(sched, lane, run->seq, lane->ordered && on_dead == ON_DEAD_HOLD, cls);
    sched->actions.at[said].by_outcome = true;
}

static void row_failed(struct sched *sched, struct lane *lane, const struct sched_run *run,
                       const struct sched_outcome *outcome)
{
    struct sched_sink *sink = lane->flow->sink;
    if (!outcome->unsent)
        lane_sent(sched, lane, run->seq); /* whatever it answered, if it did */
    struct note *note = count_attempt(sched, lane, run);
    if (sink->retired) {
        bury_run(sched, lane, run, ON_DEAD_SKIP, sink->retired);
        return;
    }
    if (retry_exhausted(sched, sink, note)) {
        bury_run(sched, lane, run, sink->policy.on_exhausted, "exhausted");
        return;
    }
    int64_t delay_ms = retry_delay_ms(sched, &sink->policy.retry, note->attempts);
    int64_t asked_ms = outcome->cls == SCHED_RETRY_AFTER ? outcome->retry_after_ms : 0;
    if (asked_ms > RETRY_AFTER_MOST_MS)
        asked_ms = RETRY_AFTER_MOST_MS;
    note->by_receiver = asked_ms > delay_ms;
    note->due_ms = sched->now.mono_ms + (note->by_receiver ? asked_ms : delay_ms);
    const char *cls = outcome->cls == SCHED_RETRY_AFTER ? "retry_after" : "transient";
    say_row(sched, lane, run->seq, note, SCHED_ROW_PENDING, cls)->by_outcome = true;
}

/* This side is wrong: nothing is spent. The row only learns why it waits. */
static void row_config(struct sched *sched, struct lane *lane, const struct sched_run *run)
{
    struct note *note = note_find(lane, run->seq);
    struct sched_action *action = say_row(sched, lane, run->seq, note, SCHED_ROW_PENDING, "config");
    action->by_outcome = true;
    action->late |= lane->highest_sent > run->seq;
}

/* The attempt is over: its slot is free, and its lane is in no list. */
static void run_ends(struct sched *sched, struct sched_run *run)
{
    struct sched_sink *sink = run->lane->flow->sink;
    lane_leave(sched, run->lane);
    list_remove(&run->node);
    run->lane->run = NULL;
#if SCHED_MUTANT == MUTANT_COUNTER
    run->lane->busy -= run->lane->busy > 0;
#endif
    slots_move(sched, sink, -1);
}

static void run_settles(struct sched *sched, struct sched_run *run)
{
    struct sched_sink *sink = run->lane->flow->sink;
    lane_settle(sched, run->lane);
    free(run);
    sink_release(sched, sink);
    breaker_want_probe(sched, sink);
    slots_offer(sched);
}

void sched_outcome(struct sched *sched, struct sched_time now, struct sched_run *run,
                   const struct sched_outcome *outcome)
{
    sched->now = now;
    struct lane *lane = run->lane;
    struct sched_sink *sink = lane->flow->sink;
    run_ends(sched, run);
    sink->last_timed_out = outcome->timed_out;
    switch (outcome->cls) {
    case SCHED_OK:
        row_ok(sched, lane, run);
        breaker_ok(sched, sink, run);
        break;
    case SCHED_TRANSIENT:
    case SCHED_RETRY_AFTER:
        row_failed(sched, lane, run, outcome);
        breaker_failed(sched, sink, run, outcome);
        break;
    case SCHED_REFUSED:
        count_attempt(sched, lane, run);
        bury_run(sched, lane, run, sink->policy.on_refused, "refused");
        breaker_refused(sched, sink, run);
        break;
    case SCHED_CONFIG:
        row_config(sched, lane, run);
        breaker_config(sched, sink, run);
        break;
    }
    run_settles(sched, run);
}

void sched_put_back(struct sched *sched, struct sched_time now, struct sched_run *run, bool sent,
                    int64_t delay_ms)
{
    sched->now = now;
    struct lane *lane = run->lane;
    run_ends(sched, run);
    if (sent)
        lane_sent(sched, lane, run->seq);
    if (delay_ms > 0)
        note_get(sched, lane, run->seq)->due_ms = now.mono_ms + delay_ms;
    breaker_probe_vanished(sched, lane->flow->sink, run);
    run_settles(sched, run);
}

void sched_give_up(struct sched *sched, struct sched_time now, struct sched_run *run, const char *cls)
{
    sched->now = now;
    struct lane *lane = run->lane;
    run_ends(sched, run);
    bury_run(sched, lane, run, ON_DEAD_SKIP, cls);
    breaker_probe_vanished(sched, lane->flow->sink, run);
    run_settles(sched, run);
}

size_t sched_running(const struct sched *sched)
{
    return sched->running;
}
