/* The writer: everything that waits becomes one transaction with one sync. A sync takes a few hundred
 * microseconds, and what arrives meanwhile is the next batch; there is no timer to tune. */
#include <stdlib.h>

#include "store/store_priv.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/thread.h"

enum {
    CHANGES_MAX = 8192, /* outcomes a transaction */
    PAUSE_MS = 100,     /* after a failure that was rolled back */
    LAST_TRIES = 3,     /* failures in a row that end a drain */
};

static const char *const texts[] = {
#define WRITER_SQL_TEXT(id, text) text,
    WRITER_SQL(WRITER_SQL_TEXT)
#undef WRITER_SQL_TEXT
};

size_t store_hook_bytes(const struct store_hook *hook)
{
    size_t bytes = hook->envelope->body.len + hook->head.len;
    for (size_t i = 0; i < hook->row_count; i++)
        bytes += hook->rows[i].key.len + 64;
    return bytes;
}

static void leave_queue(struct store *store, struct store_hook *hook)
{
    size_t bytes = store_hook_bytes(hook);
    share_leave(hook, bytes);
    atomic_fetch_sub(&store->queue.bytes, bytes);
    atomic_fetch_sub(&store->queue.hooks, 1);
}

/* Numbers for its names. False for a stranger's tenant when there are too many already: this hook's fault,
 * and not to be paid for by its neighbours. */
static bool name_hook(struct store *store, struct store_hook *hook)
{
    const struct envelope *envelope = hook->envelope;
    const struct name *tenant = names_add(&store->names, NAME_TENANT, envelope->tenant, BYTES_NONE);
    const struct name *source = names_add(&store->names, NAME_SOURCE, envelope->source, BYTES_NONE);
    hook->tenant = tenant ? tenant->id : 0;
    hook->source = source ? source->id : 0;
    return tenant && source;
}

static void refuse(struct store *store, struct store_hook *hook)
{
    if (hook->pen_reason)
        pen_unreserve(store, hook);
    hook->done(hook, STATUS_UNAVAILABLE);
}

static void form_batch(struct store *store)
{
    struct writer *writer = &store->writer;
    size_t bytes = 0;
    writer->batch_len = 0;
    while (!list_empty(&writer->waiting) && writer->batch_len < store->options.max_batch) {
        struct store_hook *hook = LIST_OWNER(writer->waiting.next, struct store_hook, node);
        bytes += store_hook_bytes(hook);
        if (bytes > store->options.max_batch_bytes && writer->batch_len > 0)
            break;
        list_remove(&hook->node);
        leave_queue(store, hook);
        if (name_hook(store, hook))
            writer->batch[writer->batch_len++] = hook;
        else
            refuse(store, hook);
    }
}

static bool insert_rows(sqlite3_stmt *insert, const struct store_hook *hook, uint64_t seq)
{
    for (size_t i = 0; i < hook->row_count; i++) {
        const struct store_row *row = &hook->rows[i];
        sqlite3_bind_int64(insert, 1, (int64_t)seq);
        sqlite3_bind_int64(insert, 2, row->sink);
        sqlite3_bind_int64(insert, 3, hook->tenant);
        db_bind(insert, 4, row->ordered ? bytes_of(row->lane, sizeof row->lane) : BYTES_NONE);
        db_bind(insert, 5, row->ordered ? row->key : BYTES_NONE);
        sqlite3_bind_int64(insert, 6, hook->envelope->received_at_ms);
        sqlite3_bind_int64(insert, 7, (int64_t)(hook->head.len + hook->envelope->body.len));
        if (!db_run(insert))
            return false;
    }
    return true;
}

