/* What may happen, one step at a time. A step is one roll: all its choices come out of it, so that a script
 * can be shortened step by step and the rest still does what it did. */
#include <stdio.h>

#include "sim.h"

static void tell(const struct world *world, const char *what, uint64_t a, uint64_t b)
{
    if (world->verbose)
        printf("  %10ld ms  %-16s %lu %lu\n", world->mono_ms, what, a, b);
}

/* ---- the world's side ---- */

static void commit(struct world *world, struct dice *dice)
{
    for (uint32_t n = 1 + dice_below(dice, 4); n > 0; n--) {
        uint32_t tenant = dice_below(dice, TENANTS), source = dice_below(dice, SOURCES);
        uint32_t key = dice_chance(dice, 30) ? 0 : dice_below(dice, KEYS);
        uint64_t seq = world->next_seq;
        world->next_seq += 1 + (dice_chance(dice, 10) ? dice_below(dice, 100) : 0);
        int64_t received_ms = world_now(world).unix_ms - dice_below(dice, 20);
        for (uint32_t sink = source * 2; sink < source * 2 + 2; sink++) {
            bool unordered = sink == 3 || dice_chance(dice, 5);
            VEC_PUSH(&world->rows,
                     ((struct row){.seq = seq,
                                   .received_ms = received_ms,
                                   .tenant = tenant,
                                   .sink = sink,
                                   .lane = unordered ? NO_LANE : lane_index(tenant, sink, key),
                                   .durable_lane = unordered ? NO_LANE : lane_index(tenant, sink, key),
                                   .due_ms = INT64_MIN,
                                   .poison = dice_chance(dice, 2)}));
            uint32_t index = (uint32_t)world->rows.len - 1;
            model_add(world, index);
            struct sched_place place;
            place_of_row(&world->rows.at[index], &place);
            sched_commit(world->sched, world_now(world), &place, seq, received_ms, 0);
        }
        world->hooks++;
        tell(world, "commit", seq, lane_index(tenant, source * 2, key));
    }
}

static void outcome_roll(const struct world *world, uint32_t index, struct dice *dice,
                         struct sched_outcome *out)
{
    const struct row *row = &world->rows.at[index];
    enum mood mood = row->poison ? MOOD_ERRORS : world->sinks[row->sink].mood;
    *out = (struct sched_outcome){.cls = SCHED_OK};
    switch (mood) {
    case MOOD_FLAKY:
        if (dice_chance(dice, 30))
            *out = (struct sched_outcome){.cls = SCHED_TRANSIENT, .unreachable = dice_chance(dice, 50)};
        break;
    case MOOD_DOWN:
        *out = (struct sched_outcome){
            .cls = SCHED_TRANSIENT, .unreachable = true, .timed_out = dice_chance(dice, 50)};
        break;
    case MOOD_ERRORS:
        out->cls = SCHED_TRANSIENT;
        break;
    case MOOD_REFUSES:
        if (dice_chance(dice, 80))
            out->cls = SCHED_REFUSED;
        break;
    case MOOD_BUSY:
        out->cls = dice_chance(dice, 70) ? SCHED_RETRY_AFTER : SCHED_TRANSIENT;
        out->too_many = true;
        out->retry_after_ms = dice_below(dice, 3) == 0 ? 7200 * 1000 : dice_below(dice, 5000);
        break;
    case MOOD_BROKEN:
        out->cls = SCHED_CONFIG;
        break;
    default:
        break;
    }
}

static void failed(struct world *world, uint32_t index)
{
    struct sink_model *sink = &world->sinks[world->rows.at[index].sink];
    uint32_t lane = world->rows.at[index].lane, me = lane == NO_LANE ? LANES + index : lane;
    VEC_EACH (at, &sink->failed) {
        if (*at != me)
            continue;
        sink->failed_alone +=
            world->verdict.unreachable && !others_due(world, world->rows.at[index].sink, index);
        return;
    }
    VEC_PUSH(&sink->failed, me);
}

static void refused(struct sink_model *sink, uint64_t seq)
{
    VEC_EACH (at, &sink->refused) {
        if (*at == seq)
            return;
    }
    VEC_PUSH(&sink->refused, seq);
}

/* A receiver may have applied it. */
static void was_sent(struct world *world, const struct row *row)
{
    if (row->lane != NO_LANE && row->seq > world->lanes[row->lane].sent)
        world->lanes[row->lane].sent = row->seq;
}

static void run_over(struct world *world, size_t i)
{
    struct row *row = &world->rows.at[world->runs.at[i].row];
    row->running = false;
    world->sinks[row->sink].running--;
    if (row->lane != NO_LANE)
        world->lanes[row->lane].running = -1;
    world->runs.at[i] = world->runs.at[--world->runs.len];
}

