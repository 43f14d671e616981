/* How many dead letters each source has, and how many bytes of them: sums that the writer keeps, added up
 * from the index at start. A source that has too many is refused hooks, and no other one is. */
#include <stdlib.h>

#include "store/store_priv.h"
#include "util/log.h"
#include "util/mem.h"

void dlq_open(struct store *store)
{
    struct dlq *dlq = &store->dlq;
    dlq->count = store->options.dlq_count;
    dlq->sums = mem_zalloc((dlq->count + 1) * sizeof *dlq->sums);
    for (size_t i = 0; i < dlq->count; i++) {
        const struct store_dlq_bound *bound = &store->options.dlq[i];
        dlq->sums[i].source = mem_strdup(bound->source);
        dlq->sums[i].max_rows = bound->max_rows;
        dlq->sums[i].max_bytes = bound->max_bytes;
    }
    store->options.dlq = NULL; /* the caller's */
}

void dlq_close(struct dlq *dlq)
{
    for (size_t i = 0; i < dlq->count; i++)
        free(dlq->sums[i].source);
    free(dlq->sums);
}

static struct dead_sum *sum_of(const struct dlq *dlq, struct bytes source)
{
    for (size_t i = 0; i < dlq->count; i++)
        if (bytes_eq(bytes_str(dlq->sums[i].source), source))
            return &dlq->sums[i];
    return NULL;
}

bool dlq_is_full(const struct dlq *dlq, struct bytes source)
{
    const struct dead_sum *sum = sum_of(dlq, source);
    return sum && atomic_load_explicit(&sum->full, memory_order_relaxed);
}

static void judge(struct dlq *dlq, struct dead_sum *sum)
{
    bool full = (sum->max_rows > 0 && sum->rows >= (int64_t)sum->max_rows) ||
                (sum->max_bytes > 0 && sum->bytes >= sum->max_bytes);
    if (full == atomic_exchange(&sum->full, full))
        return;
    if (full)
        atomic_fetch_add(&dlq->full, 1);
    else
        atomic_fetch_sub(&dlq->full, 1);
    log_event(full ? LOG_ERROR : LOG_INFO, full ? "dlq_full" : "dlq_open", LOG_STR("source", sum->source),
              LOG_INT("rows", sum->rows), LOG_INT("bytes", sum->bytes), LOG_INT("max_rows", sum->max_rows),
              LOG_INT("max_bytes", sum->max_bytes));
}

void dlq_shift(struct store *store, uint32_t sink, int64_t rows, int64_t size)
{
    const struct name *name = names_by_id(&store->names, sink);
    struct dead_sum *sum = name ? sum_of(&store->dlq, bytes_str(name->text)) : NULL;
    if (!sum)
        return;
    sum->rows += rows;
    sum->bytes += rows * size;
    judge(&store->dlq, sum);
}

enum status dlq_load(struct store *store, struct error *err)
{
    static const char sql[] = "SELECT sink, count(*), sum(coalesce(size, 0)) FROM rows INDEXED BY dead "
                              "WHERE state IN " DEAD_STATES " GROUP BY sink";
    struct db *db = &store->writer.db;
    struct dlq *dlq = &store->dlq;
    if (dlq->count == 0)
        return STATUS_OK;
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(stmt);
        if (rc != SQLITE_ROW)
            break;
        const struct name *name = names_by_id(&store->names, (uint32_t)sqlite3_column_int64(stmt, 0));
        struct dead_sum *sum = name ? sum_of(dlq, bytes_str(name->text)) : NULL;
        if (sum) {
            sum->rows += sqlite3_column_int64(stmt, 1);
            sum->bytes += sqlite3_column_int64(stmt, 2);
        }
    }
    sqlite3_finalize(stmt);
    if (rc != SQLITE_DONE)
        return error_set(err, db_status(rc), "the dead letters can't be added up: %s", db_problem(db));
    for (size_t i = 0; i < dlq->count; i++)
        judge(dlq, &dlq->sums[i]);
    return STATUS_OK;
}
