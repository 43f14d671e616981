/* The life of the room: opened, rebuilt from the store, fed, stopped. What happens in between is in turn.c.
 */
#include "lanes/lanes.h"

#include <stdlib.h>
#include <string.h>

#include "lanes/lanes_priv.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/cond.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/thread.h"

enum {
    LANE_IDLE_MS = 15 * 60 * 1000, /* an empty lane remembers its last ok that long */
    LANE_COST = 256,               /* bytes, for the share of memory that empty lanes may take */
};

struct sink_entry *lanes_sink_entry(struct lanes *lanes, uint32_t id)
{
    if (id >= lanes->sink_index.len || lanes->sink_index.at[id] < 0)
        return NULL;
    struct sink_entry *sink = &lanes->sinks.at[lanes->sink_index.at[id]];
    return sink->state == SINK_GONE ? NULL : sink;
}

/* Full at the bound, open again a tenth below it. What the writer has handed over and nobody has taken yet is
 * pending too: were it not counted, hooks could come in faster than rows are made of them for ever. */
void backlog_judge(struct lanes *lanes)
{
    size_t most = atomic_load(&lanes->max_pending);
    pthread_mutex_lock(&lanes->gate_lock);
    size_t used = atomic_load(&lanes->sched_bytes) + atomic_load(&lanes->boxed_bytes);
    bool full = lanes->backlog_full ? used > most - most / 10 : used > most;
    if (full != lanes->backlog_full) {
        lanes->backlog_full = full;
        store_set_backlog_full(lanes->options.store, full);
        log_event(full ? LOG_WARN : LOG_INFO, full ? "backlog_full" : "backlog_open", LOG_INT("bytes", used),
                  LOG_INT("max_bytes", most));
    }
    pthread_mutex_unlock(&lanes->gate_lock);
}

/* ---- life ---- */

struct sched_options lanes_bounds(const struct lanes_options *options)
{
    return (struct sched_options){.seed = hash_seed(),
                                  .lane_idle_ms = LANE_IDLE_MS,
                                  .lane_idle_most = options->max_pending_bytes / 4 / LANE_COST,
                                  .concurrency = options->concurrency};
}

struct sink_entry *lanes_sink_add(struct lanes *lanes, const struct lanes_sink *sink)
{
    while (lanes->sink_index.len <= sink->id)
        VEC_PUSH(&lanes->sink_index, -1);
    lanes->sink_index.at[sink->id] = (int32_t)lanes->sinks.len;
    struct sink_entry *entry = VEC_ADD(&lanes->sinks);
    *entry = (struct sink_entry){.is = *sink, .reload = lanes->reloads};
    sink_ref(sink->sink);
    sched_sink_set(lanes->sched, lanes_now(), sink->id, &sink->policy);
    return entry;
}

enum status lanes_open(const struct lanes_options *options, struct lanes **out, struct error *err)
{
    if (options->concurrency == 0 || options->max_inflight_bytes == 0)
        return error_set(err, STATUS_INVALID, "lanes: concurrency and max_inflight_bytes must be above 0");
    struct lanes *lanes = mem_zalloc(sizeof *lanes);
    lanes->options = *options;
    lanes->epoch = store_epoch(options->store);
    lanes->over = lanes->acts_closed = true; /* until there is a thread */
    list_init(&lanes->commands);
    list_init(&lanes->cold);
    atomic_store(&lanes->max_bytes, options->max_inflight_bytes);
    atomic_store(&lanes->max_pending, options->max_pending_bytes);
    struct sched_options bounds = lanes_bounds(options);
    lanes->sched = sched_new(&bounds);
    for (size_t i = 0; i < options->sink_count; i++)
        lanes_sink_add(lanes, &options->sinks[i]);
    lanes->options.sinks = NULL; /* the caller's; copied above */
    CHECK(pthread_mutex_init(&lanes->turn, NULL) == 0);
    CHECK(pthread_mutex_init(&lanes->gate_lock, NULL) == 0);
    CHECK(pthread_mutex_init(&lanes->wake_lock, NULL) == 0);
    CHECK(pthread_mutex_init(&lanes->look_lock, NULL) == 0);
    cond_init_monotonic(&lanes->wake_cond);
    cond_init_monotonic(&lanes->look_cond);
    CHECK(pthread_mutex_init(&lanes->act_lock, NULL) == 0);
    cond_init_monotonic(&lanes->act_cond);
    inbox_init(&lanes->committed, lanes_wake, lanes);
    inbox_init(&lanes->outcomes, outcomes_came, lanes);
    cache_open(&lanes->cache);
    expiry_open(lanes);
    atomic_store(&lanes->beat_ms, clock_mono_ms());
    gauges_open(lanes);
    deliver_on_round(options->deliver, turn_of_loop, lanes);
    *out = lanes;
    return STATUS_OK;
}

