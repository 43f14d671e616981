/* Looking at the scheduler: sums that are kept anyway, one lane, or all of them a slice at a time. */
#include <string.h>

#include "lanes/sched_priv.h"
#include "util/bytes.h"
#include "util/check.h"

enum { STORIES_MAX = (1 << 28) - 1 }; /* as many as a brief can name; beyond it a lane shows without */

static const char *const names[] = {
#define LANE_STATE_NAME(id, name) [LANE_STATE_##id] = name,
    LANE_STATES(LANE_STATE_NAME)
#undef LANE_STATE_NAME
};

bool dead_class_known(const char *text, size_t len)
{
#define DEAD_CLASS_WORD(word) word,
    static const char *const words[] = {DEAD_CLASSES(DEAD_CLASS_WORD)};
#undef DEAD_CLASS_WORD
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (bytes_eq(bytes_of(text, len), bytes_str(words[i])))
            return true;
    return false;
}

const char *lane_state_name(enum lane_state state)
{
    return names[state];
}

/* A lane that only waits shows what its sink waits for. */
static enum lane_state waits_for(const struct sched_sink *sink, enum lane_state otherwise)
{
    if (sink->paused)
        return LANE_STATE_PAUSED;
    if (sink->breaker.state == BREAKER_CLOSED)
        return otherwise;
    return sink->breaker.cause == BREAKER_BY_CONFIG ? LANE_STATE_PARKED : LANE_STATE_BREAKER_OPEN;
}

static enum lane_state state_of(const struct sched_sink *sink, enum phase phase)
{
    switch (phase) {
    case PHASE_RUNNING:
        return LANE_STATE_RUNNING;
    case PHASE_WAITING:
        return waits_for(sink, LANE_STATE_RETRYING);
    case PHASE_HELD:
        return LANE_STATE_HELD;
    case PHASE_PAUSED:
        return LANE_STATE_PAUSED;
    default:
        return waits_for(sink, LANE_STATE_READY);
    }
}

const char *breaker_cause_name(enum breaker_cause cause)
{
    static const char *const causes[] = {[BREAKER_BY_FAILURES] = "failures",
                                         [BREAKER_BY_REFUSALS] = "refused_storm",
                                         [BREAKER_BY_CONFIG] = "config"};
    return causes[cause];
}

size_t sched_memory(const struct sched *sched)
{
    return sched->bytes +
           (sched->lane_count - sched->idle_count) * (sizeof(struct lane) + sizeof(struct lane *));
}

static void older(const struct heap *heap, int64_t *since_mono_ms, int64_t *since_unix_ms)
{
    if (heap->items.len == 0 || heap->items.at[0].key >= *since_mono_ms)
        return;
    *since_mono_ms = heap->items.at[0].key;
    *since_unix_ms = HEAP_OWNER(heap->items.at[0].node, struct note, failing)->first_unix_ms;
}

void sched_sink_look(struct sched *sched, struct sched_time now, uint32_t id, struct sched_sink_view *out)
{
    sched->now = now;
    const struct sched_sink *sink = sink_of(sched, id);
    *out = (struct sched_sink_view){
        .pending = sink->pending,
        .dead = sink->dead,
        .running = sink->running,
        .retrying_rows = sink->waiting_rows,
        .rows_behind_blocked = sink->behind,
        .lane_depth_max = sink->depth_max,
        .oldest_ms = ages_oldest_ms(&sink->ages),
        .breaker = sink->breaker.state,
        .record = breaker_record(sched, sink),
        .pause = sink->pause,
        .waiting_with_free_slot = sink->ringed > 0,
    };
    for (enum phase phase = PHASE_READY; phase < PHASE_COUNT; phase++)
        out->lanes[state_of(sink, phase)] += sink->lanes[phase];
    int64_t since_ms = INT64_MAX;
    older(&sink->failing, &since_ms, &out->blocked_since_ms);
    older(&sink->alarmed, &since_ms, &out->blocked_since_ms);
}

