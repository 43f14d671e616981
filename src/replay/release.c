/* A slice of the quarantine: hooks are verified again, and each that is good becomes a new hook in the
 * transaction that takes it out, which counts it too. So none is let go twice and none is lost, whatever dies
 * in between: what has left is not found again. The cursor moves only behind what stays, with its count. */
#include <stdlib.h>

#include "replay/replay_priv.h"
#include "util/clock.h"
#include "util/mem.h"

enum {
    SLICE_BYTES = 16 << 20, /* of hooks in memory; one is taken whatever its size */
    AGAIN_MS = 500,         /* after the store did not take one */
};

/* Hooks that came before the job began: those that fail meanwhile are another job's. */
struct store_pen_filter replay_pen_filter(const struct store_replay *replay, uint64_t after, size_t limit)
{
    int64_t until_ms = replay->until_ms;
    if (replay->created_ms > 0 && (until_ms == 0 || until_ms > replay->created_ms + 1))
        until_ms = replay->created_ms + 1;
    return (struct store_pen_filter){
        .tenant = *replay->tenant ? replay->tenant : NULL,
        .source = *replay->source ? replay->source : NULL,
        .failure = *replay->failure ? bytes_str(replay->failure) : BYTES_NONE,
        .since_ms = replay->since_ms,
        .until_ms = until_ms,
        .after_id = after,
        .limit = limit,
    };
}

static bool pick(void *ctx, const struct store_pen_view *entry)
{
    struct pen_slice *slice = ctx;
    slice->ids[slice->id_count++] = entry->id;
    slice->bytes += entry->size;
    return slice->bytes < SLICE_BYTES;
}

enum status pen_slice_read(struct pen_slice *slice, struct store_reader *reader,
                           struct store_pen_filter *filter, bool *end)
{
    enum status status = store_walk_pen(reader, filter, pick, slice, end);
    for (size_t i = 0; i < slice->id_count && status == STATUS_OK; i++) {
        struct replay_release *release = &slice->releases[slice->count];
        release->pen_id = slice->ids[i];
        status = store_read_pen(reader, release->pen_id, &release->envelope);
        slice->count += status == STATUS_OK;
        if (status == STATUS_CORRUPT)
            slice->damaged[slice->damaged_count++] = release->pen_id;
        if (status == STATUS_NOT_FOUND ||
            status == STATUS_CORRUPT) /* somebody was faster, or it is damaged */
            status = STATUS_OK;
    }
    return status;
}

void pen_slice_free(struct pen_slice *slice)
{
    for (size_t i = 0; i < slice->count; i++)
        envelope_unref(slice->releases[i].envelope);
    free(slice);
}

/* Counts up to the first one that the store did not take: what stopped it, or NULL. */
static const char *judge(struct replays *replays, const struct pen_slice *slice,
                         struct store_replay_step *step)
{
    const char *stopped = NULL;
    for (size_t i = 0; i < slice->count && !stopped; i++) {
        const struct replay_release *release = &slice->releases[i];
        if (release->outcome == REPLAY_RELEASE_STOPPED) {
            step->cursor = release->pen_id - 1;
            stopped = release->reason;
        } else if (release->outcome == REPLAY_RELEASE_FAILED) {
            step->failed++;
            store_pen_reason(replays->options.store, release->pen_id, release->reason);
        }
    }
    for (size_t i = 0; i < slice->damaged_count; i++)
        step->gone += slice->damaged[i] <= step->cursor;
    step->hooks = step->failed + step->gone;
    return stopped;
}

enum status release_hooks(struct replays *replays, struct job *job, const struct store_replay *is,
                          size_t hooks, bool *more)
{
    struct store_pen_filter filter =
        replay_pen_filter(is, is->cursor, hooks < REPLAY_RELEASE_MAX ? hooks : REPLAY_RELEASE_MAX);
    struct pen_slice *slice = mem_zalloc(sizeof *slice);
    struct making *making = making_new(replays, is->number);
    bool end = false;
    enum status status = pen_slice_read(slice, replays->reader, &filter, &end);
    const char *stopped = NULL;
    if (status != STATUS_OK)
        goto drop_making;
    job->tokens -= (double)slice->id_count;
    making->step.cursor = end ? is->last : filter.after_id;
    if (slice->count > 0)
        replays->options.release(replays->options.ctx, slice->releases, slice->count, is->number, false);
    stopped = judge(replays, slice, &making->step);
    *more = !stopped && (job->tokens >= 1 || slice->id_count == 0);
    if (stopped) {
        job->again_at_ms = clock_mono_ms() + AGAIN_MS;
        job_say(replays, job, stopped);
    }
    uint64_t cursor = making->step.cursor;
    if (!making_write(making)) {
        status = STATUS_UNAVAILABLE;
        goto drop_slice;
    }
    pthread_mutex_lock(&replays->lock);
    job->is.cursor = cursor;
    pthread_mutex_unlock(&replays->lock);

drop_making:
    making_free(making);
drop_slice:
    pen_slice_free(slice);
    return status;
}
