/* Keeps the log short. SQLite starts a log again only when all of it is in the database at the moment of a
 * write; a thread that copies alone never gets there under load, since the writer is always a few frames
 * ahead. So the thread copies the bulk, and once few frames are left the writer copies those itself between
 * two commits: the next commit then starts at the head of the same file. */
#include "store/store_priv.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/cond.h"
#include "util/log.h"
#include "util/thread.h"

/* Frames are pages; sizes in bytes. */
enum {
    ASK_BYTES = 2 << 20,    /* the thread copies when so much is new */
    LONG_BYTES = 32 << 20,  /* from here on the writer wants the log to start again */
    LAST_BYTES = 3 << 20,   /* so much the writer copies itself: a few milliseconds */
    HARD_BYTES = 512 << 20, /* here the writer copies all that is left: slow, but bounded */
    IDLE_MS = 1000,
};

/* The writer, after each commit, with the log's length. */
static int commit_done(void *ctx, sqlite3 *handle, const char *name, int frames)
{
    (void)handle;
    (void)name;
    struct store *store = ctx;
    struct checkpointer *log = &store->log;
    pthread_mutex_lock(&log->lock);
    if (frames < log->frames) {
        log->round++;
        log->copied = 0;
    }
    log->frames = frames;
    bool ask = !log->asked && (log->frames - log->copied) * log->page_size >= ASK_BYTES;
    if (ask) {
        log->asked = true;
        pthread_cond_signal(&log->wake);
    }
    pthread_mutex_unlock(&log->lock);
    atomic_store_explicit(&store->log_bytes, frames * log->page_size, memory_order_relaxed);
    return SQLITE_OK;
}

/* With `copying` held. Passive: waits for nobody, and stops at what a reader still needs. */
static void copy(struct checkpointer *log, sqlite3 *handle)
{
    pthread_mutex_lock(&log->lock);
    uint64_t round = log->round;
    pthread_mutex_unlock(&log->lock);
    int frames = 0, copied = 0;
    int rc = sqlite3_wal_checkpoint_v2(handle, NULL, SQLITE_CHECKPOINT_PASSIVE, &frames, &copied);
    pthread_mutex_lock(&log->lock);
    if (rc == SQLITE_OK && round == log->round)
        log->copied = copied;
    if (rc == SQLITE_OK)
        atomic_store_explicit(&log->at_ms, clock_unix_ms(), memory_order_relaxed);
    bool failing = rc != SQLITE_OK && (rc & 0xff) != SQLITE_BUSY; /* another process looks: later, then */
    bool news = log->failing != failing;
    log->failing = failing;
    pthread_mutex_unlock(&log->lock);
    /* Nothing is lost, but the log grows. */
    if (news)
        log_event(failing ? LOG_ERROR : LOG_INFO, failing ? "store_checkpoint_failed" : "store_checkpoint_ok",
                  LOG_STR("reason", failing ? sqlite3_errstr(rc) : ""));
}

void checkpoint_finish(struct store *store)
{
    struct checkpointer *log = &store->log;
    pthread_mutex_lock(&log->lock);
    int64_t length = log->frames * log->page_size;
    int64_t left = (log->frames - log->copied) * log->page_size;
    pthread_mutex_unlock(&log->lock);
    if (length < LONG_BYTES || left == 0)
        return;
    if (length >= HARD_BYTES)
        pthread_mutex_lock(&log->copying);
    else if (left > LAST_BYTES || pthread_mutex_trylock(&log->copying) != 0)
        return;
    copy(log, store->writer.db.handle);
    pthread_mutex_unlock(&log->copying);
}

bool checkpoint_empty(struct store *store)
{
    enum { PATIENCE_MS = 20, USUAL_MS = 1000 };
    struct checkpointer *log = &store->log;
    sqlite3 *handle = store->writer.db.handle;
    pthread_mutex_lock(&log->copying);
    sqlite3_busy_timeout(handle, PATIENCE_MS); /* hooks wait meanwhile */
    int rc = sqlite3_wal_checkpoint_v2(handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite3_busy_timeout(handle, USUAL_MS);
    pthread_mutex_unlock(&log->copying);
    if (rc != SQLITE_OK)
        return false;
    pthread_mutex_lock(&log->lock);
    log->round++;
    log->frames = log->copied = 0;
    pthread_mutex_unlock(&log->lock);
    atomic_store_explicit(&log->at_ms, clock_unix_ms(), memory_order_relaxed);
    atomic_store_explicit(&store->log_bytes, 0, memory_order_relaxed);
    return true;
}

int64_t checkpoint_left(struct checkpointer *log)
{
    pthread_mutex_lock(&log->lock);
    int64_t left = (log->frames - log->copied) * log->page_size;
    pthread_mutex_unlock(&log->lock);
    return left;
}

static void *checkpointer_main(void *arg)
{
    struct store *store = arg;
    struct checkpointer *log = &store->log;
    pthread_mutex_lock(&log->lock);
    while (!log->stop) {
        int64_t until_us = clock_mono_us() + IDLE_MS * 1000;
        struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
        int rc = 0;
        while (!log->stop && !log->asked && rc == 0)
            rc = pthread_cond_timedwait(&log->wake, &log->lock, &until);
        log->asked = false; /* what is committed from here on may ask again */
        if (log->stop || log->frames == log->copied)
            continue;
        pthread_mutex_unlock(&log->lock);

        pthread_mutex_lock(&log->copying);
        copy(log, log->db.handle);
        pthread_mutex_unlock(&log->copying);

        pthread_mutex_lock(&log->lock);
    }
    pthread_mutex_unlock(&log->lock);
    return NULL;
}

enum status checkpoint_open(struct store *store, struct error *err)
{
    struct checkpointer *log = &store->log;
    CHECK(pthread_mutex_init(&log->lock, NULL) == 0);
    CHECK(pthread_mutex_init(&log->copying, NULL) == 0);
    cond_init_monotonic(&log->wake);
    if (!db_int(&store->writer.db, "PRAGMA page_size", 4096, &log->page_size))
        return error_set(err, STATUS_IO, "%s: %s", store->path, db_problem(&store->writer.db));
    return db_open(&log->db, store->path, DB_WRITE, err);
}

enum status checkpoint_start(struct store *store, struct error *err)
{
    sqlite3_wal_hook(store->writer.db.handle, commit_done, store);
    if (thread_start(&store->log.thread, "checkpointer", checkpointer_main, store) != 0)
        return error_set(err, STATUS_IO, "no thread for the store");
    store->log.started = true;
    return STATUS_OK;
}

void checkpoint_stop(struct store *store)
{
    struct checkpointer *log = &store->log;
    if (!log->started)
        return;
    pthread_mutex_lock(&log->lock);
    log->stop = true;
    pthread_cond_signal(&log->wake);
    pthread_mutex_unlock(&log->lock);
    pthread_join(log->thread, NULL);
    log->started = false;
}

void checkpoint_close(struct store *store)
{
    db_close(&store->log.db);
    pthread_cond_destroy(&store->log.wake);
    pthread_mutex_destroy(&store->log.copying);
    pthread_mutex_destroy(&store->log.lock);
}
