#include "gateway/revive.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "util/check.h"
#include "util/mem.h"
#include "util/thread.h"

enum { ROWS_MAX = LANES_ROWS_MAX }; /* dead letters of one hook */

struct reviver {
    struct store *store;
    struct lanes *lanes;
    struct store_reader *reader; /* the thread's */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct list waiting;
    size_t count;
    bool stop;
};

struct dead_rows {
    struct lanes_row rows[ROWS_MAX];
    size_t count;
};

static bool take_row(void *ctx, const struct store_row_view *row)
{
    struct dead_rows *dead = ctx;
    if (row->state != ROW_DEAD && row->state != ROW_HELD)
        return true;
    struct lanes_row *out = &dead->rows[dead->count++];
    *out = (struct lanes_row){.seq = row->seq,
                              .sink = row->sink,
                              .tenant = row->tenant,
                              .state = row->state,
                              .ordered = row->ordered,
                              .late = row->late,
                              .received_ms = row->received_at_ms};
    memcpy(out->lane, row->lane, sizeof out->lane);
    return dead->count < ROWS_MAX;
}

static enum status status_of(enum lanes_answer answer)
{
    switch (answer) {
    case LANES_DONE:
        return STATUS_OK;
    case LANES_DRAINING:
        return STATUS_DRAINING;
    default:
        return STATUS_FULL;
    }
}

/* What is read is what the scheduler knows: the store was flushed. */
static enum status revive(struct reviver *reviver, uint64_t seq, bool *revived)
{
    struct dead_rows dead = {.count = 0};
    enum lanes_answer answers[ROWS_MAX];
    *revived = false;
    enum status status = store_rows_of(reviver->reader, seq, take_row, &dead);
    if (status != STATUS_OK)
        return STATUS_UNAVAILABLE;
    if (dead.count == 0)
        return STATUS_OK;
    status = status_of(lanes_replay(reviver->lanes, dead.rows, dead.count, answers));
    for (size_t i = 0; i < dead.count && status == STATUS_OK; i++)
        *revived |= answers[i] == LANES_DONE || answers[i] == LANES_NOTHING;
    return status;
}

struct result {
    struct ingest_revival *revival;
    enum status status;
    bool revived;
};

/* Several posts of one hook are one revival: its rows may be delivered by the time the second one is looked
 * at. */
static const struct result *earlier(const struct result *results, size_t count, uint64_t seq)
{
    for (size_t i = 0; i < count; i++)
        if (results[i].revival->seq == seq)
            return &results[i];
    return NULL;
}

static void revive_all(struct reviver *reviver, struct list *taken)
{
    static struct result results[REVIVALS_MAX];
    size_t count = 0;
    bool flushed = store_flush(reviver->store);
    struct list *node;
    while ((node = list_pop(taken))) {
        struct result *result = &results[count];
        struct ingest_revival *revival = LIST_OWNER(node, struct ingest_revival, node);
        const struct result *same = earlier(results, count, revival->seq);
        *result = (struct result){.revival = revival, .status = STATUS_UNAVAILABLE};
        if (same) {
            result->status = same->status;
            result->revived = same->revived;
        } else if (flushed) {
            result->status = revive(reviver, revival->seq, &result->revived);
        }
        count++;
    }
    flushed = store_flush(reviver->store);
    for (size_t i = 0; i < count; i++) {
        bool lost = results[i].status == STATUS_OK && results[i].revived && !flushed;
        results[i].revival->done(results[i].revival, lost ? STATUS_UNAVAILABLE : results[i].status,
                                 results[i].revived);
    }
}

static void *reviver_main(void *arg)
{
    struct reviver *reviver = arg;
    struct list taken;
    list_init(&taken);
    pthread_mutex_lock(&reviver->lock);
    while (!reviver->stop || reviver->count > 0) {
        if (reviver->count == 0) {
            pthread_cond_wait(&reviver->wake, &reviver->lock);
            continue;
        }
        list_splice(&taken, &reviver->waiting);
        reviver->count = 0;
        pthread_mutex_unlock(&reviver->lock);
        revive_all(reviver, &taken);
        pthread_mutex_lock(&reviver->lock);
    }
    pthread_mutex_unlock(&reviver->lock);
    return NULL;
}

bool reviver_ask(struct reviver *reviver, struct ingest_revival *revival)
{
    pthread_mutex_lock(&reviver->lock);
    bool taken = !reviver->stop && reviver->count < REVIVALS_MAX;
    if (taken) {
        list_append(&reviver->waiting, &revival->node);
        reviver->count++;
        pthread_cond_signal(&reviver->wake);
    }
    pthread_mutex_unlock(&reviver->lock);
    return taken;
}

enum status reviver_open(struct store *store, struct lanes *lanes, struct reviver **out, struct error *err)
{
    *out = NULL;
    struct reviver *reviver = mem_zalloc(sizeof *reviver);
    reviver->store = store;
    reviver->lanes = lanes;
    list_init(&reviver->waiting);
    CHECK(pthread_mutex_init(&reviver->lock, NULL) == 0 && pthread_cond_init(&reviver->wake, NULL) == 0);
    enum status status = store_reader_open(store, &reviver->reader, err);
    if (status != STATUS_OK)
        goto free_reviver;
    if (thread_start(&reviver->thread, "reviver", reviver_main, reviver) != 0) {
        status = error_set(err, STATUS_IO, "no thread to revive dead letters");
        goto close_reader;
    }
    *out = reviver;
    return STATUS_OK;

close_reader:
    store_reader_close(reviver->reader);
free_reviver:
    pthread_cond_destroy(&reviver->wake);
    pthread_mutex_destroy(&reviver->lock);
    free(reviver);
    return status;
}

void reviver_close(struct reviver *reviver)
{
    if (!reviver)
        return;
    pthread_mutex_lock(&reviver->lock);
    reviver->stop = true;
    pthread_cond_signal(&reviver->wake);
    pthread_mutex_unlock(&reviver->lock);
    pthread_join(reviver->thread, NULL);
    store_reader_close(reviver->reader);
    pthread_cond_destroy(&reviver->wake);
    pthread_mutex_destroy(&reviver->lock);
    free(reviver);
}
