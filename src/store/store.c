/* Opening and closing, and the gate in front of the writer. */
#include "store/store.h"

#include <stdlib.h>
#include <unistd.h>

#include "store/store_priv.h"
#include "util/check.h"
#include "util/clock.h"

static void collect_pen(void *ctx, const struct store_pen_sum *sum)
{
    const struct store *store = ctx;
    gauge_set(metrics_series3(store->options.metrics, METRIC_QUARANTINE_HOOKS, sum->source, NULL, NULL),
              (double)sum->hooks);
    gauge_set(metrics_series3(store->options.metrics, METRIC_QUARANTINE_BYTES, sum->source, NULL, NULL),
              (double)sum->bytes);
}

static void collect(void *ctx)
{
    struct store *store = ctx;
    store_pen_sums(store, collect_pen, store);
    gauge_set(store->keys_gauge, (double)atomic_load(&store->claims.keys));
    gauge_set(store->disk_gauge, (double)atomic_load(&store->disk_bytes));
    gauge_set(store->queue_gauge, (double)atomic_load(&store->queue.hooks));
    gauge_set(store->queue_bytes_gauge, (double)atomic_load(&store->queue.bytes));
    gauge_set(store->free_gauge, (double)atomic_load(&store->free_bytes));
}

static void open_metrics(struct store *store)
{
    struct metrics *metrics = store->options.metrics;
    if (!metrics)
        return;
    store->commit_duration = metrics_series3(metrics, METRIC_STORE_COMMIT_DURATION, NULL, NULL, NULL);
    store->commit_batch = metrics_series3(metrics, METRIC_STORE_COMMIT_BATCH, NULL, NULL, NULL);
    store->commit_failures = metrics_series3(metrics, METRIC_STORE_COMMIT_FAILURES, NULL, NULL, NULL);
    store->disk_gauge = metrics_series3(metrics, METRIC_STORE_DISK_BYTES, NULL, NULL, NULL);
    store->keys_gauge = metrics_series3(metrics, METRIC_DEDUPE_KEYS, NULL, NULL, NULL);
    store->queue_gauge = metrics_series3(metrics, METRIC_STORE_QUEUE_HOOKS, NULL, NULL, NULL);
    store->queue_bytes_gauge = metrics_series3(metrics, METRIC_STORE_QUEUE_BYTES, NULL, NULL, NULL);
    store->free_gauge = metrics_series3(metrics, METRIC_DISK_FREE_BYTES, NULL, NULL, NULL);
    metrics_on_scrape(metrics, collect, store);
}

enum status store_open(const struct store_options *options, struct store **out, struct error *err)
{
    CHECK(options->max_batch > 0 && options->max_batch_bytes > 0 && options->max_queue > 0);
    *out = NULL;
    enum status status = begin_dir(options->data_dir, err);
    if (status != STATUS_OK)
        return status;
    int lock_fd;
    status = lock_take(options->data_dir, false, &lock_fd, err);
    if (status != STATUS_OK)
        return status;

    char *path = mem_format("%s/store.db", options->data_dir);
    status = begin_store(path, err);
    if (status != STATUS_OK)
        goto drop_lock;

    struct store *store = mem_zalloc(sizeof *store);
    store->options = *options;
    store->lock_fd = lock_fd;
    store->data_dir = mem_strdup(options->data_dir);
    store->path = path;
    names_init(&store->names);
    queue_init(&store->queue);
    changes_init(&store->changes);
    dlq_open(store);
    pen_init(&store->pen);
    shares_open(store);
    changes_set_stuck(&store->changes, true); /* until there is a writer */

    status = writer_open(store, err);
    if (status != STATUS_OK)
        goto close_writer;
    status = names_load(&store->names, &store->writer.db, err);
    if (status == STATUS_OK)
        status = blocks_load(store, err);
    if (status == STATUS_OK)
        status = claims_load(store, err);
    if (status == STATUS_OK)
        status = pen_load(store, err);
    if (status != STATUS_OK)
        goto close_writer;
    status = checkpoint_open(store, err);
    if (status != STATUS_OK)
        goto close_checkpoint;
    status = keeper_open(store, err);
    if (status != STATUS_OK)
        goto close_keeper;
    keeper_sample(store);
    open_metrics(store);
    *out = store;
    return STATUS_OK;

close_keeper:
    keeper_close(store);
close_checkpoint:
    checkpoint_close(store);
close_writer:
    writer_close(store);
    blocks_free(&store->blocks);
    claims_free(&store->claims);
    pen_free(&store->pen);
    shares_close(store);
    changes_free(&store->changes);
    dlq_close(&store->dlq);
    queue_free(&store->queue);
    names_free(&store->names);
    free(store->data_dir);
    free(store);
drop_lock:
    free(path);
    lock_drop(lock_fd);
    return status;
}

