/* How many dead letters each source has, and how many bytes of them: sums that the writer keeps, added up
 * from the index at start. A source that has too many is refused hooks, and no other one is. Sources without
 * a bound are summed too: a reload may give them one. */
#include <stdlib.h>
#include <string.h>

#include "store/store_priv.h"
#include "util/check.h"
#include "util/log.h"
#include "util/mem.h"

static struct dead_sum *find(const struct dlq *dlq, struct bytes source)
{
    struct dead_sum *sum = dlq->sums;
    while (sum && !bytes_eq(bytes_str(sum->source), source))
        sum = sum->next;
    return sum;
}

static struct dead_sum *sum_of(struct dlq *dlq, const char *source)
{
    struct dead_sum *sum = find(dlq, bytes_str(source));
    if (sum)
        return sum;
    size_t len = strlen(source) + 1;
    sum = mem_zalloc(sizeof *sum + len);
    sum->source = memcpy(sum + 1, source, len);
    sum->next = dlq->sums;
    dlq->sums = sum;
    return sum;
}

static void judge(struct dlq *dlq, struct dead_sum *sum)
{
    bool full = (sum->max_rows > 0 && sum->rows >= (int64_t)sum->max_rows) ||
                (sum->max_bytes > 0 && sum->bytes >= sum->max_bytes);
    if (full == sum->full)
        return;
    sum->full = full;
    if (full)
        atomic_fetch_add(&dlq->full, 1);
    else
        atomic_fetch_sub(&dlq->full, 1);
    log_event(full ? LOG_ERROR : LOG_INFO, full ? "dlq_full" : "dlq_open", LOG_STR("source", sum->source),
              LOG_INT("rows", sum->rows), LOG_INT("bytes", sum->bytes), LOG_INT("max_rows", sum->max_rows),
              LOG_INT("max_bytes", sum->max_bytes));
}

static void set_bounds(struct dlq *dlq, const struct store_dlq_bound *bounds, size_t count)
{
    for (struct dead_sum *sum = dlq->sums; sum; sum = sum->next)
        sum->max_rows = 0, sum->max_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        struct dead_sum *sum = sum_of(dlq, bounds[i].source);
        sum->max_rows = bounds[i].max_rows;
        sum->max_bytes = bounds[i].max_bytes;
    }
}

void dlq_open(struct store *store)
{
    CHECK(pthread_mutex_init(&store->dlq.lock, NULL) == 0);
    set_bounds(&store->dlq, store->options.dlq, store->options.dlq_count);
    store->options.dlq = NULL; /* the caller's */
}

void store_set_dlq(struct store *store, const struct store_dlq_bound *bounds, size_t count)
{
    struct dlq *dlq = &store->dlq;
    pthread_mutex_lock(&dlq->lock);
    set_bounds(dlq, bounds, count);
    for (struct dead_sum *sum = dlq->sums; sum; sum = sum->next)
        judge(dlq, sum);
    pthread_mutex_unlock(&dlq->lock);
}

void dlq_close(struct dlq *dlq)
{
    for (struct dead_sum *sum = dlq->sums, *next; sum; sum = next) {
        next = sum->next;
        free(sum);
    }
    pthread_mutex_destroy(&dlq->lock);
}

bool dlq_is_full(struct dlq *dlq, struct bytes source)
{
    pthread_mutex_lock(&dlq->lock);
    const struct dead_sum *sum = find(dlq, source);
    bool full = sum && sum->full;
    pthread_mutex_unlock(&dlq->lock);
    return full;
}

int64_t dlq_bytes(struct dlq *dlq)
{
    int64_t bytes = 0;
    pthread_mutex_lock(&dlq->lock);
    for (const struct dead_sum *sum = dlq->sums; sum; sum = sum->next)
        bytes += sum->bytes;
    pthread_mutex_unlock(&dlq->lock);
    return bytes;
}

void dlq_shift(struct store *store, uint32_t sink, int64_t rows, int64_t size)
{
    struct dlq *dlq = &store->dlq;
    const struct name *name = names_by_id(&store->names, sink);
    if (!name)
        return;
    pthread_mutex_lock(&dlq->lock);
    struct dead_sum *sum = sum_of(dlq, name->text);
    sum->rows += rows;
    sum->bytes += rows * size;
    judge(dlq, sum);
    pthread_mutex_unlock(&dlq->lock);
}

enum status dlq_load(struct store *store, struct error *err)
{
    static const char sql[] = "SELECT sink, count(*), sum(coalesce(size, 0)) FROM rows INDEXED BY dead "
                              "WHERE state IN " DEAD_STATES " GROUP BY sink";
    struct db *db = &store->writer.db;
    struct dlq *dlq = &store->dlq;
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(stmt);
        if (rc != SQLITE_ROW)
            break;
        const struct name *name = names_by_id(&store->names, (uint32_t)sqlite3_column_int64(stmt, 0));
        if (name) {
            struct dead_sum *sum = sum_of(dlq, name->text);
            sum->rows += sqlite3_column_int64(stmt, 1);
            sum->bytes += sqlite3_column_int64(stmt, 2);
        }
    }
    sqlite3_finalize(stmt);
    if (rc != SQLITE_DONE)
        return error_set(err, db_status(rc), "the dead letters can't be added up: %s", db_problem(db));
    for (struct dead_sum *sum = dlq->sums; sum; sum = sum->next)
        judge(dlq, sum);
    return STATUS_OK;
}
