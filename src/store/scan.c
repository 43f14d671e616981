/* What is owed, at start. Blocks that are settled hold nothing but dead letters, and those are indexed; all
 * other blocks are read from end to end. So the time goes with what is owed, not with what is stored. */
#include "store/store_priv.h"

struct scan {
    struct store *store;
    bool (*each)(void *ctx, const struct store_owed *row);
    void *ctx;
    sqlite3_stmt *all, *dead;
    bool stopped;
};

static int pass_rows(struct scan *scan, sqlite3_stmt *stmt, uint64_t from, uint64_t to, bool count)
{
    struct store *store = scan->store;
    sqlite3_bind_int64(stmt, 1, (int64_t)from);
    sqlite3_bind_int64(stmt, 2, (int64_t)to);
    int rc = SQLITE_DONE;
    while (!scan->stopped && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct store_row_view view;
        if (!row_view_of(store, stmt, &view)) {
            rc = SQLITE_CORRUPT;
            break;
        }
        if (count)
            blocks_count_owed(&store->blocks, view.seq, view.state);
        if (!scan->each)
            continue;
        struct store_owed row = {
            .seq = view.seq,
            .sink = view.sink,
            .tenant = view.tenant,
            .state = view.state,
            .ordered = view.ordered,
            .late = view.late,
            .replay = view.replay,
            .key = view.key,
            .attempts = view.attempts,
            .first_attempt_ms = view.first_attempt_ms,
            .due_ms = view.due_ms,
            .waived_ms = view.waived_ms,
            .received_at_ms = view.received_at_ms,
            .at_ms = view.at_ms,
            .cls = view.cls,
            .http_status = view.http_status,
            .reason = view.reason,
        };
        memcpy(row.lane, view.lane, sizeof row.lane);
        scan->stopped = !scan->each(scan->ctx, &row);
    }
    sqlite3_reset(stmt);
    return scan->stopped ? SQLITE_DONE : rc;
}

static int pass_all(struct scan *scan)
{
    struct blocks *blocks = &scan->store->blocks;
    uint64_t from = 0;
    for (size_t i = 0; i < blocks->open.len && !scan->stopped;) {
        uint64_t first = blocks->open.at[i].number, end = first;
        for (; i < blocks->open.len && blocks->open.at[i].number == end; i++)
            end++;
        int rc = pass_rows(scan, scan->dead, from, first * BLOCK_SEQS, false);
        if (rc == SQLITE_DONE)
            rc = pass_rows(scan, scan->all, first * BLOCK_SEQS, end * BLOCK_SEQS, true);
        if (rc != SQLITE_DONE)
            return rc;
        from = end * BLOCK_SEQS;
    }
    return pass_rows(scan, scan->dead, from, INT64_MAX, false);
}

enum status store_scan(struct store *store, bool (*each)(void *ctx, const struct store_owed *row), void *ctx,
                       struct error *err)
{
    static const char all_sql[] = "SELECT " ROW_COLUMNS " FROM rows r WHERE r.seq >= ?1 AND r.seq < ?2 "
                                  "AND r.state IN " KEPT_STATES " ORDER BY r.seq, r.sink";
    static const char dead_sql[] = "SELECT " ROW_COLUMNS " FROM rows r INDEXED BY dead WHERE r.seq >= ?1 "
                                   "AND r.seq < ?2 AND r.state IN " DEAD_STATES " ORDER BY r.seq, r.sink";
    struct db *db = &store->writer.db;
    struct scan scan = {.store = store, .each = each, .ctx = ctx};
    blocks_forget_owed(&store->blocks);
    int rc = sqlite3_prepare_v2(db->handle, all_sql, -1, &scan.all, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(db->handle, dead_sql, -1, &scan.dead, NULL);
    if (rc == SQLITE_OK)
        rc = pass_all(&scan);
    enum status status = STATUS_OK;
    if (rc != SQLITE_DONE)
        status = error_set(err, db_status(rc), "what is owed can't be read: %s",
                           rc == SQLITE_CORRUPT ? "a row is damaged" : db_problem(db));
    store->scanned = status == STATUS_OK && !scan.stopped;
    sqlite3_finalize(scan.all);
    sqlite3_finalize(scan.dead);
    return status;
}