static bool insert_hook(struct store *store, const struct store_hook *hook, uint64_t seq)
{
    const struct envelope *envelope = hook->envelope;
    sqlite3_stmt *insert = store->writer.db.sql[WRITER_HOOK];
    sqlite3_bind_int64(insert, 1, (int64_t)seq);
    sqlite3_bind_blob(insert, 2, envelope->id.bytes, sizeof envelope->id.bytes, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 3, envelope->received_at_ms);
    sqlite3_bind_int64(insert, 4, hook->tenant);
    sqlite3_bind_int64(insert, 5, hook->source);
    db_bind(insert, 6, hook->head);
    db_bind(insert, 7, envelope->body.at ? envelope->body : BYTES(""));
    return db_run(insert) && insert_rows(store->writer.db.sql[WRITER_ROW], hook, seq);
}

bool writer_put_floor(struct store *store)
{
    sqlite3_stmt *put = store->writer.db.sql[WRITER_META];
    sqlite3_bind_text(put, 1, "seq_floor", -1, SQLITE_STATIC);
    sqlite3_bind_int64(put, 2, (int64_t)store->writer.next_seq);
    return db_run(put);
}

/* All of a transaction but its commit. Blocks come before changes, which may correct them. */
static bool fill_transaction(struct store *store, uint64_t first_seq)
{
    struct writer *writer = &store->writer;
    if (!db_run(writer->db.sql[WRITER_BEGIN]) || !blocks_write(store) || !claims_sweep(store))
        return false;
    for (size_t i = 0; i < writer->batch_len; i++) {
        if (!insert_hook(store, writer->batch[i], first_seq + i) ||
            !claim_write(store, writer->batch[i], first_seq + i))
            return false;
    }
    if (!pen_write(store, first_seq))
        return false;
    if (writer->floor_dirty && !writer_put_floor(store))
        return false;
    return names_write(&store->names, writer->db.sql[WRITER_NAME]) &&
           changes_write(store, &writer->changes) && remove_step(store);
}

static void observe(struct store *store, int64_t started_us)
{
    int64_t took_us = clock_mono_us() - started_us;
    atomic_store_explicit(&store->commit_us, took_us, memory_order_relaxed);
    atomic_store_explicit(&store->committed_ms, clock_unix_ms(), memory_order_relaxed);
    if (!store->commit_duration)
        return;
    histogram_observe(store->commit_duration, (double)took_us / 1e6);
    if (store->writer.batch_len > 0)
        histogram_observe(store->commit_batch, (double)store->writer.batch_len);
}

void writer_answer(struct store *store, enum status status)
{
    struct writer *writer = &store->writer;
    bool told = store->options.answering && (writer->batch_len > 0 || !list_empty(&store->claims.twins) ||
                                             !list_empty(&store->pen.batch));
    if (told)
        store->options.answering(store->options.ctx, true);
    for (size_t i = 0; i < writer->batch_len; i++)
        writer->batch[i]->done(writer->batch[i], status);
    writer->batch_len = 0;
    struct list *node;
    while ((node = list_pop(&store->claims.twins))) {
        struct store_hook *twin = LIST_OWNER(node, struct store_hook, node);
        twin->done(twin, status);
    }
    pen_answer(store, status);
    if (told)
        store->options.answering(store->options.ctx, false);
}

static void count_failure(struct store *store)
{
    store->writer.failures++;
    if (store->commit_failures)
        counter_add(store->commit_failures, 1);
}

static void count_success(struct store *store)
{
    if (atomic_exchange(&store->failing, false))
        log_event(LOG_INFO, "store_write_ok", LOG_INT("failures", store->writer.failures));
    store->writer.failures = 0;
}

/* It is durable: memory follows the disk, then the world is told. */
static void settle(struct store *store, uint64_t first_seq)
{
    struct writer *writer = &store->writer;
    writer->floor_dirty = false;
    names_written(&store->names);
    blocks_written(store);
    remove_written(store);
    for (size_t i = 0; i < writer->batch_len; i++) {
        struct store_hook *hook = writer->batch[i];
        hook->envelope->seq = first_seq + i;
        blocks_add_hook(&store->blocks, hook->envelope, hook->row_count);
    }
    claims_written(store);
    pen_written(store);
    changes_written(store, &writer->changes);
    atomic_fetch_add(&store->hooks, writer->batch_len);
    if (writer->batch_len > 0 && store->options.committed)
        store->options.committed(store->options.ctx, writer->batch, writer->batch_len);
    writer_answer(store, STATUS_OK);
}

