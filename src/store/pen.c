/* The pen: hooks that failed verification and wait for a person. They ride in the same commits as hooks, but
 * get no seq and no rows, and nobody delivers them. A source has a share of it, taken before the hook is
 * queued, so that one that is flooded is full alone. */
#include <stdlib.h>

#include "store/store_priv.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

enum { PEN_SWEEP = 64 }; /* hooks a transaction */

enum pen_act { PEN_DISCARD, PEN_ERASE, PEN_REASON };

struct pen_change {
    struct list node;
    int kind;
    enum pen_act act;
    uint64_t id;
    char reason[STORE_PEN_REASON_MAX + 1];
    struct pen_gone gone; /* what left, when anything did */
};

/* ---- sums ---- */

static struct pen_sum *sum_of(struct pen *pen, uint32_t source)
{
    VEC_EACH (sum, &pen->sums)
        if (sum->source == source)
            return sum;
    struct pen_sum *sum = VEC_ADD(&pen->sums);
    *sum = (struct pen_sum){.source = source};
    return sum;
}

static void shift(struct store *store, uint32_t source, int64_t hooks, int64_t bytes)
{
    struct pen *pen = &store->pen;
    pthread_mutex_lock(&pen->lock);
    struct pen_sum *sum = sum_of(pen, source);
    sum->hooks += hooks;
    sum->bytes += bytes;
    pthread_mutex_unlock(&pen->lock);
}

static int64_t size_of(const struct store_hook *hook)
{
    return (int64_t)(hook->head.len + hook->envelope->body.len);
}

bool pen_reserve(struct store *store, struct store_hook *hook)
{
    const struct name *source = names_add(&store->names, NAME_SOURCE, hook->envelope->source, BYTES_NONE);
    if (!source)
        return false;
    hook->source = source->id;
    struct pen *pen = &store->pen;
    pthread_mutex_lock(&pen->lock);
    struct pen_sum *sum = sum_of(pen, hook->source);
    bool room = sum->bytes + size_of(hook) <= hook->pen_share_bytes;
    sum->bytes += room ? size_of(hook) : 0;
    sum->hooks += room;
    pthread_mutex_unlock(&pen->lock);
    return room;
}

void pen_unreserve(struct store *store, const struct store_hook *hook)
{
    shift(store, hook->source, -1, -size_of(hook));
}

uint64_t store_pen_sums(struct store *store, void (*each)(void *ctx, const struct store_pen_sum *sum),
                        void *ctx)
{
    uint64_t hooks = 0;
    pthread_mutex_lock(&store->pen.lock);
    VEC_EACH (sum, &store->pen.sums) {
        const struct name *name = names_by_id(&store->names, sum->source);
        hooks += (uint64_t)sum->hooks;
        if (each)
            each(ctx, &(struct store_pen_sum){
                          .source = name->text, .hooks = (uint64_t)sum->hooks, .bytes = sum->bytes});
    }
    pthread_mutex_unlock(&store->pen.lock);
    return hooks;
}

/* ---- the writer ---- */

/* Two rows of one batch can't both be the last to leave with one entry. */
static bool leaves_in_batch(const struct writer *writer, size_t upto, uint64_t id)
{
    for (size_t i = 0; i < upto; i++)
        if (writer->batch[i]->pen_id == id)
            return true;
    return false;
}

bool pen_part(struct store *store)
{
    struct writer *writer = &store->writer;
    sqlite3_stmt *has = writer->db.sql[WRITER_PEN_HAS];
    size_t kept = 0;
    bool good = true;
    CHECK(list_empty(&store->pen.batch));
    for (size_t i = 0; i < writer->batch_len; i++) {
        struct store_hook *hook = writer->batch[i];
        bool there = true;
        if (hook->pen_reason) {
            list_append(&store->pen.batch, &hook->node);
            continue;
        }
        if (hook->pen_id && good) {
            sqlite3_bind_int64(has, 1, (int64_t)hook->pen_id);
            int rc = sqlite3_step(has);
            sqlite3_reset(has);
            there = rc == SQLITE_ROW && !leaves_in_batch(writer, kept, hook->pen_id);
            good = rc == SQLITE_ROW || rc == SQLITE_DONE;
            there |= !good; /* then all of the batch is answered alike */
        }
        if (there)
            writer->batch[kept++] = hook;
        else
            hook->done(hook, STATUS_NOT_FOUND);
    }
    writer->batch_len = kept;
    return good;
}

