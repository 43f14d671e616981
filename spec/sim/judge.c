/* The rules. Each refusal names the promise that was broken. */
#include "sim.h"

static const uint32_t LANE_PATIENCE = 6 * KEYS + 12, TENANT_PATIENCE = 4 * TENANTS * SINKS;

static uint32_t identity(const struct world *world, uint32_t row)
{
    uint32_t lane = world->rows.at[row].lane;
    return lane == NO_LANE ? LANES + row : lane;
}

/* ---- starts ---- */

/* Rule 9: from the first row that a job made in a lane until its last is done, nothing newer goes. */
static void judge_job(const struct world *world, const struct row *row)
{
    const struct job *job = &world->job;
    if (job->rows.len == 0 || job->next == 0 || row->lane != job->lane)
        return;
    for (size_t i = 0; i < job->rows.len; i++) {
        uint64_t seq = world->rows.at[job->rows.at[i]].seq;
        if (seq < row->seq && !job_row_is_done(world, i))
            sim_fail(world, "seq %lu started although seq %lu of a replay of its lane is not done", row->seq,
                     seq);
    }
}

static void judge_order(struct world *world, const struct row *row, uint32_t index,
                        const struct sched_start *start)
{
    struct lane_model *lane = &world->lanes[row->lane];
    if (lane->running >= 0)
        sim_fail(world, "two of one lane are in flight: seq %lu beside %lu", row->seq,
                 world->rows.at[lane->running].seq);
    if (lane->owed.len == 0 || lane->owed.at[0] != index)
        sim_fail(world, "seq %lu started while %lu of its lane is unfinished", row->seq,
                 lane->owed.len ? world->rows.at[lane->owed.at[0]].seq : 0);
    if (lane->paused)
        sim_fail(world, "seq %lu started in a paused lane", row->seq);
    if (lane->unsynced > world->synced)
        sim_fail(world, "seq %lu started before the end of its predecessor was synced", row->seq);
    if (row->seq > lane->frontier)
        sim_fail(world, "seq %lu started although its lane is rewound to %lu", row->seq, lane->frontier);
    judge_job(world, row);
    if (start->replay != row->job)
        sim_fail(world, "seq %lu goes out as of job %u, it is of %u", row->seq, start->replay, row->job);
    bool late = row->live.late || lane->sent > row->seq;
    if (start->late && !late)
        sim_fail(world, "seq %lu is called late, but nothing above it was sent", row->seq);
    if (late && !start->late && !world->forgets)
        sim_fail(world, "seq %lu is late (%lu was sent) and is not called so", row->seq, lane->sent);
    if (!start->late && !start->replay && !row->applied && world->fences[row->lane] > row->seq)
        sim_fail(world, "seq %lu is not called late, and its receiver has applied %lu", row->seq,
                 world->fences[row->lane]);
    if (start->previous_seq != lane->last_ok && !(world->forgets && start->previous_seq == 0))
        sim_fail(world, "seq %lu says previous %lu, the last ok was %lu", row->seq, start->previous_seq,
                 lane->last_ok);
    if (start->skipped != lane->dead)
        sim_fail(world, "seq %lu says %u skipped, %u are dead", row->seq, start->skipped, lane->dead);
}

/* Whom a probe could take: anyone that waits, but those a receiver told when. */
static bool is_candidate(const struct world *world, const struct row *row)
{
    return row->live.state == SCHED_ROW_PENDING && !row->running &&
           (row->due_ms <= world->mono_ms || !row->by_receiver);
}