static void commit(struct store *store)
{
    struct writer *writer = &store->writer;
    int64_t started_us = clock_mono_us();
    form_batch(store);
    if (list_empty(&writer->changes))
        changes_take(&store->changes, &writer->changes, CHANGES_MAX);

    if (!pen_part(store) || !claims_part(store))
        goto not_written;

    /* Whatever becomes of the batch, its seqs are used up. */
    uint64_t first_seq = writer->next_seq;
    writer->next_seq += writer->batch_len;
    atomic_store(&store->next_seq, writer->next_seq);

    if (!fill_transaction(store, first_seq))
        goto not_written;
    if (!db_run(writer->db.sql[WRITER_COMMIT]))
        goto undecided;
    count_success(store);
    observe(store, started_us);
    settle(store, first_seq);
    return;

not_written:
    count_failure(store);
    if (!atomic_exchange(&store->failing, true)) /* the first of a row is news */
        log_event(LOG_ERROR, "store_write_failed", LOG_STR("reason", db_problem(&writer->db)));
    writer->floor_dirty = true;
    db_run(writer->db.sql[WRITER_ROLLBACK]);
    remove_undone(store);
    if (!sqlite3_get_autocommit(writer->db.handle)) {
        undecided_enter(store);
        return;
    }
    /* The log was not touched (cache_spill is off), so this is certain. */
    writer->pause_until_us = clock_mono_us() + PAUSE_MS * 1000;
    writer_answer(store, STATUS_UNAVAILABLE);
    return;

undecided:
    count_failure(store);
    remove_undone(store);
    undecided_enter(store);
}

void writer_refuse_waiting(struct store *store)
{
    struct list *node;
    queue_take(&store->queue, &store->writer.waiting);
    while ((node = list_pop(&store->writer.waiting))) {
        struct store_hook *hook = LIST_OWNER(node, struct store_hook, node);
        leave_queue(store, hook);
        refuse(store, hook);
    }
}

/* When a transaction without hooks is due (monotonic). */
static int64_t due_us(struct store *store)
{
    struct writer *writer = &store->writer;
    int64_t due = list_empty(&writer->changes) ? changes_due_us(&store->changes) : 0;
    bool removal = atomic_load(&store->keeper.planned) && !atomic_load(&store->draining);
    if (!atomic_load(&store->draining)) {
        int64_t claims = claims_due_us(store), pen = pen_due_us(store);
        due = claims < due ? claims : due;
        due = pen < due ? pen : due;
    }
    if (removal || !names_all_durable(&store->names, 0) || writer->floor_dirty)
        due = 0;
    return due < writer->pause_until_us ? writer->pause_until_us : due;
}

static bool drained(struct store *store)
{
    if (!atomic_load(&store->draining) || atomic_load(&store->queue.hooks) > 0)
        return false;
    return list_empty(&store->writer.changes) && changes_due_us(&store->changes) == INT64_MAX;
}

/* One turn; false when the writer is done. */
static bool turn(struct store *store)
{
    struct writer *writer = &store->writer;
    if (atomic_load_explicit(&store->undecided, memory_order_relaxed))
        return undecided_turn(store);

    queue_take(&store->queue, &writer->waiting);
    bool draining = atomic_load(&store->draining);
    int64_t due = due_us(store);
    int64_t now_us = clock_mono_us();
    if (draining && writer->failures >= LAST_TRIES) {
        /* Nothing more can be done here. Outcomes not written are owed again after the next start. */
        writer_refuse_waiting(store);
        return atomic_load(&store->queue.hooks) > 0;
    }
    if (draining && due < INT64_MAX)
        due = writer->pause_until_us;
    if (scrub_due_us(store) <= now_us)
        scrub_turn(store);
    if (!list_empty(&writer->waiting) || due <= now_us) {
        atomic_store(&store->writing_since_us, now_us);
        checkpoint_finish(store);
        commit(store);
        atomic_store(&store->writing_since_us, 0);
    } else if (drained(store)) {
        return false;
    } else if (draining) {
        queue_sleep(&store->queue, now_us + 1000); /* a hook is between its count and its push, or a pause */
    } else {
        int64_t scrub_us = scrub_due_us(store);
        queue_sleep(&store->queue, scrub_us < due ? scrub_us : due);
    }
    return true;
}

