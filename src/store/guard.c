/* What is owed to sinks that configuration no longer names: counted, moved to a new name, or given up. All of
 * it at start, before the writer's thread exists, on the writer's connection.
 *
 * Like the scan, it looks at the blocks that may hold pending rows, and at the index of dead letters; never
 * at the rest of what is stored. */
#include "store/store_priv.h"
#include "util/check.h"
#include "util/clock.h"

enum { STEP_SEQS = 16 * BLOCK_SEQS }; /* seqs in one transaction of a retirement */

/* ---- counting ---- */

struct count {
    VEC(struct store_sink_rows) sinks; /* ascending in id */
};

static struct store_sink_rows *of_sink(struct count *count, uint32_t id)
{
    size_t low = 0, high = count->sinks.len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (count->sinks.at[middle].sink < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count->sinks.len && count->sinks.at[low].sink == id ? &count->sinks.at[low] : NULL;
}

static bool count_row(void *ctx, const struct store_owed *row)
{
    struct store_sink_rows *sink = of_sink(ctx, row->sink);
    if (sink) {
        sink->pending += row->state == ROW_PENDING;
        sink->held += row->state == ROW_HELD;
        sink->dead += row->state == ROW_DEAD;
    }
    return true;
}

enum status store_count_rows(struct store *store, store_sink_wanted wanted, void *ctx,
                             void (*each)(void *ctx, const struct store_sink_rows *rows), struct error *err)
{
    CHECK(!store->writer.started);
    struct count count = {0};
    VEC_EACH (known, &store->names.all) {
        const struct name *name = *known;
        if (name->kind == NAME_SINK && wanted(ctx, name->text, name->sink))
            VEC_PUSH(&count.sinks,
                     ((struct store_sink_rows){.sink = name->id, .source = name->text, .name = name->sink}));
    }
    enum status status = count.sinks.len ? store_scan(store, count_row, &count, err) : STATUS_OK;
    if (status == STATUS_OK) {
        VEC_EACH (rows, &count.sinks) {
            if (rows->pending + rows->held + rows->dead > 0)
                each(ctx, rows);
        }
    }
    VEC_FREE(&count.sinks);
    return status;
}

/* ---- walking ---- */

/* An update of one sink's rows: `open` in blocks that may hold pending ones, `settled` between them, where
 * there are dead letters at most. Their first parameters are seqs: from ?1, below ?2. */
struct update {
    struct db *db;
    sqlite3_stmt *open, *settled;
    bool stepwise; /* every step is a transaction; else all are part of one that the caller began */
};

static bool update_range(struct update *update, sqlite3_stmt *stmt, uint64_t from, uint64_t to)
{
    if (from == to)
        return true;
    sqlite3_bind_int64(stmt, 1, (int64_t)from);
    sqlite3_bind_int64(stmt, 2, (int64_t)to);
    if (update->stepwise && !db_exec(update->db, "BEGIN IMMEDIATE"))
        return false;
    if (!db_run(stmt))
        return false;
    return !update->stepwise || db_exec(update->db, "COMMIT");
}

static bool update_rows(struct update *update, const struct blocks *blocks)
{
    uint64_t from = 0;
    for (size_t i = 0; i < blocks->open.len;) {
        uint64_t first = blocks->open.at[i].number * BLOCK_SEQS, end = first;
        for (;
             i < blocks->open.len && blocks->open.at[i].number * BLOCK_SEQS == end && end - first < STEP_SEQS;
             i++)
            end += BLOCK_SEQS;
        if (!update_range(update, update->settled, from, first) ||
            !update_range(update, update->open, first, end))
            return false;
        from = end;
    }
    return update_range(update, update->settled, from, INT64_MAX);
}

static bool prepare(struct update *update, const char *open, const char *settled)
{
    sqlite3 *handle = update->db->handle;
    return sqlite3_prepare_v2(handle, open, -1, &update->open, NULL) == SQLITE_OK &&
           sqlite3_prepare_v2(handle, settled, -1, &update->settled, NULL) == SQLITE_OK;
}

/* Whatever was not committed never was. */
static enum status finish(struct store *store, struct update *update, bool good, const char *what,
                          struct error *err)
{
    struct db *db = update->db;
    enum status status = STATUS_OK;
    if (!good)
        status = error_set(err, db_status(sqlite3_errcode(db->handle)), "%s: %s", what, db_problem(db));
    sqlite3_finalize(update->open);
    sqlite3_finalize(update->settled);
    if (!sqlite3_get_autocommit(db->handle))
        db_exec(db, "ROLLBACK");
    store->scanned = false; /* what was counted may have changed */
    return status;
}

/* ---- a new name ---- */

struct lane_maker {
    store_lane_of lane_of;
    struct bytes source, sink;
};

/* lane_of(key), as SQL. */
static void lane_in_sql(sqlite3_context *context, int count, sqlite3_value **values)
{
    const struct lane_maker *maker = sqlite3_user_data(context);
    CHECK(count == 1);
    struct bytes key = BYTES_NONE;
    if (sqlite3_value_type(values[0]) != SQLITE_NULL) {
        const void *at = sqlite3_value_blob(values[0]);
        key = at ? bytes_of(at, (size_t)sqlite3_value_bytes(values[0])) : BYTES("");
    }
    uint8_t lane[16];
    maker->lane_of(maker->source, maker->sink, key, lane);
    sqlite3_result_blob(context, lane, sizeof lane, SQLITE_TRANSIENT);
}

static bool name_sink(struct db *db, uint32_t id, const char *sink)
{
    sqlite3_stmt *stmt = NULL;
    bool good = sqlite3_prepare_v2(db->handle, "UPDATE names SET sink = ?2 WHERE id = ?1", -1, &stmt, NULL) ==
                SQLITE_OK;
    if (good) {
        sqlite3_bind_int64(stmt, 1, id);
        sqlite3_bind_text(stmt, 2, sink, -1, SQLITE_STATIC);
        good = db_run(stmt);
    }
    sqlite3_finalize(stmt);
    return good;
}

/* A lane that is paused stays so under its new id, which its rows tell. Before they get it. */
static bool move_marks(struct db *db, uint32_t id)
{
    sqlite3_stmt *stmt = NULL;
    static const char sql[] =
        "UPDATE marks SET lane = coalesce((SELECT lane_of(r.key) FROM rows r WHERE r.sink = marks.sink "
        "AND r.lane = marks.lane AND r.state IN " KEPT_STATES
        " LIMIT 1), lane) WHERE kind = ?1 AND sink = ?2";
    bool good = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL) == SQLITE_OK;
    if (good) {
        sqlite3_bind_int(stmt, 1, MARK_LANE_PAUSE);
        sqlite3_bind_int64(stmt, 2, id);
        good = db_run(stmt);
    }
    sqlite3_finalize(stmt);
    return good;
}

