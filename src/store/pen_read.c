/* Looking into the pen, beside the writer. */
#include "store/reader_priv.h"

enum { PEN_LOOK_MAX = 4096 }; /* entries a call looks at */

static bool view_of(struct store *store, sqlite3_stmt *stmt, struct store_pen_view *view)
{
    struct bytes hook = db_column(stmt, 1);
    const struct name *tenant = names_by_id(&store->names, (uint32_t)sqlite3_column_int64(stmt, 3));
    const struct name *source = names_by_id(&store->names, (uint32_t)sqlite3_column_int64(stmt, 4));
    if (hook.len != sizeof view->hook || !tenant || !source)
        return false;
    *view = (struct store_pen_view){
        .id = (uint64_t)sqlite3_column_int64(stmt, 0),
        .received_at_ms = sqlite3_column_int64(stmt, 2),
        .tenant = tenant->text,
        .source = source->text,
        .size = (size_t)sqlite3_column_int64(stmt, 5),
        .reason = db_column(stmt, 6),
    };
    memcpy(view->hook.bytes, hook.at, hook.len);
    return true;
}

static bool matches(const struct store_pen_filter *filter, const struct store_pen_view *view)
{
    return (!filter->tenant || strcmp(filter->tenant, view->tenant) == 0) &&
           (!filter->source || strcmp(filter->source, view->source) == 0) &&
           (!filter->failure.at || bytes_eq(filter->failure, view->reason)) &&
           (!filter->hook || memcmp(filter->hook, &view->hook, sizeof view->hook) == 0) &&
           (filter->since_ms == 0 || view->received_at_ms >= filter->since_ms) &&
           (filter->until_ms == 0 || view->received_at_ms < filter->until_ms);
}

enum status store_walk_pen(struct store_reader *reader, struct store_pen_filter *filter,
                           bool (*each)(void *ctx, const struct store_pen_view *entry), void *ctx, bool *end)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, filter->hook ? READER_PEN_HOOK : READER_PEN);
    if (filter->hook)
        sqlite3_bind_blob(stmt, 2, filter->hook, sizeof *filter->hook, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 1, (int64_t)filter->after_id);
    size_t looked = 0, found = 0;
    int rc = SQLITE_DONE;
    *end = false;
    while (looked < PEN_LOOK_MAX && found < filter->limit && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct store_pen_view view;
        if (!view_of(reader->store, stmt, &view)) {
            rc = SQLITE_CORRUPT;
            break;
        }
        looked++;
        filter->after_id = view.id;
        if (!matches(filter, &view))
            continue;
        found++;
        if (!each(ctx, &view))
            break;
    }
    *end = rc == SQLITE_DONE && looked < PEN_LOOK_MAX && found < filter->limit;
    sqlite3_reset(stmt);
    return reader_status(rc, true);
}

enum status store_read_pen(struct store_reader *reader, uint64_t id, struct envelope **out)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_PEN_READ);
    *out = NULL;
    sqlite3_bind_int64(stmt, 1, (int64_t)id);
    int rc = sqlite3_step(stmt);
    enum status status =
        rc == SQLITE_ROW ? reader_envelope(reader->store, stmt, 0, out) : reader_status(rc, false);
    sqlite3_reset(stmt);
    return status;
}
