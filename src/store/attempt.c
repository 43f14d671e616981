/* The last failures of a row: what the receiver answered each time, kept with the change that tells of it and
 * gone with its hook. */
#include "store/reader_priv.h"

bool attempt_write(sqlite3_stmt **sql, const struct store_change *change)
{
    sqlite3_stmt *insert = sql[WRITER_ATTEMPT], *trim = sql[WRITER_ATTEMPT_TRIM];
    sqlite3_bind_int64(insert, 1, (int64_t)change->seq);
    sqlite3_bind_int64(insert, 2, change->sink);
    sqlite3_bind_int64(insert, 3, change->at_ms);
    sqlite3_bind_int64(insert, 4, change->attempts);
    sqlite3_bind_text(insert, 5, change->cls ? change->cls : "", -1, SQLITE_STATIC);
    sqlite3_bind_int(insert, 6, change->http_status);
    sqlite3_bind_int64(insert, 7, change->duration_us);
    sqlite3_bind_text(insert, 8, change->reason, (int)strnlen(change->reason, sizeof change->reason),
                      SQLITE_STATIC);
    db_bind(insert, 9, change->response);
    sqlite3_bind_int64(trim, 1, (int64_t)change->seq);
    sqlite3_bind_int64(trim, 2, change->sink);
    sqlite3_bind_int(trim, 3, STORE_ATTEMPTS_KEPT);
    return db_run(insert) && db_run(trim);
}

static bool view_of(struct store *store, sqlite3_stmt *stmt, struct store_attempt_view *view)
{
    const struct name *sink = names_by_id(&store->names, (uint32_t)sqlite3_column_int64(stmt, 0));
    const char *cls = (const char *)sqlite3_column_text(stmt, 3);
    if (!sink || sink->kind != NAME_SINK || !cls)
        return false;
    *view = (struct store_attempt_view){
        .sink = sink->id,
        .source = sink->text,
        .sink_name = sink->sink,
        .at_ms = sqlite3_column_int64(stmt, 1),
        .attempt = (uint32_t)sqlite3_column_int64(stmt, 2),
        .cls = names_class(&store->names, cls),
        .http_status = sqlite3_column_int(stmt, 4),
        .duration_us = sqlite3_column_int64(stmt, 5),
        .reason = db_column(stmt, 6),
        .response = db_column(stmt, 7),
    };
    return true;
}

enum status store_attempts_of(struct store_reader *reader, uint64_t seq,
                              bool (*each)(void *ctx, const struct store_attempt_view *attempt), void *ctx)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_ATTEMPTS);
    sqlite3_bind_int64(stmt, 1, (int64_t)seq);
    int rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct store_attempt_view view;
        if (!view_of(reader->store, stmt, &view)) {
            rc = SQLITE_CORRUPT;
            break;
        }
        if (!each(ctx, &view))
            break;
    }
    sqlite3_reset(stmt);
    return reader_status(rc, true);
}
