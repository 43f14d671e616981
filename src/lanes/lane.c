/* A lane's life: see the drawing in sched_priv.h. */
#include <stdlib.h>
#include <string.h>

#include "lanes/sched_priv.h"
#include "util/check.h"
#include "util/mem.h"

/* ---- notes ---- */

struct note *note_find(const struct lane *lane, uint64_t seq)
{
    struct note *note = lane->notes;
    if (!note || seq > note->prev->seq)
        return NULL;
    for (; note->seq < seq; note = note->next)
        ;
    return note->seq == seq ? note : NULL;
}

struct note *note_get(struct sched *sched, struct lane *lane, uint64_t seq)
{
    struct note *old = note_find(lane, seq);
    if (old)
        return old;
    struct note *note = mem_zalloc(sizeof *note);
    note->lane = lane;
    note->seq = seq;
    note->stopped_base_ms = 0;
    note->due_ms = INT64_MIN;
    sched->bytes += sizeof *note + 8;
    if (!lane->notes) {
        note->next = note->prev = lane->notes = note;
        return note;
    }
    struct note *after = lane->notes->prev; /* the highest: most come in at the end */
    while (after->seq > seq && after != lane->notes)
        after = after->prev;
    if (after->seq > seq) {
        after = lane->notes->prev;
        lane->notes = note;
    }
    note->prev = after;
    note->next = after->next;
    after->next->prev = note;
    after->next = note;
    return note;
}

void note_drop(struct sched *sched, struct note *note)
{
    struct lane *lane = note->lane;
    CHECK(note->due.place == 0 && note->tried.place == 0 && note->failing.place == 0);
    note->prev->next = note->next;
    note->next->prev = note->prev;
    if (lane->notes == note)
        lane->notes = note->next == note ? NULL : note->next;
    sched->bytes -= sizeof *note + 8;
    free(note);
}

/* ---- making and forgetting ---- */

struct lane *lane_make(struct sched *sched, struct flow *flow, bool ordered, const uint8_t id[16])
{
    struct lane *lane = table_add(sched, flow, ordered, id);
    lane->phase = PHASE_NONE;
    sched->lane_count++;
    return lane;
}

struct lane_extra *lane_extra(struct sched *sched, struct lane *lane)
{
    if (!lane->extra) {
        lane->extra = mem_zalloc(sizeof *lane->extra);
        lane->extra->frontier = UINT64_MAX;
        lane->extra->lane = lane;
        list_init(&lane->extra->node);
        sched->bytes += sizeof *lane->extra + 8;
    }
    return lane->extra;
}

static void lane_forget(struct sched *sched, struct lane *lane)
{
    CHECK(lane->rows.count == 0 && !lane->summed);
    while (lane->notes)
        note_drop(sched, lane->notes);
    if (lane->extra) {
        sched->paused_count -= lane->extra->paused;
        list_remove(&lane->extra->node);
        sched->bytes -= sizeof *lane->extra + 8;
    }
    free(lane->extra);
    sched->lane_count--;
    table_remove(sched, lane);
}

/* ---- sums ---- */

static bool is_blocked(const struct lane *lane, const struct note *head)
{
    return head && head->seq == lane->rows.first && (head->attempts > 0 || head->held);
}

static void sum(struct lane *lane, int sign)
{
    struct sched_sink *sink = lane->flow->sink;
    uint32_t depth = lane->rows.count;
    if (!lane->ordered || depth == 0)
        return;
    sink->lanes[lane->phase] += (uint64_t)sign;
    while (sink->depths.len <= depth)
        VEC_PUSH(&sink->depths, 0);
    sink->depths.at[depth] += (uint32_t)sign;
    if (sign > 0 && depth > sink->depth_max)
        sink->depth_max = depth;
    if (is_blocked(lane, note_find(lane, lane->rows.first)))
        sink->behind += (uint64_t)sign * (depth - 1);
}

static void sum_out(struct lane *lane)
{
    if (!lane->summed)
        return;
    sum(lane, -1);
    lane->summed = false;
}

/* The deepest lane got shallower: depths change by few, so the next deepest is near. */
static void settle_depth(struct sched_sink *sink)
{
    while (sink->depth_max > 0 && sink->depths.at[sink->depth_max] == 0)
        sink->depth_max--;
}

static void sum_in(struct lane *lane)
{
    CHECK(!lane->summed);
    lane->summed = true;
    sum(lane, 1);
    settle_depth(lane->flow->sink);
}

/* ---- phases: entering and leaving ---- */

static struct note *head_note(const struct lane *lane)
{
    return lane->rows.count ? note_find(lane, lane->rows.first) : NULL;
}

static void block_enter(struct sched *sched, struct lane *lane, struct note *head)
{
    struct sched_sink *sink = lane->flow->sink;
    if (!is_blocked(lane, head))
        return;
    heap_push(head->alarmed ? &sink->alarmed : &sink->failing, &head->failing, head->first_ms);
    sink_arm(sched, sink);
}