static void judge_probe(struct world *world, uint32_t index)
{
    const struct row *row = &world->rows.at[index];
    struct sink_model *sink = &world->sinks[row->sink];
    if (sink->breaker != BREAKER_HALF_OPEN)
        sim_fail(world, "a probe of a sink whose breaker is not half open");
    VEC_EACH (run, &world->runs) {
        if (run->probe && world->rows.at[run->row].sink == row->sink)
            sim_fail(world, "two probes of a sink at once");
    }
    int64_t me = identity(world, index);
    bool another = false;
    uint32_t fewest = UINT32_MAX;
    for (uint32_t i = 0; i < LANES; i++) {
        const struct lane_model *lane = &world->lanes[i];
        if (i / KEYS % SINKS != row->sink || lane->running >= 0 || lane->paused || lane->owed.len == 0 ||
            lane->unsynced > world->synced)
            continue;
        const struct row *head = &world->rows.at[lane->owed.at[0]];
        if (head->seq > lane->frontier || !is_candidate(world, head) || i == me)
            continue;
        another = true;
        if (i != sink->last_probed && head->live.attempts < fewest)
            fewest = head->live.attempts;
    }
    VEC_EACH (at, &sink->loose) {
        const struct row *other = &world->rows.at[*at];
        if (!is_candidate(world, other) || LANES + *at == me)
            continue;
        another = true;
        if (LANES + *at != sink->last_probed && other->live.attempts < fewest)
            fewest = other->live.attempts;
    }
    if (another && sink->last_probed == me && fewest != UINT32_MAX)
        sim_fail(world, "seq %lu: its lane probes twice while another waits", row->seq);
    if (row->live.attempts > fewest)
        sim_fail(world, "the probe took seq %lu with %u attempts, another head has %u", row->seq,
                 row->live.attempts, fewest);
    sink->last_probed = me;
}

static unsigned slots_of(struct world *world, uint32_t id)
{
    const struct sink_model *sink = &world->sinks[id];
    unsigned limit = sink->policy.concurrency;
    bool slow = sink->last_timed_out;
    VEC_EACH (run, &world->runs)
        slow |= world->rows.at[run->row].sink == id && world->mono_ms - run->started_ms > 1000;
    if (sink->ramp > 0 && sink->ramp < limit)
        limit = sink->ramp;
    if (slow && limit > 8)
        limit = 8;
    return limit;
}

/* What is left for a sink out of all slots: its share at any moment, and what no other one's share needs. */
static bool slot_left(const struct world *world, uint32_t id)
{
    unsigned share = world->concurrency / 2 / SINKS, needed = 0;
    share = share > 8 ? 8 : share == 0 && SINKS <= world->concurrency ? 1 : share;
    for (uint32_t i = 0; i < SINKS; i++)
        needed += world->sinks[i].running < share ? share - world->sinks[i].running : 0;
    unsigned left = world->concurrency - (unsigned)world->runs.len;
    return world->sinks[id].running < share ? left > 0 : left > needed;
}

/* Everyone that could have started instead was overtaken once more. */
static void judge_fairness(struct world *world, const struct row *row)
{
    struct sink_model *sink = &world->sinks[row->sink];
    bool waits[TENANTS] = {false};
    for (uint32_t i = 0; i < LANES; i++) {
        struct lane_model *lane = &world->lanes[i];
        if (i / KEYS % SINKS != row->sink)
            continue;
        bool due = i != row->lane && lane_is_due(world, lane);
        waits[i / KEYS / SINKS] |= due;
        if (!due || i / KEYS / SINKS != row->tenant)
            lane->overtaken = due ? lane->overtaken : 0;
        else if ((lane->overtaken += row->lane != NO_LANE) >
                 LANE_PATIENCE) /* unordered rows have a wheel of theirs */
            sim_fail(world, "a lane starves: %u others of its tenant and sink went before it",
                     lane->overtaken);
    }
    for (uint32_t t = 0; t < TENANTS; t++) {
        if (t == row->tenant || !waits[t])
            sink->overtaken[t] = 0;
        else if (++sink->overtaken[t] > TENANT_PATIENCE)
            sim_fail(world, "a tenant starves at its sink");
    }
}

