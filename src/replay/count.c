/* What a job would do, without doing it. */
#include <stdlib.h>
#include <string.h>

#include "replay/replay_priv.h"
#include "util/clock.h"
#include "util/mem.h"

enum { SLICE_HOOKS = 512 };

struct counting {
    struct lane_map lanes;
    VEC(struct replay_count) sinks;
    VEC(uint32_t) ids; /* of them */
    struct replay_sum sum;
};

static void count_row(void *ctx, const struct slice_row *row)
{
    struct counting *counting = ctx;
    size_t at = 0;
    while (at < counting->ids.len && counting->ids.at[at] != row->sink->id)
        at++;
    if (at == counting->ids.len) {
        VEC_PUSH(&counting->ids, row->sink->id);
        VEC_PUSH(&counting->sinks,
                 ((struct replay_count){mem_strdup(row->sink->source), mem_strdup(row->sink->name),
                                        row->sink->ordered, 0, 0}));
    }
    counting->sinks.at[at].rows++;
    if (!row->row.ordered)
        return;
    struct map_lane lane = {.sink = row->sink->id, .tenant = row->tenant, .last = row->row.seq};
    memcpy(lane.lane, row->row.lane, sizeof lane.lane);
    lane_map_add(&counting->lanes, &lane);
}

static void tell(struct counting *counting, void (*each)(void *ctx, const struct replay_count *count),
                 void *ctx)
{
    lane_map_sort(&counting->lanes);
    for (size_t i = 0; i < counting->sinks.len; i++) {
        struct replay_count *count = &counting->sinks.at[i];
        VEC_EACH (lane, &counting->lanes.all)
            count->lanes += lane->sink == counting->ids.at[i];
        each(ctx, count);
    }
}

/* One slice; `counting->sum.complete` at the end. */
static enum status count_hooks(struct replays *replays, struct store_reader *reader,
                               const struct store_replay *window, uint64_t *after, struct counting *counting)
{
    struct slice slice;
    uint64_t seq;
    enum status status =
        slice_open(&slice, replays, reader, window, after, SLICE_HOOKS, &counting->sum.complete);
    while (status == STATUS_OK && (status = slice_next(&slice, &seq, count_row, counting)) == STATUS_OK)
        counting->sum.hooks++;
    slice_close(&slice);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status count_pen(struct replays *replays, struct store_reader *reader,
                             const struct store_replay *window, uint64_t *after, struct counting *counting)
{
    struct store_pen_filter filter = replay_pen_filter(window, *after, REPLAY_RELEASE_MAX);
    struct pen_slice *slice = mem_zalloc(sizeof *slice);
    enum status status = pen_slice_read(slice, reader, &filter, &counting->sum.complete);
    if (status == STATUS_OK && slice->count > 0)
        replays->options.release(replays->options.ctx, slice->releases, slice->count, 0, true);
    for (size_t i = 0; i < slice->count && status == STATUS_OK; i++) {
        bool verified = slice->releases[i].outcome == REPLAY_RELEASE_VERIFIED;
        counting->sum.hooks++;
        counting->sum.verified += verified;
        counting->sum.failed += !verified;
    }
    *after = filter.after_id;
    pen_slice_free(slice);
    return status;
}

enum status replays_count(struct replays *replays, struct store_reader *reader,
                          const struct store_replay *replay, int64_t budget_ms, struct replay_sum *sum,
                          void (*each)(void *ctx, const struct replay_count *count), void *ctx)
{
    struct counting counting = {0};
    struct store_replay window = *replay;
    struct store_stats stats;
    store_stats(replays->options.store, &stats);
    window.last = stats.next_seq - 1;
    uint64_t after = 0;
    int64_t until_ms = clock_mono_ms() + budget_ms;
    enum status status = STATUS_OK;
    bool pen = replay->from == REPLAY_FROM_PEN;
    while (status == STATUS_OK && !counting.sum.complete && clock_mono_ms() < until_ms)
        status = (pen ? count_pen : count_hooks)(replays, reader, &window, &after, &counting);
    if (status == STATUS_OK)
        tell(&counting, each, ctx);
    *sum = counting.sum;
    VEC_EACH (count, &counting.sinks) {
        free((char *)count->source);
        free((char *)count->sink);
    }
    lane_map_free(&counting.lanes);
    VEC_FREE(&counting.sinks);
    VEC_FREE(&counting.ids);
    return status;
}
