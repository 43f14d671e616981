/* What survives a restart beside rows: open breakers and pauses. Each change is a mark in the store; at the
 * start they come first, since the time that a sink or a lane stood still does not count for its rows. */
#include <string.h>

#include "lanes/lanes_priv.h"
#include "util/log.h"

/* ---- writing ---- */

void marks_set_breaker(struct lanes *lanes, const struct sched_action *action)
{
    const struct breaker_record *record = &action->record;
    store_set_mark(lanes->options.store, &(struct store_mark){.kind = MARK_BREAKER,
                                                              .sink = action->place.sink,
                                                              .set = record->opens > 0,
                                                              .since_ms = record->since_ms,
                                                              .until_ms = record->probe_at_ms,
                                                              .cause = record->cause,
                                                              .opens = record->opens});
}

void marks_set_pause(struct lanes *lanes, const struct sched_action *action)
{
    bool of_lane = action->kind == ACTION_LANE_PAUSE;
    struct store_mark mark = {.kind = of_lane ? MARK_LANE_PAUSE : MARK_SINK_PAUSE,
                              .sink = action->place.sink,
                              .tenant = of_lane ? action->place.tenant : 0,
                              .set = action->pause.paused,
                              .since_ms = action->pause.since_ms,
                              .until_ms = action->pause.until_ms};
    if (of_lane)
        memcpy(mark.lane, action->place.lane, sizeof mark.lane);
    store_set_mark(lanes->options.store, &mark);
}

/* ---- restoring ---- */

static void keep(void *ctx, const struct store_mark *mark)
{
    struct marks *marks = ctx;
    if (lanes_sink_entry(marks->lanes, mark->sink))
        VEC_PUSH(&marks->all, *mark);
    else /* its sink is gone, and may come back */
        VEC_PUSH(&marks->lanes->strange, *mark);
}

static struct pause_record pause_of(const struct store_mark *mark)
{
    return (struct pause_record){.paused = true, .since_ms = mark->since_ms, .until_ms = mark->until_ms};
}

static void restore_sink(struct lanes *lanes, struct sched_time now, uint32_t id,
                         const struct store_mark *marks, size_t count)
{
    struct breaker_record breaker = {.opens = 0};
    struct pause_record pause = {.paused = false};
    for (size_t i = 0; i < count; i++) {
        const struct store_mark *mark = &marks[i];
        if (mark->sink != id)
            continue;
        if (mark->kind == MARK_BREAKER && mark->cause <= BREAKER_BY_CONFIG)
            breaker = (struct breaker_record){.cause = (enum breaker_cause)mark->cause,
                                              .opens = mark->opens,
                                              .since_ms = mark->since_ms,
                                              .probe_at_ms = mark->until_ms};
        else if (mark->kind == MARK_SINK_PAUSE)
            pause = pause_of(mark);
    }
    if (breaker.opens > 0 || pause.paused)
        sched_sink_restore(lanes->sched, now, id, &breaker, &pause);
}

enum status marks_load(struct marks *marks, struct lanes *lanes, struct sched_time now, struct error *err)
{
    *marks = (struct marks){.lanes = lanes, .now = now};
    enum status status = store_marks(lanes->options.store, keep, marks, err);
    VEC_EACH (sink, &lanes->sinks)
        restore_sink(lanes, now, sink->is.id, marks->all.at, marks->all.len);
    return status;
}

static bool covers(const struct store_mark *mark, const struct store_owed *row)
{
    if (mark->sink != row->sink)
        return false;
    return mark->kind != MARK_LANE_PAUSE || (row->ordered && mark->tenant == row->tenant &&
                                             memcmp(mark->lane, row->lane, sizeof mark->lane) == 0);
}

/* What was written with the row's last change is in its waived_ms; since then it stood still from the first
 * mark on that covers it. */
int64_t marks_waived_ms(struct marks *marks, const struct store_owed *row)
{
    int64_t since_ms = INT64_MAX;
    if (!row->first_attempt_ms)
        return 0;
    VEC_EACH (mark, &marks->all) {
        if (mark->since_ms < since_ms && covers(mark, row))
            since_ms = mark->since_ms;
    }
    if (since_ms < row->at_ms)
        since_ms = row->at_ms;
    return since_ms < marks->now.unix_ms ? marks->now.unix_ms - since_ms : 0;
}

static void restore_lane(struct lanes *lanes, struct sched_time now, const struct store_mark *mark)
{
    if (mark->kind != MARK_LANE_PAUSE)
        return;
    struct sched_place place = {.sink = mark->sink, .tenant = mark->tenant, .ordered = true};
    struct pause_record pause = pause_of(mark);
    memcpy(place.lane, mark->lane, sizeof place.lane);
    sched_lane_restore(lanes->sched, now, &place, &pause);
}

void marks_restore_stranger(struct lanes *lanes, uint32_t sink)
{
    restore_sink(lanes, lanes_now(), sink, lanes->strange.at, lanes->strange.len);
}

void marks_restore_stranger_lanes(struct lanes *lanes, uint32_t sink)
{
    VEC_EACH (mark, &lanes->strange) {
        if (mark->sink == sink)
            restore_lane(lanes, lanes_now(), mark);
    }
}

void marks_restore_lanes(struct marks *marks)
{
    VEC_EACH (mark, &marks->all)
        restore_lane(marks->lanes, marks->now, mark);
    if (marks->all.len > 0)
        log_event(LOG_INFO, "lanes_marked", LOG_INT("marks", marks->all.len));
}
