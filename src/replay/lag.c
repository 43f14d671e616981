/* How far the sinks of a job are behind with what is not the job's. A hook that waits because the job has
 * rewound its lane, or stands behind a row of the job, is the job's own doing: were the job to wait for it,
 * both would wait for ever. */
#include <stdlib.h>

#include "replay/replay_priv.h"
#include "util/clock.h"
#include "util/mem.h"

enum {
    LOOK_LANES = 1000,   /* the oldest of a sink that are looked at */
    LOOK_EVERY_MS = 500, /* a list of all lanes is nothing to ask for at each turn */
};

static bool holds_back(struct job *job, const struct lane_view *lane, uint64_t cursor)
{
    const struct map_lane *of_plan = lane_map_find(&job->map, lane->sink, lane->tenant, lane->lane);
    if (of_plan)
        return of_plan->rewound || lane->head_seq <= cursor;
    VEC_EACH (stray, &job->strays)
        if (stray->sink == lane->sink && stray->tenant == lane->tenant &&
            memcmp(stray->lane, lane->lane, sizeof lane->lane) == 0)
            return true;
    return false;
}

/* When the oldest hook was received that waits in a lane which the job does not hold back; INT64_MAX: none of
 * those looked at. */
static int64_t oldest_elsewhere(struct replays *replays, struct job *job, uint32_t sink, uint64_t cursor)
{
    struct lane_view *lanes = mem_alloc(LOOK_LANES * sizeof *lanes);
    const struct lane_filter filter = {
        .tenant = -1, .sink = sink, .state = -1, .sort = LANE_SORT_AGE, .limit = LOOK_LANES};
    uint64_t total;
    int64_t oldest_ms = INT64_MAX;
    size_t count = lanes_list(replays->options.lanes, &filter, lanes, &total);
    for (size_t i = 0; i < count && oldest_ms == INT64_MAX; i++)
        if (!holds_back(job, &lanes[i], cursor))
            oldest_ms = lanes[i].oldest_ms;
    free(lanes);
    return oldest_ms;
}

static const struct lanes_sink *of_job(const struct store_replay *is, const struct lanes_sink *sinks,
                                       size_t count, uint32_t id)
{
    for (size_t i = 0; i < count; i++)
        if (sinks[i].id == id && replay_takes_sink(is, &sinks[i]))
            return &sinks[i];
    return NULL;
}

/* `listed` is set when all lanes were gone through for the answer. */
static bool sink_lags(struct replays *replays, struct job *job, const struct store_replay *is,
                      const struct lanes_sink *sink, int64_t oldest_ms, bool *listed)
{
    int64_t before_ms = clock_unix_ms() - is->max_lag_ms;
    if (oldest_ms == 0 || oldest_ms >= before_ms)
        return false;
    bool blames_itself = sink->ordered && is->from == REPLAY_FROM_HOOKS && is->made > 0;
    if (!blames_itself)
        return true;
    *listed = true;
    return oldest_elsewhere(replays, job, sink->id, is->cursor) < before_ms;
}

bool job_lags(struct replays *replays, struct job *job, const struct store_replay *is)
{
    if (clock_mono_ms() < job->lag_look_ms)
        return job->lags;
    bool listed = false;
    job->lags = false;
    const struct lanes_sink *sinks;
    size_t count;
    void *held = replays->options.hold(replays->options.ctx, &sinks, &count);
    size_t room = lanes_sinks(replays->options.lanes, NULL, 0);
    struct lanes_sink_view *views = mem_zalloc((room + 1) * sizeof *views);
    size_t seen = lanes_sinks(replays->options.lanes, views, room);
    for (size_t i = 0; i < seen && i < room && !job->lags; i++) {
        const struct lanes_sink *sink = of_job(is, sinks, count, views[i].id);
        job->lags = sink && sink_lags(replays, job, is, sink, views[i].oldest_ms, &listed);
    }
    replays->options.let_go(held);
    free(views);
    job->lag_look_ms = clock_mono_ms() + (job->lags || listed ? LOOK_EVERY_MS : 0);
    return job->lags;
}
