/* Who gets the next slot. Three wheels: tenants turn on sched->ring, a tenant's flows (one a sink) turn on
 * tenant->flows, a flow's lanes turn in three lists. On the wheels are only flows that can start now: a sink
 * lets as many of its flows on as it has free slots, the rest wait at the sink in the order of their turn. So
 * a pick never meets, and never has to look past, work that can't start; and a busy sink costs the others
 * nothing.
 *
 * Whoever hangs is only known to hang after a second. So each sink has a share of the slots that it can have
 * at any moment, and takes more only out of what no other sink's share needs: no set of sinks takes all. */
#include <string.h>

#include "lanes/sched_priv.h"
#include "util/check.h"

/* An attempt that runs long, or a last one that timed out: whoever hangs must not hold every slot of the
 * process. */
static bool is_slow(const struct sched *sched, const struct sched_sink *sink)
{
    if (sink->last_timed_out)
        return true;
    if (list_empty(&sink->runs))
        return false;
    const struct sched_run *oldest = LIST_OWNER(sink->runs.next, struct sched_run, node);
    return sched->now.mono_ms - oldest->started_ms > SLOW_AFTER_MS;
}

void slots_move(struct sched *sched, struct sched_sink *sink, int by)
{
    bool of_share = (by > 0 ? sink->running : sink->running - 1) < sched->share;
    sink->running += (unsigned)by;
    sched->running += (unsigned)by;
    if (of_share && !sink->retired)
        sched->reserved -= (unsigned)by;
}

static bool has_slot(const struct sched *sched, const struct sched_sink *sink)
{
    unsigned free_slots = sched->options.concurrency - sched->running;
    return sink->running < sched->share ? free_slots > 0 : free_slots > sched->reserved;
}

/* Tokens of the bucket now; a second's worth is the most. */
static void refill(struct sched *sched, struct sched_sink *sink)
{
    double rate = sink->policy.rate, most = rate > 1 ? rate : 1;
    sink->tokens += (double)(sched->now.mono_ms - sink->tokens_at_ms) * rate / 1000;
    if (sink->tokens > most)
        sink->tokens = most;
    sink->tokens_at_ms = sched->now.mono_ms;
}

/* When the bucket has a whole token, by the state of the last refill. */
int64_t sink_tokens_due(const struct sched_sink *sink)
{
    if (sink->tokens >= 1)
        return sink->tokens_at_ms;
    return sink->tokens_at_ms + (int64_t)((1 - sink->tokens) * 1000 / sink->policy.rate) + 1;
}

unsigned sink_slots(const struct sched *sched, const struct sched_sink *sink)
{
    unsigned limit = sink->crowded ? 1 : sink->policy.concurrency;
    if (sink->ramp > 0 && sink->ramp < limit)
        limit = sink->ramp;
    if (limit > SLOW_SLOTS && is_slow(sched, sink))
        limit = SLOW_SLOTS;
    return limit > sink->running ? limit - sink->running : 0;
}

unsigned sink_free_slots(struct sched *sched, struct sched_sink *sink)
{
    if (!sink_open_for_all(sink))
        return 0;
    unsigned slots = sink_slots(sched, sink);
    if (sink->policy.rate > 0 && slots > 0) {
        refill(sched, sink);
        if (sink->tokens < slots)
            slots = (unsigned)sink->tokens;
    }
    return slots;
}

static bool has_work(const struct flow *flow)
{
    return !list_empty(&flow->fresh) || !list_empty(&flow->tried) || flow->loose.count > 0;
}

static void put_on_wheel(struct sched *sched, struct flow *flow)
{
    struct tenant *tenant = flow->tenant;
    if (list_empty(&tenant->flows))
        list_append(&sched->ring, &tenant->node);
    list_append(&tenant->flows, &flow->node);
    flow->where = FLOW_RINGED;
    flow->sink->ringed++;
}

