/* What is in a store that nobody serves: sums over all its rows, in a few passes. */
#include <stdlib.h>

#include "store/tools_priv.h"
#include "util/check.h"

struct inspect {
    struct still *still;
    const struct store_inspection *ask;
    struct watching watching;
    struct store_view *view;
};

/* One line of a pass. */
typedef void (*take_line)(struct inspect *inspect, sqlite3_stmt *stmt, struct store_sight *sight);

static const char *text(sqlite3_stmt *stmt, int at)
{
    return (const char *)sqlite3_column_text(stmt, at);
}

static uint64_t number(sqlite3_stmt *stmt, int at)
{
    return (uint64_t)sqlite3_column_int64(stmt, at);
}

static void take_source(struct inspect *inspect, sqlite3_stmt *stmt, struct store_sight *sight)
{
    *sight = (struct store_sight){.kind = SIGHT_SOURCE,
                                  .tenant = text(stmt, 0),
                                  .source = text(stmt, 1),
                                  .hooks = number(stmt, 2),
                                  .oldest_ms = sqlite3_column_int64(stmt, 3),
                                  .newest_ms = sqlite3_column_int64(stmt, 4)};
    inspect->view->hooks += sight->hooks;
    if (inspect->view->oldest_ms == 0 || sight->oldest_ms < inspect->view->oldest_ms)
        inspect->view->oldest_ms = sight->oldest_ms;
    if (sight->newest_ms > inspect->view->newest_ms)
        inspect->view->newest_ms = sight->newest_ms;
}

static void take_sink(struct inspect *inspect, sqlite3_stmt *stmt, struct store_sight *sight)
{
    *sight = (struct store_sight){.kind = SIGHT_SINK,
                                  .source = text(stmt, 0),
                                  .sink = text(stmt, 1),
                                  .oldest_ms = sqlite3_column_int64(stmt, 2)};
    for (int state = ROW_PENDING; state <= ROW_DISCARDED; state++) {
        sight->states[state] = number(stmt, 3 + state);
        inspect->view->states[state] += sight->states[state];
    }
}

static void take_lane(struct inspect *inspect, sqlite3_stmt *stmt, struct store_sight *sight)
{
    *sight = (struct store_sight){.kind = SIGHT_LANE,
                                  .tenant = text(stmt, 0),
                                  .source = text(stmt, 1),
                                  .sink = text(stmt, 2),
                                  .ordered = sqlite3_column_type(stmt, 3) != SQLITE_NULL,
                                  .key = db_column(stmt, 4),
                                  .hooks = number(stmt, 5),
                                  .head_seq = number(stmt, 6),
                                  .oldest_ms = sqlite3_column_int64(stmt, 7),
                                  .held = sqlite3_column_int(stmt, 8) == ROW_HELD};
    inspect->view->lanes = number(stmt, 9);
}

static void take_dead(struct inspect *inspect, sqlite3_stmt *stmt, struct store_sight *sight)
{
    (void)inspect;
    *sight = (struct store_sight){.kind = SIGHT_DEAD,
                                  .source = text(stmt, 0),
                                  .sink = text(stmt, 1),
                                  .cls = text(stmt, 2),
                                  .hooks = number(stmt, 3),
                                  .oldest_ms = sqlite3_column_int64(stmt, 4)};
}

static void take_pen(struct inspect *inspect, sqlite3_stmt *stmt, struct store_sight *sight)
{
    *sight = (struct store_sight){.kind = SIGHT_PEN,
                                  .source = text(stmt, 0),
                                  .hooks = number(stmt, 1),
                                  .bytes = number(stmt, 2),
                                  .oldest_ms = sqlite3_column_int64(stmt, 3)};
    inspect->view->pen_hooks += sight->hooks;
    inspect->view->pen_bytes += sight->bytes;
}

static void take_mark(struct inspect *inspect, sqlite3_stmt *stmt, struct store_sight *sight)
{
    (void)inspect;
    static const char *const kinds[] = {
        [MARK_BREAKER] = "breaker", [MARK_SINK_PAUSE] = "sink_pause", [MARK_LANE_PAUSE] = "lane_pause"};
    uint64_t kind = number(stmt, 0);
    *sight = (struct store_sight){.kind = SIGHT_STOPPED,
                                  .cls = kind < sizeof kinds / sizeof kinds[0] ? kinds[kind] : NULL,
                                  .source = text(stmt, 1),
                                  .sink = text(stmt, 2),
                                  .tenant = text(stmt, 3),
                                  .oldest_ms = sqlite3_column_int64(stmt, 4)};
}

#define NAMED(table, column, as) " JOIN names " as " ON " as ".id = " table "." column