void judge_start(struct world *world, const struct sched_start *start)
{
    int64_t index = row_find(world, start->seq, start->place.sink);
    if (index < 0)
        sim_fail(world, "seq %lu was started at sink %u, which has no such row", start->seq,
                 start->place.sink);
    struct row *row = &world->rows.at[index];
    struct sink_model *sink = &world->sinks[row->sink];
    if (row->durable.state == SCHED_ROW_DONE && row->live.state == SCHED_ROW_DONE)
        sim_fail(world, "seq %lu started after its ok was synced", row->seq);
    if (row->live.state != SCHED_ROW_PENDING || row->running)
        sim_fail(world, "seq %lu started in state %d", row->seq, row->live.state);
    if (row->lane != NO_LANE)
        judge_order(world, row, (uint32_t)index, start);
    if (start->number != row->live.attempts + 1)
        sim_fail(world, "seq %lu: attempt %u after %u", row->seq, start->number, row->live.attempts);
    if (sink->paused)
        sim_fail(world, "seq %lu started at a paused sink", row->seq);
    if (sink->breaker != BREAKER_CLOSED && !start->probe)
        sim_fail(world, "seq %lu started through an open breaker", row->seq);
    if (sink->running >= slots_of(world, row->sink))
        sim_fail(world, "sink %u holds %u slots already", row->sink, sink->running);
    if (world->runs.len >= world->concurrency)
        sim_fail(world, "more attempts run than there are slots");
    if (!slot_left(world, row->sink))
        sim_fail(world, "sink %u takes a slot that is another one's share", row->sink);
    if (start->probe)
        judge_probe(world, (uint32_t)index);
    else
        judge_fairness(world, row);
    row->running = true;
    if (row->lane != NO_LANE) {
        world->lanes[row->lane].running = index;
        world->lanes[row->lane].overtaken = 0;
    }
    if (!row->tried_here) {
        row->tried_here = true;
        row->first_ms = row->live.first_attempt_ms ? INT64_MIN : world->mono_ms;
    }
    sink->running++;
    world->starts++;
    VEC_PUSH(&world->runs, ((struct run){start->run,
                                         (uint32_t)index,
                                         world->mono_ms,
                                         start->probe,
                                         {(uint32_t)index, row->lane, start->late, start->replay != 0}}));
}

/* ---- actions ---- */

static bool is_dead(enum sched_row_state state)
{
    return state == SCHED_ROW_DEAD || state == SCHED_ROW_HELD;
}

static bool is_owed(enum sched_row_state state)
{
    return state == SCHED_ROW_PENDING || state == SCHED_ROW_HELD;
}

static void judge_death(struct world *world, const struct row *row, const struct sched_action *action)
{
    const struct sched_policy *policy = &world->sinks[row->sink].policy;
    bool refused = world->verdict.cls == SCHED_REFUSED;
    uint32_t attempts = row->live.attempts + 1;
    bool spent = policy->retry.max_attempts && attempts >= policy->retry.max_attempts;
    bool timed =
        policy->retry.give_up_after_ms &&
        (row->first_ms == INT64_MIN || world->mono_ms - row->first_ms >= policy->retry.give_up_after_ms);
    if (!refused && !spent && !timed)
        sim_fail(world, "seq %lu was given up after %u attempts, too early", row->seq, attempts);
    enum on_dead on_dead = refused ? policy->on_refused : policy->on_exhausted;
    bool hold = row->lane != NO_LANE && on_dead == ON_DEAD_HOLD;
    if (hold != (action->state == SCHED_ROW_HELD))
        sim_fail(world, "seq %lu died %s, against on_dead", row->seq, hold ? "and left" : "and holds");
}