void step_outcome(struct world *world, size_t i, const struct sched_outcome *outcome)
{
    struct run run = world->runs.at[i];
    struct row *row = &world->rows.at[run.row];
    struct sink_model *sink = &world->sinks[row->sink];
    tell(world, "outcome", row->seq, outcome->cls);
    world->by_operator = false;
    world->judged = run.row;
    world->verdict = *outcome;
    bool counts = outcome->cls == SCHED_TRANSIENT && !outcome->too_many;
    bool probe_of_config = run.probe && sink->record.cause == BREAKER_BY_CONFIG;
    if (counts && sink->breaker == BREAKER_CLOSED)
        failed(world, run.row);
    if (outcome->cls == SCHED_REFUSED)
        refused(sink, row->seq);
    if (outcome->cls == SCHED_OK) {
        receive(world, &run.letter);
        sink->failed.len = sink->failed_alone = 0;
        sink->refused.len = 0;
        if (sink->breaker == BREAKER_CLOSED && sink->ramp > 0 && ++sink->ramp >= sink->policy.concurrency)
            sink->ramp = 0;
        if (row->lane != NO_LANE) {
            struct lane_model *lane = &world->lanes[row->lane];
            lane->last_ok = row->seq;
        }
    }
    sink->last_timed_out = outcome->timed_out;
    run_over(world, i);
    if (outcome->cls != SCHED_REFUSED && outcome->cls != SCHED_CONFIG && !outcome->unsent)
        was_sent(world, row);
    sink->running++; /* others_due below counts this one as running, as before */
    sched_outcome(world->sched, world_now(world), run.run, outcome);
    sink->running--;
    judge_actions(world);
    if (counts && probe_of_config && sink->breaker == BREAKER_CLOSED)
        failed(world, run.row);
    if (world->judged >= 0)
        sim_fail(world, "nothing came of the outcome of seq %lu", row->seq);
}

static void outcome(struct world *world, struct dice *dice)
{
    if (world->runs.len == 0)
        return;
    size_t i = dice_below(dice, (uint32_t)world->runs.len);
    uint32_t what = dice_below(dice, 100);
    struct row *row = &world->rows.at[world->runs.at[i].row];
    if (what < 2) { /* it never left the house, or was cut off on its way */
        struct sched_run *run = world->runs.at[i].run;
        int64_t delay_ms = dice_below(dice, 2) * 200;
        bool sent = dice_chance(dice, 50);
        tell(world, sent ? "cut off" : "put back", row->seq, 0);
        if (sent) {
            letter_lost(world, &world->runs.at[i].letter, dice);
            was_sent(world, row);
        }
        run_over(world, i);
        if (delay_ms)
            row->due_ms = world->mono_ms + delay_ms;
        sched_put_back(world->sched, world_now(world), run, sent, delay_ms);
        judge_actions(world);
        return;
    }
    if (what < 3) { /* its hook can't be read any more */
        struct run run = world->runs.at[i];
        tell(world, "give up", row->seq, 0);
        world->judged = run.row;
        world->gives_up = true;
        run_over(world, i);
        sched_give_up(world->sched, world_now(world), run.run, "unreadable");
        judge_actions(world);
        world->gives_up = false;
        return;
    }
    struct sched_outcome result;
    outcome_roll(world, world->runs.at[i].row, dice, &result);
    if (result.cls == SCHED_TRANSIENT && (result.timed_out || dice_chance(dice, 20)))
        letter_lost(world, &world->runs.at[i].letter, dice);
    else
        result.unsent = result.unreachable; /* nobody was there to take it */
    step_outcome(world, i, &result);
}

static void some_outcomes(struct world *world, struct dice *dice)
{
    for (uint32_t n = 1 + dice_below(dice, 6); n > 0; n--)
        outcome(world, dice);
}

static void time_passes(struct world *world, struct dice *dice)
{
    int64_t due_ms = sched_next_due(world->sched);
    bool to_due = due_ms > world->mono_ms && due_ms - world->mono_ms < 7200 * 1000 && dice_chance(dice, 60);
    world->mono_ms = to_due ? due_ms : world->mono_ms + dice_below(dice, dice_chance(dice, 5) ? 100000 : 300);
    tell(world, "time passes", 0, 0);
}

static void clock_jumps(struct world *world, struct dice *dice)
{
    world->offset_ms += (dice_below(dice, 2) ? 1 : -1) * 3600 * 1000LL;
    tell(world, "clock jumps", 0, 0);
}