static void lane_show(const struct sched *sched, const struct lane *lane, struct lane_view *out)
{
    const struct note *head = note_find(lane, lane->rows.first);
    int64_t wait_ms = head && head->due_ms > sched->now.mono_ms ? head->due_ms - sched->now.mono_ms : 0;
    *out = (struct lane_view){.tenant = lane->flow->tenant->id,
                              .sink = lane->flow->sink->id,
                              .state = state_of(lane->flow->sink, lane->phase),
                              .depth = lane->rows.count,
                              .oldest_ms = lane->rows.received_ms,
                              .head_seq = lane->rows.first,
                              .head_attempts = head ? head->attempts : 0,
                              .head_due_ms = sched->now.unix_ms + wait_ms};
    if (head && (head->attempts > 0 || head->held))
        out->blocked_since_ms = head->first_unix_ms ? head->first_unix_ms : head->dead_at_ms;
    if (lane->extra && lane->extra->paused)
        out->paused_since_ms = lane->extra->paused_unix_ms;
    memcpy(out->lane, lane->id, sizeof out->lane);
}

bool sched_lane_look(struct sched *sched, struct sched_time now, const struct sched_place *place,
                     struct lane_view *out)
{
    sched->now = now;
    const struct lane *lane = lane_of(sched, place, 0);
    if (!lane || lane->rows.count == 0)
        return false;
    lane_show(sched, lane, out);
    return true;
}

bool sched_lane_known(struct sched *sched, const struct sched_place *place)
{
    return lane_of(sched, place, 0) != NULL;
}

size_t sched_lane_rows(struct sched *sched, const struct sched_place *place, uint64_t *seqs, size_t most)
{
    const struct lane *lane = lane_of(sched, place, 0);
    size_t n = 0;
    for (uint64_t seq = 0; lane && n < most && (seq = rows_next(&lane->rows, seq));)
        seqs[n++] = seq;
    return n;
}

size_t sched_lane_count(const struct sched *sched)
{
    return sched->lane_count;
}

/* Few lanes have one: those with a head that was tried, or a pause of their own. */
static uint32_t add_story(const struct sched *sched, const struct lane *lane, struct lane_list *out)
{
    struct lane_view view;
    if (out->stories.len == STORIES_MAX)
        return 0;
    lane_show(sched, lane, &view);
    VEC_PUSH(&out->stories, ((struct lane_story){.head_attempts = view.head_attempts,
                                                 .head_due_ms = view.head_due_ms,
                                                 .blocked_since_ms = view.blocked_since_ms,
                                                 .paused_since_ms = view.paused_since_ms}));
    return (uint32_t)out->stories.len;
}

static void add_brief(const struct sched *sched, const struct lane *lane, struct lane_list *out)
{
    struct lane_brief *brief = VEC_ADD(&out->briefs);
    memcpy(brief->lane, lane->id, sizeof brief->lane);
    brief->head_seq = lane->rows.first;
    brief->oldest_ms = lane->rows.received_ms;
    brief->tenant = lane->flow->tenant->id;
    brief->sink = lane->flow->sink->id;
    brief->depth = lane->rows.count;
    brief->state = state_of(lane->flow->sink, lane->phase);
    brief->story = lane->notes || lane->extra ? add_story(sched, lane, out) & STORIES_MAX : 0;
}

void sched_lanes_slice(struct sched *sched, struct sched_time now, size_t *cursor, struct lane_list *out,
                       size_t most)
{
    sched->now = now;
    size_t looked = 0, at = *cursor;
    while (at / SLAB_LANES < sched->slabs.len && looked < most) {
        const struct slab *slab = sched->slabs.at[at / SLAB_LANES].slab;
        size_t i = at % SLAB_LANES;
        if (!slab || i >= slab->next_unused) {
            at = (at / SLAB_LANES + 1) * SLAB_LANES;
            continue;
        }
        const struct lane *lane = &slab->lanes[i];
        if (lane->used && lane->ordered && lane->rows.count > 0)
            add_brief(sched, lane, out);
        looked++;
        at++;
    }
    *cursor = at / SLAB_LANES < sched->slabs.len ? at : 0;
}

void lane_brief_view(const struct lane_list *list, const struct lane_brief *brief, int64_t unix_ms,
                     struct lane_view *out)
{
    *out = (struct lane_view){.tenant = brief->tenant,
                              .sink = brief->sink,
                              .state = (enum lane_state)brief->state,
                              .depth = brief->depth,
                              .oldest_ms = brief->oldest_ms,
                              .head_seq = brief->head_seq,
                              .head_due_ms = unix_ms};
    memcpy(out->lane, brief->lane, sizeof out->lane);
    if (brief->story == 0)
        return;
    const struct lane_story *story = &list->stories.at[brief->story - 1];
    out->head_attempts = story->head_attempts;
    out->head_due_ms = story->head_due_ms;
    out->blocked_since_ms = story->blocked_since_ms;
    out->paused_since_ms = story->paused_since_ms;
}

