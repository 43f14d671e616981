/* Life of a world: policies, pumping, the sync, the crash, and the happy end. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static const int64_t SCHEDULE[] = {50, 400, 3000};

static void policy_roll(struct sched_policy *policy, struct dice *dice)
{
    static const unsigned concurrencies[] = {1, 2, 4, 12, 40};
    *policy = (struct sched_policy){
        .concurrency = concurrencies[dice_below(dice, 5)],
        .rate = dice_chance(dice, 15) ? 5 + dice_below(dice, 50) : 0,
        .retry = {.base_ms = 100,
                  .max_ms = 20000,
                  .give_up_after_ms = dice_chance(dice, 40) ? 5000 + dice_below(dice, 60000) : 0,
                  .max_attempts = dice_chance(dice, 40) ? 1 + dice_below(dice, 6) : 0,
                  .jitter = dice_chance(dice, 70)},
        .breaker = {.failures = 3 + dice_below(dice, 8), .open_ms = 500, .max_open_ms = 8000},
        .on_refused = dice_chance(dice, 70) ? ON_DEAD_SKIP : ON_DEAD_HOLD,
        .on_exhausted = dice_chance(dice, 30) ? ON_DEAD_SKIP : ON_DEAD_HOLD,
    };
    if (dice_chance(dice, 15)) {
        policy->retry.schedule_ms = SCHEDULE;
        policy->retry.schedule_count = 3;
    }
}

void world_policies(struct world *world, struct dice *dice)
{
    for (uint32_t id = 0; id < SINKS; id++) {
        policy_roll(&world->sinks[id].policy, dice);
        sched_sink_set(world->sched, world_now(world), id, &world->sinks[id].policy);
    }
}

static struct sched *sched_make(const struct world *world)
{
    struct sched_options options = {.seed = world->seed,
                                    .lane_idle_ms = world->lane_idle_ms,
                                    .lane_idle_most = world->forgets ? 4 : 1000000,
                                    .concurrency = world->concurrency};
    return sched_new(&options);
}

void world_open(struct world *world, uint64_t seed)
{
    bool verbose = world->verbose;
    *world = (struct world){.seed = seed, .verbose = verbose, .next_seq = 1, .judged = -1};
    struct dice dice = {seed};
    world->mono_ms = 1000 + dice_below(&dice, 100000);
    world->offset_ms = 1700000000000;
    world->concurrency = dice_chance(&dice, 30) ? 2 + dice_below(&dice, 10) : 200;
    world->forgets = dice_chance(&dice, 20);
    world->lane_idle_ms = world->forgets ? 500 : INT64_MAX / 4;
    for (uint32_t i = 0; i < LANES; i++)
        world->lanes[i].running = -1, world->lanes[i].frontier = UINT64_MAX;
    for (uint32_t id = 0; id < SINKS; id++)
        world->sinks[id].last_probed = -1;
    world->sched = sched_make(world);
    world_policies(world, &dice);
}

void world_close(struct world *world)
{
    sched_free(world->sched);
    VEC_FREE(&world->rows);
    VEC_FREE(&world->runs);
    VEC_FREE(&world->letters);
    VEC_FREE(&world->unsynced);
    VEC_FREE(&world->job.rows);
    for (uint32_t i = 0; i < LANES; i++)
        VEC_FREE(&world->lanes[i].owed);
    for (uint32_t id = 0; id < SINKS; id++) {
        VEC_FREE(&world->sinks[id].loose);
        VEC_FREE(&world->sinks[id].failed);
        VEC_FREE(&world->sinks[id].refused);
    }
}

/* Ticks, starts all that starts, and judges that nothing is left behind. */
void world_pump(struct world *world)
{
    for (uint32_t id = 0; id < SINKS; id++)
        world->sinks[id].paused &= world->sinks[id].pause_until_ms > world->mono_ms;
    sched_tick(world->sched, world_now(world));
    judge_actions(world);
    struct sched_start start;
    while (sched_next_start(world->sched, world_now(world), &start)) {
        judge_actions(world);
        judge_start(world, &start);
    }
    judge_actions(world);
    judge_idle(world);
}

