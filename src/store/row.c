/* A stored row as others see it. */
#include "store/store_priv.h"
#include "util/check.h"

const char *row_state_name(enum row_state state)
{
    switch (state) {
    case ROW_PENDING:
        return "pending";
    case ROW_DONE:
        return "done";
    case ROW_DEAD:
        return "dead";
    case ROW_HELD:
        return "held";
    case ROW_DISCARDED:
        return "discarded";
    }
    UNREACHABLE();
}

/* What outcomes have left in the row. */
static void read_outcome(struct store *store, sqlite3_stmt *stmt, struct store_row_view *view)
{
    view->attempts = (uint32_t)sqlite3_column_int64(stmt, 7);
    view->first_attempt_ms = sqlite3_column_int64(stmt, 8);
    view->due_ms = sqlite3_column_int64(stmt, 9);
    view->at_ms = sqlite3_column_int64(stmt, 10);
    view->waived_ms = sqlite3_column_int64(stmt, 11);
    const char *cls = (const char *)sqlite3_column_text(stmt, 12);
    view->cls = cls ? names_class(&store->names, cls) : NULL;
    view->http_status = sqlite3_column_int(stmt, 13);
    view->duration_us = sqlite3_column_int64(stmt, 14);
    view->reason = db_column(stmt, 15);
    if (!view->reason.at)
        view->reason = BYTES("");
    view->late = sqlite3_column_int(stmt, 16) != 0;
    view->replay = (uint32_t)sqlite3_column_int64(stmt, 17);
}

bool row_view_of(struct store *store, sqlite3_stmt *stmt, struct store_row_view *view)
{
    *view = (struct store_row_view){
        .seq = (uint64_t)sqlite3_column_int64(stmt, 0),
        .sink = (uint32_t)sqlite3_column_int64(stmt, 1),
        .state = (enum row_state)sqlite3_column_int(stmt, 2),
        .tenant = (uint32_t)sqlite3_column_int64(stmt, 3),
        .key = db_column(stmt, 5),
        .received_at_ms = sqlite3_column_int64(stmt, 6),
        .reason = BYTES(""),
    };
    /* Most rows were never tried: ten columns less to look at. */
    if (sqlite3_column_type(stmt, 7) != SQLITE_NULL)
        read_outcome(store, stmt, view);
    struct bytes lane = db_column(stmt, 4);
    view->ordered = lane.at != NULL;
    if (view->ordered && lane.len == sizeof view->lane)
        memcpy(view->lane, lane.at, sizeof view->lane);

    const struct name *tenant = names_by_id(&store->names, view->tenant);
    const struct name *sink = names_by_id(&store->names, view->sink);
    if (!tenant || !sink || sink->kind != NAME_SINK || view->state > ROW_DISCARDED ||
        (view->ordered && lane.len != sizeof view->lane))
        return false;
    view->tenant_name = tenant->text;
    view->source = sink->text;
    view->sink_name = sink->sink;
    return true;
}