static void block_leave(struct lane *lane, struct note *head)
{
    struct sched_sink *sink = lane->flow->sink;
    if (head && head->failing.place)
        heap_remove(head->alarmed ? &sink->alarmed : &sink->failing, &head->failing);
}

static void ready_enter(struct sched *sched, struct lane *lane, struct note *head)
{
    struct flow *flow = lane->flow;
    if (head && head->attempts > 0) {
        list_append(&flow->tried, &lane->node);
        heap_push(&flow->sink->tried, &head->tried, head->attempts);
        flow->sink->ready_tried++;
    } else {
        list_append(&flow->fresh, &lane->node);
    }
    flow_wake(sched, flow);
}

static void ready_leave(struct sched *sched, struct lane *lane, struct note *head)
{
    list_remove(&lane->node);
    if (head && head->tried.place) {
        heap_remove(&lane->flow->sink->tried, &head->tried);
        lane->flow->sink->ready_tried--;
    }
    flow_check(sched, lane->flow);
}

static void waiting_enter(struct sched *sched, struct lane *lane, struct note *head)
{
    struct sched_sink *sink = lane->flow->sink;
    heap_push(&sink->due, &head->due, head->due_ms);
    if (!head->by_receiver)
        heap_push(&sink->tried, &head->tried, head->attempts);
    sink->waiting_rows++;
    sink_arm(sched, sink);
    breaker_want_probe(sched, sink);
}

static void waiting_leave(struct sched *sched, struct lane *lane, struct note *head)
{
    struct sched_sink *sink = lane->flow->sink;
    heap_remove(&sink->due, &head->due);
    heap_remove(&sink->tried, &head->tried);
    sink->waiting_rows--;
    sink_arm(sched, sink);
}

static void idle_enter(struct sched *sched, struct lane *lane, struct note *head)
{
    (void)head;
    bool kept = lane->dead > 0 || lane->notes ||
                (lane->extra && (lane->extra->paused || lane->extra->frontier != UINT64_MAX)) ||
                lane_awaits_durable(sched, lane);
    if (kept)
        return;
    lane->idle_ms = sched->now.mono_ms;
    list_append(&sched->idle, &lane->node);
    sched->idle_count++;
}

static void idle_leave(struct sched *sched, struct lane *lane, struct note *head)
{
    (void)head;
    if (!list_empty(&lane->node)) {
        list_remove(&lane->node);
        sched->idle_count--;
    }
    lane->run = NULL;
}

static const struct {
    void (*enter)(struct sched *sched, struct lane *lane, struct note *head);
    void (*leave)(struct sched *sched, struct lane *lane, struct note *head);
} phases[PHASE_COUNT] = {
    [PHASE_IDLE] = {idle_enter, idle_leave},
    [PHASE_READY] = {ready_enter, ready_leave},
    [PHASE_WAITING] = {waiting_enter, waiting_leave},
};

static enum phase phase_of(const struct sched *sched, const struct lane *lane, const struct note *head)
{
#if SCHED_MUTANT == MUTANT_COUNTER
    if (lane->busy > 0)
        return PHASE_RUNNING;
#else
    if (lane->run)
        return PHASE_RUNNING;
#endif
    if (lane->rows.count == 0)
        return PHASE_IDLE;
    if (head && head->held)
        return PHASE_HELD;
    if (lane->extra && (lane->extra->paused || lane->rows.first > lane->extra->frontier))
        return PHASE_PAUSED;
    if (lane_awaits_durable(sched, lane))
        return PHASE_PAUSED;
#if SCHED_MUTANT == MUTANT_TAIL
    if (lane->rows.count > 1)
        return PHASE_READY;
#endif
    if (head && head->due_ms > sched->now.mono_ms)
        return PHASE_WAITING;
    return PHASE_READY;
}

void lane_touch(struct lane *lane)
{
    sum_out(lane);
}

void lane_leave(struct sched *sched, struct lane *lane)
{
    sum_out(lane);
    if (lane->phase == PHASE_NONE)
        return;
    struct note *head = head_note(lane);
    block_leave(lane, head);
    enum phase phase = lane->phase;
    lane->phase = PHASE_NONE;
    if (phases[phase].leave)
        phases[phase].leave(sched, lane, head);
}

void lane_say_unblocked(struct sched *sched, struct note *note)
{
    const struct lane *lane = note->lane;
    note->alarmed = false;
    if (!lane->ordered)
        return;
    struct sched_action *action = VEC_ADD(&sched->actions);
    *action = (struct sched_action){.kind = ACTION_LANE_UNBLOCKED,
                                    .seq = note->seq,
                                    .since_ms = note->first_unix_ms,
                                    .behind = lane->rows.count};
    place_of(lane, &action->place);
}

