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

enum status replays_count(struct replays *replays, struct store_reader *reader,
                          const struct store_replay *replay, int64_t budget_ms, uint64_t *hooks,
                          bool *complete, void (*each)(void *ctx, const struct replay_count *count),
                          void *ctx)
{
    struct counting counting = {0};
    struct store_replay window = *replay;
    struct store_stats stats;
    store_stats(replays->options.store, &stats);
    window.last = stats.next_seq - 1;
    uint64_t after = 0, seq;
    int64_t until_ms = clock_mono_ms() + budget_ms;
    enum status status = STATUS_OK;
    *hooks = 0;
    *complete = false;
    while (status == STATUS_OK && !*complete && clock_mono_ms() < until_ms) {
        struct slice slice;
        status = slice_open(&slice, replays, reader, &window, &after, SLICE_HOOKS, complete);
        while (status == STATUS_OK && (status = slice_next(&slice, &seq, count_row, &counting)) == STATUS_OK)
            ++*hooks;
        status = status == STATUS_NOT_FOUND ? STATUS_OK : status;
        slice_close(&slice);
    }
    if (status == STATUS_OK)
        tell(&counting, each, ctx);
    VEC_EACH (count, &counting.sinks) {
        free((char *)count->source);
        free((char *)count->sink);
    }
    lane_map_free(&counting.lanes);
    VEC_FREE(&counting.sinks);
    VEC_FREE(&counting.ids);
    return status;
}
