/* Outcomes on their way into rows, and what else rides in the writer's transactions (audit.c). They wait for
 * the next batch of hooks, or DELAY_MS at most; a change whose transaction failed is written again, which is
 * harmless: it says what the row is, not what to add. */
#include <stdlib.h>

#include "store/store_priv.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/mem.h"

/* The promise is 50 ms to the disk; the rest is for the transaction itself. */
enum { DELAY_MS = 25 };

struct store_change *store_change_new(void)
{
    return mem_zalloc(sizeof(struct store_change));
}

void changes_init(struct changes *changes)
{
    *changes = (struct changes){0};
    CHECK(pthread_mutex_init(&changes->lock, NULL) == 0);
    CHECK(pthread_cond_init(&changes->moved, NULL) == 0);
    list_init(&changes->waiting);
}

void changes_free(struct changes *changes)
{
    struct list *node;
    while ((node = list_pop(&changes->waiting)))
        change_free(node);
    pthread_cond_destroy(&changes->moved);
    pthread_mutex_destroy(&changes->lock);
}

void changes_give(struct store *store, struct list *given)
{
    struct changes *changes = &store->changes;
    size_t count = 0;
    LIST_EACH (node, given)
        count++;
    if (count == 0)
        return;
    pthread_mutex_lock(&changes->lock);
    bool first = list_empty(&changes->waiting);
    if (first)
        changes->since_us = clock_mono_us();
    changes->given += count;
    list_splice(&changes->waiting, given);
    pthread_mutex_unlock(&changes->lock);
    if (first)
        queue_poke(&store->queue); /* to set its alarm */
}

void store_changes(struct store *store, struct list *given)
{
    changes_give(store, given);
}

uint64_t store_changes_given(struct store *store)
{
    pthread_mutex_lock(&store->changes.lock);
    uint64_t given = store->changes.given;
    pthread_mutex_unlock(&store->changes.lock);
    return given;
}

bool store_changes_written(struct store *store, uint64_t given)
{
    pthread_mutex_lock(&store->changes.lock);
    bool written = store->changes.written >= given;
    pthread_mutex_unlock(&store->changes.lock);
    return written;
}

bool store_flush(struct store *store)
{
    struct changes *changes = &store->changes;
    pthread_mutex_lock(&changes->lock);
    uint64_t upto = changes->given;
    if (changes->written < upto && !changes->stuck) {
        changes->hurry = true;
        pthread_mutex_unlock(&changes->lock);
        queue_poke(&store->queue);
        pthread_mutex_lock(&changes->lock);
    }
    while (changes->written < upto && !changes->stuck)
        pthread_cond_wait(&changes->moved, &changes->lock);
    bool written = changes->written >= upto;
    pthread_mutex_unlock(&changes->lock);
    return written;
}

uint64_t store_given(struct store *store)
{
    pthread_mutex_lock(&store->changes.lock);
    uint64_t given = store->changes.given;
    pthread_mutex_unlock(&store->changes.lock);
    return given;
}

bool store_is_written(struct store *store, uint64_t given)
{
    pthread_mutex_lock(&store->changes.lock);
    bool written = store->changes.written >= given;
    pthread_mutex_unlock(&store->changes.lock);
    return written;
}

int64_t changes_due_us(struct changes *changes)
{
    pthread_mutex_lock(&changes->lock);
    int64_t due = INT64_MAX;
    if (!list_empty(&changes->waiting))
        due = changes->hurry ? 0 : changes->since_us + DELAY_MS * 1000;
    pthread_mutex_unlock(&changes->lock);
    return due;
}

void changes_take(struct changes *changes, struct list *out, size_t max)
{
    pthread_mutex_lock(&changes->lock);
    for (size_t n = 0; n < max && !list_empty(&changes->waiting); n++)
        list_append(out, list_pop(&changes->waiting));
    if (list_empty(&changes->waiting))
        changes->hurry = false;
    pthread_mutex_unlock(&changes->lock);
}

/* What the last attempt, or whoever ended the row, has left to read. */
static void bind_outcome(sqlite3_stmt *put, const struct store_change *change)
{
    sqlite3_bind_text(put, 10, change->cls, -1, SQLITE_STATIC);
    sqlite3_bind_int(put, 11, change->http_status);
    sqlite3_bind_int64(put, 12, change->duration_us);
    if (change->reason[0])
        sqlite3_bind_text(put, 13, change->reason, (int)strnlen(change->reason, sizeof change->reason),
                          SQLITE_STATIC);
    else
        sqlite3_bind_null(put, 13);
}

