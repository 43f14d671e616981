/* What operators do to lanes and sinks; to single rows: row_acts.c. Every act asks the rows first, changes
 * them, and lets the lane settle; none is special to the machine that delivers. */
#include <string.h>

#include "lanes/sched_priv.h"
#include "util/check.h"

/* ---- lanes ---- */

/* Its own clock of time that does not count begins. The lane is left. */
static void lane_stop(struct sched *sched, struct lane *lane, int64_t since_unix_ms)
{
    struct lane_extra *extra = lane_extra(sched, lane);
    sched->paused_count += !extra->paused;
    extra->paused = true;
    extra->paused_ms = sched->now.mono_ms;
    extra->paused_unix_ms = since_unix_ms;
    extra->stopped_base_ms = sink_stopped(sched, lane->flow->sink);
}

static void say_lane_pause(struct sched *sched, const struct sched_place *place, bool paused)
{
    struct sched_action *action = VEC_ADD(&sched->actions);
    *action = (struct sched_action){.kind = ACTION_LANE_PAUSE,
                                    .place = *place,
                                    .pause = {.paused = paused, .since_ms = paused ? sched->now.unix_ms : 0}};
}

enum sched_answer sched_lane_pause(struct sched *sched, struct sched_time now,
                                   const struct sched_place *place)
{
    sched->now = now;
    struct lane *lane = lane_of(sched, place, 0);
    if (lane && lane->extra && lane->extra->paused)
        return SCHED_NOTHING;
    if (!lane && (!place->ordered || sched->paused_count >= SCHED_PAUSED_MOST))
        return place->ordered ? SCHED_FULL : SCHED_NOT_FOUND;
    if (!lane)
        lane = lane_make(sched, flow_of(sched, place->sink, place->tenant), true, place->lane);
    lane_leave(sched, lane);
    lane_stop(sched, lane, now.unix_ms);
    lane_settle(sched, lane);
    say_lane_pause(sched, place, true);
    return SCHED_DONE;
}

void sched_lane_restore(struct sched *sched, struct sched_time now, const struct sched_place *place,
                        const struct pause_record *pause)
{
    sched->now = now;
    CHECK(place->ordered && pause->paused);
    struct lane *lane = lane_of(sched, place, 0);
    if (!lane)
        lane = lane_make(sched, flow_of(sched, place->sink, place->tenant), true, place->lane);
    lane_leave(sched, lane);
    lane_stop(sched, lane, pause->since_ms);
    lane_settle(sched, lane);
}

enum sched_answer sched_lane_resume(struct sched *sched, struct sched_time now,
                                    const struct sched_place *place)
{
    sched->now = now;
    struct lane *lane = lane_of(sched, place, 0);
    if (!lane)
        return SCHED_NOT_FOUND;
    if (!lane->extra || !lane->extra->paused)
        return SCHED_NOTHING;
    lane_leave(sched, lane);
    struct lane_extra *extra = lane->extra;
    extra->paused = false;
    sched->paused_count--;
    /* The sink's own stopped time is on its clock already: only the rest of the pause is added. */
    int64_t stopped_ms = sink_stopped(sched, lane->flow->sink) - extra->stopped_base_ms;
    int64_t waived_ms = now.mono_ms - extra->paused_ms - stopped_ms;
    struct note *note = lane->notes;
    do {
        if (note && note->first_unix_ms)
            note->waived_ms += waived_ms;
        note = note ? note->next : NULL;
    } while (note != lane->notes);
    lane_settle(sched, lane);
    say_lane_pause(sched, place, false);
    return SCHED_DONE;
}

/* The lane with the head an operator meant, or why not. */
static enum sched_answer head_of(struct sched *sched, const struct sched_place *place, uint64_t expect_head,
                                 struct lane **out)
{
    struct lane *lane = lane_of(sched, place, expect_head);
    if (!lane || lane->rows.count == 0)
        return SCHED_NOT_FOUND;
    if (expect_head && lane->rows.first != expect_head)
        return SCHED_HEAD_CHANGED;
    if (lane->run && lane->run->seq == lane->rows.first)
        return SCHED_IN_FLIGHT;
    *out = lane;
    return SCHED_DONE;
}

void note_renew(struct note *note)
{
    note->held = note->dead = note->by_receiver = false;
    note->attempts = 0;
    note->first_ms = note->first_unix_ms = note->waived_ms = note->dead_at_ms = 0;
    note->due_ms = INT64_MIN;
}

void lane_unhold(struct sched *sched, struct lane *lane, struct note *note, int64_t received_ms)
{
    if (note->alarmed)
        lane_say_unblocked(sched, note);
    note_renew(note);
    lane_undead(lane);
    row_counts(lane->flow->sink, note->seq, received_ms, note->job);
    say_row(sched, lane, note->seq, note, SCHED_ROW_PENDING, NULL);
}