static void mood_swings(struct world *world, struct dice *dice)
{
    struct sink_model *sink = &world->sinks[dice_below(dice, SINKS)];
    sink->mood = dice_chance(dice, 50) ? MOOD_WELL : dice_below(dice, MOODS);
    tell(world, "mood", (uint64_t)(sink - world->sinks), sink->mood);
}

/* ---- the operator's side ---- */

static void lane_act(struct world *world, struct dice *dice)
{
    uint32_t index = dice_below(dice, LANES);
    struct lane_model *lane = &world->lanes[index];
    struct row *head = lane->owed.len ? &world->rows.at[lane->owed.at[0]] : NULL;
    struct sched_place place;
    place_of_lane(index, &place);
    lane->overtaken = 0;
    uint32_t what = dice_below(dice, 5);
    tell(world, (const char *[]){"lane pause", "lane resume", "lane resume", "lane retry", "lane skip"}[what],
         index, head ? head->seq : 0);
    enum sched_answer answer;
    switch (what) {
    case 0:
        if (sched_lane_pause(world->sched, world_now(world), &place) == SCHED_DONE)
            lane->paused = true;
        return;
    case 1:
    case 2:
        if (sched_lane_resume(world->sched, world_now(world), &place) == SCHED_DONE)
            lane->paused = false;
        return;
    case 3:
        answer = sched_lane_retry(world->sched, world_now(world), &place, head ? head->seq : 0);
        if (answer == SCHED_DONE)
            head->due_ms = world->mono_ms;
        break;
    default:
        answer = sched_lane_skip(world->sched, world_now(world), &place, head ? head->seq : 0);
    }
    bool running = head && head->running;
    if ((answer == SCHED_IN_FLIGHT) != running || (answer == SCHED_NOT_FOUND) != !head)
        sim_fail(world, "an act on lane %u is answered %d", index, answer);
}

/* Heads that wait are due; rows behind them keep what they had. */
static void heads_due(struct world *world, uint32_t sink)
{
    for (uint32_t i = 0; i < LANES; i++) {
        const struct lane_model *lane = &world->lanes[i];
        if (i / KEYS % SINKS != sink || lane->running >= 0 || lane->paused || lane->owed.len == 0 ||
            lane->unsynced > world->synced)
            continue;
        struct row *head = &world->rows.at[lane->owed.at[0]];
        if (head->seq <= lane->frontier && head->due_ms > world->mono_ms)
            head->due_ms = world->mono_ms;
    }
    VEC_EACH (at, &world->sinks[sink].loose) {
        struct row *row = &world->rows.at[*at];
        if (row->due_ms > world->mono_ms)
            row->due_ms = world->mono_ms;
    }
}

static void sink_act(struct world *world, struct dice *dice)
{
    uint32_t id = dice_below(dice, SINKS), what = dice_below(dice, 4);
    tell(world, (const char *[]){"sink pause", "sink resume", "sink resume", "sink retry"}[what], id, 0);
    if (what == 0) {
        int64_t for_ms = dice_below(dice, 2) * 3000;
        sched_sink_pause(world->sched, world_now(world), id, for_ms);
        world->sinks[id].paused = true;
        world->sinks[id].pause_until_ms = for_ms ? world->mono_ms + for_ms : INT64_MAX;
    } else if (what == 3) {
        sched_sink_retry(world->sched, world_now(world), id);
        heads_due(world, id);
    } else {
        sched_sink_resume(world->sched, world_now(world), id);
        world->sinks[id].paused = false;
    }
}

/* A row of any kind, by its state. */
static struct row *row_pick(struct world *world, struct dice *dice, enum sched_row_state state)
{
    for (unsigned tries = 0; tries < 30 && world->rows.len; tries++) {
        struct row *row = &world->rows.at[dice_below(dice, (uint32_t)world->rows.len)];
        if (row->live.state == state)
            return row;
    }
    return NULL;
}

