/* The calls that the world makes: rows come, time passes; that attempts end is in outcome.c. What a lane does
 * of it is in lane.c, who gets a slot in flow.c, when a sink stops in breaker.c, what operators do in acts.c.
 */
#include "lanes/sched.h"

#include <stdlib.h>
#include <string.h>

#include "lanes/sched_priv.h"
#include "util/check.h"
#include "util/mem.h"

/* ---- life ---- */

struct sched *sched_new(const struct sched_options *options)
{
    struct sched *sched = mem_zalloc(sizeof *sched);
    sched->options = *options;
    sched->random = options->seed ? options->seed : 0x9e3779b97f4a7c15ULL;
    list_init(&sched->ring);
    list_init(&sched->probing);
    list_init(&sched->idle);
    list_init(&sched->unsynced);
    list_init(&sched->short_of_slots);
    return sched;
}

static void lane_destroy(struct lane *lane, size_t *bytes)
{
    rows_free(&lane->rows, bytes);
    if (lane->notes)
        lane->notes->prev->next = NULL;
    for (struct note *note = lane->notes, *next; note; note = next) {
        next = note->next;
        free(note);
    }
    free(lane->extra);
}

static void sink_destroy(struct sched_sink *sink, size_t *bytes)
{
    LIST_EACH_SAFE (node, &sink->runs)
        free(LIST_OWNER(node, struct sched_run, node));
    VEC_EACH (flow, &sink->flows) {
        if (*flow)
            rows_free(&(*flow)->loose, bytes);
        free(*flow);
    }
    VEC_FREE(&sink->flows);
    VEC_FREE(&sink->depths);
    heap_free(&sink->due);
    heap_free(&sink->tried);
    heap_free(&sink->failing);
    heap_free(&sink->alarmed);
    ages_free(&sink->ages);
    free(sink);
}

void sched_set_bounds(struct sched *sched, const struct sched_options *options)
{
    uint64_t seed = sched->options.seed;
    sched->options = *options;
    sched->options.seed = seed;
    slots_share_out(sched);
}

void sched_free(struct sched *sched)
{
    if (!sched)
        return;
    VEC_EACH (slot, &sched->slabs) {
        for (size_t i = 0; slot->slab && i < slot->slab->next_unused; i++)
            if (slot->slab->lanes[i].used)
                lane_destroy(&slot->slab->lanes[i], &sched->bytes);
    }
    table_free(sched);
    VEC_EACH (sink, &sched->sinks) {
        if (*sink)
            sink_destroy(*sink, &sched->bytes);
    }
    VEC_FREE(&sched->sinks);
    VEC_EACH (tenant, &sched->tenants)
        free(*tenant);
    VEC_FREE(&sched->tenants);
    heap_free(&sched->timers);
    VEC_FREE(&sched->actions);
    free(sched);
}

/* ---- names to things ---- */

bool sched_sink_known(const struct sched *sched, uint32_t id)
{
    return id < sched->sinks.len && sched->sinks.at[id];
}

struct sched_sink *sink_of(struct sched *sched, uint32_t id)
{
    CHECK(sched_sink_known(sched, id));
    return sched->sinks.at[id];
}

static struct tenant *tenant_of(struct sched *sched, uint32_t id)
{
    while (sched->tenants.len <= id)
        VEC_PUSH(&sched->tenants, NULL);
    struct tenant **slot = &sched->tenants.at[id];
    if (!*slot) {
        *slot = mem_zalloc(sizeof **slot);
        (*slot)->id = id;
        list_init(&(*slot)->node);
        list_init(&(*slot)->flows);
    }
    return *slot;
}

static struct flow *flow_find(struct sched *sched, uint32_t sink_id, uint32_t tenant_id)
{
    struct sched_sink *sink = sink_of(sched, sink_id);
    return tenant_id < sink->flows.len ? sink->flows.at[tenant_id] : NULL;
}

struct flow *flow_of(struct sched *sched, uint32_t sink_id, uint32_t tenant_id)
{
    struct sched_sink *sink = sink_of(sched, sink_id);
    while (sink->flows.len <= tenant_id)
        VEC_PUSH(&sink->flows, NULL);
    struct flow **slot = &sink->flows.at[tenant_id];
    if (!*slot) {
        *slot = mem_zalloc(sizeof **slot);
        (*slot)->sink = sink;
        (*slot)->tenant = tenant_of(sched, tenant_id);
        list_init(&(*slot)->node);
        list_init(&(*slot)->probe_node);
        list_init(&(*slot)->fresh);
        list_init(&(*slot)->tried);
    }
    return *slot;
}