/* The direct result of an attempt must fit what the receiver said. */
static void judge_verdict(struct world *world, struct row *row, const struct sched_action *action)
{
    enum sched_row_state to = action->state;
    if (world->gives_up) {
        if (to != SCHED_ROW_DEAD || action->attempts != row->live.attempts)
            sim_fail(world, "seq %lu can't be read and became %d", row->seq, to);
        return;
    }
    uint32_t attempts = row->live.attempts + (world->verdict.cls != SCHED_CONFIG);
    if (action->attempts != attempts)
        sim_fail(world, "seq %lu: %u attempts on the books, %u were made", row->seq, action->attempts,
                 attempts);
    switch ((int)world->verdict.cls) {
    case SCHED_OK:
        if (to != SCHED_ROW_DONE)
            sim_fail(world, "seq %lu was delivered and is not done", row->seq);
        return;
    case SCHED_CONFIG:
        if (to != SCHED_ROW_PENDING)
            sim_fail(world, "seq %lu suffers for this side's configuration", row->seq);
        return;
    case SCHED_REFUSED:
        if (!is_dead(to))
            sim_fail(world, "seq %lu was refused and lives", row->seq);
        judge_death(world, row, action);
        return;
    default:
        if (is_dead(to)) {
            judge_death(world, row, action);
            return;
        }
        if (to != SCHED_ROW_PENDING)
            sim_fail(world, "seq %lu failed and became %d", row->seq, to);
        uint32_t most = world->sinks[row->sink].policy.retry.max_attempts;
        if (most && action->attempts >= most)
            sim_fail(world, "seq %lu lives after %u attempts", row->seq, action->attempts);
        row->due_ms = action->due_ms - world->offset_ms;
        row->by_receiver = world->verdict.cls == SCHED_RETRY_AFTER;
        if (row->by_receiver && row->due_ms - world->mono_ms < world->verdict.retry_after_ms &&
            row->due_ms - world->mono_ms < 3600 * 1000)
            sim_fail(world, "seq %lu is tried again earlier than its receiver asked", row->seq);
    }
}

/* Late for good: something above it was sent, or that can't be known. */
static void judge_late(struct world *world, const struct row *row)
{
    const struct lane_model *lane = &world->lanes[row->lane];
    bool unknown = row->seq <= world->found || row->rekeyed;
    bool beside = lane->running >= 0 && world->rows.at[lane->running].seq > row->seq;
    if (!unknown && !beside && lane->sent <= row->seq)
        sim_fail(world, "seq %lu is called late for good, but nothing above it was sent", row->seq);
}

static void row_changed(struct world *world, const struct sched_action *action)
{
    int64_t index = row_find(world, action->seq, action->place.sink);
    if (index < 0)
        sim_fail(world, "a change of a row that is none: seq %lu", action->seq);
    struct row *row = &world->rows.at[index];
    enum sched_row_state from = row->live.state, to = action->state;
    if (action->by_outcome) {
        if (index != world->judged)
            sim_fail(world, "the outcome of another row changed seq %lu", row->seq);
        judge_verdict(world, row, action);
        world->judged = -1;
    } else if (from != to && !world->by_operator) {
        sim_fail(world, "seq %lu went from %d to %d by itself", row->seq, from, to);
    }
    if (row->lane != NO_LANE)
        world->lanes[row->lane].dead += (unsigned)is_dead(to) - (unsigned)is_dead(from);
    if (is_owed(from) && !is_owed(to))
        model_remove(world, (uint32_t)index);
    if (!is_owed(from) && is_owed(to))
        model_add(world, (uint32_t)index);
    world->said++;
    bool leaves = to == SCHED_ROW_DEAD || to == SCHED_ROW_DISCARDED;
    if (row->lane != NO_LANE && is_owed(from) && leaves)
        world->lanes[row->lane].unsynced = world->said;
    if (row->lane != NO_LANE && action->late && !row->live.late)
        judge_late(world, row);
    keep(&row->live, action);
    if (!action->by_outcome && from != to) {
        row->due_ms = INT64_MIN;
        row->by_receiver = row->tried_here = false;
    }
    VEC_PUSH(&world->unsynced, ((struct unsynced){.action = *action}));
}