/* ---- the audit ---- */

static void audit_lane(const struct sched *sched, const struct lane *lane, struct sched_sink_view *sums)
{
    CHECK(lane->phase != PHASE_NONE && lane->summed);
    uint32_t count = 0, held = 0;
    for (uint64_t seq = 0; (seq = rows_next(&lane->rows, seq));) {
        const struct note *note = note_find(lane, seq);
        held += note && note->held;
        CHECK(!note || !note->dead);
        count++;
    }
    CHECK(count == lane->rows.count && (count == 0 || lane->rows.first > 0));
    sums->pending += count - held;
    CHECK(lane->dead >= held);
    if (lane->ordered && count > 0) {
        sums->lanes[state_of(lane->flow->sink, lane->phase)]++;
        if (count > sums->lane_depth_max)
            sums->lane_depth_max = count;
    }
    const struct note *head = count ? note_find(lane, lane->rows.first) : NULL;
    bool running = lane->phase == PHASE_RUNNING, waits = head && head->due_ms > sched->now.mono_ms;
    bool stopped = lane_awaits_durable(sched, lane) ||
                   (lane->extra && (lane->extra->paused || lane->rows.first > lane->extra->frontier));
    CHECK(running == (lane->phase != PHASE_IDLE && lane->run));
    CHECK((lane->phase == PHASE_IDLE) == (count == 0 && !running));
    CHECK((lane->phase == PHASE_HELD) == (!running && head && head->held));
    CHECK((lane->phase == PHASE_PAUSED) == (count > 0 && !running && stopped && !(head && head->held)));
    CHECK(lane->phase != PHASE_WAITING || head);
    CHECK(lane->phase != PHASE_READY || !waits);
    bool blocked = head && (head->attempts > 0 || head->held);
    CHECK(!blocked || head->failing.place > 0);
    if (blocked && lane->ordered)
        sums->rows_behind_blocked += count - 1;
    sums->running += running;
    sums->retrying_rows += lane->phase == PHASE_WAITING;
}

void sched_audit(struct sched *sched, struct sched_time now)
{
    sched->now = now;
    VEC(struct sched_sink_view) sums = {0};
    for (size_t i = 0; i < sched->sinks.len; i++)
        VEC_PUSH(&sums, ((struct sched_sink_view){0}));
    VEC_EACH (slot, &sched->slabs) {
        for (size_t i = 0; slot->slab && i < slot->slab->next_unused; i++)
            if (slot->slab->lanes[i].used)
                audit_lane(sched, &slot->slab->lanes[i], &sums.at[slot->slab->lanes[i].flow->sink->id]);
    }
    size_t running = 0, reserved = 0;
    for (size_t i = 0; i < sched->sinks.len; i++) {
        struct sched_sink *sink = sched->sinks.at[i];
        if (!sink)
            continue;
        struct sched_sink_view *sum = &sums.at[i], view;
        unsigned ringed = 0;
        VEC_EACH (flow, &sink->flows) {
            if (!*flow)
                continue;
            sum->pending += (*flow)->loose.count;
            ringed += (*flow)->where == FLOW_RINGED;
            bool work = (*flow)->loose.count || !list_empty(&(*flow)->fresh) || !list_empty(&(*flow)->tried);
            CHECK(work == ((*flow)->where != FLOW_ASLEEP));
        }
        CHECK(ringed == sink->ringed);
        unsigned free_slots = sink_free_slots(sched, sink);
        if (sink->policy.rate > 0 && free_slots > 0)
            free_slots =
                sink->timer.place == 0; /* tokens grow between two looks: a flow or the timer brings them */
        CHECK(ringed >= free_slots || !sink_waits(sink) || sink_is_short(sched, sink));
        sched_sink_look(sched, now, sink->id, &view);
        CHECK(view.pending == sum->pending && view.running == sum->running);
        CHECK(view.rows_behind_blocked == sum->rows_behind_blocked &&
              view.lane_depth_max == sum->lane_depth_max);
        CHECK(view.retrying_rows == sum->retrying_rows);
        CHECK(memcmp(view.lanes, sum->lanes, sizeof view.lanes) == 0);
        CHECK(view.oldest_ms == 0 || view.pending > 0); /* rows of a replay have no age */
        running += sum->running;
        if (!sink->retired && sink->running < sched->share)
            reserved += sched->share - sink->running;
    }
    CHECK(running == sched->running && reserved == sched->reserved);
    VEC_FREE(&sums);
}
