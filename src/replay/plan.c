/* The plan of a job: its window is looked at once, for how many hooks there are, and, where they are stored
 * ones, for the lanes and the last row of each. */
#include <string.h>

#include "replay/replay_priv.h"

enum {
    PLAN_HOOKS = 512,  /* a turn; their bodies are read */
    PLAN_PEN = 100000, /* a turn; theirs are not */
};

/* How many there are is kept: what is missing at the end went in between. */
static void plan_made(struct replays *replays, struct job *job)
{
    pthread_mutex_lock(&replays->lock);
    job->planned = true;
    if (job->is.planned == 0) {
        job->is.planned = job->is.hooks + job->plan_hooks;
        store_put_replay(replays->options.store, &job->is);
    }
    pthread_mutex_unlock(&replays->lock);
    job_say(replays, job, NULL);
}

/* ---- stored hooks ---- */

static void plan_row(void *ctx, const struct slice_row *row)
{
    struct job *job = ctx;
    if (!row->row.ordered)
        return;
    struct map_lane lane = {.sink = row->sink->id, .tenant = row->tenant, .last = row->row.seq};
    memcpy(lane.lane, row->row.lane, sizeof lane.lane);
    lane_map_add(&job->map, &lane);
}

/* Lanes of an earlier life that have no row to come go on; the others stay where they are. */
static void lanes_known(struct replays *replays, struct job *job)
{
    struct batch batch = {0};
    lane_map_sort(&job->map);
    VEC_EACH (found, &job->found) {
        struct map_lane *lane = lane_map_find(&job->map, found->sink, found->tenant, found->lane);
        if (lane && !lane->rewound) {
            lane->rewound = true;
            job->map.rewound++;
        } else if (!lane) {
            batch_rewind(&batch, found, UINT64_MAX);
        }
    }
    job->found.len = 0;
    if (batch.rewinds.len > 0)
        batch_send(replays, job->is.number, &batch);
    batch_free(&batch);
}

void plan_again(struct replays *replays, struct job *job, uint64_t cursor)
{
    VEC_EACH (lane, &job->map.all)
        if (lane->rewound)
            VEC_PUSH(&job->found, *lane);
    VEC_EACH (lane, &job->strays)
        VEC_PUSH(&job->found, *lane);
    lane_map_free(&job->map);
    job->strays.len = 0;
    job->plan_at = cursor;
    job->plan_hooks = 0;
    pthread_mutex_lock(&replays->lock);
    job->planned = false;
    pthread_mutex_unlock(&replays->lock);
}

enum status plan_hooks(struct replays *replays, struct job *job)
{
    struct slice slice;
    uint64_t seq;
    bool end = false;
    uint64_t at = job->plan_at;
    enum status status = slice_open(&slice, replays, replays->reader, &job->is, &at, PLAN_HOOKS, &end);
    while (status == STATUS_OK)
        status = slice_next(&slice, &seq, plan_row, job);
    slice_let_go(&slice);
    uint64_t first = slice.seqs.len ? slice.seqs.at[0] : 0, hooks = slice.seqs.len;
    slice_close(&slice);
    if (status != STATUS_NOT_FOUND)
        return status; /* the same again: what was added twice counts once */
    if (!job->begins)
        job->begins = first;
    job->plan_at = at;
    job->plan_hooks += hooks;
    if (job->map.full) {
        plan_again(replays, job, job->is.cursor);
        job->too_wide = true;
        job_end(replays, job, REPLAY_PAUSED,
                "it would rewind more than 1000000 lanes; cancel it, and narrow its window", job->is.gone);
        return STATUS_FULL;
    }
    if (end) {
        lanes_known(replays, job);
        plan_made(replays, job);
    }
    return STATUS_OK;
}

/* ---- the quarantine ---- */

static bool count_entry(void *ctx, const struct store_pen_view *entry)
{
    (void)entry;
    ++*(uint64_t *)ctx;
    return true;
}

enum status plan_pen(struct replays *replays, struct job *job)
{
    struct store_pen_filter filter = replay_pen_filter(&job->is, job->plan_at, PLAN_PEN);
    uint64_t found = 0;
    bool end = false;
    enum status status = store_walk_pen(replays->reader, &filter, count_entry, &found, &end);
    if (status != STATUS_OK)
        return status;
    job->plan_at = filter.after_id;
    job->plan_hooks += found;
    if (end)
        plan_made(replays, job);
    return STATUS_OK;
}