enum status lanes_start(struct lanes *lanes, struct error *err)
{
    enum status status = lanes_rebuild(lanes, err);
    if (status != STATUS_OK)
        return status;
    status = store_reader_open(lanes->options.store, &lanes->reader, err);
    if (status != STATUS_OK)
        return status;
    gauges_publish(lanes);
    lanes->over = lanes->acts_closed = false;
    if (thread_start(&lanes->thread, "lanes", turns_run, lanes) != 0) {
        lanes->over = lanes->acts_closed = true;
        store_reader_close(lanes->reader);
        lanes->reader = NULL;
        return error_set(err, STATUS_IO, "lanes: no thread to be had");
    }
    lanes->running = true;
    return STATUS_OK;
}

/* An envelope is kept while there is room; else the hook is read back when it is due. */
void lanes_committed(void *ctx, struct store_hook *const *hooks, size_t count)
{
    struct lanes *lanes = ctx;
    struct list parcels = LIST_INIT(parcels);
    size_t boxed = 0;
    for (size_t i = 0; i < count; i++) {
        if (hooks[i]->row_count == 0)
            continue;
        struct parcel *parcel = parcel_new(hooks[i]);
        boxed += parcel->alloc_size;
        atomic_fetch_add(&lanes->came, parcel->row_count);
        size_t size = envelope_size(hooks[i]->envelope) + sizeof *parcel;
        if (atomic_load(&lanes->held_bytes) + atomic_load(&lanes->flight_bytes) + size <=
            atomic_load(&lanes->max_bytes)) {
            atomic_fetch_add(&lanes->held_bytes, size);
            parcel->size = size;
            parcel->envelope = envelope_ref(hooks[i]->envelope);
        }
        list_append(&parcels, &parcel->node);
    }
    boxed += atomic_fetch_add(&lanes->boxed_bytes, boxed); /* before they can be taken */
    inbox_put_all(&lanes->committed, &parcels);
    if (boxed + atomic_load(&lanes->sched_bytes) > atomic_load(&lanes->max_pending))
        backlog_judge(lanes);
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
    snapshots_close(lanes);
    sched_free(lanes->sched);
    VEC_FREE(&lanes->notices);
    VEC_FREE(&lanes->replays);
    pthread_mutex_destroy(&lanes->turn);
    pthread_mutex_destroy(&lanes->gate_lock);
    pthread_cond_destroy(&lanes->wake_cond);
    pthread_cond_destroy(&lanes->look_cond);
    pthread_mutex_destroy(&lanes->wake_lock);
    pthread_mutex_destroy(&lanes->look_lock);
    pthread_cond_destroy(&lanes->act_cond);
    pthread_mutex_destroy(&lanes->act_lock);
    VEC_EACH (sink, &lanes->sinks)
        sink_close(sink->is.sink);
    VEC_FREE(&lanes->sinks);
    VEC_FREE(&lanes->sink_index);
    VEC_FREE(&lanes->strange);
    free(lanes->views);
    free(lanes->sums);
    free(lanes);
}