/* The first `most` outcomes reach the disk. */
void world_sync(struct world *world, size_t most)
{
    size_t n = most < world->unsynced.len ? most : world->unsynced.len;
    for (size_t i = 0; i < n; i++) {
        const struct sched_action *action = &world->unsynced.at[i].action;
        if (world->unsynced.at[i].moved) {
            struct row *row = &world->rows.at[row_find(world, action->seq, action->place.sink)];
            row->durable_lane = action->place.ordered ? lane_of_place(&action->place) : NO_LANE;
            row->durable.late |= action->place.ordered;
            continue;
        }
        if (action->kind == ACTION_BREAKER)
            world->sinks[action->place.sink].durable_record = action->record;
        else if (action->kind == ACTION_SINK_PAUSE)
            world->sinks[action->place.sink].durable_pause = action->pause;
        else if (action->kind == ACTION_LANE_PAUSE)
            world->lanes[lane_of_place(&action->place)].durably_paused = action->pause.paused;
        else
            keep(&world->rows.at[row_find(world, action->seq, action->place.sink)].durable, action);
        world->synced += action->kind == ACTION_ROW;
    }
    world->unsynced.len -= n;
    if (n > 0)
        memmove(world->unsynced.at, world->unsynced.at + n,
                world->unsynced.len * sizeof world->unsynced.at[0]);
    sched_durable(world->sched, world_now(world), world->synced);
}

static void row_restore(struct world *world, uint32_t index)
{
    struct row *row = &world->rows.at[index];
    row->live = row->durable;
    row->lane = row->durable_lane;
    row->running = row->by_receiver = row->tried_here = false;
    row->due_ms = INT64_MIN;
    if (row->live.state == SCHED_ROW_DONE || row->live.state == SCHED_ROW_DISCARDED)
        return;
    struct sched_owed owed = {.seq = row->seq,
                              .received_ms = row->received_ms,
                              .state = row->live.state == SCHED_ROW_PENDING ? OWED_PENDING
                                       : row->live.state == SCHED_ROW_HELD  ? OWED_HELD
                                                                            : OWED_DEAD,
                              .late = row->live.late,
                              .job = row->job,
                              .attempts = row->live.attempts,
                              .first_attempt_ms = row->live.first_attempt_ms,
                              .waived_ms = row->live.waived_ms,
                              .dead_at_ms = row->live.at_ms};
    struct sched_place place;
    place_of_row(row, &place);
    sched_restore(world->sched, world_now(world), &place, &owed);
    if (row->live.state != SCHED_ROW_DEAD)
        model_add(world, index);
    if (row->live.state != SCHED_ROW_PENDING && row->lane != NO_LANE)
        world->lanes[row->lane].dead++;
}

/* A lane of which a job has made rows, and has more to make, is rewound before anything is found in it. */
static void job_restore(struct world *world)
{
    const struct job *job = &world->job;
    if (job->next == 0 || job->next == job->rows.len)
        return;
    struct lane_model *lane = &world->lanes[job->lane];
    struct sched_place place;
    place_of_lane(job->lane, &place);
    lane->frontier = world->rows.at[job->rows.at[job->next - 1]].seq;
    sched_rewind(world->sched, world_now(world), &place, lane->frontier);
}