static void row_act(struct world *world, struct dice *dice)
{
    uint32_t what = dice_below(dice, 4);
    struct row *row = row_pick(world, dice,
                               what == 1   ? SCHED_ROW_PENDING
                               : what == 2 ? SCHED_ROW_HELD
                                           : SCHED_ROW_DEAD);
    if (!row)
        return;
    struct sched_place place;
    place_of_row(row, &place);
    if (row->lane != NO_LANE)
        world->lanes[row->lane].overtaken = 0;
    bool dead = row->live.state == SCHED_ROW_DEAD;
    if (what == 0 || what == 1) {
        tell(world, "discard", row->seq, row->sink);
        enum sched_answer answer = sched_discard(world->sched, world_now(world), &place, row->seq, dead);
        if (answer != (row->running ? SCHED_IN_FLIGHT : SCHED_DONE))
            sim_fail(world, "a discard of seq %lu is answered %d", row->seq, answer);
        return;
    }
    tell(world, "replay", row->seq, row->sink);
    struct sched_again again = {
        .seq = row->seq, .received_ms = row->received_ms, .dead = dead, .late = row->live.late};
    row->job = 0;
    if (sched_replay(world->sched, world_now(world), &place, &again) != SCHED_DONE)
        sim_fail(world, "a replay of seq %lu was turned down", row->seq);
    if (row->lane == NO_LANE) { /* the same hook may count for the breaker again */
        struct sink_model *sink = &world->sinks[row->sink];
        for (size_t i = 0; i < sink->failed.len; i++)
            if (sink->failed.at[i] == LANES + (uint32_t)(row - world->rows.at))
                sink->failed.at[i] = UINT32_MAX;
    }
}

static void rekey(struct world *world, struct dice *dice)
{
    struct row *row = row_pick(world, dice, SCHED_ROW_PENDING);
    if (!row)
        return;
    uint32_t to_lane =
        dice_chance(dice, 15) ? NO_LANE : lane_index(row->tenant, row->sink, dice_below(dice, KEYS));
    struct sched_place from, to;
    place_of_row(row, &from);
    struct row moved = *row;
    moved.lane = to_lane;
    place_of_row(&moved, &to);
    uint32_t index = (uint32_t)(row - world->rows.at);
    tell(world, "rekey", row->seq, to_lane);
    enum sched_answer answer = sched_rekey(world->sched, world_now(world), &from, row->seq, &to);
    enum sched_answer expect = row->lane == to_lane ? SCHED_NOTHING
                               : row->running       ? SCHED_IN_FLIGHT
                                                    : SCHED_DONE;
    if (answer != expect)
        sim_fail(world, "a rekey of seq %lu is answered %d", row->seq, answer);
    if (answer != SCHED_DONE)
        return;
    judge_actions(world);
    struct unsynced move = {{.seq = row->seq, .place = to}, .moved = true};
    if (row->lane !=
        NO_LANE) { /* the last that was said is that it leaves: when that is synced, so is the move */
        struct unsynced left = world->unsynced.at[--world->unsynced.len];
        left.action.late |= to.ordered;
        VEC_PUSH(&world->unsynced, move);
        move = left;
        world->lanes[row->lane].overtaken = 0;
        world->lanes[row->lane].unsynced = world->said;
    }
    VEC_PUSH(&world->unsynced, move);
    model_remove(world, index);
    row->lane = to_lane;
    row->rekeyed = true;
    row->live.late |= to_lane != NO_LANE;
    if (to_lane != NO_LANE)
        world->lanes[to_lane].overtaken = 0;
    model_add(world, index);
}

/* A job replays what was delivered in one lane: chosen at its beginning, then made row by row. */
static void job_begin(struct world *world, struct dice *dice)
{
    struct job *job = &world->job;
    job->lane = dice_below(dice, LANES);
    job->next = 0;
    for (uint32_t i = 0; i < world->rows.len && job->rows.len < 10; i++) {
        const struct row *row = &world->rows.at[i];
        if (row->lane == job->lane && row->live.state == SCHED_ROW_DONE && dice_chance(dice, 30))
            VEC_PUSH(&job->rows, i);
    }
    tell(world, "job", job->lane, job->rows.len);
}

/* It is done, or somebody cancels it. */
static void job_end(struct world *world)
{
    struct job *job = &world->job;
    struct sched_place place;
    place_of_lane(job->lane, &place);
    tell(world, "job ends", job->lane, job->rows.len - job->next);
    world->lanes[job->lane].frontier = UINT64_MAX;
    world->lanes[job->lane].overtaken = 0;
    sched_rewind(world->sched, world_now(world), &place, UINT64_MAX);
    job->rows.len = job->next = 0;
}

/* Whoever cancels it takes back what has not begun. */
static void job_withdraw(struct world *world, struct dice *dice)
{
    const struct job *job = &world->job;
    struct sched_place place;
    place_of_lane(job->lane, &place);
    tell(world, "job withdraws", job->lane, job->next);
    world->lanes[job->lane].overtaken = 0;
    for (size_t i = 0; i < job->next; i++) {
        const struct row *row = &world->rows.at[job->rows.at[i]];
        if (row->job == 0 || row->live.state != SCHED_ROW_PENDING || row->lane != job->lane)
            continue;
        enum sched_answer answer = sched_withdraw(world->sched, world_now(world), &place, row->seq, row->job,
                                                  dice_chance(dice, 30), dice_chance(dice, 30));
        if (answer != (row->running ? SCHED_IN_FLIGHT : SCHED_DONE))
            sim_fail(world, "a withdrawal of seq %lu is answered %d", row->seq, answer);
    }
    judge_actions(world);
}