void lane_settle(struct sched *sched, struct lane *lane)
{
    if (lane->phase == PHASE_NONE) {
        struct note *head = head_note(lane);
        lane->phase = (uint8_t)phase_of(sched, lane, head);
        if (lane->phase == PHASE_IDLE && !lane->ordered) {
            lane_forget(sched, lane);
            return;
        }
        block_enter(sched, lane, head);
        if (phases[lane->phase].enter)
            phases[lane->phase].enter(sched, lane, head);
    }
    sum_in(lane);
    while (sched->idle_count > sched->options.lane_idle_most) {
        struct lane *longest = LIST_OWNER(sched->idle.next, struct lane, node);
        lane_leave(sched, longest);
        lane_forget(sched, longest);
    }
}

/* Called by sched_tick. */
void lanes_forget_idle(struct sched *sched)
{
    while (!list_empty(&sched->idle)) {
        struct lane *longest = LIST_OWNER(sched->idle.next, struct lane, node);
        if (longest->idle_ms + sched->options.lane_idle_ms > sched->now.mono_ms)
            return;
        lane_leave(sched, longest);
        lane_forget(sched, longest);
    }
}

/* ---- rows ---- */

bool lane_put(struct sched *sched, struct lane *lane, uint64_t seq, int64_t received_ms)
{
    return rows_add(&lane->rows, seq, received_ms, &sched->bytes);
}

/* The row is nobody's head any more. Gives when it was received. */
static int64_t row_out(struct sched *sched, struct lane *lane, uint64_t seq, struct note *note)
{
    int64_t received_ms = 0;
    CHECK(rows_remove(&lane->rows, seq, &received_ms, &sched->bytes));
    if (note && note->alarmed)
        lane_say_unblocked(sched, note);
    return received_ms;
}

int64_t lane_take(struct sched *sched, struct lane *lane, uint64_t seq)
{
    struct note *note = note_find(lane, seq);
    if (note && note->held)
        lane_undead(lane);
    else
        row_leaves(lane->flow->sink, seq, note ? note->job : 0);
    int64_t received_ms = row_out(sched, lane, seq, note);
    if (note)
        note_drop(sched, note);
#if SCHED_MUTANT == MUTANT_COUNTER
    lane->busy -= lane->busy > 0;
#endif
    return received_ms;
}

bool lane_awaits_durable(const struct sched *sched, const struct lane *lane)
{
    return lane->extra && lane->extra->unsynced > sched->durable;
}

void lane_await_durable(struct sched *sched, struct lane *lane)
{
    if (!lane->ordered)
        return;
    struct lane_extra *extra = lane_extra(sched, lane);
    extra->unsynced = sched->said;
    list_remove(&extra->node);
    list_append(&sched->unsynced, &extra->node);
}

void lane_undead(struct lane *lane)
{
    CHECK(lane->dead > 0 && lane->flow->sink->dead > 0);
    lane->dead--;
    lane->flow->sink->dead--;
}

static void note_is_late(struct sched *sched, struct lane *lane, struct note *note)
{
    note->late = true;
    say_row(sched, lane, note->seq, note,
            note->dead   ? SCHED_ROW_DEAD
            : note->held ? SCHED_ROW_HELD
                         : SCHED_ROW_PENDING,
            NULL);
}

static void mark_late(struct sched *sched, struct lane *lane, uint64_t below, bool dead_only)
{
    for (struct note *note = lane->notes; note && note->seq < below;) {
        struct note *next = note->next == lane->notes ? NULL : note->next;
        if (!note->late && (note->dead || !dead_only))
            note_is_late(sched, lane, note);
        if (note->dead)
            note_drop(sched, note);
        note = next;
    }
}

void lane_sent(struct sched *sched, struct lane *lane, uint64_t seq)
{
    mark_late(sched, lane, seq, false);
    if (seq > lane->highest_sent)
        lane->highest_sent = seq;
}

void lane_loses(struct sched *sched, struct lane *lane, uint64_t seq)
{
    if (seq <= lane->highest_found)
        mark_late(sched, lane, seq, true);
}

void lane_bury(struct sched *sched, struct lane *lane, uint64_t seq, bool hold, const char *cls)
{
    CHECK(!cls || dead_class_known(cls, strlen(cls))); /* NULL: as it was */
    struct sched_sink *sink = lane->flow->sink;
    struct note *note = note_get(sched, lane, seq);
    note->late |= lane->highest_sent > seq;
    if (!note->held) {
        note->dead_at_ms = sched->now.unix_ms;
        row_leaves(sink, seq, note->job);
        sink->dead++;
        lane->dead += lane->ordered;
    }
    note->held = hold;
    say_row(sched, lane, seq, note, hold ? SCHED_ROW_HELD : SCHED_ROW_DEAD, cls);
    if (hold)
        return;
    lane_await_durable(sched, lane);
    row_out(sched, lane, seq, note);
    note->dead = lane->ordered && !note->late;
    if (!note->dead)
        note_drop(sched, note);
}
