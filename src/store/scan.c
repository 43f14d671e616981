/* What is owed, at start: the lowest cost a row wins, since nothing is accepted before. Blocks that are
 * settled hold nothing but dead letters, and those are indexed; all other blocks are read from end to end. So
 * the time goes with what is owed, not with what is stored. */
#include "store/store_priv.h"

/* In the order of the row itself, and not one more than lanes need: each costs some 15 ns, in millions of
 * rows. */
#define OWED_COLUMNS                                                                                         \
    "r.seq, r.sink, r.state, r.tenant, r.lane, r.received_at, r.attempts, r.first_attempt, r.at, r.waived, " \
    "r.late, r.replay"

struct scan {
    struct store *store;
    uint32_t sink, tenant; /* of the last row: known names; 0: none yet */
    bool (*each)(void *ctx, const struct store_owed *row);
    void *ctx;
    sqlite3_stmt *all, *dead;
    bool stopped;
};

/* Names are behind a lock, and the next row mostly has those of the last. */
static bool names_are_known(struct scan *scan, uint32_t sink, uint32_t tenant)
{
    if (scan->sink && sink == scan->sink && tenant == scan->tenant)
        return true;
    const struct name *name = names_by_id(&scan->store->names, sink);
    if (!name || name->kind != NAME_SINK || !names_by_id(&scan->store->names, tenant))
        return false;
    scan->sink = sink;
    scan->tenant = tenant;
    return true;
}

/* False when a value can't be one of ours. */
static bool read_row(struct scan *scan, sqlite3_stmt *stmt, struct store_owed *row)
{
    *row = (struct store_owed){
        .seq = (uint64_t)sqlite3_column_int64(stmt, 0),
        .sink = (uint32_t)sqlite3_column_int64(stmt, 1),
        .state = (enum row_state)sqlite3_column_int(stmt, 2),
        .tenant = (uint32_t)sqlite3_column_int64(stmt, 3),
        .received_at_ms = sqlite3_column_int64(stmt, 5),
    };
    row->ordered = sqlite3_column_type(stmt, 4) != SQLITE_NULL;
    if (row->ordered) {
        const void *lane = sqlite3_column_blob(stmt, 4);
        if (sqlite3_column_bytes(stmt, 4) != sizeof row->lane)
            return false;
        memcpy(row->lane, lane, sizeof row->lane);
    }
    if (sqlite3_column_type(stmt, 6) != SQLITE_NULL) { /* most were never tried */
        row->attempts = (uint32_t)sqlite3_column_int64(stmt, 6);
        row->first_attempt_ms = sqlite3_column_int64(stmt, 7);
        row->at_ms = sqlite3_column_int64(stmt, 8);
        row->waived_ms = sqlite3_column_int64(stmt, 9);
        row->late = sqlite3_column_int(stmt, 10) != 0;
        row->replay = (uint32_t)sqlite3_column_int64(stmt, 11);
    }
    return row->state <= ROW_HELD && names_are_known(scan, row->sink, row->tenant);
}

static int pass_rows(struct scan *scan, sqlite3_stmt *stmt, uint64_t from, uint64_t to, bool count)
{
    struct store *store = scan->store;
    sqlite3_bind_int64(stmt, 1, (int64_t)from);
    sqlite3_bind_int64(stmt, 2, (int64_t)to);
    int rc = SQLITE_DONE;
    while (!scan->stopped && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct store_owed row;
        if (!read_row(scan, stmt, &row)) {
            rc = SQLITE_CORRUPT;
            break;
        }
        if (count)
            blocks_count_owed(&store->blocks, row.seq, row.state);
        if (!scan->each)
            continue;
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
    /* KEPT_STATES as comparisons: a list of three is a table of its own, with a search in it a row. */
    static const char all_sql[] = "SELECT " OWED_COLUMNS " FROM rows r WHERE r.seq >= ?1 AND r.seq < ?2 "
                                  "AND r.state <> 1 AND r.state < 4 ORDER BY r.seq, r.sink";
    static const char dead_sql[] = "SELECT " OWED_COLUMNS " FROM rows r INDEXED BY dead WHERE r.seq >= ?1 "
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
