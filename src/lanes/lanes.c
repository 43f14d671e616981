/* The lanes thread: one loop that takes what came, lets time pass, starts what may start, and sleeps until
 * the next due time or the next wake. */
#include "lanes/lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lanes/lanes_priv.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"

enum {
    LANE_IDLE_MS = 15 * 60 * 1000, /* an empty lane remembers its last ok that long */
    LANE_COST = 256,               /* bytes, for the share of memory that empty lanes may take */
    PUBLISH_MS = 20,               /* how far the view of the sinks may be behind */
    DURABLE_LOOK_MS = 4,           /* while a lane waits for the disk */
    BEAT_MS = 5000,                /* the loop turns at least that often */
    STORE_AWAY_MS = 100,           /* and that often while the store can't write */
};

struct sched_time lanes_now(void)
{
    return (struct sched_time){clock_mono_ms(), clock_unix_ms()};
}

struct sink_entry *lanes_sink_entry(struct lanes *lanes, uint32_t id)
{
    if (id >= lanes->sink_index.len || lanes->sink_index.at[id] < 0)
        return NULL;
    return &lanes->sinks.at[lanes->sink_index.at[id]];
}

/* ---- waking and sleeping ---- */

void lanes_wake(void *ctx)
{
    struct lanes *lanes = ctx;
    pthread_mutex_lock(&lanes->wake_lock);
    bool slept = !lanes->awake;
    lanes->awake = true;
    pthread_mutex_unlock(&lanes->wake_lock);
    if (slept) /* behind the lock: who is woken would only wait for it */
        pthread_cond_signal(&lanes->wake_cond);
}

static void sleep_until(struct lanes *lanes, int64_t until_ms)
{
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    pthread_mutex_lock(&lanes->wake_lock);
    while (!lanes->awake && pthread_cond_timedwait(&lanes->wake_cond, &lanes->wake_lock, &until) != ETIMEDOUT)
        ;
    lanes->awake = false;
    pthread_mutex_unlock(&lanes->wake_lock);
}

static void cond_open(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    CHECK(pthread_condattr_init(&attr) == 0);
    CHECK(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(cond, &attr) == 0);
    pthread_condattr_destroy(&attr);
}

/* ---- the loop ---- */

static void take_committed(struct lanes *lanes)
{
    struct list parcels = LIST_INIT(parcels);
    if (!inbox_take(&lanes->committed, &parcels))
        return;
    struct sched_time now = lanes_now();
    for (struct list *node; (node = list_pop(&parcels));) {
        struct parcel *parcel = LIST_OWNER(node, struct parcel, node);
        parcel->came_ms = now.mono_ms;
        lanes->taken += parcel->row_count;
        for (uint32_t i = 0; i < parcel->row_count; i++) {
            struct parcel_row *row = &parcel->rows[i];
            if (lanes_sink_entry(lanes, row->place.sink)) {
                sched_commit(lanes->sched, now, &row->place, parcel->seq, parcel->received_ms);
                continue;
            }
            row->gone = true;
            parcel->rows_left--;
        }
        cache_add(lanes, parcel);
    }
    lanes->dirty = true;
}

/* Full at the bound, open again a tenth below it. */
static void watch_backlog(struct lanes *lanes)
{
    size_t most = lanes->options.max_pending_bytes, used = sched_memory(lanes->sched);
    bool full = lanes->backlog_full ? used > most - most / 10 : used > most;
    if (full == lanes->backlog_full)
        return;
    lanes->backlog_full = full;
    store_set_backlog_full(lanes->options.store, full);
    log_event(full ? LOG_WARN : LOG_INFO, full ? "backlog_full" : "backlog_open", LOG_INT("bytes", used),
              LOG_INT("max_bytes", most));
}

/* Everything said so far was given to the store: when that is durable, lanes go on. */
static void ask_durable(struct lanes *lanes)
{
    if (lanes->durable_asked || !sched_awaits_durable(lanes->sched, &lanes->durable_said))
        return;
    lanes->durable_given = store_changes_given(lanes->options.store);
    lanes->durable_asked = true;
}

static void hear_durable(struct lanes *lanes)
{
    if (!lanes->durable_asked || !store_changes_written(lanes->options.store, lanes->durable_given))
        return;
    lanes->durable_asked = false;
    sched_durable(lanes->sched, lanes_now(), lanes->durable_said);
}

static int64_t next_turn(struct lanes *lanes)
{
    int64_t until_ms = clock_mono_ms() + (lanes->store_away ? STORE_AWAY_MS : BEAT_MS);
    int64_t due_ms = sched_next_due(lanes->sched);
    if (due_ms < until_ms)
        until_ms = due_ms;
    if (lanes->durable_asked && clock_mono_ms() + DURABLE_LOOK_MS < until_ms)
        until_ms = clock_mono_ms() + DURABLE_LOOK_MS;
    if (lanes->dirty && lanes->published_ms + PUBLISH_MS < until_ms)
        until_ms = lanes->published_ms + PUBLISH_MS;
    if (expiry_due_ms(lanes) < until_ms)
        until_ms = expiry_due_ms(lanes);
    return until_ms;
}

