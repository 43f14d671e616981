/* What waits for one sink, in order: block by block, past those in which nothing is owed. */
#include "store/reader_priv.h"

/* The first block from there on that may hold owed rows; those too new to have a line of their own may. */
static int next_block(struct store_reader *reader, uint64_t *number)
{
    sqlite3_stmt *tail = db_sql(&reader->db, READER_TAIL), *open = db_sql(&reader->db, READER_OPEN_BLOCK);
    int rc = sqlite3_step(tail);
    uint64_t first_new = rc == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(tail, 0) : 0;
    sqlite3_reset(tail);
    if (rc != SQLITE_ROW || *number >= first_new)
        return rc;
    sqlite3_bind_int64(open, 1, (int64_t)*number);
    rc = sqlite3_step(open);
    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        *number = rc == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(open, 0) : first_new;
    sqlite3_reset(open);
    return rc == SQLITE_DONE ? SQLITE_ROW : rc;
}

static int pass_block(struct store_reader *reader, uint32_t sink, uint64_t from, uint64_t to,
                      store_each_row each, void *ctx, bool *stopped)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_PENDING);
    sqlite3_bind_int64(stmt, 1, (int64_t)from);
    sqlite3_bind_int64(stmt, 2, (int64_t)to);
    sqlite3_bind_int64(stmt, 3, sink);
    int rc;
    while (!*stopped && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct store_row_view view;
        if (!row_view_of(reader->store, stmt, &view)) {
            rc = SQLITE_CORRUPT;
            break;
        }
        *stopped = !each(ctx, &view);
    }
    sqlite3_reset(stmt);
    return *stopped ? SQLITE_DONE : rc;
}

enum status store_list_pending(struct store_reader *reader, uint32_t sink, uint64_t from_seq,
                               store_each_row each, void *ctx)
{
    uint64_t end = atomic_load(&reader->store->next_seq), number = from_seq / BLOCK_SEQS;
    bool stopped = false;
    while (!stopped && number * BLOCK_SEQS < end) {
        int rc = next_block(reader, &number);
        if (rc != SQLITE_ROW)
            return db_status(rc);
        uint64_t first = number * BLOCK_SEQS;
        rc = pass_block(reader, sink, first < from_seq ? from_seq : first, first + BLOCK_SEQS, each, ctx,
                        &stopped);
        if (rc != SQLITE_DONE)
            return db_status(rc);
        number++;
    }
    return STATUS_OK;
}