/* The next row is owed in the store; with what was said before, for all of it goes one way. */
static struct row *job_store(struct world *world)
{
    struct job *job = &world->job;
    struct row *row = &world->rows.at[job->rows.at[job->next++]];
    world_sync(world, SIZE_MAX);
    if (row->live.state != SCHED_ROW_DONE || row->lane != job->lane)
        return row; /* owed anyway */
    row->job = 1;
    row->durable = (struct kept){.state = SCHED_ROW_PENDING, .late = row->live.late};
    return row;
}

static void job_make(struct world *world, const struct row *row)
{
    const struct job *job = &world->job;
    struct lane_model *lane = &world->lanes[job->lane];
    struct sched_place place;
    struct sched_again again = {
        .seq = row->seq, .received_ms = row->received_ms, .late = row->live.late, .job = 1};
    place_of_lane(job->lane, &place);
    tell(world, "job makes", job->lane, row->seq);
    bool makes = row->live.state == SCHED_ROW_DONE && row->lane == job->lane;
    if (makes && sched_replay(world->sched, world_now(world), &place, &again) != SCHED_DONE)
        sim_fail(world, "a job's seq %lu was turned down", row->seq);
    /* Behind the last one, the lowest unfinished row is enough. */
    lane->frontier = job->next < job->rows.len ? row->seq : UINT64_MAX;
    lane->overtaken = 0;
    sched_rewind(world->sched, world_now(world), &place, lane->frontier);
}

static void job_step(struct world *world, struct dice *dice)
{
    struct job *job = &world->job;
    if (job->rows.len == 0) {
        job_begin(world, dice);
        return;
    }
    bool cancelled = dice_chance(dice, 3);
    if (cancelled && dice_chance(dice, 60))
        job_withdraw(world, dice);
    if (cancelled || job_is_done(world)) {
        job_end(world);
        return;
    }
    if (job->next == job->rows.len)
        return;
    const struct row *row = job_store(world);
    if (dice_chance(dice, 10))
        world_restart(world, dice); /* killed before the scheduler heard of it */
    else
        job_make(world, row);
}

/* ---- the table ---- */

/* The configuration lets go of a sink, and names it again at once. */
static void retire(struct world *world, struct dice *dice)
{
    uint32_t id = dice_below(dice, SINKS);
    tell(world, "retire", id, 0);
    size_t cursor = 0;
    while (sched_sink_retire(world->sched, world_now(world), id, "sink_gone", &cursor, 3))
        ;
    judge_actions(world);
    VEC_EACH (row, &world->rows) {
        if (row->sink == id && !row->running &&
            (row->live.state == SCHED_ROW_PENDING || row->live.state == SCHED_ROW_HELD))
            sim_fail(world, "seq %lu outlives its sink", row->seq);
    }
    sched_sink_set(world->sched, world_now(world), id, &world->sinks[id].policy);
}

static void lands(struct world *world, struct dice *dice)
{
    tell(world, "a letter lands", world->letters.len, 0);
    letter_lands(world, dice);
}

static void sync_some(struct world *world, struct dice *dice)
{
    world_sync(world, dice_chance(dice, 50) ? SIZE_MAX : dice_below(dice, 40));
}

static void restart(struct world *world, struct dice *dice)
{
    tell(world, "restart", 0, 0);
    world_restart(world, dice);
}

static void reload(struct world *world, struct dice *dice)
{
    tell(world, "reload", 0, 0);
    world_policies(world, dice);
}

static const struct {
    uint32_t weight; /* of a thousand */
    void (*act)(struct world *world, struct dice *dice);
} steps[] = {
    {278, commit},   {330, some_outcomes}, {180, time_passes}, {3, clock_jumps}, {20, mood_swings},
    {20, lane_act},  {12, sink_act},       {25, row_act},      {15, rekey},      {15, job_step},
    {60, sync_some}, {4, restart},         {6, reload},        {30, lands},      {2, retire},
};

void step_do(struct world *world, uint64_t roll)
{
    struct dice dice = {roll};
    uint32_t at = dice_below(&dice, 1000), i = 0;
    while (at >= steps[i].weight)
        at -= steps[i++].weight;
    world->by_operator = true;
    steps[i].act(world, &dice);
    judge_actions(world);
    world_pump(world);
    if (roll % 64 == 0)
        judge_sums(world);
}