void unordered_id(uint64_t seq, uint8_t id[16])
{
    memset(id, 0, 16);
    memcpy(id, &seq, sizeof seq);
}

/* The lane of a place, or of one unordered row; NULL when there is none. */
struct lane *lane_of(struct sched *sched, const struct sched_place *place, uint64_t seq)
{
    uint8_t id[16];
    if (!place->ordered)
        unordered_id(seq, id);
    struct flow *flow = flow_find(sched, place->sink, place->tenant);
    return flow ? table_find(sched, flow, place->ordered, place->ordered ? place->lane : id) : NULL;
}

void place_of(const struct lane *lane, struct sched_place *out)
{
    *out = (struct sched_place){
        .sink = lane->flow->sink->id, .tenant = lane->flow->tenant->id, .ordered = lane->ordered};
    memcpy(out->lane, lane->id, sizeof out->lane);
}

/* ---- sinks ---- */

void sched_sink_set(struct sched *sched, struct sched_time now, uint32_t id,
                    const struct sched_policy *policy)
{
    sched->now = now;
    CHECK(policy->concurrency > 0 && policy->breaker.failures > 0);
    while (sched->sinks.len <= id)
        VEC_PUSH(&sched->sinks, NULL);
    struct sched_sink *sink = sched->sinks.at[id];
    if (!sink) {
        sink = sched->sinks.at[id] = mem_zalloc(sizeof *sink);
        sink->id = id;
        list_init(&sink->waiting);
        list_init(&sink->passed);
        list_init(&sink->probe_flows);
        list_init(&sink->runs);
        list_init(&sink->probe_node);
        list_init(&sink->short_node);
        sink->breaker.streak = 1;
        sink->stopped_since_ms = INT64_MAX;
        sink->tokens = policy->rate > 1 ? policy->rate : 1;
        sink->tokens_at_ms = now.mono_ms;
    }
    sink->policy = *policy;
    sink->retired = NULL;
    slots_share_out(sched);
    sink_release(sched, sink);
    sink_arm(sched, sink);
}

void sched_sink_crowd(struct sched *sched, struct sched_time now, uint32_t id, bool crowded)
{
    sched->now = now;
    struct sched_sink *sink = sink_of(sched, id);
    sink->crowded = crowded;
    sink_release(sched, sink);
    breaker_want_probe(sched, sink);
}

/* When something of this sink happens by itself next. */
void sink_arm(struct sched *sched, struct sched_sink *sink)
{
    int64_t at = INT64_MAX;
    struct heap_item *due = heap_top(&sink->due), *failing = heap_top(&sink->failing);
    if (due)
        at = due->key;
    if (failing && failing->key + BLOCKED_NOTICE_MS < at)
        at = failing->key + BLOCKED_NOTICE_MS;
    if (sink->breaker.state == BREAKER_OPEN && sink->breaker.probe_at_ms < at)
        at = sink->breaker.probe_at_ms;
    if (sink->paused && sink->pause_until_ms < at)
        at = sink->pause_until_ms;
    bool for_tokens =
        sink->policy.rate > 0 && sink->tokens < 1 && sink_waits(sink) && !sink_is_short(sched, sink);
    if (for_tokens && sink_open_for_all(sink) && sink_slots(sched, sink) > 0 && sink_tokens_due(sink) < at)
        at = sink_tokens_due(sink);
    bool armed = sink->timer.place != 0;
    if (armed && sched->timers.items.at[sink->timer.place - 1].key == at)
        return;
    heap_remove(&sched->timers, &sink->timer);
    if (at != INT64_MAX)
        heap_push(&sched->timers, &sink->timer, at);
}

void row_counts(struct sched_sink *sink, uint64_t seq, int64_t received_ms, uint32_t job)
{
    sink->pending++;
    if (!job)
        ages_add(&sink->ages, seq, received_ms);
}

void row_leaves(struct sched_sink *sink, uint64_t seq, uint32_t job)
{
    sink->pending--;
    if (!job)
        ages_remove(&sink->ages, seq);
}

