/* Rates of tenants that people set while the gateway runs. Few lines, each overwritten in place, riding with
 * the changes of rows, as marks do. */
#include <stdio.h>

#include "store/store_priv.h"
#include "util/mem.h"

struct putting {
    struct list node;
    int kind;
    struct store_limit limit;
};

void store_set_limit(struct store *store, const struct store_limit *limit)
{
    struct putting *putting = mem_alloc(sizeof *putting);
    *putting = (struct putting){.kind = CHANGE_LIMIT, .limit = *limit};
    struct list one = LIST_INIT(one);
    list_append(&one, &putting->node);
    changes_give(store, &one);
}

bool limit_write(sqlite3_stmt **sql, const struct list *node)
{
    const struct store_limit *limit = &LIST_OWNER(node, struct putting, node)->limit;
    sqlite3_stmt *stmt = sql[limit->set ? WRITER_LIMIT : WRITER_LIMIT_DROP];
    sqlite3_bind_text(stmt, 1, limit->tenant, -1, SQLITE_STATIC);
    if (limit->set) {
        sqlite3_bind_double(stmt, 2, limit->rate);
        sqlite3_bind_int64(stmt, 3, limit->burst);
    }
    return db_run(stmt);
}

static bool limit_of(sqlite3_stmt *stmt, struct store_limit *limit)
{
    *limit = (struct store_limit){
        .set = true, .rate = sqlite3_column_double(stmt, 1), .burst = sqlite3_column_int64(stmt, 2)};
    struct bytes tenant = db_column(stmt, 0);
    snprintf(limit->tenant, sizeof limit->tenant, "%.*s", BYTES_ARG(tenant));
    return tenant.len > 0 && tenant.len < sizeof limit->tenant && limit->rate > 0 && limit->burst > 0;
}

enum status store_limits(struct store *store, void (*each)(void *ctx, const struct store_limit *limit),
                         void *ctx, struct error *err)
{
    struct db *db = &store->writer.db;
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db->handle, "SELECT tenant, rate, burst FROM limits", -1, &stmt, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        struct store_limit limit;
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW && limit_of(stmt, &limit))
            each(ctx, &limit);
        else if (rc == SQLITE_ROW)
            rc = SQLITE_CORRUPT;
    }
    sqlite3_finalize(stmt);
    if (rc == SQLITE_DONE)
        return STATUS_OK;
    return error_set(err, db_status(rc), "the rate limits of tenants can't be read: %s",
                     rc == SQLITE_CORRUPT ? "a line is damaged" : db_problem(db));
}
