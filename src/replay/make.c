/* A slice of stored hooks becomes owed again: one transaction of the store with the cursor, then into the
 * scheduler, with the frontiers of the lanes. A lane is rewound from the first row that the job made of it
 * until the last one was made; from then on "the lowest unfinished row goes first" is enough. */
#include <string.h>

#include "replay/replay_priv.h"

enum { STRAYS_MAX = 1000 }; /* rows of lanes that nobody foresaw, before a new plan is made */

static void take_row(void *ctx, const struct slice_row *row)
{
    struct making *making = ctx;
    VEC_PUSH(&making->rows, *row);
}

/* Hooks as long as their rows fit. */
static enum status gather(struct making *making, uint64_t after, bool end)
{
    enum status status = STATUS_OK;
    uint64_t seq;
    making->step.cursor = after;
    while (making->rows.len + making->slice.sink_count <= LANES_REPLAY_MAX &&
           (status = slice_next(&making->slice, &seq, take_row, making)) == STATUS_OK)
        making->step.hooks++;
    making->step.gone = making->slice.gone;
    if (status == STATUS_OK) /* it is full: the rest is the next one's */
        making->step.cursor = seq;
    else if (status == STATUS_NOT_FOUND && end)
        making->step.cursor = making->slice.replay->last;
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static void rewind_for(struct job *job, const struct store_replay_row *row, const struct slice_row *of,
                       uint64_t cursor, struct batch *batch)
{
    struct map_lane *lane = lane_map_find(&job->map, row->sink, of->tenant, row->lane);
    struct map_lane stray = {.sink = row->sink, .tenant = of->tenant, .rewound = true};
    if (!lane) {
        memcpy(stray.lane, row->lane, sizeof stray.lane);
        VEC_PUSH(&job->strays, stray);
        batch_rewind(batch, &stray, row->seq);
    } else if (lane->last > cursor) {
        job->map.rewound += !lane->rewound;
        lane->rewound = true;
        batch_rewind(batch, lane, row->seq);
    }
}

/* Rows that were made go into the scheduler, with the frontiers of their lanes; lanes whose last row is made
 * are let go. */
static bool hand_over(struct replays *replays, struct job *job, struct making *making)
{
    struct batch batch = {0};
    for (size_t i = 0; i < making->stored.len; i++) {
        const struct store_replay_row *row = &making->stored.at[i];
        const struct slice_row *of = &making->rows.at[i];
        if (!row->made)
            continue;
        struct lanes_row *out = VEC_ADD(&batch.rows);
        *out = (struct lanes_row){.seq = row->seq,
                                  .sink = row->sink,
                                  .tenant = of->tenant,
                                  .state = row->was < 0 ? ROW_DONE : (enum row_state)row->was,
                                  .ordered = row->ordered,
                                  .received_ms = of->received_ms};
        memcpy(out->lane, row->lane, sizeof out->lane);
        if (row->ordered)
            rewind_for(job, row, of, making->step.cursor, &batch);
    }
    for (struct map_lane *lane; (lane = lane_map_pass(&job->map, making->step.cursor));) {
        if (!lane->rewound)
            continue;
        lane->rewound = false;
        job->map.rewound--;
        batch_rewind(&batch, lane, UINT64_MAX);
    }
    bool sent = batch.rows.len + batch.rewinds.len == 0 || batch_send(replays, job->is.number, &batch);
    batch_free(&batch);
    return sent;
}

enum status make_hooks(struct replays *replays, struct job *job, const struct store_replay *is, size_t hooks,
                       bool *more)
{
    struct making *making = making_new(replays, is->number);
    uint64_t after = job->begins > is->cursor ? job->begins - 1 : is->cursor;
    bool end = false;
    enum status status = slice_open(&making->slice, replays, replays->reader, is, &after, hooks, &end);
    if (status == STATUS_OK)
        status = gather(making, after, end);
    slice_let_go(&making->slice);
    if (status != STATUS_OK) {
        making_free(making);
        return status;
    }
    VEC_EACH (row, &making->rows)
        VEC_PUSH(&making->stored, row->row);
    making->step.rows = making->stored.at;
    making->step.count = making->stored.len;
    job->tokens -= (double)making->step.hooks;
    uint64_t cursor = making->step.cursor;
    *more = job->tokens >= 1 || making->step.hooks == 0;
    if (!making_write(making))
        return STATUS_UNAVAILABLE;
    hand_over(replays, job, making);
    pthread_mutex_lock(&replays->lock);
    job->is.cursor = cursor;
    pthread_mutex_unlock(&replays->lock);
    making_free(making);
    if (job->strays.len >= STRAYS_MAX)
        plan_again(replays, job, cursor);
    return STATUS_OK;
}
