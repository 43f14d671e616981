/* From stored hooks to rows: read, and resolved by the same function as at ingest. */
#include <string.h>

#include "replay/replay_priv.h"

enum { ARENA_BYTES = 64 * 1024 };

static void take_seq(void *ctx, uint64_t seq)
{
    struct slice *slice = ctx;
    VEC_PUSH(&slice->seqs, seq);
}

enum status slice_open(struct slice *slice, struct replays *replays, struct store_reader *reader,
                       const struct store_replay *replay, uint64_t *after, size_t limit, bool *end)
{
    const struct replays_options *options = &replays->options;
    *slice = (struct slice){.replays = replays, .replay = replay, .reader = reader};
    slice->held = options->hold(options->ctx, &slice->sinks, &slice->sink_count);
    slice->arena = arena_new(ARENA_BYTES);
    return store_walk_hooks(reader, replay, after, limit, take_seq, slice, end);
}

void slice_let_go(struct slice *slice)
{
    if (slice->held)
        slice->replays->options.let_go(slice->held);
    slice->held = NULL;
}

void slice_close(struct slice *slice)
{
    slice_let_go(slice);
    arena_free(slice->arena);
    VEC_FREE(&slice->seqs);
}

static void resolve(struct slice *slice, const struct envelope *envelope, uint32_t tenant,
                    void (*each)(void *ctx, const struct slice_row *row), void *ctx)
{
    for (size_t i = 0; i < slice->sink_count; i++) {
        const struct lanes_sink *sink = &slice->sinks[i];
        if (!bytes_eq(envelope->source, bytes_str(sink->source)) || !replay_takes_sink(slice->replay, sink))
            continue;
        struct order_lane lane = {.filtered = true};
        slice->replays->options.resolve(slice->held, sink, envelope, slice->arena, &lane);
        if (lane.filtered)
            continue;
        struct slice_row row = {.sink = sink,
                                .tenant = tenant,
                                .received_ms = envelope->received_at_ms,
                                .row = {.seq = envelope->seq, .sink = sink->id, .ordered = lane.ordered}};
        if (lane.ordered) { /* a key may lie in the envelope, which goes */
            row.row.key = lane.key.at ? arena_copy(slice->arena, lane.key) : BYTES_NONE;
            memcpy(row.row.lane, lane.lane.bytes, sizeof row.row.lane);
        }
        each(ctx, &row);
    }
}

enum status slice_next(struct slice *slice, uint64_t *seq,
                       void (*each)(void *ctx, const struct slice_row *row), void *ctx)
{
    if (slice->taken == slice->seqs.len)
        return STATUS_NOT_FOUND;
    *seq = slice->seqs.at[slice->taken++];
    struct envelope *envelope;
    enum status status = store_read_hook(slice->reader, *seq, &envelope);
    if (status == STATUS_NOT_FOUND || status == STATUS_CORRUPT) {
        slice->gone++; /* removed meanwhile, or damaged: nothing to send */
        return STATUS_OK;
    }
    if (status != STATUS_OK)
        return status;
    uint32_t tenant;
    if (store_tenant_find(slice->replays->options.store, envelope->tenant, &tenant))
        resolve(slice, envelope, tenant, each, ctx);
    envelope_unref(envelope);
    return STATUS_OK;
}
