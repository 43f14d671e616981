/* Age, size and space. Four times a second the keeper looks how full the disk is, and which of the oldest
 * hooks may go: past retention_ms, or over max_bytes, and owed to nobody. It only reads (so the pages that
 * the writer will need are in memory by then) and leaves a plan of ranges; remove.c carries it out. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "store/store_priv.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/cond.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/thread.h"

enum {
    TICK_MS = 250,
    LOOK_MAX = 1024,     /* hooks a read transaction */
    LOOK_BUDGET_MS = 20, /* a tick, while it finds nothing to remove */
};

#define KEEPER_SQL(X)                                                                                        \
    X(PAGES, "PRAGMA page_count")                                                                            \
    X(FREE, "PRAGMA freelist_count")                                                                         \
    X(OLDEST, "SELECT h.seq, h.received_at, EXISTS(SELECT 1 FROM rows r WHERE r.seq = h.seq AND r.state "    \
              "IN " KEPT_STATES "), length(h.head) + length(h.body) FROM hooks h WHERE h.seq >= ?1 "         \
              "ORDER BY h.seq LIMIT ?2")

enum keeper_sql {
#define KEEPER_SQL_ENUM(id, text) KEEPER_##id,
    KEEPER_SQL(KEEPER_SQL_ENUM)
#undef KEEPER_SQL_ENUM
        KEEPER_SQL_COUNT
};

static const char *const texts[] = {
#define KEEPER_SQL_TEXT(id, text) text,
    KEEPER_SQL(KEEPER_SQL_TEXT)
#undef KEEPER_SQL_TEXT
};

static int64_t pragma_int(sqlite3_stmt *stmt)
{
    int64_t n = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_reset(stmt);
    return n;
}

static int64_t file_bytes(const char *path, const char *suffix)
{
    char *name = mem_format("%s%s", path, suffix);
    struct stat st;
    int64_t bytes = stat(name, &st) == 0 ? st.st_size : 0;
    free(name);
    return bytes;
}

/* Pages that removal has emptied are used again before the file grows: they count as free. */
void keeper_sample(struct store *store)
{
    struct keeper *keeper = &store->keeper;
    int64_t spare = pragma_int(db_sql(&keeper->db, KEEPER_FREE)) * store->log.page_size;
    int64_t files = file_bytes(store->path, "") + file_bytes(store->path, "-wal");
    atomic_store(&store->disk_bytes, files);

    struct statvfs vfs;
    if (statvfs(store->data_dir, &vfs) != 0)
        return;
    int64_t free_bytes = (int64_t)(vfs.f_bavail * vfs.f_frsize);
    atomic_store(&store->free_bytes, free_bytes);
    bool full = free_bytes + spare < store->options.min_free_bytes;
    if (full != atomic_exchange(&store->disk_full, full))
        log_event(full ? LOG_ERROR : LOG_INFO, full ? "disk_full" : "disk_ok",
                  LOG_INT("free_bytes", free_bytes),
                  LOG_INT("min_free_bytes", store->options.min_free_bytes));
}

/* How many hooks are too many for max_bytes, by their average size. */
static uint64_t hooks_over(struct store *store)
{
    struct keeper *keeper = &store->keeper;
    uint64_t hooks = atomic_load(&store->hooks);
    if (store->options.max_bytes == 0 || hooks == 0)
        return 0;
    int64_t pages =
        pragma_int(db_sql(&keeper->db, KEEPER_PAGES)) - pragma_int(db_sql(&keeper->db, KEEPER_FREE));
    int64_t used = pages * store->log.page_size;
    if (used <= store->options.max_bytes)
        return 0;
    return (uint64_t)((double)hooks * (double)(used - store->options.max_bytes) / (double)used) + 1;
}

/* Longer by one hook; false when the plan has no room for another range. `bytes` is the size of the last
 * range: every page of a large body has to be read to be freed, so a range of those is short. */
static bool plan_add(struct range *plan, size_t *len, uint64_t seq, int64_t size, int64_t *bytes)
{
    if (*len > 0 && plan[*len - 1].to == seq && seq % BLOCK_SEQS != 0 && *bytes + size <= RANGE_BYTES) {
        plan[*len - 1].to = seq + 1;
        *bytes += size;
        return true;
    }
    if (*len == PLAN_MAX)
        return false;
    plan[(*len)++] = (struct range){seq, seq + 1};
    *bytes = size;
    return true;
}

/* Looks at up to LOOK_MAX hooks from `*from` on, and moves it. False when there is nothing more to look at
 * now. */