/* Deletes one entry; `gone` says whose it was. */
static bool take_out(struct store *store, uint64_t id, struct pen_gone *gone)
{
    sqlite3_stmt *drop = store->writer.db.sql[WRITER_PEN_DROP];
    sqlite3_bind_int64(drop, 1, (int64_t)id);
    int rc = sqlite3_step(drop);
    *gone = (struct pen_gone){0};
    if (rc == SQLITE_ROW) {
        *gone = (struct pen_gone){.hooks = 1,
                                  .source = (uint32_t)sqlite3_column_int64(drop, 0),
                                  .bytes = sqlite3_column_int64(drop, 1)};
        rc = sqlite3_step(drop);
    }
    sqlite3_reset(drop);
    return rc == SQLITE_DONE;
}

static bool put_in(sqlite3_stmt *insert, const struct store_hook *hook)
{
    const struct envelope *envelope = hook->envelope;
    sqlite3_bind_blob(insert, 1, envelope->id.bytes, sizeof envelope->id.bytes, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 2, envelope->received_at_ms);
    sqlite3_bind_int64(insert, 3, hook->tenant);
    sqlite3_bind_int64(insert, 4, hook->source);
    sqlite3_bind_int64(insert, 5, size_of(hook));
    sqlite3_bind_text(insert, 6, hook->pen_reason, -1, SQLITE_STATIC);
    db_bind(insert, 7, hook->head);
    db_bind(insert, 8, envelope->body.at ? envelope->body : BYTES(""));
    return db_run(insert);
}

static bool sweep(struct store *store)
{
    struct pen *pen = &store->pen;
    sqlite3_stmt *drop = store->writer.db.sql[WRITER_PEN_EXPIRE];
    pen->expired_len = 0;
    if (pen_due_us(store) > clock_mono_us())
        return true;
    sqlite3_bind_int64(drop, 1, clock_unix_ms() - store->options.pen_retention_ms);
    sqlite3_bind_int64(drop, 2, PEN_SWEEP);
    int rc;
    while ((rc = sqlite3_step(drop)) == SQLITE_ROW) {
        CHECK(pen->expired_len < PEN_SWEEP);
        pen->expired[pen->expired_len++] =
            (struct pen_gone){.hooks = 1,
                              .source = (uint32_t)sqlite3_column_int64(drop, 0),
                              .bytes = sqlite3_column_int64(drop, 1)};
    }
    sqlite3_reset(drop);
    return rc == SQLITE_DONE;
}

/* A hook leaves; `seq` 0: as a duplicate. */
static bool let_out(struct store *store, struct store_hook *hook, uint64_t seq)
{
    return !hook->pen_id || (take_out(store, hook->pen_id, &hook->pen_gone) &&
                             replay_count_released(store->writer.db.sql, hook, seq));
}

bool pen_write(struct store *store, uint64_t first_seq)
{
    struct writer *writer = &store->writer;
    if (!sweep(store))
        return false;
    LIST_EACH (node, &store->pen.batch)
        if (!put_in(writer->db.sql[WRITER_PEN_PUT], LIST_OWNER(node, struct store_hook, node)))
            return false;
    for (size_t i = 0; i < writer->batch_len; i++)
        if (!let_out(store, writer->batch[i], first_seq + i))
            return false;
    /* A duplicate leaves too: its first is what it would have been. */
    LIST_EACH (node, &store->claims.twins)
        if (!let_out(store, LIST_OWNER(node, struct store_hook, node), 0))
            return false;
    return true;
}

/* When the oldest one has to go; asked of the table again after every change. */
static void look_at_oldest(struct store *store)
{
    struct pen *pen = &store->pen;
    sqlite3_stmt *oldest = store->writer.db.sql[WRITER_PEN_OLDEST];
    pen->oldest_ms = INT64_MAX;
    if (sqlite3_step(oldest) == SQLITE_ROW)
        pen->oldest_ms = sqlite3_column_int64(oldest, 0);
    sqlite3_reset(oldest);
}

static bool left(struct store *store, const struct pen_gone *gone)
{
    if (gone->hooks)
        shift(store, gone->source, -gone->hooks, -gone->bytes);
    return gone->hooks > 0;
}