/* Its turn had come when nothing was left: it is before all. */
static void put_first(struct sched *sched, struct flow *flow)
{
    struct tenant *tenant = flow->tenant;
    list_remove(&flow->node);
    put_on_wheel(sched, flow);
    list_remove(&flow->node);
    list_insert_before(tenant->flows.next, &flow->node);
    list_remove(&tenant->node);
    list_insert_before(sched->ring.next, &tenant->node);
}

static void take_off(struct flow *flow)
{
    struct tenant *tenant = flow->tenant;
    list_remove(&flow->node);
    if (flow->where == FLOW_RINGED) {
        flow->sink->ringed--;
        if (list_empty(&tenant->flows))
            list_remove(&tenant->node);
    }
    flow->where = FLOW_ASLEEP;
}

/* Slots_offer comes to it, in turn. */
bool sink_is_short(const struct sched *sched, const struct sched_sink *sink)
{
    return !list_empty(&sink->short_node) && sink->running >= sched->share;
}

bool sink_waits(const struct sched_sink *sink)
{
    return !list_empty(&sink->waiting) || !list_empty(&sink->passed);
}

/* Lets flows on the wheels for the slots that are free: to be called whenever a sink may have got one. */
void sink_release(struct sched *sched, struct sched_sink *sink)
{
    if (!sink_waits(sink))
        return;
    if (sink_is_short(sched, sink))
        return;
    unsigned free_slots = sink_free_slots(sched, sink);
#if SCHED_MUTANT == MUTANT_SCAN
    free_slots = UINT32_MAX; /* all on the wheels: the pick looks past what can't start */
#endif
    struct list passed =
        LIST_INIT(passed); /* the last comes first, so that the first is before it in the end */
    for (unsigned n = sink->ringed; n < free_slots && !list_empty(&sink->passed); n++) {
        struct list *node = sink->passed.next;
        list_remove(node);
        list_insert_before(passed.next, node);
    }
    while (!list_empty(&passed))
        put_first(sched, LIST_OWNER(passed.next, struct flow, node));
    while (sink->ringed < free_slots && !list_empty(&sink->waiting)) {
        struct flow *flow = LIST_OWNER(sink->waiting.next, struct flow, node);
        list_remove(&flow->node);
        put_on_wheel(sched, flow);
    }
    if (sink_waits(sink))
        sink_arm(sched, sink); /* the rate may be what it waits for */
}

/* What is nobody's share goes to the sink that waits longest for it. */
bool slots_offer(struct sched *sched)
{
    while (!list_empty(&sched->short_of_slots) &&
           sched->options.concurrency - sched->running > sched->reserved) {
        struct list *first = list_pop(&sched->short_of_slots);
        struct sched_sink *sink = LIST_OWNER(first, struct sched_sink, short_node);
        unsigned ringed = sink->ringed;
        sink_release(sched, sink); /* or its timer, when it waits for a token now */
        if (sink->ringed > ringed)
            return true;
    }
    return false;
}

/* Half of the slots are shared out at most, so that few slots still serve whoever has work. */
void slots_share_out(struct sched *sched)
{
    unsigned all = sched->options.concurrency, sinks = 0;
    VEC_EACH (sink, &sched->sinks)
        sinks += *sink && !(*sink)->retired;
    sched->share = sinks ? all / 2 / sinks : 0;
    if (sched->share > SHARE_MOST)
        sched->share = SHARE_MOST;
    if (sched->share == 0 && sinks <= all)
        sched->share = 1;
    sched->reserved = 0;
    VEC_EACH (at, &sched->sinks) {
        const struct sched_sink *sink = *at;
        if (sink && !sink->retired && sink->running < sched->share)
            sched->reserved += sched->share - sink->running;
    }
    VEC_EACH (sink, &sched->sinks) {
        if (*sink)
            sink_release(sched, *sink);
    }
}

static void wait_at_sink(struct flow *flow)
{
    list_append(&flow->sink->waiting, &flow->node);
    flow->where = FLOW_PARKED;
}

