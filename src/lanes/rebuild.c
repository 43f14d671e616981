/* The rebuild at start. One thread reads what is owed, the other makes lanes of it: each takes about half of
 * the time, and nothing else runs yet. Rows go from one to the other in batches by turns; some of them, for
 * neither side takes the same time for each, and few, so that they stay in the processor's cache. */
#include <pthread.h>
#include <stdlib.h>

#include "lanes/lanes_priv.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/thread.h"

enum {
    BATCH_ROWS = 1024,
    BATCHES = 8,
    AHEAD = 32, /* rows between asking for the memory of a lane and using it */
    PROGRESS_MS = 2000,
};

struct batch {
    size_t len;
    bool full; /* under lock: the making side's; else the reading one's */
    struct batch_row {
        struct sched_place place;
        struct sched_owed owed;
    } rows[BATCH_ROWS];
};

struct rebuild {
    struct lanes *lanes;
    struct sched_time now;
    struct marks marks;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct batch *batches;
    /* The reading thread's, until it is joined. */
    struct batch *filling; /* NULL: none is at hand */
    size_t turn;
    uint64_t rows, unknown;
    enum status status;
    struct error *err;
    bool over; /* under lock: no batch follows those that are full */
};

/* ---- reading ---- */

static void set_full(struct rebuild *rebuild, struct batch *batch, bool full)
{
    pthread_mutex_lock(&rebuild->lock);
    batch->full = full;
    pthread_cond_signal(&rebuild->moved);
    pthread_mutex_unlock(&rebuild->lock);
}

/* The next batch, once the other side is done with it. */
static struct batch *take_free(struct rebuild *rebuild)
{
    struct batch *batch = &rebuild->batches[rebuild->turn++ % BATCHES];
    pthread_mutex_lock(&rebuild->lock);
    while (batch->full)
        pthread_cond_wait(&rebuild->moved, &rebuild->lock);
    pthread_mutex_unlock(&rebuild->lock);
    batch->len = 0;
    return batch;
}

static bool take_row(void *ctx, const struct store_owed *row)
{
    struct rebuild *rebuild = ctx;
    if (!lanes_sink_entry(rebuild->lanes, row->sink)) {
        rebuild->unknown++; /* its rows stay owed in the store, until the sink is back or retired */
        return true;
    }
    if (!rebuild->filling)
        rebuild->filling = take_free(rebuild);
    struct batch_row *out = &rebuild->filling->rows[rebuild->filling->len++];
    out->place = (struct sched_place){.sink = row->sink, .tenant = row->tenant, .ordered = row->ordered};
    memcpy(out->place.lane, row->lane, sizeof out->place.lane);
    out->owed = (struct sched_owed){.seq = row->seq,
                                    .received_ms = row->received_at_ms,
                                    .state = row->state == ROW_PENDING ? OWED_PENDING
                                             : row->state == ROW_HELD  ? OWED_HELD
                                                                       : OWED_DEAD,
                                    .late = row->late,
                                    .job = row->replay,
                                    .attempts = row->attempts,
                                    .first_attempt_ms = row->first_attempt_ms,
                                    .waived_ms = row->waived_ms + marks_waived_ms(&rebuild->marks, row),
                                    .dead_at_ms = row->state == ROW_PENDING ? 0 : row->at_ms};
    rebuild->rows++;
    if (rebuild->filling->len == BATCH_ROWS) {
        set_full(rebuild, rebuild->filling, true);
        rebuild->filling = NULL;
    }
    return true;
}

static void *read_all(void *arg)
{
    struct rebuild *rebuild = arg;
    rebuild->status = store_scan(rebuild->lanes->options.store, take_row, rebuild, rebuild->err);
    if (rebuild->filling)
        set_full(rebuild, rebuild->filling, true);
    pthread_mutex_lock(&rebuild->lock);
    rebuild->over = true;
    pthread_cond_signal(&rebuild->moved);
    pthread_mutex_unlock(&rebuild->lock);
    return NULL;
}

/* ---- making ---- */

/* Of millions of lanes none is in the processor's cache: first the place that knows the lane is asked for,
 * then the lane. */
static void restore(struct rebuild *rebuild, const struct batch *batch)
{
    struct sched *sched = rebuild->lanes->sched;
    const struct batch_row *rows = batch->rows;
    for (size_t i = 0; i < batch->len + AHEAD; i++) {
        if (i < batch->len)
            sched_restore_soon(sched, &rows[i].place, false);
        if (i >= AHEAD / 2 && i - AHEAD / 2 < batch->len)
            sched_restore_soon(sched, &rows[i - AHEAD / 2].place, true);
        if (i >= AHEAD)
            sched_restore(sched, rebuild->now, &rows[i - AHEAD].place, &rows[i - AHEAD].owed);
    }
}

static bool next_full(struct rebuild *rebuild, const struct batch *batch)
{
    pthread_mutex_lock(&rebuild->lock);
    while (!batch->full && !rebuild->over)
        pthread_cond_wait(&rebuild->moved, &rebuild->lock);
    bool full = batch->full;
    pthread_mutex_unlock(&rebuild->lock);
    return full;
}

static void make_all(struct rebuild *rebuild)
{
    int64_t told_ms = clock_mono_ms();
    uint64_t rows = 0;
    for (size_t at = 0; next_full(rebuild, &rebuild->batches[at]); at = (at + 1) % BATCHES) {
        struct batch *batch = &rebuild->batches[at];
        restore(rebuild, batch);
        rows += batch->len;
        set_full(rebuild, batch, false);
        if (clock_mono_ms() - told_ms >= PROGRESS_MS) {
            told_ms = clock_mono_ms();
            log_event(LOG_INFO, "lanes_rebuilding", LOG_INT("rows", rows));
        }
    }
}

enum status lanes_rebuild(struct lanes *lanes, struct error *err)
{
    struct rebuild rebuild = {.lanes = lanes,
                              .now = lanes_now(),
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .moved = PTHREAD_COND_INITIALIZER,
                              .batches = mem_zalloc(BATCHES * sizeof *rebuild.batches),
                              .err = err};
    pthread_t reading;
    enum status status = marks_load(&rebuild.marks, lanes, rebuild.now, err);
    if (status != STATUS_OK)
        goto free_all;
    if (thread_start(&reading, "rebuild", read_all, &rebuild) != 0) {
        status = error_set(err, STATUS_IO, "lanes: no thread to be had");
        goto free_all;
    }
    make_all(&rebuild);
    CHECK(pthread_join(reading, NULL) == 0);
    status = rebuild.status;
    if (status != STATUS_OK)
        goto free_all;
    marks_restore_lanes(&rebuild.marks);
    if (rebuild.rows + rebuild.unknown > 0)
        log_event(LOG_INFO, "lanes_rebuilt", LOG_INT("rows", rebuild.rows),
                  LOG_INT("rows_of_unknown_sinks", rebuild.unknown));

free_all:
    VEC_FREE(&rebuild.marks.all);
    free(rebuild.batches);
    return status;
}