void pen_written(struct store *store)
{
    struct pen *pen = &store->pen;
    struct writer *writer = &store->writer;
    bool changed = !list_empty(&pen->batch) || pen->expired_len > 0;
    for (size_t i = 0; i < pen->expired_len; i++)
        left(store, &pen->expired[i]);
    if (pen->expired_len > 0)
        log_event(LOG_INFO, "quarantine_expired", LOG_INT("hooks", pen->expired_len),
                  LOG_INT("retention_ms", store->options.pen_retention_ms));
    pen->expired_len = 0;
    for (size_t i = 0; i < writer->batch_len; i++)
        changed |= left(store, &writer->batch[i]->pen_gone);
    LIST_EACH (node, &store->claims.twins)
        changed |= left(store, &LIST_OWNER(node, struct store_hook, node)->pen_gone);
    if (changed)
        look_at_oldest(store);
}

void pen_answer(struct store *store, enum status status)
{
    struct list *node;
    while ((node = list_pop(&store->pen.batch))) {
        struct store_hook *hook = LIST_OWNER(node, struct store_hook, node);
        if (status != STATUS_OK)
            pen_unreserve(store, hook);
        hook->done(hook, status);
    }
}

int64_t pen_due_us(const struct store *store)
{
    if (store->pen.oldest_ms == INT64_MAX)
        return INT64_MAX;
    int64_t left_ms = store->pen.oldest_ms + store->options.pen_retention_ms - clock_unix_ms();
    return left_ms < 0 ? 0 : clock_mono_us() + (left_ms + 1) * 1000;
}

/* ---- what people do: rides as changes do ---- */

static void give(struct store *store, enum pen_act act, uint64_t id, const char *reason)
{
    struct pen_change *change = mem_zalloc(sizeof *change);
    change->kind = CHANGE_PEN;
    change->act = act;
    change->id = id;
    if (reason)
        memcpy(change->reason, reason, strnlen(reason, STORE_PEN_REASON_MAX));
    struct list one = LIST_INIT(one);
    list_append(&one, &change->node);
    changes_give(store, &one);
}

void store_pen_discard(struct store *store, uint64_t id)
{
    give(store, PEN_DISCARD, id, NULL);
}

void store_pen_reason(struct store *store, uint64_t id, const char *reason)
{
    give(store, PEN_REASON, id, reason);
}

enum status store_pen_erase(struct store *store, uint64_t id)
{
    give(store, PEN_ERASE, id, NULL);
    if (!store_flush(store))
        return STATUS_UNAVAILABLE;
    return erase_scrub(store) ? STATUS_OK : STATUS_BUSY;
}

bool pen_change_write(struct store *store, struct list *node)
{
    struct pen_change *change = LIST_OWNER(node, struct pen_change, node);
    struct db *db = &store->writer.db;
    if (change->act == PEN_REASON) {
        sqlite3_bind_int64(db->sql[WRITER_PEN_REASON], 1, (int64_t)change->id);
        sqlite3_bind_text(db->sql[WRITER_PEN_REASON], 2, change->reason, -1, SQLITE_STATIC);
        return db_run(db->sql[WRITER_PEN_REASON]);
    }
    if (change->act == PEN_ERASE && !db_exec(db, "PRAGMA secure_delete = ON"))
        return false;
    bool taken = take_out(store, change->id, &change->gone);
    if (change->act == PEN_ERASE)
        db_exec(db, "PRAGMA secure_delete = FAST");
    return taken;
}

void pen_change_written(struct store *store, const struct list *node)
{
    if (left(store, &LIST_OWNER(node, struct pen_change, node)->gone))
        look_at_oldest(store);
}

/* ---- life ---- */

enum status pen_load(struct store *store, struct error *err)
{
    struct db *db = &store->writer.db;
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(
        db->handle, "SELECT source, count(*), sum(size) FROM pen INDEXED BY pen_sizes GROUP BY source", -1,
        &stmt, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        shift(store, (uint32_t)sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1),
              sqlite3_column_int64(stmt, 2));
        rc = SQLITE_OK;
    }
    sqlite3_finalize(stmt);
    if (rc != SQLITE_DONE)
        return error_set(err, db_status(rc), "the store's quarantine can't be read: %s", db_problem(db));
    look_at_oldest(store);
    return STATUS_OK;
}

void pen_init(struct pen *pen)
{
    CHECK(pthread_mutex_init(&pen->lock, NULL) == 0);
    list_init(&pen->batch);
    pen->oldest_ms = INT64_MAX;
}

void pen_free(struct pen *pen)
{
    VEC_FREE(&pen->sums);
    pthread_mutex_destroy(&pen->lock);
}