static bool look(struct store *store, uint64_t *from, uint64_t over, struct range *plan, size_t *len)
{
    sqlite3_stmt *oldest = db_sql(&store->keeper.db, KEEPER_OLDEST);
    int64_t now_ms = clock_unix_ms();
    int64_t expired_ms = now_ms - store->options.retention_ms;
    size_t seen = 0;
    int64_t bytes = RANGE_BYTES; /* a range of the call before ends there */
    bool more = true;
    sqlite3_bind_int64(oldest, 1, (int64_t)*from);
    sqlite3_bind_int64(oldest, 2, LOOK_MAX);
    while (more && sqlite3_step(oldest) == SQLITE_ROW) {
        uint64_t seq = (uint64_t)sqlite3_column_int64(oldest, 0);
        int64_t received_at_ms = sqlite3_column_int64(oldest, 1);
        bool kept = sqlite3_column_int(oldest, 2) != 0;
        /* One from the future, when the clock was wrong, does not hold up those behind it. */
        bool young = received_at_ms > expired_ms && received_at_ms <= now_ms;
        if (young && over == 0) {
            more = false;
            break;
        }
        if (!kept && (received_at_ms <= expired_ms || over > 0)) {
            if (!plan_add(plan, len, seq, sqlite3_column_int64(oldest, 3), &bytes))
                break;
            over -= over > 0;
        }
        *from = seq + 1;
        seen++;
    }
    sqlite3_reset(oldest);
    return more && (seen == LOOK_MAX || *len > 0);
}

/* Fills the plan when the last one is done. */
static void make_plan(struct store *store)
{
    struct keeper *keeper = &store->keeper;
    if (atomic_load(&keeper->planned))
        return;
    pthread_mutex_lock(&keeper->lock);
    uint64_t start = keeper->from;
    pthread_mutex_unlock(&keeper->lock);

    struct range plan[PLAN_MAX];
    size_t len = 0;
    uint64_t from = start, over = hooks_over(store);
    int64_t until_us = clock_mono_us() + LOOK_BUDGET_MS * 1000;
    while (look(store, &from, over, plan, &len) && len == 0 && clock_mono_us() < until_us)
        ;

    pthread_mutex_lock(&keeper->lock);
    if (keeper->from >= start) /* else the writer wants an older place looked at */
        keeper->from = from;
    memcpy(keeper->plan, plan, len * sizeof plan[0]);
    keeper->plan_len = len;
    keeper->plan_done = 0;
    pthread_mutex_unlock(&keeper->lock);
    if (len > 0) {
        atomic_store(&keeper->planned, true);
        queue_poke(&store->queue);
    }
}

void keeper_look_again(struct store *store, uint64_t seq)
{
    struct keeper *keeper = &store->keeper;
    pthread_mutex_lock(&keeper->lock);
    if (seq < keeper->from)
        keeper->from = seq;
    pthread_mutex_unlock(&keeper->lock);
}

static void *keeper_main(void *arg)
{
    struct store *store = arg;
    struct keeper *keeper = &store->keeper;
    pthread_mutex_lock(&keeper->lock);
    while (!keeper->stop) {
        pthread_mutex_unlock(&keeper->lock);
        keeper_sample(store);
        make_plan(store);
        int64_t until_us = clock_mono_us() + TICK_MS * 1000;
        struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
        pthread_mutex_lock(&keeper->lock);
        /* remove.c signals when a plan is done: there may be more. */
        bool done = keeper->plan_len > 0 && !atomic_load(&keeper->planned);
        if (!keeper->stop && !done)
            pthread_cond_timedwait(&keeper->wake, &keeper->lock, &until);
    }
    pthread_mutex_unlock(&keeper->lock);
    return NULL;
}

enum status keeper_open(struct store *store, struct error *err)
{
    struct keeper *keeper = &store->keeper;
    CHECK(pthread_mutex_init(&keeper->lock, NULL) == 0);
    cond_init_monotonic(&keeper->wake);
    enum status status = db_open(&keeper->db, store->path, DB_READ, err);
    if (status == STATUS_OK)
        db_prepare_later(&keeper->db, texts, KEEPER_SQL_COUNT);
    return status;
}

enum status keeper_start(struct store *store, struct error *err)
{
    if (thread_start(&store->keeper.thread, "keeper", keeper_main, store) != 0)
        return error_set(err, STATUS_IO, "no thread for the store");
    store->keeper.started = true;
    return STATUS_OK;
}

void keeper_stop(struct store *store)
{
    struct keeper *keeper = &store->keeper;
    if (!keeper->started)
        return;
    pthread_mutex_lock(&keeper->lock);
    keeper->stop = true;
    pthread_cond_signal(&keeper->wake);
    pthread_mutex_unlock(&keeper->lock);
    pthread_join(keeper->thread, NULL);
    keeper->started = false;
}

void keeper_close(struct store *store)
{
    db_close(&store->keeper.db);
    pthread_cond_destroy(&store->keeper.wake);
    pthread_mutex_destroy(&store->keeper.lock);
}