/* One turn; false when everything is written and the thread may end. */
static bool turn(struct lanes *lanes)
{
    bool last = atomic_load(&lanes->stopping);
    struct list outcomes = LIST_INIT(outcomes), changes = LIST_INIT(changes);
    atomic_store(&lanes->beat_ms, clock_mono_ms());
    take_committed(lanes);
    sched_tick(lanes->sched, lanes_now());
    acts_run(lanes);
    hear_durable(lanes);
    if (inbox_take(&lanes->outcomes, &outcomes))
        attempts_end(lanes, &outcomes, &changes);
    attempts_start(lanes, &changes);
    tell_actions(lanes, NULL, &changes);
    if (!list_empty(&changes))
        store_changes(lanes->options.store, &changes);
    ask_durable(lanes);
    watch_backlog(lanes);
    bool more = snapshot_build(lanes);
    more |= expiry_turn(lanes);
    if (lanes->dirty && clock_mono_ms() - lanes->published_ms >= PUBLISH_MS)
        gauges_publish(lanes);
    if (last)
        return false;
    if (!more)
        sleep_until(lanes, next_turn(lanes));
    return true;
}

static void *run(void *ctx)
{
    struct lanes *lanes = ctx;
    while (turn(lanes))
        ;
    acts_close(lanes);
    gauges_publish(lanes);
    pthread_mutex_lock(&lanes->look_lock);
    lanes->over = true;
    pthread_cond_broadcast(&lanes->look_cond);
    pthread_mutex_unlock(&lanes->look_lock);
    return NULL;
}

/* ---- life ---- */

enum status lanes_open(const struct lanes_options *options, struct lanes **out, struct error *err)
{
    if (options->concurrency == 0 || options->max_inflight_bytes == 0)
        return error_set(err, STATUS_INVALID, "lanes: concurrency and max_inflight_bytes must be above 0");
    struct lanes *lanes = mem_zalloc(sizeof *lanes);
    lanes->options = *options;
    lanes->epoch = store_epoch(options->store);
    lanes->over = lanes->acts_closed = true; /* until there is a thread */
    list_init(&lanes->commands);
    struct sched_options rules = {.seed = hash_seed(),
                                  .lane_idle_ms = LANE_IDLE_MS,
                                  .lane_idle_most = options->max_pending_bytes / 4 / LANE_COST,
                                  .concurrency = options->concurrency};
    lanes->sched = sched_new(&rules);
    for (size_t i = 0; i < options->sink_count; i++) {
        const struct lanes_sink *sink = &options->sinks[i];
        while (lanes->sink_index.len <= sink->id)
            VEC_PUSH(&lanes->sink_index, -1);
        lanes->sink_index.at[sink->id] = (int32_t)i;
        VEC_PUSH(&lanes->sinks, ((struct sink_entry){.is = *sink}));
        sched_sink_set(lanes->sched, lanes_now(), sink->id, &sink->policy);
    }
    lanes->options.sinks = NULL; /* the caller's; copied above */
    CHECK(pthread_mutex_init(&lanes->wake_lock, NULL) == 0);
    CHECK(pthread_mutex_init(&lanes->look_lock, NULL) == 0);
    cond_open(&lanes->wake_cond);
    cond_open(&lanes->look_cond);
    CHECK(pthread_mutex_init(&lanes->act_lock, NULL) == 0);
    cond_open(&lanes->act_cond);
    inbox_init(&lanes->committed, lanes_wake, lanes);
    inbox_init(&lanes->outcomes, lanes_wake, lanes);
    cache_open(&lanes->cache);
    expiry_open(lanes);
    atomic_store(&lanes->beat_ms, clock_mono_ms());
    gauges_open(lanes);
    *out = lanes;
    return STATUS_OK;
}

struct rebuild {
    struct lanes *lanes;
    struct sched_time now;
    struct marks marks;
    uint64_t rows, unknown;
};

