/* Single rows come back, go for good, or change their lane: acts of operators on dead letters, replay jobs,
 * rekey. */
#include <string.h>

#include "lanes/sched_priv.h"
#include "util/check.h"

/* An idle lane keeps a time where others keep their run. */
static bool is_running(const struct lane *lane, uint64_t seq)
{
    return lane->phase == PHASE_RUNNING && lane->run->seq == seq;
}

/* A receiver may have applied a higher seq of the lane, and would drop this one unless it says that it is
 * late. Of what was there at the start nobody knows: calling late what is not costs nothing where it is newer
 * than the receiver's fence, and silence would lose it where it is not. */
static bool higher_was_sent(const struct lane *lane, uint64_t seq)
{
    return lane->highest_sent > seq || lane->highest_found > seq || (lane->run && lane->run->seq > seq);
}

/* A row that is owed already becomes one of the job's; `lane` is NULL where nothing is known of it. */
static void adopt(struct sched *sched, struct lane *lane, const struct sched_again *row)
{
    struct note *note = lane ? note_find(lane, row->seq) : NULL;
    if (!row->job || !lane || (note && note->job))
        return;
    lane_leave(sched, lane);
    row_leaves(lane->flow->sink, row->seq, 0);
    note_get(sched, lane, row->seq)->job = row->job;
    lane->flow->sink->pending++;
    lane_settle(sched, lane);
}

enum sched_answer sched_replay(struct sched *sched, struct sched_time now, const struct sched_place *place,
                               const struct sched_again *row)
{
    sched->now = now;
    struct flow *flow = flow_of(sched, place->sink, place->tenant);
    struct lane *lane = lane_of(sched, place, row->seq);
    struct note *note = lane ? note_find(lane, row->seq) : NULL;
    if (note && note->held) {
        lane_leave(sched, lane);
        note->job = row->job;
        lane_unhold(sched, lane, note, row->received_ms);
        lane_settle(sched, lane);
        return SCHED_DONE;
    }
    bool owed = lane ? rows_has(&lane->rows, row->seq) : !place->ordered && rows_has(&flow->loose, row->seq);
    if (owed) {
        adopt(sched, lane, row);
        return SCHED_NOTHING;
    }
    bool known = place->ordered ? lane && lane->dead > 0 : flow->sink->dead > 0;
    if (row->dead && !known)
        return SCHED_NOT_FOUND; /* somebody was faster */
    if (!lane) {
        uint8_t id[16];
        unordered_id(row->seq, id);
        lane = lane_make(sched, flow, place->ordered, place->ordered ? place->lane : id);
    }
    lane_leave(sched, lane);
    note = note_get(sched, lane, row->seq);
    note->late |= row->late || higher_was_sent(lane, row->seq);
    note->job = row->job;
    note_renew(note);
    if (lane_put(sched, lane, row->seq, row->received_ms))
        row_counts(flow->sink, row->seq, row->received_ms, row->job);
    if (row->dead && place->ordered)
        lane_undead(lane);
    else if (row->dead)
        flow->sink->dead--;
    say_row(sched, lane, row->seq, note, SCHED_ROW_PENDING, NULL);
    lane_settle(sched, lane);
    return SCHED_DONE;
}

/* An unordered row that was never tried. */
static enum sched_answer discard_loose(struct sched *sched, const struct sched_place *place, uint64_t seq,
                                       bool dead)
{
    struct flow *flow = flow_of(sched, place->sink, place->tenant);
    if (rows_remove(&flow->loose, seq, NULL, &sched->bytes)) {
        row_leaves(flow->sink, seq, 0);
        flow_check(sched, flow);
    } else if (dead && flow->sink->dead > 0) {
        flow->sink->dead--;
    } else {
        return SCHED_NOT_FOUND;
    }
    struct sched_action *action = VEC_ADD(&sched->actions);
    *action = (struct sched_action){.kind = ACTION_ROW,
                                    .place = *place,
                                    .seq = seq,
                                    .state = SCHED_ROW_DISCARDED,
                                    .at_ms = sched->now.unix_ms};
    sched->said++;
    return SCHED_DONE;
}

enum sched_answer sched_may_discard(struct sched *sched, const struct sched_place *place, uint64_t seq,
                                    bool dead)
{
    const struct flow *flow = flow_of(sched, place->sink, place->tenant);
    const struct lane *lane = lane_of(sched, place, seq);
    if (lane && is_running(lane, seq))
        return SCHED_IN_FLIGHT;
    bool owed = lane ? rows_has(&lane->rows, seq) : !place->ordered && rows_has(&flow->loose, seq);
    bool counted = lane ? lane->dead > 0 : !place->ordered && flow->sink->dead > 0;
    return owed || (dead && counted) ? SCHED_DONE : SCHED_NOT_FOUND;
}

