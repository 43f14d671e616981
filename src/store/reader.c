/* Looking at single hooks and rows, beside the writer. Every statement is reset as soon as it has said what
 * it knows: an open read transaction would keep the log from starting again. */
#include "store/reader_priv.h"
#include "util/mem.h"

static const char *const texts[] = {
#define READER_SQL_TEXT(id, text) text,
    READER_SQL(READER_SQL_TEXT)
#undef READER_SQL_TEXT
};

enum status store_reader_open(struct store *store, struct store_reader **out, struct error *err)
{
    struct store_reader *reader = mem_zalloc(sizeof *reader);
    reader->store = store;
    enum status status = db_open(&reader->db, store->path, DB_READ, err);
    if (status == STATUS_OK) {
        db_prepare_later(&reader->db, texts, READER_SQL_COUNT);
    } else {
        store_reader_close(reader);
        reader = NULL;
    }
    *out = reader;
    return status;
}

void store_reader_close(struct store_reader *reader)
{
    if (!reader)
        return;
    db_close(&reader->db);
    free(reader);
}

enum status reader_status(int rc, bool found)
{
    if (rc == SQLITE_DONE || rc == SQLITE_ROW || rc == SQLITE_OK)
        return found ? STATUS_OK : STATUS_NOT_FOUND;
    return db_status(rc);
}

enum status reader_envelope(struct store *store, sqlite3_stmt *stmt, uint64_t seq, struct envelope **out)
{
    struct bytes id = db_column(stmt, 0);
    const struct name *tenant = names_by_id(&store->names, (uint32_t)sqlite3_column_int64(stmt, 2));
    const struct name *source = names_by_id(&store->names, (uint32_t)sqlite3_column_int64(stmt, 3));
    if (id.len != sizeof(struct uuid) || !tenant || !source)
        return STATUS_CORRUPT;
    struct envelope_parts parts = {
        .seq = seq,
        .received_at_ms = sqlite3_column_int64(stmt, 1),
        .tenant = bytes_str(tenant->text),
        .source = bytes_str(source->text),
        .head = db_column(stmt, 4),
        .body = db_column(stmt, 5),
    };
    memcpy(parts.id.bytes, id.at, id.len);
    return envelope_decode(&parts, out);
}

enum status store_read_hook(struct store_reader *reader, uint64_t seq, struct envelope **out)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_HOOK);
    *out = NULL;
    sqlite3_bind_int64(stmt, 1, (int64_t)seq);
    int rc = sqlite3_step(stmt);
    enum status status =
        rc == SQLITE_ROW ? reader_envelope(reader->store, stmt, seq, out) : reader_status(rc, false);
    sqlite3_reset(stmt);
    return status;
}

static int find_within(struct store_reader *reader, const struct uuid *id, int64_t from, int64_t to,
                       uint64_t *seq)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_FIND);
    sqlite3_bind_int64(stmt, 1, from);
    sqlite3_bind_int64(stmt, 2, to);
    sqlite3_bind_blob(stmt, 3, id->bytes, sizeof id->bytes, SQLITE_STATIC);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        *seq = (uint64_t)sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return rc;
}

/* There is no index of ids: the time in an id leads to a block or two of a thousand hooks. Newest first,
 * since the blocks too new to have a row, and those just written, are where people look. */
enum status store_find_hook(struct store_reader *reader, const struct uuid *id, uint64_t *seq)
{
    sqlite3_stmt *blocks = db_sql(&reader->db, READER_BLOCKS_AT);
    sqlite3_stmt *tail = db_sql(&reader->db, READER_TAIL);
    int rc = sqlite3_step(tail);
    int64_t from = rc == SQLITE_ROW ? sqlite3_column_int64(tail, 0) * BLOCK_SEQS : 0;
    sqlite3_reset(tail);
    if (rc != SQLITE_ROW)
        return db_status(rc);
    rc = find_within(reader, id, from, INT64_MAX, seq);

    sqlite3_bind_int64(blocks, 1, uuid_unix_ms(id));
    while (rc == SQLITE_DONE) {
        rc = sqlite3_step(blocks);
        if (rc != SQLITE_ROW)
            break;
        int64_t first = sqlite3_column_int64(blocks, 0) * BLOCK_SEQS;
        rc = find_within(reader, id, first, first + BLOCK_SEQS, seq);
        if (rc != SQLITE_DONE)
            break;
    }
    sqlite3_reset(blocks);
    return reader_status(rc, rc == SQLITE_ROW);
}

static int end_of(sqlite3_stmt *stmt, struct store_end *end)
{
    int rc = sqlite3_step(stmt);
    struct bytes id = rc == SQLITE_ROW ? db_column(stmt, 1) : BYTES_NONE;
    if (rc == SQLITE_ROW && id.len != sizeof end->id)
        rc = SQLITE_CORRUPT;
    if (rc == SQLITE_ROW) {
        end->seq = (uint64_t)sqlite3_column_int64(stmt, 0);
        memcpy(end->id.bytes, id.at, id.len);
        end->received_at_ms = sqlite3_column_int64(stmt, 2);
    }
    sqlite3_reset(stmt);
    return rc;
}

enum status store_ends(struct store_reader *reader, struct store_end *oldest, struct store_end *newest)
{
    int rc = end_of(db_sql(&reader->db, READER_FIRST), oldest);
    if (rc == SQLITE_ROW)
        rc = end_of(db_sql(&reader->db, READER_LAST), newest);
    return reader_status(rc, rc == SQLITE_ROW);
}

bool reader_row(struct store_reader *reader, sqlite3_stmt *stmt, struct store_row_view *view)
{
    if (!row_view_of(reader->store, stmt, view))
        return false;
    struct bytes id = db_column(stmt, ROW_COLUMN_COUNT);
    if (id.len != sizeof view->id)
        return false;
    memcpy(view->id.bytes, id.at, id.len);
    view->body_size = (size_t)sqlite3_column_int64(stmt, ROW_COLUMN_COUNT + 1);
    return true;
}

static enum status rows_between(struct store_reader *reader, uint64_t seq, uint32_t first, uint32_t last,
                                store_each_row each, void *ctx)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_ROWS);
    sqlite3_bind_int64(stmt, 1, (int64_t)seq);
    sqlite3_bind_int64(stmt, 2, first);
    sqlite3_bind_int64(stmt, 3, last);
    int rc;
    bool found = false;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct store_row_view view;
        if (!reader_row(reader, stmt, &view)) {
            rc = SQLITE_CORRUPT;
            break;
        }
        found = true;
        if (!each(ctx, &view))
            break;
    }
    sqlite3_reset(stmt);
    return reader_status(rc, found);
}

enum status store_rows_of(struct store_reader *reader, uint64_t seq, store_each_row each, void *ctx)
{
    enum status status = rows_between(reader, seq, 0, UINT32_MAX, each, ctx);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status; /* filters may have left a hook without rows */
}

enum status store_row_of(struct store_reader *reader, uint64_t seq, uint32_t sink, store_each_row each,
                         void *ctx)
{
    return rows_between(reader, seq, sink, sink, each, ctx);
}