/* ---- rows come ---- */

/* NULL: the row is of no lane. */
static struct lane *commit(struct sched *sched, const struct sched_place *place, uint64_t seq,
                           int64_t received_ms, uint32_t job)
{
    struct flow *flow = flow_of(sched, place->sink, place->tenant);
    if (!place->ordered && !job) {
        if (!rows_add(&flow->loose, seq, received_ms, &sched->bytes))
            return NULL;
        row_counts(flow->sink, seq, received_ms, 0);
        flow_wake(sched, flow);
        return NULL;
    }
    uint8_t loose[16];
    unordered_id(seq, loose);
    const uint8_t *id = place->ordered ? place->lane : loose;
    struct lane *lane = table_find(sched, flow, place->ordered, id);
    if (!lane)
        lane = lane_make(sched, flow, place->ordered, id);
    if (lane->rows.count > 0 && seq > lane->rows.first)
        lane_touch(lane);
    else
        lane_leave(sched, lane);
    if (lane_put(sched, lane, seq, received_ms))
        row_counts(flow->sink, seq, received_ms, job);
    if (job)
        note_get(sched, lane, seq)->job = job;
    lane_settle(sched, lane);
    return lane;
}

void sched_commit(struct sched *sched, struct sched_time now, const struct sched_place *place, uint64_t seq,
                  int64_t received_ms, uint32_t job)
{
    sched->now = now;
    commit(sched, place, seq, received_ms, job);
}

static void note_restore(struct sched *sched, struct lane *lane, const struct sched_owed *row)
{
    struct note *note = note_get(sched, lane, row->seq);
    int64_t age_ms = row->first_attempt_ms ? sched->now.unix_ms - row->first_attempt_ms : 0;
    note->attempts = row->attempts;
    note->job = row->job;
    note->first_unix_ms = row->first_attempt_ms;
    note->first_ms = sched->now.mono_ms - (age_ms > 0 ? age_ms : 0);
    note->waived_ms = row->waived_ms;
    note->stopped_base_ms = sink_stopped(sched, lane->flow->sink);
    note->late = row->late;
    note->held = row->state == OWED_HELD;
    note->dead = row->state == OWED_DEAD;
    note->dead_at_ms = row->dead_at_ms;
}

/* What is sent of an earlier life is not known. */
static void lane_found(struct lane *lane, uint64_t seq)
{
    if (seq > lane->highest_found)
        lane->highest_found = seq;
}

void sched_restore_soon(struct sched *sched, const struct sched_place *place, bool sooner)
{
    struct flow *flow = place->ordered ? flow_find(sched, place->sink, place->tenant) : NULL;
    if (flow)
        table_prefetch(sched, flow, place->lane, sooner);
}

void sched_restore(struct sched *sched, struct sched_time now, const struct sched_place *place,
                   const struct sched_owed *row)
{
    sched->now = now;
    bool noted = row->state == OWED_HELD || row->attempts > 0 || row->late || row->job;
    if (row->state == OWED_PENDING && !noted) {
        struct lane *lane = commit(sched, place, row->seq, row->received_ms, 0);
        if (lane)
            lane_found(lane, row->seq);
        return;
    }
    struct flow *flow = flow_of(sched, place->sink, place->tenant);
    if (row->state != OWED_PENDING)
        flow->sink->dead++;
    if (row->state == OWED_DEAD && !place->ordered)
        return;
    struct lane *lane = lane_of(sched, place, row->seq);
    uint8_t id[16];
    unordered_id(row->seq, id);
    if (!lane)
        lane = lane_make(sched, flow, place->ordered, place->ordered ? place->lane : id);
    lane_leave(sched, lane);
    lane_found(lane, row->seq);
    if (row->state != OWED_PENDING)
        lane->dead++;
    if (row->state != OWED_DEAD)
        CHECK(lane_put(sched, lane, row->seq, row->received_ms));
    if (row->state == OWED_PENDING)
        row_counts(flow->sink, row->seq, row->received_ms, row->job);
    if (row->state != OWED_DEAD || !row->late)
        note_restore(sched, lane, row);
    lane_settle(sched, lane);
}

/* ---- what is to be said ---- */