/* clang-format off */
static const struct pass {
    int since;
    take_line take;
    bool bounded; /* ?1: how many */
    const char *sql;
} passes[] = {
    {1, take_source, false,
     "SELECT t.text, s.text, count(*), min(h.received_at), max(h.received_at) FROM hooks h"
     NAMED("h", "tenant", "t") NAMED("h", "source", "s") " GROUP BY h.tenant, h.source ORDER BY 2, 1"},
    {1, take_sink, false,
     "SELECT s.text, s.sink, ifnull(min(iif(r.state = 0, r.received_at, NULL)), 0), sum(r.state = 0), sum(r.state = 1), "
     "sum(r.state = 2), sum(r.state = 3), sum(r.state = 4) FROM rows r" NAMED("r", "sink", "s")
     " GROUP BY r.sink ORDER BY 1, 2"},
    /* SQLite takes the bare columns from the row that has the minimum: the head's. */
    {1, take_lane, true,
     "SELECT t.text, s.text, s.sink, g.lane, g.key, g.depth, g.head, g.received_at, g.state, count(*) OVER () FROM "
     "(SELECT tenant, sink, lane, key, count(*) depth, min(seq) head, received_at, state FROM rows WHERE state IN (0, 3) "
     "GROUP BY tenant, sink, lane) g" NAMED("g", "tenant", "t") NAMED("g", "sink", "s")
     " ORDER BY g.depth DESC, g.head LIMIT ?1"},
    {1, take_dead, false,
     "SELECT s.text, s.sink, r.cls, count(*), min(r.at) FROM rows r INDEXED BY dead" NAMED("r", "sink", "s")
     " WHERE r.state IN " DEAD_STATES " GROUP BY r.sink, r.cls ORDER BY 1, 2, 3"},
    {3, take_mark, false,
     "SELECT m.kind, s.text, s.sink, t.text, m.since FROM marks m" NAMED("m", "sink", "s")
     " LEFT JOIN names t ON t.id = m.tenant ORDER BY 1, 2, 3, m.since LIMIT 1000"},
    {6, take_pen, false,
     "SELECT s.text, count(*), sum(p.size), min(p.received_at) FROM pen p" NAMED("p", "source", "s")
     " GROUP BY p.source ORDER BY 1"},
};
/* clang-format on */

static int run_pass(struct inspect *inspect, const struct pass *pass)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(inspect->still->db.handle, pass->sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK && pass->bounded)
        sqlite3_bind_int64(stmt, 1, (int64_t)inspect->ask->max_lanes);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(stmt);
        if (rc != SQLITE_ROW)
            break;
        struct store_sight sight;
        pass->take(inspect, stmt, &sight);
        inspect->ask->each(inspect->ask->ctx, &sight);
    }
    sqlite3_finalize(stmt);
    return rc;
}

static bool read_counts(struct inspect *inspect)
{
    static const struct {
        int since;
        size_t at;
        const char *sql;
    } counts[] = {
        {1, offsetof(struct store_view, next_seq),
         "SELECT max((SELECT ifnull(max(seq), 0) + 1 FROM hooks), (SELECT value FROM meta WHERE name = "
         "'seq_floor'))"},
        {2, offsetof(struct store_view, audit_lines), "SELECT count(*) FROM audit"},
        {5, offsetof(struct store_view, dedupe_keys), "SELECT count(*) FROM claims"},
        {7, offsetof(struct store_view, replays_running), "SELECT count(*) FROM replays WHERE state = 0"},
        {7, offsetof(struct store_view, replays_paused), "SELECT count(*) FROM replays WHERE state = 1"},
    };
    bool good = true;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && good; i++) {
        int64_t n = 0;
        if (counts[i].since <= inspect->still->layout)
            good = db_int(&inspect->still->db, counts[i].sql, 0, &n);
        *(uint64_t *)((char *)inspect->view + counts[i].at) = (uint64_t)n;
    }
    return good;
}

enum status store_inspect(const char *path, const struct store_inspection *ask, struct store_view *out,
                          struct error *err)
{
    struct still still;
    struct inspect inspect = {.still = &still, .ask = ask, .view = out};
    *out = (struct store_view){0};
    enum status status = still_open(&still, path, false, err);
    if (status == STATUS_OK)
        status = schema_epoch(&still.db, &out->epoch, err);
    if (status != STATUS_OK)
        goto close_still;
    out->layout = still.layout;
    out->database_bytes = still_file_bytes(still.path, "");
    out->log_bytes = still_file_bytes(still.path, "-wal");
    meta_int(&still.db, "backup_at", &out->backup_ms);
    meta_int(&still.db, "restored_at", &out->restored_ms);
    meta_uuid(&still.db, "restored_from", &out->restored_from);

    watching_begin(&inspect.watching, &ask->watch, &still.db);
    size_t count = sizeof passes / sizeof passes[0];
    watching_phase(&inspect.watching, "reading", count);
    int rc = read_counts(&inspect) ? SQLITE_DONE : SQLITE_ERROR;
    for (size_t i = 0; i < count && rc == SQLITE_DONE; i++, inspect.watching.done++)
        if (passes[i].since <= still.layout)
            rc = run_pass(&inspect, &passes[i]);
    watching_end(&still.db);
    if (inspect.watching.stopped)
        status = error_set(err, STATUS_DRAINING, "interrupted");
    else if (rc != SQLITE_DONE)
        status =
            error_set(err, db_status(sqlite3_errcode(still.db.handle)),
                      "%s can't be read: %s; lanegate store check says more", path, db_problem(&still.db));

close_still:
    still_close(&still);
    return status;
}