/* A backlog may be larger than what a transaction should keep in memory. */
static bool set_spill(struct db *db, bool on)
{
    return db_exec(db, on ? "PRAGMA cache_spill = ON" : "PRAGMA cache_spill = OFF");
}

/* `old` gets the name, and `other`, which has it without having rows, gets the old one: no number is ever
 * given back. */
static enum status give_name(struct store *store, const struct name *old, const struct name *other,
                             const char *to, store_lane_of lane_of, struct error *err)
{
    static const char open_sql[] =
        "UPDATE rows SET lane = lane_of(key) WHERE seq >= ?1 AND seq < ?2 AND sink = ?3 "
        "AND lane IS NOT NULL AND state IN " KEPT_STATES;
    static const char settled_sql[] =
        "UPDATE rows INDEXED BY dead SET lane = lane_of(key) WHERE seq >= ?1 "
        "AND seq < ?2 AND sink = ?3 AND lane IS NOT NULL AND state IN " DEAD_STATES;
    struct db *db = &store->writer.db;
    struct lane_maker maker = {lane_of, bytes_str(old->text), bytes_str(to)};
    struct update update = {.db = db};
    bool good = sqlite3_create_function_v2(db->handle, "lane_of", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, &maker,
                                           lane_in_sql, NULL, NULL, NULL) == SQLITE_OK &&
                set_spill(db, true) && prepare(&update, open_sql, settled_sql);
    if (good) {
        sqlite3_bind_int64(update.open, 3, old->id);
        sqlite3_bind_int64(update.settled, 3, old->id);
        good = db_exec(db, "BEGIN IMMEDIATE") && name_sink(db, old->id, to) &&
               (!other || name_sink(db, other->id, old->sink)) && move_marks(db, old->id) &&
               update_rows(&update, &store->blocks) &&
               replays_rename_sink(db, old->id, old->text, old->sink, to) && db_exec(db, "COMMIT");
    }
    enum status status = finish(store, &update, good, "a sink's rows can't be given its new name", err);
    sqlite3_create_function_v2(db->handle, "lane_of", 1, SQLITE_UTF8, NULL, NULL, NULL, NULL, NULL);
    if (!set_spill(db, false) && status == STATUS_OK)
        status = error_set(err, STATUS_IO, "%s", db_problem(db));
    if (status != STATUS_OK)
        return status;
    names_free(&store->names);
    names_init(&store->names);
    return names_load(&store->names, db, err);
}

