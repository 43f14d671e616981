/* The breaker of a sink, and the clock of the time that does not count.
 *
 *            failures of different lanes,              time is up
 *            a storm of refusals, config
 *     CLOSED ─────────────────────────────▶ OPEN ──────────────────▶ HALF_OPEN
 *      ▲                                     ▲                          │  one probe
 *      │                                     └────── failed: longer ────┤
 *      └──────────────────────────── ok (or refused, but in a storm) ───┘
 *
 * A sink whose own configuration is wrong is parked: the same machine, opened by another cause. */
#include "lanes/sched_priv.h"

bool sink_open_for_all(const struct sched_sink *sink)
{
    return !sink->paused && sink->breaker.state == BREAKER_CLOSED;
}

/* How long this sink has been paused, parked or behind an open breaker, in all. */
int64_t sink_stopped(const struct sched *sched, const struct sched_sink *sink)
{
    bool runs = sink->stopped_since_ms != INT64_MAX;
    return sink->stopped_ms + (runs ? sched->now.mono_ms - sink->stopped_since_ms : 0);
}

/* Starts or stops that clock after the sink opened or closed. */
void sink_stop_clock(struct sched *sched, struct sched_sink *sink)
{
    bool runs = sink->stopped_since_ms != INT64_MAX;
    if (runs != sink_open_for_all(sink))
        return;
    if (runs) {
        sink->stopped_ms = sink_stopped(sched, sink);
        sink->stopped_since_ms = INT64_MAX;
    } else {
        sink->stopped_since_ms = sched->now.mono_ms;
    }
}

struct breaker_record breaker_record(const struct sched *sched, const struct sched_sink *sink)
{
    const struct breaker *breaker = &sink->breaker;
    if (breaker->state == BREAKER_CLOSED)
        return (struct breaker_record){.cause = breaker->cause};
    return (struct breaker_record){.cause = breaker->cause,
                                   .opens = breaker->opens,
                                   .since_ms = breaker->since_unix_ms,
                                   .probe_at_ms =
                                       sched->now.unix_ms + breaker->probe_at_ms - sched->now.mono_ms};
}

static void say(struct sched *sched, struct sched_sink *sink)
{
    struct sched_action *action = VEC_ADD(&sched->actions);
    *action = (struct sched_action){
        .kind = ACTION_BREAKER, .breaker = sink->breaker.state, .record = breaker_record(sched, sink)};
    action->place.sink = sink->id;
}

static void open_it(struct sched *sched, struct sched_sink *sink, enum breaker_cause cause, bool longer)
{
    struct breaker *breaker = &sink->breaker;
    if (longer || breaker->opens == 0)
        breaker->opens++;
    if (breaker->state == BREAKER_CLOSED)
        breaker->since_unix_ms = sched->now.unix_ms;
    int64_t open_ms = sink->policy.breaker.open_ms;
    for (uint32_t i = 1; i < breaker->opens && open_ms < sink->policy.breaker.max_open_ms; i++)
        open_ms *= 2;
    if (open_ms > sink->policy.breaker.max_open_ms)
        open_ms = sink->policy.breaker.max_open_ms;
    breaker->state = BREAKER_OPEN;
    breaker->cause = cause;
    breaker->probe_at_ms = sched->now.mono_ms + open_ms;
    sink->ramp = 0; /* a probe asks no permission of it; the next close begins at one */
    list_remove(&sink->probe_node);
    sink_stop_clock(sched, sink);
    sink_arm(sched, sink);
    say(sched, sink);
}

/* All heads that wait for their time are due now; those that a receiver gave a time only when asked. */
void sink_heads_due(struct sched *sched, struct sched_sink *sink, bool by_receiver_too)
{
    VEC(struct note *) due = {0};
    for (size_t i = 0; i < sink->due.items.len; i++) {
        struct note *note = HEAP_OWNER(sink->due.items.at[i].node, struct note, due);
        if (!note->by_receiver || by_receiver_too)
            VEC_PUSH(&due, note);
    }
    VEC_EACH (note, &due) {
        struct lane *lane = (*note)->lane;
        lane_leave(sched, lane);
        (*note)->due_ms = sched->now.mono_ms;
        lane_settle(sched, lane);
    }
    VEC_FREE(&due);
}

void breaker_close(struct sched *sched, struct sched_sink *sink, unsigned ramp)
{
    struct breaker *breaker = &sink->breaker;
    breaker->state = BREAKER_CLOSED;
    breaker->opens = breaker->failed = breaker->refusals = 0;
    breaker->streak++;
    breaker->probed_flow = NULL;
    list_remove(&sink->probe_node);
    sink->ramp = ramp;
    sink_stop_clock(sched, sink);
    say(sched, sink);
    sink_heads_due(sched, sink, false);
    sink_release(sched, sink);
    sink_arm(sched, sink);
}

/* True when the run is the one that a half-open breaker waits for; it is over now. */
static bool probe_ends(struct sched_sink *sink, const struct sched_run *run)
{
    if (!run->probe || sink->breaker.probe != run)
        return false;
    sink->breaker.probe = NULL;
    return sink->breaker.state == BREAKER_HALF_OPEN;
}