/* Everything that was not synced never happened; what ran may have arrived, or not. */
void world_restart(struct world *world, struct dice *dice)
{
    world_sync(world, dice_below(dice, (uint32_t)world->unsynced.len + 1));
    world->unsynced.len = 0;
    world->said = world->synced = 0;
    world->found = world->next_seq - 1;
    VEC_EACH (run, &world->runs)
        letter_lost(world, &run->letter, dice);
    world->runs.len = 0;
    sched_free(world->sched);
    world->mono_ms = 1 + dice_below(dice, 1000000);
    world->sched = sched_make(world);
    for (uint32_t i = 0; i < LANES; i++) {
        struct lane_model *lane = &world->lanes[i];
        lane->owed.len = 0;
        lane->running = -1;
        lane->paused = lane->durably_paused;
        lane->frontier = UINT64_MAX;
        lane->last_ok = lane->sent = lane->unsynced = 0;
        lane->dead = lane->overtaken = 0;
    }
    for (uint32_t id = 0; id < SINKS; id++) {
        struct sink_model *sink = &world->sinks[id];
        sink->loose.len = sink->failed.len = sink->refused.len = 0;
        sink->running = sink->ramp = sink->failed_alone = 0;
        sink->last_timed_out = false;
        sink->paused = sink->durable_pause.paused;
        sink->pause_until_ms = sink->durable_pause.until_ms
                                   ? world->mono_ms + sink->durable_pause.until_ms - world_now(world).unix_ms
                                   : INT64_MAX;
        sink->record = sink->durable_record;
        sink->breaker = sink->record.opens ? BREAKER_OPEN : BREAKER_CLOSED;
        sink->last_probed = -1;
        memset(sink->overtaken, 0, sizeof sink->overtaken);
        sched_sink_set(world->sched, world_now(world), id, &sink->policy);
        sched_sink_restore(world->sched, world_now(world), id, &sink->record, &sink->durable_pause);
    }
    job_restore(world);
    for (uint32_t i = 0; i < world->rows.len; i++)
        row_restore(world, i);
    for (uint32_t i = 0; i < LANES; i++) {
        struct sched_place place;
        place_of_lane(i, &place);
        if (world->lanes[i].paused)
            sched_lane_restore(world->sched, world_now(world), &place,
                               &(struct pause_record){.paused = true});
    }
    judge_actions(world);
    judge_sums(world);
}

static void everyone_is_well(struct world *world)
{
    world->by_operator = true;
    if (world->job.rows.len) {
        struct sched_place place;
        place_of_lane(world->job.lane, &place);
        sched_rewind(world->sched, world_now(world), &place, UINT64_MAX);
        world->lanes[world->job.lane].frontier = UINT64_MAX;
        world->job.rows.len = world->job.next = 0;
    }
    for (uint32_t i = 0; i < LANES; i++) {
        struct sched_place place;
        place_of_lane(i, &place);
        sched_lane_resume(world->sched, world_now(world), &place);
        world->lanes[i].paused = false;
    }
    for (uint32_t id = 0; id < SINKS; id++) {
        world->sinks[id].mood = MOOD_WELL;
        world->sinks[id].paused = false;
        sched_sink_resume(world->sched, world_now(world), id);
    }
    VEC_EACH (row, &world->rows)
        row->poison = false;
    judge_actions(world);
}

static void release_holds(struct world *world)
{
    for (uint32_t i = 0; i < LANES; i++) {
        struct lane_model *lane = &world->lanes[i];
        struct sched_place place;
        place_of_lane(i, &place);
        if (lane->owed.len && world->rows.at[lane->owed.at[0]].live.state == SCHED_ROW_HELD)
            sched_lane_retry(world->sched, world_now(world), &place, 0);
        judge_actions(world);
    }
}

void world_drain(struct world *world)
{
    everyone_is_well(world);
    for (unsigned turn = 0;; turn++) {
        world_sync(world, SIZE_MAX);
        world_pump(world);
        while (world->runs.len > 0) {
            step_outcome(world, 0, &(struct sched_outcome){.cls = SCHED_OK});
            world_pump(world);
        }
        world->by_operator = true;
        release_holds(world);
        world_pump(world);
        if (world->runs.len > 0)
            continue;
        int64_t due_ms = sched_next_due(world->sched);
        bool owed = false;
        VEC_EACH (row, &world->rows)
            owed |= row->live.state == SCHED_ROW_PENDING || row->live.state == SCHED_ROW_HELD;
        if (!owed)
            break;
        if (due_ms > world->mono_ms + 86400 * 1000 || turn > 10000)
            sim_fail(world, "rows are owed and nothing will ever start them");
        world->mono_ms = due_ms > world->mono_ms ? due_ms : world->mono_ms;
    }
    judge_sums(world);
    world_sync(world, SIZE_MAX);
    VEC_EACH (row, &world->rows) {
        if (row->durable.state == SCHED_ROW_PENDING || row->durable.state == SCHED_ROW_HELD)
            sim_fail(world, "seq %lu is lost: never finished", row->seq);
    }
    struct dice dice = {world->seed};
    while (world->letters.len > 0)
        letter_lands(world, &dice);
    judge_effects(world);
}