static void breaker_changed(struct world *world, const struct sched_action *action)
{
    struct sink_model *sink = &world->sinks[action->place.sink];
    if (action->breaker == BREAKER_OPEN && sink->breaker == BREAKER_CLOSED && !world->forgets) {
        size_t failed = sink->failed.len + sink->failed_alone;
        if (action->record.cause == BREAKER_BY_FAILURES && failed < sink->policy.breaker.failures)
            sim_fail(world, "%zu lanes failed, and %u times a head alone: too few to open the breaker",
                     sink->failed.len, sink->failed_alone);
        if (action->record.cause == BREAKER_BY_REFUSALS && sink->refused.len < 20)
            sim_fail(world, "%zu refusals are no storm", sink->refused.len);
    }
    sink->ramp = action->breaker == BREAKER_CLOSED;
    if (action->breaker == BREAKER_CLOSED) {
        sink->failed.len = sink->failed_alone = 0;
        sink->refused.len = 0;
        sink->last_probed = -1;
    }
    sink->breaker = action->breaker;
    sink->record = action->record;
    VEC_PUSH(&world->unsynced, ((struct unsynced){.action = *action}));
}

void judge_actions(struct world *world)
{
    size_t count;
    const struct sched_action *actions = sched_actions(world->sched, &count);
    for (size_t i = 0; i < count; i++) {
        if (actions[i].kind == ACTION_ROW)
            row_changed(world, &actions[i]);
        else if (actions[i].kind == ACTION_BREAKER)
            breaker_changed(world, &actions[i]);
        else if (actions[i].kind == ACTION_SINK_PAUSE || actions[i].kind == ACTION_LANE_PAUSE)
            VEC_PUSH(&world->unsynced, ((struct unsynced){.action = actions[i]}));
    }
    sched_actions_done(world->sched);
}

/* ---- at rest ---- */

void judge_idle(struct world *world)
{
    if (world->runs.len >= world->concurrency)
        return;
    for (uint32_t id = 0; id < SINKS; id++) {
        struct sink_model *sink = &world->sinks[id];
        if (sink->paused || sink->breaker != BREAKER_CLOSED || sink->policy.rate > 0 ||
            sink->running >= slots_of(world, id) || !slot_left(world, id))
            continue;
        for (uint32_t i = 0; i < LANES; i++)
            if (i / KEYS % SINKS == id && lane_is_due(world, &world->lanes[i]))
                sim_fail(world, "slots are free, and seq %lu, due and first of its lane, does not start",
                         world->rows.at[world->lanes[i].owed.at[0]].seq);
        VEC_EACH (at, &sink->loose) {
            if (row_is_due(world, &world->rows.at[*at]))
                sim_fail(world, "slots are free, and unordered seq %lu does not start",
                         world->rows.at[*at].seq);
        }
    }
}

void judge_sums(struct world *world)
{
    size_t running = 0;
    for (uint32_t id = 0; id < SINKS; id++) {
        const struct sink_model *sink = &world->sinks[id];
        struct sched_sink_view view;
        sched_sink_look(world->sched, world_now(world), id, &view);
        uint64_t pending = 0, dead = 0;
        VEC_EACH (row, &world->rows) {
            pending += row->sink == id && row->live.state == SCHED_ROW_PENDING;
            dead += row->sink == id && is_dead(row->live.state);
        }
        if (view.running != sink->running)
            sim_fail(world, "sink %u: busy says %lu, %u run", id, view.running, sink->running);
        if (view.pending != pending || view.dead != dead)
            sim_fail(world, "sink %u: %lu pending and %lu dead on the books, it is %lu and %lu", id,
                     view.pending, view.dead, pending, dead);
        running += sink->running;
    }
    if (running != world->runs.len || sched_running(world->sched) != running)
        sim_fail(world, "slots leak: %zu taken, %zu run", sched_running(world->sched), running);
    sched_audit(world->sched, world_now(world));
}