struct both {
    const char *source, *from, *to;
    struct store_sink_rows old, other;
};

static bool either_name(void *ctx, const char *source, const char *sink)
{
    const struct both *both = ctx;
    return strcmp(source, both->source) == 0 &&
           (strcmp(sink, both->from) == 0 || strcmp(sink, both->to) == 0);
}

static void note_rows(void *ctx, const struct store_sink_rows *rows)
{
    struct both *both = ctx;
    *(strcmp(rows->name, both->from) == 0 ? &both->old : &both->other) = *rows;
}

enum status store_sink_rename(struct store *store, const char *source, const char *from, const char *to,
                              store_lane_of lane_of, bool *renamed, struct error *err)
{
    *renamed = false;
    struct names *names = &store->names;
    const struct name *old = names_find(names, NAME_SINK, bytes_str(source), bytes_str(from));
    const struct name *other = names_find(names, NAME_SINK, bytes_str(source), bytes_str(to));
    if (!old || old == other)
        return STATUS_OK;
    struct both both = {.source = source, .from = from, .to = to};
    enum status status = store_count_rows(store, either_name, &both, note_rows, err);
    if (status != STATUS_OK)
        return status;

    uint64_t owed = both.old.pending + both.old.held, waiting = both.other.pending + both.other.held;
    if (owed + both.old.dead == 0)
        return replays_follow(&store->writer.db, source, from, to)
                   ? STATUS_OK
                   : error_set(err, STATUS_IO, "replays can't be given a sink's new name: %s",
                               db_problem(&store->writer.db));
    if (waiting + both.other.dead > 0) {
        if (owed == 0)
            return STATUS_OK; /* dead letters alone stay where they are */
        return error_set(
            err, STATUS_REFUSED,
            "is owed hooks of its own (%llu, and %llu dead letters), so that the %llu owed to \"%s\" "
            "can't be put among them",
            (unsigned long long)waiting, (unsigned long long)both.other.dead, (unsigned long long)owed, from);
    }
    status = give_name(store, old, other, to, lane_of, err);
    *renamed = status == STATUS_OK;
    return status;
}

/* ---- giving up ---- */

enum status store_sink_retire(struct store *store, const char *source, const char *sink, const char *cls,
                              uint64_t *retired, struct error *err)
{
    /* The last error stays readable behind the reason. A row never tried has no attempts: now it has 0. */
#define RETIRED                                                                                              \
    " SET state = 2, cls = ?4, at = ?5, attempts = coalesce(attempts, 0), "                                  \
    "reason = substr(?6 || coalesce('; before: ' || reason, ''), 1, 127) "                                   \
    "WHERE seq >= ?1 AND seq < ?2 AND sink = ?3 AND "
    static const char open_sql[] = "UPDATE rows" RETIRED "state IN (0, 3)";
    static const char settled_sql[] =
        "UPDATE rows INDEXED BY dead" RETIRED "state IN " DEAD_STATES " AND state = 3";
#undef RETIRED
    CHECK(!store->writer.started);
    *retired = 0;
    const struct name *name = names_find(&store->names, NAME_SINK, bytes_str(source), bytes_str(sink));
    if (!name)
        return STATUS_OK;
    struct db *db = &store->writer.db;
    struct update update = {.db = db, .stepwise = true};
    bool good = prepare(&update, open_sql, settled_sql);
    sqlite3_stmt *both[] = {update.open, update.settled};
    for (size_t i = 0; i < 2 && good; i++) {
        sqlite3_bind_int64(both[i], 3, name->id);
        sqlite3_bind_text(both[i], 4, cls, -1, SQLITE_STATIC);
        sqlite3_bind_int64(both[i], 5, clock_unix_ms());
        sqlite3_bind_text(both[i], 6, "retired by the configuration", -1, SQLITE_STATIC);
    }
    int64_t before = sqlite3_total_changes64(db->handle), dead;
    good = good && update_rows(&update, &store->blocks);
    *retired = (uint64_t)(sqlite3_total_changes64(db->handle) - before);
    enum status status = finish(store, &update, good, "a sink can't be retired", err);
    if (*retired == 0 || status != STATUS_OK)
        return status;
    if (!db_int(db, "SELECT count(*) FROM rows INDEXED BY dead WHERE state IN " DEAD_STATES, 0, &dead))
        return error_set(err, STATUS_IO, "the dead letters can't be counted: %s", db_problem(db));
    atomic_store(&store->dead, (uint64_t)dead);
    return STATUS_OK;
}