static void *writer_main(void *arg)
{
    while (turn(arg))
        ;
    return NULL;
}

bool writer_store_names(struct store *store)
{
    struct writer *writer = &store->writer;
    CHECK(!writer->started);
    bool stored = db_run(writer->db.sql[WRITER_BEGIN]) &&
                  names_write(&store->names, writer->db.sql[WRITER_NAME]) &&
                  db_run(writer->db.sql[WRITER_COMMIT]);
    if (stored)
        names_written(&store->names);
    else if (!sqlite3_get_autocommit(writer->db.handle))
        db_run(writer->db.sql[WRITER_ROLLBACK]);
    return stored;
}

enum status writer_open(struct store *store, struct error *err)
{
    struct writer *writer = &store->writer;
    list_init(&writer->waiting);
    list_init(&writer->changes);
    list_init(&store->claims.twins);
    writer->batch = mem_alloc(store->options.max_batch * sizeof *writer->batch);
    enum status status = db_open(&writer->db, store->path, DB_WRITE, err);
    if (status == STATUS_OK)
        status = schema_ensure(&writer->db, err);
    if (status == STATUS_OK)
        status = schema_serve_backup(&writer->db, err);
    if (status == STATUS_OK)
        status = schema_epoch(&writer->db, &store->epoch, err);
    if (status == STATUS_OK)
        status = db_prepare(&writer->db, texts, WRITER_SQL_COUNT, err);
    if (status != STATUS_OK)
        return status;

    int64_t last, floor, dead;
    if (!db_int(&writer->db, "SELECT max(seq) FROM hooks", 0, &last) ||
        !db_int(&writer->db, "SELECT value FROM meta WHERE name = 'seq_floor'", 1, &floor) ||
        !db_int(&writer->db, "SELECT value FROM meta WHERE name = 'replaced'", 0, &writer->replaced) ||
        !db_int(&writer->db, "SELECT count(*) FROM rows INDEXED BY dead WHERE state IN " DEAD_STATES, 0,
                &dead))
        return error_set(err, db_status(sqlite3_errcode(writer->db.handle)), "the store can't be read: %s",
                         db_problem(&writer->db));
    meta_int(&writer->db, "restored_at", &store->restored_ms);
    meta_uuid(&writer->db, "restored_from", &store->restored_from);
    writer->next_seq = (uint64_t)(last + 1 > floor ? last + 1 : floor);
    atomic_store(&store->next_seq, writer->next_seq);
    atomic_store(&store->dead, (uint64_t)dead);
    return STATUS_OK;
}

enum status writer_start(struct store *store, struct error *err)
{
    if (thread_start(&store->writer.thread, "writer", writer_main, store) != 0)
        return error_set(err, STATUS_IO, "no thread for the store");
    store->writer.started = true;
    return STATUS_OK;
}

void writer_stop(struct store *store)
{
    struct writer *writer = &store->writer;
    if (!writer->started)
        return;
    queue_poke(&store->queue);
    pthread_join(writer->thread, NULL);
    writer->started = false;
}

void writer_close(struct store *store)
{
    struct list *node;
    while ((node = list_pop(&store->writer.changes)))
        change_free(node);
    db_close(&store->writer.db);
    free(store->writer.batch);
}