struct sched_action *say_row(struct sched *sched, const struct lane *lane, uint64_t seq,
                             const struct note *note, enum sched_row_state state, const char *cls)
{
    struct sched_action *action = VEC_ADD(&sched->actions);
    *action = (struct sched_action){
        .kind = ACTION_ROW, .seq = seq, .state = state, .at_ms = sched->now.unix_ms, .cls = cls};
    place_of(lane, &action->place);
    sched->said++;
    if (!note)
        return action;
    action->late = note->late;
    action->job = note->job;
    action->attempts = note->attempts;
    if (note->first_unix_ms) {
        action->first_attempt_ms = note->first_unix_ms;
        action->waived_ms = note_waived_ms(sched, lane->flow->sink, note);
    }
    if (state == SCHED_ROW_PENDING)
        action->due_ms =
            sched->now.unix_ms + (note->due_ms > sched->now.mono_ms ? note->due_ms - sched->now.mono_ms : 0);
    else if (!cls && note->dead_at_ms)
        action->at_ms = note->dead_at_ms;
    return action;
}

const struct sched_action *sched_actions(const struct sched *sched, size_t *count)
{
    *count = sched->actions.len;
    return sched->actions.at;
}

void sched_durable(struct sched *sched, struct sched_time now, uint64_t rows_said)
{
    sched->now = now;
    sched->durable = rows_said;
    while (!list_empty(&sched->unsynced)) {
        struct lane_extra *extra = LIST_OWNER(sched->unsynced.next, struct lane_extra, node);
        if (extra->unsynced > rows_said)
            return;
        list_remove(&extra->node);
        lane_leave(sched, extra->lane);
        lane_settle(sched, extra->lane);
    }
}

bool sched_awaits_durable(const struct sched *sched, uint64_t *rows_said)
{
    *rows_said = sched->said;
    return !list_empty(&sched->unsynced);
}

void sched_actions_done(struct sched *sched)
{
    sched->actions.len = 0;
}

/* ---- time passes ---- */

static void heads_come_due(struct sched *sched, struct sched_sink *sink)
{
    for (struct heap_item *top; (top = heap_top(&sink->due)) && top->key <= sched->now.mono_ms;) {
        struct lane *lane = HEAP_OWNER(top->node, struct note, due)->lane;
        lane_leave(sched, lane);
        lane_settle(sched, lane);
    }
}

static void notice_blocked(struct sched *sched, struct sched_sink *sink)
{
    for (struct heap_item *top;
         (top = heap_top(&sink->failing)) && top->key + BLOCKED_NOTICE_MS <= sched->now.mono_ms;) {
        struct note *note = HEAP_OWNER(top->node, struct note, failing);
        int64_t since_ms = top->key;
        heap_remove(&sink->failing, &note->failing);
        note->alarmed = true;
        heap_push(&sink->alarmed, &note->failing, since_ms);
        if (!note->lane->ordered)
            continue;
        struct sched_action *action = VEC_ADD(&sched->actions);
        *action = (struct sched_action){.kind = ACTION_LANE_BLOCKED,
                                        .seq = note->seq,
                                        .since_ms = note->first_unix_ms,
                                        .attempts = note->attempts,
                                        .behind = note->lane->rows.count - 1};
        place_of(note->lane, &action->place);
    }
}

void sched_tick(struct sched *sched, struct sched_time now)
{
    sched->now = now;
    for (struct heap_item *top; (top = heap_top(&sched->timers)) && top->key <= now.mono_ms;) {
        struct sched_sink *sink = HEAP_OWNER(top->node, struct sched_sink, timer);
        if (sink->paused && sink->pause_until_ms <= now.mono_ms)
            sched_sink_resume(sched, now, sink->id);
        breaker_tick(sched, sink);
        heads_come_due(sched, sink);
        notice_blocked(sched, sink);
        sink_release(sched, sink);
        sink_arm(sched, sink);
    }
    lanes_forget_idle(sched);
}

int64_t sched_next_due(struct sched *sched)
{
    struct heap_item *top = heap_top(&sched->timers);
    int64_t at = top ? top->key : INT64_MAX;
    if (!list_empty(&sched->idle)) {
        const struct lane *longest = LIST_OWNER(sched->idle.next, struct lane, node);
        if (longest->idle_ms + sched->options.lane_idle_ms < at)
            at = longest->idle_ms + sched->options.lane_idle_ms;
    }
    return at;
}