void breaker_ok(struct sched *sched, struct sched_sink *sink, struct sched_run *run)
{
    struct breaker *breaker = &sink->breaker;
    breaker->failed = breaker->refusals = 0;
    breaker->streak++;
    if (probe_ends(sink, run))
        breaker_close(sched, sink, 1);
    else if (sink->ramp > 0 && ++sink->ramp >= sink->policy.concurrency)
        sink->ramp = 0;
}

/* Is there another lane of the sink that runs or could? The one that failed is in no list now. */
static bool others_are_due(const struct sched *sched, struct sched_sink *sink)
{
    struct heap_item *due = heap_top(&sink->due);
    if (due && due->key <= sched->now.mono_ms)
        return true;
    return sink->running > 0 || sink->ready_tried > 0 || !list_empty(&sink->probe_flows);
}

/* Called when the run is off the books. */
void breaker_failed(struct sched *sched, struct sched_sink *sink, struct sched_run *run,
                    const struct sched_outcome *outcome)
{
    struct breaker *breaker = &sink->breaker;
    struct lane *lane = run->lane;
    bool backpressure = outcome->cls == SCHED_RETRY_AFTER || outcome->too_many;
    if (probe_ends(sink, run)) {
        if (breaker->cause == BREAKER_BY_CONFIG) {
            breaker_close(sched, sink, 1); /* the fault was ours and is gone; what comes now is judged anew */
        } else {
            open_it(sched, sink, breaker->cause, !backpressure);
            return;
        }
    }
    if (backpressure || breaker->state != BREAKER_CLOSED)
        return;
    if (lane->streak == breaker->streak && !(outcome->unreachable && !others_are_due(sched, sink)))
        return;
    lane->streak = breaker->streak;
    if (++breaker->failed >= sink->policy.breaker.failures)
        open_it(sched, sink, BREAKER_BY_FAILURES, true);
}

void breaker_refused(struct sched *sched, struct sched_sink *sink, struct sched_run *run)
{
    struct breaker *breaker = &sink->breaker;
    bool known = false;
    for (uint32_t i = 0; i < breaker->refusals; i++)
        known |= breaker->refused[i] == run->seq;
    if (!known && breaker->refusals < REFUSED_STORM)
        breaker->refused[breaker->refusals++] = run->seq;
    if (probe_ends(sink, run)) {
        if (breaker->cause == BREAKER_BY_REFUSALS)
            open_it(sched, sink, BREAKER_BY_REFUSALS, true);
        else
            breaker_close(sched, sink, 1);
    } else if (breaker->state == BREAKER_CLOSED && breaker->refusals == REFUSED_STORM) {
        open_it(sched, sink, BREAKER_BY_REFUSALS, true);
    }
}

void breaker_config(struct sched *sched, struct sched_sink *sink, struct sched_run *run)
{
    struct breaker *breaker = &sink->breaker;
    bool probed = probe_ends(sink, run);
    if (probed || breaker->state == BREAKER_CLOSED || breaker->cause != BREAKER_BY_CONFIG)
        open_it(sched, sink, BREAKER_BY_CONFIG, true);
}

/* The probe was put back: another one, please. */
void breaker_probe_vanished(struct sched *sched, struct sched_sink *sink, struct sched_run *run)
{
    if (probe_ends(sink, run))
        breaker_want_probe(sched, sink);
}

void breaker_want_probe(struct sched *sched, struct sched_sink *sink)
{
    struct breaker *breaker = &sink->breaker;
    if (breaker->state != BREAKER_HALF_OPEN || breaker->probe || sink->paused ||
        !list_empty(&sink->probe_node))
        return;
    list_append(&sched->probing, &sink->probe_node);
}

void breaker_tick(struct sched *sched, struct sched_sink *sink)
{
    if (sink->breaker.state != BREAKER_OPEN || sink->breaker.probe_at_ms > sched->now.mono_ms)
        return;
    sink->breaker.state = BREAKER_HALF_OPEN;
    say(sched, sink);
    breaker_want_probe(sched, sink);
}

static void breaker_restore(struct sched *sched, struct sched_sink *sink, const struct breaker_record *record)
{
    struct breaker *breaker = &sink->breaker;
    struct sched_time now = sched->now;
    int64_t left_ms = record->probe_at_ms - now.unix_ms, most_ms = sink->policy.breaker.max_open_ms;
    breaker->state = BREAKER_OPEN;
    breaker->cause = record->cause;
    breaker->opens = record->opens;
    breaker->since_unix_ms = record->since_ms;
    breaker->probe_at_ms = now.mono_ms + (left_ms < 0 ? 0 : left_ms > most_ms ? most_ms : left_ms);
}

void sched_sink_restore(struct sched *sched, struct sched_time now, uint32_t id,
                        const struct breaker_record *breaker, const struct pause_record *pause)
{
    sched->now = now;
    struct sched_sink *sink = sink_of(sched, id);
    if (breaker->opens > 0)
        breaker_restore(sched, sink, breaker);
    if (pause->paused) {
        sink->paused = true;
        sink->pause = *pause;
        sink->pause_until_ms =
            pause->until_ms == 0 ? INT64_MAX : now.mono_ms + (pause->until_ms - now.unix_ms);
    }
    sink_stop_clock(sched, sink);
    sink_arm(sched, sink);
}
