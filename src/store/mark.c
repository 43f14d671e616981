/* What of lanes' own state survives a restart: breakers that are open, sinks and lanes that are paused. Few
 * lines, each overwritten in place, riding with the changes of rows. */
#include "store/store_priv.h"
#include "util/mem.h"

struct marking {
    struct list node;
    int kind;
    struct store_mark mark;
};

void store_set_mark(struct store *store, const struct store_mark *mark)
{
    struct marking *marking = mem_alloc(sizeof *marking);
    *marking = (struct marking){.kind = CHANGE_MARK, .mark = *mark};
    struct list one = LIST_INIT(one);
    list_append(&one, &marking->node);
    changes_give(store, &one);
}

bool mark_write(sqlite3_stmt **sql, const struct list *node)
{
    const struct store_mark *mark = &LIST_OWNER(node, struct marking, node)->mark;
    sqlite3_stmt *stmt = sql[mark->set ? WRITER_MARK : WRITER_UNMARK];
    sqlite3_bind_int(stmt, 1, mark->kind);
    sqlite3_bind_int64(stmt, 2, mark->sink);
    sqlite3_bind_int64(stmt, 3, mark->tenant);
    sqlite3_bind_blob(stmt, 4, mark->lane, sizeof mark->lane, SQLITE_STATIC);
    if (mark->set) {
        sqlite3_bind_int64(stmt, 5, mark->since_ms);
        sqlite3_bind_int64(stmt, 6, mark->until_ms);
        sqlite3_bind_int64(stmt, 7, mark->cause);
        sqlite3_bind_int64(stmt, 8, mark->opens);
    }
    return db_run(stmt);
}

static bool mark_of(sqlite3_stmt *stmt, struct store_mark *mark)
{
    *mark = (struct store_mark){.kind = sqlite3_column_int(stmt, 0),
                                .sink = (uint32_t)sqlite3_column_int64(stmt, 1),
                                .tenant = (uint32_t)sqlite3_column_int64(stmt, 2),
                                .set = true,
                                .since_ms = sqlite3_column_int64(stmt, 4),
                                .until_ms = sqlite3_column_int64(stmt, 5),
                                .cause = (uint32_t)sqlite3_column_int64(stmt, 6),
                                .opens = (uint32_t)sqlite3_column_int64(stmt, 7)};
    struct bytes lane = db_column(stmt, 3);
    if (lane.len != sizeof mark->lane)
        return false;
    memcpy(mark->lane, lane.at, lane.len);
    return true;
}

enum status store_marks(struct store *store, void (*each)(void *ctx, const struct store_mark *mark),
                        void *ctx, struct error *err)
{
    struct db *db = &store->writer.db;
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db->handle,
                                "SELECT kind, sink, tenant, lane, since, until, cause, opens FROM marks", -1,
                                &stmt, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        struct store_mark mark;
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW && mark_of(stmt, &mark))
            each(ctx, &mark);
        else if (rc == SQLITE_ROW)
            rc = SQLITE_CORRUPT;
    }
    sqlite3_finalize(stmt);
    if (rc == SQLITE_DONE)
        return STATUS_OK;
    return error_set(err, db_status(rc), "what was paused can't be read: %s",
                     rc == SQLITE_CORRUPT ? "a line is damaged" : db_problem(db));
}