enum sched_answer sched_lane_retry(struct sched *sched, struct sched_time now,
                                   const struct sched_place *place, uint64_t expect_head)
{
    sched->now = now;
    struct lane *lane = NULL;
    enum sched_answer answer = head_of(sched, place, expect_head, &lane);
    if (answer != SCHED_DONE)
        return answer;
    struct note *note = note_find(lane, lane->rows.first);
    if (!note)
        return SCHED_NOTHING;
    lane_leave(sched, lane);
    if (note->held)
        lane_unhold(sched, lane, note, lane->rows.received_ms);
    note->due_ms = now.mono_ms;
    note->by_receiver = false;
    lane_settle(sched, lane);
    return SCHED_DONE;
}

enum sched_answer sched_lane_skip(struct sched *sched, struct sched_time now, const struct sched_place *place,
                                  uint64_t expect_head)
{
    sched->now = now;
    struct lane *lane = NULL;
    enum sched_answer answer = head_of(sched, place, expect_head, &lane);
    if (answer != SCHED_DONE)
        return answer;
    lane_leave(sched, lane);
    lane_bury(sched, lane, lane->rows.first, false, "skipped");
    lane_settle(sched, lane);
    return SCHED_DONE;
}

/* ---- sinks ---- */

static void say_sink_pause(struct sched *sched, const struct sched_sink *sink)
{
    struct sched_action *action = VEC_ADD(&sched->actions);
    *action = (struct sched_action){.kind = ACTION_SINK_PAUSE, .pause = sink->pause};
    action->place.sink = sink->id;
}

void sched_sink_pause(struct sched *sched, struct sched_time now, uint32_t id, int64_t for_ms)
{
    sched->now = now;
    struct sched_sink *sink = sink_of(sched, id);
    sink->pause.since_ms = sink->paused ? sink->pause.since_ms : now.unix_ms;
    sink->pause.until_ms = for_ms > 0 ? now.unix_ms + for_ms : 0;
    sink->paused = sink->pause.paused = true;
    sink->pause_until_ms = for_ms > 0 ? now.mono_ms + for_ms : INT64_MAX;
    list_remove(&sink->probe_node);
    sink_stop_clock(sched, sink);
    sink_arm(sched, sink);
    say_sink_pause(sched, sink);
}

void sched_sink_resume(struct sched *sched, struct sched_time now, uint32_t id)
{
    sched->now = now;
    struct sched_sink *sink = sink_of(sched, id);
    if (!sink->paused)
        return;
    sink->paused = false;
    sink->pause = (struct pause_record){0};
    say_sink_pause(sched, sink);
    sink_stop_clock(sched, sink);
    sink_release(sched, sink);
    breaker_want_probe(sched, sink);
    sink_arm(sched, sink);
}

void sched_sink_retry(struct sched *sched, struct sched_time now, uint32_t id)
{
    sched->now = now;
    struct sched_sink *sink = sink_of(sched, id);
    if (sink->breaker.state != BREAKER_CLOSED)
        breaker_close(sched, sink, 1);
    sink_heads_due(sched, sink, true);
    sink_release(sched, sink);
    sink_arm(sched, sink);
}

/* Takes from *most as many as it buries. */
static void retire_lane(struct sched *sched, struct lane *lane, const char *cls, size_t *most)
{
    lane_leave(sched, lane);
    for (uint64_t seq = 0; *most > 0 && (seq = rows_next(&lane->rows, seq));) {
        if (lane->run && lane->run->seq == seq)
            continue;
        lane_bury(sched, lane, seq, false, cls);
        --*most;
    }
    lane_settle(sched, lane);
}

static void retire_loose(struct sched *sched, struct flow *flow, const char *cls, size_t *most)
{
    for (; *most > 0 && flow->loose.count > 0; --*most) {
        struct sched_place place = {.sink = flow->sink->id, .tenant = flow->tenant->id};
        sched_discard(sched, sched->now, &place, flow->loose.first, false);
        struct sched_action *action = &sched->actions.at[sched->actions.len - 1];
        action->state = SCHED_ROW_DEAD;
        action->cls = cls;
        flow->sink->dead++;
    }
}

bool sched_sink_retire(struct sched *sched, struct sched_time now, uint32_t id, const char *cls,
                       size_t *cursor, size_t most)
{
    sched->now = now;
    struct sched_sink *sink = sink_of(sched, id);
    sink->retired = cls;
    slots_share_out(sched);
    VEC_EACH (flow, &sink->flows) {
        if (*flow)
            retire_loose(sched, *flow, cls, &most);
    }
    for (; *cursor < sched->slabs.len && most > 0; *cursor += most > 0) {
        for (size_t k = 0; k < SLAB_LANES && most > 0; k++) {
            struct slab *slab = sched->slabs.at[*cursor].slab; /* may go while its last lane is retired */
            if (!slab || k >= slab->next_unused)
                break;
            if (slab->lanes[k].used && slab->lanes[k].flow->sink == sink)
                retire_lane(sched, &slab->lanes[k], cls, &most);
        }
    }
    if (most > 0)
        *cursor = 0;
    return most == 0;
}