enum sched_answer sched_discard(struct sched *sched, struct sched_time now, const struct sched_place *place,
                                uint64_t seq, bool dead)
{
    sched->now = now;
    struct lane *lane = lane_of(sched, place, seq);
    if (!lane)
        return place->ordered ? SCHED_NOT_FOUND : discard_loose(sched, place, seq, dead);
    if (is_running(lane, seq))
        return SCHED_IN_FLIGHT;
    struct note *note = note_find(lane, seq);
    bool owed = rows_has(&lane->rows, seq);
    if (!owed && !(dead && lane->dead > 0))
        return SCHED_NOT_FOUND;
    lane_leave(sched, lane);
    lane_loses(sched, lane, seq);
    say_row(sched, lane, seq, note, SCHED_ROW_DISCARDED, NULL)->at_ms = now.unix_ms;
    if (owed) {
        lane_await_durable(sched, lane);
        lane_take(sched, lane, seq);
    } else {
        lane_undead(lane);
        if (note)
            note_drop(sched, note);
    }
    lane_settle(sched, lane);
    return SCHED_DONE;
}

enum sched_answer sched_withdraw(struct sched *sched, struct sched_time now, const struct sched_place *place,
                                 uint64_t seq, uint32_t job, bool dead, bool hold)
{
    sched->now = now;
    struct lane *lane = lane_of(sched, place, seq);
    const struct note *note = lane ? note_find(lane, seq) : NULL;
    if (!lane || !rows_has(&lane->rows, seq))
        return SCHED_NOT_FOUND;
    if (is_running(lane, seq))
        return SCHED_IN_FLIGHT;
    if (!note || note->job != job || note->held)
        return SCHED_NOTHING;
    if (!dead)
        return sched_discard(sched, now, place, seq, false);
    lane_leave(sched, lane);
    lane_bury(sched, lane, seq, hold && lane->ordered, note->attempts > 0 ? "withdrawn" : NULL);
    lane_settle(sched, lane);
    return SCHED_DONE;
}

void sched_rewind(struct sched *sched, struct sched_time now, const struct sched_place *place,
                  uint64_t frontier)
{
    sched->now = now;
    struct lane *lane = lane_of(sched, place, 0);
    if (!lane && frontier == UINT64_MAX)
        return;
    if (!lane)
        lane = lane_make(sched, flow_of(sched, place->sink, place->tenant), true, place->lane);
    lane_leave(sched, lane);
    lane_extra(sched, lane)->frontier = frontier;
    lane_settle(sched, lane);
}

/* Takes a waiting row out of where it is; what it had spent goes into *spent. */
static enum sched_answer lift(struct sched *sched, const struct sched_place *from, uint64_t seq,
                              struct note *spent, bool *noted, int64_t *received_ms)
{
    struct flow *flow = flow_of(sched, from->sink, from->tenant);
    struct lane *lane = lane_of(sched, from, seq);
    *noted = false;
    if (!lane) {
        if (from->ordered || !rows_remove(&flow->loose, seq, received_ms, &sched->bytes))
            return SCHED_NOT_FOUND;
        row_leaves(flow->sink, seq, 0);
        flow_check(sched, flow);
        return SCHED_DONE;
    }
    const struct note *note = note_find(lane, seq);
    if (is_running(lane, seq))
        return SCHED_IN_FLIGHT;
    if (!rows_has(&lane->rows, seq))
        return SCHED_NOT_FOUND;
    if (note && note->held)
        return SCHED_NOTHING;
    if (note) {
        *noted = true;
        *spent = *note;
    }
    lane_leave(sched, lane);
    lane_loses(sched, lane, seq);
    say_row(sched, lane, seq, note, SCHED_ROW_PENDING, NULL); /* last: the move itself is stored beside it */
    lane_await_durable(sched, lane);
    *received_ms = lane_take(sched, lane, seq);
    lane_settle(sched, lane);
    return SCHED_DONE;
}

enum sched_answer sched_rekey(struct sched *sched, struct sched_time now, const struct sched_place *from,
                              uint64_t seq, const struct sched_place *to)
{
    sched->now = now;
    CHECK(from->sink == to->sink && from->tenant == to->tenant);
    bool same =
        from->ordered == to->ordered && (!to->ordered || memcmp(from->lane, to->lane, sizeof to->lane) == 0);
    if (same)
        return SCHED_NOTHING;
    struct note spent = {0};
    bool noted = false;
    int64_t received_ms = 0;
    enum sched_answer answer = lift(sched, from, seq, &spent, &noted, &received_ms);
    if (answer != SCHED_DONE)
        return answer;
    if (!to->ordered && !noted) {
        sched_commit(sched, now, to, seq, received_ms, 0);
        return SCHED_DONE;
    }
    struct lane *lane = lane_of(sched, to, seq);
    if (!lane) {
        uint8_t id[16];
        unordered_id(seq, id);
        lane =
            lane_make(sched, flow_of(sched, to->sink, to->tenant), to->ordered, to->ordered ? to->lane : id);
    }
    lane_leave(sched, lane);
    if (lane_put(sched, lane, seq, received_ms))
        row_counts(lane->flow->sink, seq, received_ms, spent.job);
    struct note *note = note_get(sched, lane, seq);
    if (noted) {
        note->attempts = spent.attempts;
        note->job = spent.job;
        note->first_ms = spent.first_ms;
        note->first_unix_ms = spent.first_unix_ms;
        note->waived_ms = spent.waived_ms;
        note->stopped_base_ms = spent.stopped_base_ms;
        note->due_ms = spent.due_ms;
        note->by_receiver = spent.by_receiver;
        note->late = spent.late;
    }
    note->late |= to->ordered; /* what was delivered under that key, memory may not know */
    lane_settle(sched, lane);
    return SCHED_DONE;
}