static bool restore(void *ctx, const struct store_owed *row)
{
    struct rebuild *rebuild = ctx;
    struct lanes *lanes = rebuild->lanes;
    struct sink_entry *sink = lanes_sink_entry(lanes, row->sink);
    if (!sink) { /* its rows stay owed in the store, until the sink is back or retired */
        rebuild->unknown++;
        return true;
    }
    struct sched_place place = {.sink = row->sink, .tenant = row->tenant, .ordered = row->ordered};
    memcpy(place.lane, row->lane, sizeof place.lane);
    struct sched_owed owed = {.seq = row->seq,
                              .received_ms = row->received_at_ms,
                              .state = row->state == ROW_PENDING ? OWED_PENDING
                                       : row->state == ROW_HELD  ? OWED_HELD
                                                                 : OWED_DEAD,
                              .late = row->late,
                              .attempts = row->attempts,
                              .first_attempt_ms = row->first_attempt_ms,
                              .waived_ms = row->waived_ms + marks_waived_ms(&rebuild->marks, row),
                              .dead_at_ms = row->state == ROW_PENDING ? 0 : row->at_ms};
    sched_restore(lanes->sched, rebuild->now, &place, &owed);
    rebuild->rows++;
    return true;
}

enum status lanes_start(struct lanes *lanes, struct error *err)
{
    struct rebuild rebuild = {.lanes = lanes, .now = lanes_now()};
    enum status status = marks_load(&rebuild.marks, lanes, rebuild.now, err);
    if (status == STATUS_OK)
        status = store_scan(lanes->options.store, restore, &rebuild, err);
    if (status == STATUS_OK)
        marks_restore_lanes(&rebuild.marks);
    VEC_FREE(&rebuild.marks.all);
    if (status != STATUS_OK)
        return status;
    if (rebuild.rows + rebuild.unknown > 0)
        log_event(LOG_INFO, "lanes_rebuilt", LOG_INT("rows", rebuild.rows),
                  LOG_INT("rows_of_unknown_sinks", rebuild.unknown));
    status = store_reader_open(lanes->options.store, &lanes->reader, err);
    if (status != STATUS_OK)
        return status;
    gauges_publish(lanes);
    lanes->over = lanes->acts_closed = false;
    if (pthread_create(&lanes->thread, NULL, run, lanes) != 0) {
        lanes->over = lanes->acts_closed = true;
        store_reader_close(lanes->reader);
        lanes->reader = NULL;
        return error_set(err, STATUS_IO, "lanes: no thread to be had");
    }
    pthread_setname_np(lanes->thread, "lanes");
    lanes->running = true;
    return STATUS_OK;
}

/* An envelope is kept while there is room; else the hook is read back when it is due. */
void lanes_committed(void *ctx, struct store_hook *const *hooks, size_t count)
{
    struct lanes *lanes = ctx;
    struct list parcels = LIST_INIT(parcels);
    for (size_t i = 0; i < count; i++) {
        if (hooks[i]->row_count == 0)
            continue;
        struct parcel *parcel = parcel_new(hooks[i]);
        atomic_fetch_add(&lanes->came, parcel->row_count);
        size_t size = envelope_size(hooks[i]->envelope) + sizeof *parcel;
        if (atomic_load(&lanes->held_bytes) + atomic_load(&lanes->flight_bytes) + size <=
            lanes->options.max_inflight_bytes) {
            atomic_fetch_add(&lanes->held_bytes, size);
            parcel->size = size;
            parcel->envelope = envelope_ref(hooks[i]->envelope);
        }
        list_append(&parcels, &parcel->node);
    }
    inbox_put_all(&lanes->committed, &parcels);
}

void lanes_quiesce(struct lanes *lanes)
{
    atomic_store(&lanes->quiesced, true);
}

size_t lanes_inflight(struct lanes *lanes)
{
    return atomic_load(&lanes->inflight);
}

void lanes_stop(struct lanes *lanes)
{
    if (!lanes->running)
        return;
    lanes_quiesce(lanes);
    atomic_store(&lanes->stopping, true);
    lanes_wake(lanes);
    CHECK(pthread_join(lanes->thread, NULL) == 0);
    lanes->running = false;
    store_reader_close(lanes->reader);
    lanes->reader = NULL;
}

void lanes_close(struct lanes *lanes)
{
    if (!lanes)
        return;
    CHECK(!lanes->running);
    struct list left =
        LIST_INIT(left); /* committed after the thread ended: in the store, for the next start */
    inbox_take(&lanes->committed, &left);
    for (struct list *node; (node = list_pop(&left));)
        parcel_free(lanes, LIST_OWNER(node, struct parcel, node));
    cache_close(lanes);
    inbox_destroy(&lanes->committed);
    inbox_destroy(&lanes->outcomes);
    snapshot_unref(lanes->snapshot);
    snapshot_unref(lanes->building);
    sched_free(lanes->sched);
    pthread_cond_destroy(&lanes->wake_cond);
    pthread_cond_destroy(&lanes->look_cond);
    pthread_mutex_destroy(&lanes->wake_lock);
    pthread_mutex_destroy(&lanes->look_lock);
    pthread_cond_destroy(&lanes->act_cond);
    pthread_mutex_destroy(&lanes->act_lock);
    VEC_FREE(&lanes->sinks);
    VEC_FREE(&lanes->sink_index);
    free(lanes->views);
    free(lanes->sums);
    free(lanes);
}