/* The flow got work. */
void flow_wake(struct sched *sched, struct flow *flow)
{
    struct sched_sink *sink = flow->sink;
    if (list_empty(&flow->probe_node) && (!list_empty(&flow->fresh) || flow->loose.count > 0))
        list_append(&sink->probe_flows, &flow->probe_node);
    if (flow->where == FLOW_ASLEEP) {
        wait_at_sink(flow);
        sink_release(sched, sink);
    }
    breaker_want_probe(sched, sink);
}

/* The flow lost work. */
void flow_check(struct sched *sched, struct flow *flow)
{
    if (list_empty(&flow->fresh) && flow->loose.count == 0)
        list_remove(&flow->probe_node);
    if (flow->where == FLOW_ASLEEP || has_work(flow))
        return;
    take_off(flow);
    sink_release(sched, flow->sink);
}

static struct lane *first_of(struct list *lanes)
{
    return list_empty(lanes) ? NULL : LIST_OWNER(lanes->next, struct lane, node);
}

/* A lane of its own for the lowest unordered row that was never tried. */
static struct lane *loosen(struct sched *sched, struct flow *flow)
{
    uint64_t seq = flow->loose.first;
    int64_t received_ms = 0;
    uint8_t id[16];
    unordered_id(seq, id);
    rows_remove(&flow->loose, seq, &received_ms, &sched->bytes);
    struct lane *lane = lane_make(sched, flow, false, id);
    CHECK(lane_put(sched, lane, seq, received_ms)); /* it was counted when it came */
    flow_check(sched, flow);
    return lane;
}

/* The next lane of a flow, out of its lists: in turn one whose head is new, one that was tried, an unordered
 * row. */
static struct lane *next_lane(struct sched *sched, struct flow *flow)
{
    for (unsigned i = 0; i < 3; i++) {
        unsigned turn = (flow->turn + i) % 3;
        struct lane *lane = turn == 0 ? first_of(&flow->fresh) : turn == 1 ? first_of(&flow->tried) : NULL;
        if (!lane && !(turn == 2 && flow->loose.count > 0))
            continue;
        flow->turn = (uint8_t)((turn + 1) % 3);
        if (!lane)
            return loosen(sched, flow);
        lane_leave(sched, lane);
        return lane;
    }
    UNREACHABLE();
}

/* The next of a lane is its lowest unfinished row, whatever made it. */
static uint64_t next_seq(const struct lane *lane)
{
#if SCHED_MUTANT == MUTANT_TAIL
    const struct note *note = note_find(lane, lane->rows.first);
    if (note && note->attempts > 0 && lane->rows.count > 1)
        return rows_next(&lane->rows, lane->rows.first);
#endif
    return lane->rows.first;
}

static void start(struct sched *sched, struct lane *lane, bool probe, struct sched_start *out)
{
    struct sched_sink *sink = lane->flow->sink;
    struct sched_run *run = mem_alloc(sizeof *run);
    *run = (struct sched_run){.lane = lane,
                              .seq = next_seq(lane),
                              .started_ms = sched->now.mono_ms,
                              .started_unix_ms = sched->now.unix_ms,
                              .probe = probe};
    const struct note *note = note_find(lane, run->seq);
    *out = (struct sched_start){.run = run,
                                .seq = run->seq,
                                .received_ms = lane->rows.received_ms,
                                .number = (note ? note->attempts : 0) + 1,
                                .replay = note ? note->job : 0,
                                .late = (note && note->late) || lane->highest_sent > run->seq,
                                .previous_seq = lane->last_ok,
                                .skipped = lane->dead,
                                .probe = probe};
    place_of(lane, &out->place);
    list_append(&sink->runs, &run->node);
    slots_move(sched, sink, 1);
    if (sink->policy.rate > 0)
        sink->tokens -= 1;
    lane->run = run;
#if SCHED_MUTANT == MUTANT_COUNTER
    lane->busy++;
#endif
    lane_settle(sched, lane);
}

