/* A hook is erased: its rows, failures, head and body are overwritten in the pages that held them, freed
 * pages included, and then the log, which has older copies of those pages, is copied into the database and
 * cut to nothing. What the file system and its device keep of overwritten blocks, and backups, are out of
 * reach. */
#include <time.h>

#include "store/store_priv.h"
#include "util/clock.h"
#include "util/mem.h"

enum {
    PATIENCE_MS = 10000, /* of whoever asks, for the log to be emptied */
    RETRY_MS = 20,
};

struct erasure {
    struct list node;
    int kind;
    uint64_t seq;
    /* What erase_write found. */
    uint32_t sink, pending, dead, hooks;
    int64_t size;
};

/* ---- asking, on any thread ---- */

bool erase_scrub(struct store *store)
{
    struct changes *changes = &store->changes;
    uint64_t asked = atomic_fetch_add(&store->scrub.asked, 1) + 1;
    queue_poke(&store->queue);
    int64_t until_ms = clock_mono_ms() + PATIENCE_MS;
    bool done = false;
    while (!done && clock_mono_ms() < until_ms) {
        struct timespec step = {.tv_nsec = 1000000};
        pthread_mutex_lock(&changes->lock);
        done = store->scrub.done >= asked;
        pthread_mutex_unlock(&changes->lock);
        if (!done)
            nanosleep(&step, NULL); /* rare, and never on a thread that hooks wait for */
    }
    return done;
}

enum status store_erase(struct store *store, uint64_t seq)
{
    struct erasure *erasure = mem_zalloc(sizeof *erasure);
    erasure->kind = CHANGE_ERASE;
    erasure->seq = seq;
    struct list one = LIST_INIT(one);
    list_append(&one, &erasure->node);
    changes_give(store, &one);
    if (!store_flush(store))
        return STATUS_UNAVAILABLE;
    return erase_scrub(store) ? STATUS_OK : STATUS_BUSY;
}

/* ---- doing, by the writer ---- */

static bool look(sqlite3_stmt *states, struct erasure *erasure)
{
    int rc;
    erasure->pending = erasure->dead = 0;
    sqlite3_bind_int64(states, 1, (int64_t)erasure->seq);
    while ((rc = sqlite3_step(states)) == SQLITE_ROW) {
        enum row_state state = (enum row_state)sqlite3_column_int(states, 0);
        erasure->pending += state == ROW_PENDING;
        erasure->dead += row_state_dead(state);
        erasure->size = sqlite3_column_int64(states, 1);
        erasure->sink = (uint32_t)sqlite3_column_int64(states, 2); /* any: they have one source */
    }
    sqlite3_reset(states);
    return rc == SQLITE_DONE;
}

static bool run_on(sqlite3_stmt *stmt, int64_t first, int64_t second)
{
    sqlite3_bind_int64(stmt, 1, first);
    if (sqlite3_bind_parameter_count(stmt) > 1)
        sqlite3_bind_int64(stmt, 2, second);
    return db_run(stmt);
}

bool erase_write(struct store *store, struct list *node)
{
    struct erasure *erasure = LIST_OWNER(node, struct erasure, node);
    struct db *db = &store->writer.db;
    int64_t seq = (int64_t)erasure->seq;
    if (!look(db->sql[WRITER_STATES], erasure) || !db_exec(db, "PRAGMA secure_delete = ON"))
        return false;
    bool erased = run_on(db->sql[WRITER_ERASE_ATTEMPTS], seq, 0) &&
                  run_on(db->sql[WRITER_ERASE_ROWS], seq, 0) && run_on(db->sql[WRITER_ERASE_HOOK], seq, 0);
    erasure->hooks = erased ? (uint32_t)sqlite3_changes(db->handle) : 0;
    db_exec(db, "PRAGMA secure_delete = FAST");
    if (!erased || erasure->hooks == 0)
        return erased;
    int64_t block = (int64_t)(erasure->seq / BLOCK_SEQS);
    return run_on(db->sql[WRITER_BLOCK_TAKE], block, 1) && run_on(db->sql[WRITER_BLOCK_DROP], block, 0) &&
           writer_put_floor(store); /* it may be the newest: what counts them must stay */
}

void erase_written(struct store *store, const struct list *node)
{
    const struct erasure *erasure = LIST_OWNER(node, struct erasure, node);
    for (uint32_t i = 0; i < erasure->pending; i++)
        blocks_shift_row(&store->blocks, erasure->seq, ROW_PENDING, ROW_DISCARDED);
    blocks_count_removed(&store->blocks, erasure->seq / BLOCK_SEQS, erasure->hooks);
    atomic_fetch_sub(&store->hooks, erasure->hooks);
    atomic_fetch_sub(&store->dead, erasure->dead);
    if (erasure->dead)
        dlq_shift(store, erasure->sink, -(int64_t)erasure->dead, erasure->size);
}

int64_t scrub_due_us(const struct store *store)
{
    bool wanted = atomic_load(&store->scrub.asked) > store->scrub.done; /* only the writer changes `done` */
    return wanted ? store->scrub.retry_us : INT64_MAX;
}

void scrub_turn(struct store *store)
{
    uint64_t asked = atomic_load(&store->scrub.asked);
    if (!checkpoint_empty(store)) {
        store->scrub.retry_us = clock_mono_us() + RETRY_MS * 1000;
        return;
    }
    store->scrub.retry_us = 0;
    pthread_mutex_lock(&store->changes.lock);
    store->scrub.done = asked;
    pthread_mutex_unlock(&store->changes.lock);
}