static bool write_outcome(sqlite3_stmt **sql, struct store_change *change)
{
    sqlite3_stmt *look = sql[WRITER_STATE];
    sqlite3_bind_int64(look, 1, (int64_t)change->seq);
    sqlite3_bind_int64(look, 2, change->sink);
    int rc = sqlite3_step(look);
    change->was = rc == SQLITE_ROW ? sqlite3_column_int(look, 0) : -1;
    change->size = sqlite3_column_int64(look, 1);
    sqlite3_reset(look);
    if (rc == SQLITE_DONE)
        return replay_count(sql, change); /* no such row: its hook was erased while the attempt ran */
    if (rc != SQLITE_ROW)
        return false;

    sqlite3_stmt *put = sql[change->cls ? WRITER_CHANGE : WRITER_NOTE];
    sqlite3_bind_int64(put, 1, (int64_t)change->seq);
    sqlite3_bind_int64(put, 2, change->sink);
    sqlite3_bind_int(put, 3, change->state);
    sqlite3_bind_int(put, 4, change->late);
    sqlite3_bind_int64(put, 5, change->attempts);
    sqlite3_bind_int64(put, 6, change->first_attempt_ms);
    sqlite3_bind_int64(put, 7, change->due_ms);
    sqlite3_bind_int64(put, 8, change->at_ms);
    sqlite3_bind_int64(put, 9, change->waived_ms);
    if (change->cls)
        bind_outcome(put, change);
    if (!db_run(put) || (change->failed && !attempt_write(sql, change)) || !replay_count(sql, change))
        return false;

    /* Owed again: in the same transaction its block stops being one that the scan at start may skip. */
    if (change->state != ROW_PENDING || change->was == ROW_PENDING)
        return true;
    sqlite3_bind_int64(sql[WRITER_BLOCK_OWED], 1, (int64_t)(change->seq / BLOCK_SEQS));
    if (!db_run(sql[WRITER_BLOCK_OWED]))
        return false;
    if (change->replay)
        return true;
    sqlite3_bind_int64(sql[WRITER_REPLAY_NO_MORE], 1, (int64_t)change->seq);
    sqlite3_bind_int64(sql[WRITER_REPLAY_NO_MORE], 2, change->sink);
    return db_run(sql[WRITER_REPLAY_NO_MORE]);
}

bool changes_write(struct store *store, const struct list *changes)
{
    sqlite3_stmt **sql = store->writer.db.sql;
    LIST_EACH (node, changes) {
        bool written = false;
        switch (change_kind(node)) {
        case CHANGE_OUTCOME:
            written = write_outcome(sql, LIST_OWNER(node, struct store_change, node));
            break;
        case CHANGE_AUDIT:
            written = audit_write(sql, node);
            break;
        case CHANGE_MARK:
            written = mark_write(sql, node);
            break;
        case CHANGE_LIMIT:
            written = limit_write(sql, node);
            break;
        case CHANGE_MOVE:
            written = move_write(sql, node);
            break;
        case CHANGE_ERASE:
            written = erase_write(store, node);
            break;
        case CHANGE_FORGET:
            written = forget_write(store, node);
            break;
        case CHANGE_PEN:
            written = pen_change_write(store, node);
            break;
        case CHANGE_REPLAY:
            written = replay_write(sql, node);
            break;
        case CHANGE_REPLAY_STEP:
            written = replay_step_write(store, node);
            break;
        }
        if (!written)
            return false;
    }
    return true;
}

void change_free(struct list *node)
{
    struct store_change *change = LIST_OWNER(node, struct store_change, node);
    if (change_kind(node) == CHANGE_REPLAY_STEP) {
        replay_step_lost(node); /* its owner's */
        return;
    }
    if (change_kind(node) == CHANGE_OUTCOME)
        free((char *)change->response.at);
    free(change); /* one allocation, of whatever kind */
}

void changes_written(struct store *store, struct list *changes)
{
    uint64_t count = 0, lowest = UINT64_MAX;
    int64_t dead = 0;
    struct list *node;
    while ((node = list_pop(changes))) {
        struct store_change *change = LIST_OWNER(node, struct store_change, node);
        count++;
        if (change_kind(node) == CHANGE_OUTCOME && change->was >= 0) {
            enum row_state was = (enum row_state)change->was;
            blocks_shift_row(&store->blocks, change->seq, was, change->state);
            int died = row_state_dead(change->state) - row_state_dead(was);
            dead += died;
            if (died)
                dlq_shift(store, change->sink, died, change->size);
            bool let_go = change->state == ROW_DONE || change->state == ROW_DISCARDED;
            if (let_go && change->seq < lowest)
                lowest = change->seq;
        }
        if (change_kind(node) == CHANGE_ERASE)
            erase_written(store, node);
        if (change_kind(node) == CHANGE_FORGET)
            forget_written(store, node);
        if (change_kind(node) == CHANGE_PEN)
            pen_change_written(store, node);
        if (change_kind(node) == CHANGE_REPLAY_STEP)
            dead += replay_step_written(store, node);
        else
            change_free(node);
    }
    if (count == 0)
        return;
    atomic_fetch_add(&store->dead, (uint64_t)dead);
    if (lowest < UINT64_MAX)
        keeper_look_again(store, lowest);
    pthread_mutex_lock(&store->changes.lock);
    store->changes.written += count;
    pthread_cond_broadcast(&store->changes.moved);
    pthread_mutex_unlock(&store->changes.lock);
}

void changes_set_stuck(struct changes *changes, bool stuck)
{
    pthread_mutex_lock(&changes->lock);
    changes->stuck = stuck;
    pthread_cond_broadcast(&changes->moved);
    pthread_mutex_unlock(&changes->lock);
}