enum status store_start(struct store *store, struct error *err)
{
    enum status status = STATUS_OK;
    if (!store->scanned)
        status = store_scan(store, NULL, NULL, err);
    if (status != STATUS_OK)
        return status;
    blocks_counted(&store->blocks);
    status = replays_settle_accounts(store, err);
    if (status == STATUS_OK)
        status = dlq_load(store, err);
    if (status == STATUS_OK)
        status = checkpoint_start(store, err);
    if (status == STATUS_OK)
        status = keeper_start(store, err);
    if (status == STATUS_OK)
        status = writer_start(store, err);
    if (status != STATUS_OK)
        return status;
    changes_set_stuck(&store->changes, false);
    atomic_store(&store->running, true);
    return STATUS_OK;
}

void store_stop(struct store *store)
{
    atomic_store(&store->draining, true);
    writer_stop(store);
    changes_set_stuck(&store->changes, true);
    keeper_stop(store);
    checkpoint_stop(store);
    atomic_store(&store->running, false);
    sqlite3_wal_checkpoint_v2(store->writer.db.handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

void store_close(struct store *store)
{
    if (!store)
        return;
    store_stop(store);
    keeper_close(store);
    checkpoint_close(store);
    writer_close(store);
    blocks_free(&store->blocks);
    claims_free(&store->claims);
    pen_free(&store->pen);
    shares_close(store);
    changes_free(&store->changes);
    dlq_close(&store->dlq);
    queue_free(&store->queue);
    names_free(&store->names);
    free(store->path);
    free(store->data_dir);
    lock_drop(store->lock_fd);
    free(store);
}

struct uuid store_epoch(const struct store *store)
{
    return store->epoch;
}

/* A disk that does not come back fails nothing, and the writer sits in a system call: only the clock tells.
 */
static bool hangs(const struct store *store)
{
    enum { PART_OF_TIMEOUT = 3, LEAST_MS = 100 };
    int64_t since_us = atomic_load_explicit(&store->writing_since_us, memory_order_relaxed);
    if (!since_us)
        return false;
    int64_t patience_ms = store->options.commit_timeout_ms / PART_OF_TIMEOUT;
    return clock_mono_us() - since_us > (patience_ms < LEAST_MS ? LEAST_MS : patience_ms) * 1000;
}

enum status store_commit(struct store *store, struct store_hook *hook)
{
    struct queue *queue = &store->queue;
    if (!atomic_load(&store->running))
        return STATUS_UNAVAILABLE;
    if (atomic_load_explicit(&store->undecided, memory_order_relaxed) || hangs(store))
        return STATUS_UNAVAILABLE;
    if (atomic_load_explicit(&store->disk_full, memory_order_relaxed))
        return STATUS_DISK_FULL;
    bool owed = !hook->pen_reason; /* what goes into the pen is nobody's to deliver */
    if (owed && atomic_load_explicit(&store->backlog_full, memory_order_relaxed))
        return STATUS_BACKLOG_FULL;
    if (owed && atomic_load_explicit(&store->dlq.full, memory_order_relaxed) > 0 &&
        dlq_is_full(&store->dlq, hook->envelope->source))
        return STATUS_DLQ_FULL;

    claim_make(hook);
    hook->head = envelope_encode_in(hook->envelope, hook->envelope->arena);
    if (!owed && !pen_reserve(store, hook))
        return STATUS_PEN_FULL;
    size_t bytes = store_hook_bytes(hook);
    enum status status = STATUS_OK;
    size_t hooks = atomic_fetch_add(&queue->hooks, 1);
    size_t held = atomic_fetch_add(&queue->bytes, bytes);
    if (hooks >= store->options.max_queue ||
        (held > 0 && held + bytes > store->options.max_queue_bytes)) /* one alone always fits */
        status = STATUS_FULL;
    else if (hook->shares_queue && !share_take(store, hook, bytes, hooks, held))
        status = STATUS_SHARE_FULL;
    /* After the count: a writer that goes waits for what was counted before it looked. */
    if (atomic_load(&store->draining))
        status = STATUS_DRAINING;
    if (status != STATUS_OK) {
        share_leave(hook, bytes);
        atomic_fetch_sub(&queue->bytes, bytes);
        atomic_fetch_sub(&queue->hooks, 1);
        if (!owed)
            pen_unreserve(store, hook);
        return status;
    }
    queue_push(queue, &hook->node);
    return STATUS_OK;
}

void store_set_backlog_full(struct store *store, bool full)
{
    atomic_store(&store->backlog_full, full);
}

bool store_writes(const struct store *store)
{
    return !atomic_load(&store->undecided) && !atomic_load(&store->failing) && !hangs(store);
}

bool store_available(const struct store *store)
{
    return atomic_load(&store->running) && !atomic_load(&store->draining) &&
           !atomic_load(&store->undecided) && !atomic_load(&store->failing) &&
           !atomic_load(&store->disk_full) && !hangs(store);
}

enum status store_sink_id(struct store *store, const char *source, const char *sink, uint32_t *id,
                          struct error *err)
{
    const struct name *name = names_add(&store->names, NAME_SINK, bytes_str(source), bytes_str(sink));
    if (!name)
        return error_set(err, STATUS_FULL, "the store knows %d names, and takes no more", NAMES_MAX);
    *id = name->id;
    if (names_all_durable(&store->names, name->id))
        return STATUS_OK;
    if (!store->writer.started)
        return writer_store_names(store) ? STATUS_OK
                                         : error_set(err, STATUS_IO, "the sink %s/%s can't be stored: %s",
                                                     source, sink, db_problem(&store->writer.db));
    queue_poke(&store->queue);
    while (!names_all_durable(&store->names, name->id)) {
        if (!store_available(store))
            return error_set(err, STATUS_UNAVAILABLE, "the sink %s/%s can't be stored now", source, sink);
        usleep(1000); /* a reload, and a new sink: rare */
    }
    return STATUS_OK;
}

bool store_sink_name(const struct store *store, uint32_t id, const char **source, const char **sink)
{
    const struct name *name = names_by_id((struct names *)&store->names, id);
    if (!name || name->kind != NAME_SINK)
        return false;
    *source = name->text;
    *sink = name->sink;
    return true;
}

const char *store_tenant_name(const struct store *store, uint32_t id)
{
    const struct name *name = names_by_id((struct names *)&store->names, id);
    return name && name->kind == NAME_TENANT ? name->text : NULL;
}

bool store_tenant_find(const struct store *store, struct bytes text, uint32_t *id)
{
    const struct name *name = names_find((struct names *)&store->names, NAME_TENANT, text, BYTES_NONE);
    if (name)
        *id = name->id;
    return name != NULL;
}

bool store_knows(const struct store *store, struct bytes source, struct bytes sink)
{
    return names_any_sink((struct names *)&store->names, source, sink);
}

void store_stats(struct store *store, struct store_stats *out)
{
    *out = (struct store_stats){
        .hooks = atomic_load(&store->hooks),
        .next_seq = atomic_load(&store->next_seq),
        .dead = atomic_load(&store->dead),
        .dedupe_keys = atomic_load(&store->claims.keys),
        .disk_bytes = atomic_load(&store->disk_bytes),
        .free_bytes = atomic_load(&store->free_bytes),
        .log_bytes = atomic_load(&store->log_bytes),
        .queued = atomic_load(&store->queue.hooks),
        .queued_bytes = atomic_load(&store->queue.bytes),
        .available = store_available(store),
        .disk_full = atomic_load(&store->disk_full),
        .backlog_full = atomic_load(&store->backlog_full),
        .draining = atomic_load(&store->draining),
        .undecided = atomic_load(&store->undecided),
        .hung = hangs(store),
        .failing = atomic_load(&store->failing),
        .layout = schema_newest(),
        .dead_bytes = dlq_bytes(&store->dlq),
        .retention_ms = store->options.retention_ms,
        .max_bytes = store->options.max_bytes,
        .min_free_bytes = store->options.min_free_bytes,
        .committed_ms = atomic_load(&store->committed_ms),
        .commit_us = atomic_load(&store->commit_us),
        .undecided_since_ms = atomic_load(&store->undecided_since_ms),
        .checkpoint_ms = atomic_load(&store->log.at_ms),
        .log_left_bytes = checkpoint_left(&store->log),
        .restored_ms = store->restored_ms,
        .restored_from = store->restored_from,
    };
    pthread_mutex_lock(&store->pen.lock);
    VEC_EACH (sum, &store->pen.sums) {
        out->pen_hooks += sum->hooks;
        out->pen_bytes += sum->bytes;
    }
    pthread_mutex_unlock(&store->pen.lock);
}