/* A sink whose breaker lets one probe through comes before all: it is one attempt a sink and opening. */
static bool next_probe(struct sched *sched, struct sched_start *out)
{
    while (!list_empty(&sched->probing)) {
        struct sched_sink *sink = LIST_OWNER(sched->probing.next, struct sched_sink, probe_node);
        list_remove(&sink->probe_node);
        if (sink_slots(sched, sink) == 0 || !has_slot(sched, sink))
            continue; /* an outcome will ask again */
        struct lane *lane = breaker_candidate(sched, sink);
        if (!lane)
            continue;
        start(sched, lane, true, out);
        sink->breaker.probe = out->run;
        sink->breaker.probed_flow = lane->flow;
        sink->breaker.probed_ordered = lane->ordered;
        memcpy(sink->breaker.probed_id, lane->id, sizeof lane->id);
        return true;
    }
    return false;
}

bool sched_next_start(struct sched *sched, struct sched_time now, struct sched_start *out)
{
    sched->now = now;
    if (sched->running >= sched->options.concurrency)
        return false;
    if (next_probe(sched, out))
        return true;
#if SCHED_MUTANT == MUTANT_SCAN
    for (unsigned looked = 0; looked < 2 && !list_empty(&sched->ring); looked++) {
#else
    while (!list_empty(&sched->ring) || slots_offer(sched)) {
#endif
        struct tenant *tenant = LIST_OWNER(sched->ring.next, struct tenant, node);
        struct flow *flow = LIST_OWNER(tenant->flows.next, struct flow, node);
        struct sched_sink *sink = flow->sink;
        bool can_start = sink_free_slots(sched, sink) > 0;
        take_off(flow);
#if SCHED_MUTANT == MUTANT_SCAN
        if (!can_start) {
            put_on_wheel(sched, flow);
            list_remove(&tenant->node);
            list_append(&sched->ring, &tenant->node);
            continue;
        }
#endif
        if (can_start && !has_slot(sched, sink) && list_empty(&sink->short_node))
            list_append(&sched->short_of_slots, &sink->short_node);
        can_start &= has_slot(sched, sink);
        if (!can_start) { /* it closed since: wait there, before the rest, and the tenant keeps its turn */
            list_append(&sink->passed, &flow->node);
            flow->where = FLOW_PARKED;
            sink_arm(sched, sink);
            continue;
        }
        if (!list_empty(&tenant->flows)) { /* the tenant had its turn */
            list_remove(&tenant->node);
            list_append(&sched->ring, &tenant->node);
        }
        struct lane *lane = next_lane(sched, flow);
        start(sched, lane, false, out);
        if (flow->where == FLOW_ASLEEP && has_work(flow))
            wait_at_sink(flow);
        sink_release(sched, sink);
        return true;
    }
    return false;
}

static bool probed_last(const struct sched_sink *sink, const struct lane *lane)
{
    const struct breaker *breaker = &sink->breaker;
    return lane->flow == breaker->probed_flow && lane->ordered == breaker->probed_ordered &&
           memcmp(lane->id, breaker->probed_id, sizeof lane->id) == 0;
}

struct lane *breaker_candidate(struct sched *sched, struct sched_sink *sink)
{
    struct lane *again = NULL;
    LIST_EACH (node, &sink->probe_flows) /* heads never tried have the fewest attempts of all */
    {
        struct flow *flow = LIST_OWNER(node, struct flow, probe_node);
        LIST_EACH (at, &flow->fresh) {
            struct lane *lane = LIST_OWNER(at, struct lane, node);
            if (probed_last(sink, lane)) {
                again = lane;
                continue; /* one lane at most: the next one is somebody else */
            }
            lane_leave(sched, lane);
            return lane;
        }
        if (flow->loose.count > 0)
            return loosen(sched, flow);
    }
    struct heap_item *item = heap_top(&sink->tried);
    if (item && probed_last(sink, HEAP_OWNER(item->node, struct note, tried)->lane)) {
        again = HEAP_OWNER(item->node, struct note, tried)->lane;
        item = heap_second(&sink->tried);
    }
    struct lane *lane = item ? HEAP_OWNER(item->node, struct note, tried)->lane : again;
    if (lane)
        lane_leave(sched, lane);
    return lane;
}
