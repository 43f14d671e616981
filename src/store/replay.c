/* Replay jobs: a table of them, and their steps. A step makes rows owed again and moves the job's cursor in
 * one transaction, so that whatever happens no row is made twice by one job and none is left out. What
 * becomes of those rows is counted in the transaction that says so. */
#include <stdio.h>
#include <stdlib.h>

#include "store/reader_priv.h"
#include "util/check.h"
#include "util/mem.h"

enum {
    WALK_LOOK_MAX = 4096,   /* hooks a read transaction */
    OWED_LOOK_SEQS = 50000, /* seqs a read transaction: a microsecond each */
};

const char *replay_state_name(enum replay_state state)
{
    switch (state) {
    case REPLAY_RUNNING:
        return "running";
    case REPLAY_PAUSED:
        return "paused";
    case REPLAY_DONE:
        return "done";
    case REPLAY_CANCELLED:
        return "cancelled";
    }
    UNREACHABLE();
}

const char *replay_from_name(enum replay_from from)
{
    return from == REPLAY_FROM_PEN ? "quarantine" : "hooks";
}

/* ---- a job ---- */

struct put {
    struct list node;
    int kind;
    struct store_replay replay;
};

void store_put_replay(struct store *store, const struct store_replay *replay)
{
    struct put *put = mem_alloc(sizeof *put);
    *put = (struct put){.kind = CHANGE_REPLAY, .replay = *replay};
    struct list one = LIST_INIT(one);
    list_append(&one, &put->node);
    changes_give(store, &one);
}

static void bind_text(sqlite3_stmt *stmt, int at, const char *text)
{
    sqlite3_bind_text(stmt, at, text, -1, SQLITE_STATIC);
}

bool replay_write(sqlite3_stmt **sql, const struct list *node)
{
    const struct store_replay *replay = &LIST_OWNER(node, struct put, node)->replay;
    sqlite3_stmt *put = sql[WRITER_REPLAY], *trim = sql[WRITER_REPLAY_TRIM];
    sqlite3_bind_int64(put, 1, replay->number);
    sqlite3_bind_blob(put, 2, replay->id.bytes, sizeof replay->id.bytes, SQLITE_STATIC);
    sqlite3_bind_int(put, 3, replay->state);
    bind_text(put, 4, replay->why);
    bind_text(put, 5, replay->tenant);
    bind_text(put, 6, replay->source);
    bind_text(put, 7, replay->sink);
    sqlite3_bind_int64(put, 8, replay->since_ms);
    sqlite3_bind_int64(put, 9, replay->until_ms);
    sqlite3_bind_int64(put, 10, replay->rate);
    sqlite3_bind_int64(put, 11, replay->max_lag_ms);
    sqlite3_bind_int64(put, 12, (int64_t)replay->first);
    sqlite3_bind_int64(put, 13, (int64_t)replay->cursor);
    sqlite3_bind_int64(put, 14, (int64_t)replay->last);
    sqlite3_bind_int64(put, 15, replay->created_ms);
    sqlite3_bind_int64(put, 16, replay->changed_ms);
    bind_text(put, 17, replay->who);
    bind_text(put, 18, replay->reason);
    sqlite3_bind_int(put, 19, replay->from);
    bind_text(put, 20, replay->failure);
    bind_text(put, 21, replay->since_text);
    bind_text(put, 22, replay->until_text);
    sqlite3_bind_int64(put, 23, (int64_t)replay->planned);
    sqlite3_bind_int64(put, 24, (int64_t)replay->gone);
    sqlite3_bind_int64(trim, 1, (int64_t)replay->number - REPLAYS_KEPT);
    return db_run(put) && db_run(trim);
}

/* ---- a step ---- */

void store_step_replay(struct store *store, struct store_replay_step *step)
{
    step->kind = CHANGE_REPLAY_STEP;
    struct list one = LIST_INIT(one);
    list_append(&one, &step->node);
    changes_give(store, &one);
}

/* What is there of a row; a dead letter keeps its lane. */
static bool look(sqlite3_stmt *stmt, struct store_replay_row *row)
{
    sqlite3_bind_int64(stmt, 1, (int64_t)row->seq);
    sqlite3_bind_int64(stmt, 2, row->sink);
    int rc = sqlite3_step(stmt);
    row->was = rc == SQLITE_ROW ? sqlite3_column_int(stmt, 0) : -1;
    row->size = sqlite3_column_int64(stmt, 1);
    if (row->was == ROW_DEAD || row->was == ROW_HELD) {
        struct bytes lane = db_column(stmt, 2);
        row->ordered = lane.len == sizeof row->lane;
        if (row->ordered)
            memcpy(row->lane, lane.at, lane.len);
    }
    sqlite3_reset(stmt);
    return rc == SQLITE_ROW || rc == SQLITE_DONE;
}

static bool make(sqlite3_stmt **sql, sqlite3 *handle, struct store_replay_row *row, uint32_t number)
{
    row->made = false;
    if (!look(sql[WRITER_REPLAY_LOOK], row))
        return false;
    sqlite3_stmt *put = sql[WRITER_REPLAY_ROW];
    sqlite3_bind_int64(put, 1, (int64_t)row->seq);
    sqlite3_bind_int64(put, 2, row->sink);
    db_bind(put, 3, row->ordered ? bytes_of(row->lane, sizeof row->lane) : BYTES_NONE);
    db_bind(put, 4, row->ordered ? row->key : BYTES_NONE);
    sqlite3_bind_int64(put, 5, number);
    if (!db_run(put))
        return false;
    row->made = sqlite3_changes(handle) > 0;
    if (!row->made)
        return true;
    sqlite3_bind_int64(sql[WRITER_BLOCK_OWED], 1, (int64_t)(row->seq / BLOCK_SEQS));
    return db_run(sql[WRITER_BLOCK_OWED]);
}

bool replay_step_write(struct store *store, struct list *node)
{
    struct store_replay_step *step = LIST_OWNER(node, struct store_replay_step, node);
    sqlite3_stmt **sql = store->writer.db.sql;
    int64_t made = 0;
    for (size_t i = 0; i < step->count; i++) {
        if (!make(sql, store->writer.db.handle, &step->rows[i], step->number))
            return false;
        made += step->rows[i].made;
    }
    sqlite3_bind_int64(sql[WRITER_REPLAY_STEP], 1, step->number);
    sqlite3_bind_int64(sql[WRITER_REPLAY_STEP], 2, (int64_t)step->cursor);
    sqlite3_bind_int64(sql[WRITER_REPLAY_STEP], 3, (int64_t)step->hooks);
    sqlite3_bind_int64(sql[WRITER_REPLAY_STEP], 4, made);
    sqlite3_bind_int64(sql[WRITER_REPLAY_STEP], 5, (int64_t)step->count - made);
    sqlite3_bind_int64(sql[WRITER_REPLAY_STEP], 6, step->count ? (int64_t)step->rows[0].seq : 0);
    sqlite3_bind_int64(sql[WRITER_REPLAY_STEP], 7, (int64_t)step->gone);
    sqlite3_bind_int64(sql[WRITER_REPLAY_STEP], 8, (int64_t)step->failed);
    return db_run(sql[WRITER_REPLAY_STEP]);
}

/* Gives how many dead letters there are more. */
int64_t replay_step_written(struct store *store, struct list *node)
{
    struct store_replay_step *step = LIST_OWNER(node, struct store_replay_step, node);
    int64_t dead = 0;
    for (size_t i = 0; i < step->count; i++) {
        const struct store_replay_row *row = &step->rows[i];
        if (!row->made)
            continue;
        enum row_state was = row->was < 0 ? ROW_DISCARDED : (enum row_state)row->was;
        blocks_shift_row(&store->blocks, row->seq, was, ROW_PENDING);
        if (!row_state_dead(was))
            continue;
        dead--;
        dlq_shift(store, row->sink, -1, row->size);
    }
    step->done(step, true);
    return dead;
}

void replay_step_lost(struct list *node)
{
    struct store_replay_step *step = LIST_OWNER(node, struct store_replay_step, node);
    step->done(step, false);
}

bool replay_count_released(sqlite3_stmt **sql, const struct store_hook *hook, uint64_t seq)
{
    sqlite3_stmt *own = sql[WRITER_REPLAY_OWN], *count = sql[WRITER_REPLAY_RELEASED];
    if (!hook->replay)
        return true;
    sqlite3_bind_int64(count, 1, hook->replay);
    sqlite3_bind_int(count, 2, seq > 0);
    sqlite3_bind_int(count, 3, seq == 0);
    sqlite3_bind_int64(count, 4, seq > 0 ? (int64_t)hook->row_count : 0);
    sqlite3_bind_int64(own, 1, (int64_t)seq);
    sqlite3_bind_int64(own, 2, hook->replay);
    return db_run(count) && (seq == 0 || db_run(own));
}

/* A hold that was lifted is no death of the job's any more. */
bool replay_count(sqlite3_stmt **sql, const struct store_change *change)
{
    bool gone = change->was < 0; /* it was pending, for all that anybody knows */
    enum row_state was = gone ? ROW_PENDING : (enum row_state)change->was;
    if (!change->replay || was == change->state)
        return true;
    sqlite3_stmt *count = sql[WRITER_REPLAY_COUNT];
    sqlite3_bind_int64(count, 1, change->replay);
    sqlite3_bind_int64(count, 2, change->state == ROW_DONE);
    sqlite3_bind_int64(count, 3, row_state_dead(change->state) - row_state_dead(was));
    sqlite3_bind_int64(count, 4, change->state == ROW_DISCARDED);
    return db_run(count);
}

/* ---- while nobody counted ---- */

enum status replays_settle_accounts(struct store *store, struct error *err)
{
    static const char sql[] =
        "UPDATE replays SET dead = made - done - given_up - (SELECT count(*) FROM rows WHERE "
        "seq >= replays.first AND state = 0 AND replay = replays.n) "
        "WHERE state IN (0, 1) AND made > done + dead + given_up AND made - done - dead - given_up > "
        "(SELECT count(*) FROM rows WHERE seq >= replays.first AND state = 0 AND replay = replays.n)";
    struct db *db = &store->writer.db;
    CHECK(!store->writer.started);
    return db_exec(db, sql)
               ? STATUS_OK
               : error_set(err, STATUS_IO, "the replays' accounts can't be settled: %s", db_problem(db));
}

bool replays_follow(struct db *db, const char *source, const char *from, const char *to)
{
    sqlite3_stmt *stmt = NULL;
    bool good = sqlite3_prepare_v2(db->handle,
                                   "UPDATE replays SET sink = ?3 WHERE source = ?1 AND sink = ?2 "
                                   "AND state IN (0, 1)",
                                   -1, &stmt, NULL) == SQLITE_OK;
    if (good) {
        bind_text(stmt, 1, source);
        bind_text(stmt, 2, from);
        bind_text(stmt, 3, to);
        good = db_run(stmt);
    }
    sqlite3_finalize(stmt);
    return good;
}

bool replays_rename_sink(struct db *db, uint32_t sink, const char *source, const char *from, const char *to)
{
#define ACTIVE "FROM replays WHERE state IN (0, 1) AND origin = 0"
    /* Those delivered: their lanes are what is found to be rewound. All others get theirs anyway. */
    static const char lanes_sql[] =
        "UPDATE rows SET lane = lane_of(key) WHERE seq >= (SELECT min(first) " ACTIVE
        ") AND seq <= (SELECT max(cursor) " ACTIVE
        ") AND sink = ?1 AND state IN (1, 4) AND lane IS NOT NULL AND replay IN (SELECT n " ACTIVE ")";
#undef ACTIVE
    sqlite3_stmt *lanes = NULL;
    bool good = sqlite3_prepare_v2(db->handle, lanes_sql, -1, &lanes, NULL) == SQLITE_OK;
    if (good) {
        sqlite3_bind_int64(lanes, 1, sink);
        good = db_run(lanes);
    }
    sqlite3_finalize(lanes);
    return good && replays_follow(db, source, from, to);
}

/* ---- looking ---- */

static void text_into(char *out, size_t size, sqlite3_stmt *stmt, int at)
{
    const char *text = (const char *)sqlite3_column_text(stmt, at);
    snprintf(out, size, "%s", text ? text : "");
}

static bool read_replay(sqlite3_stmt *stmt, struct store_replay *out)
{
    struct bytes id = db_column(stmt, 1);
    int state = sqlite3_column_int(stmt, 2), from = sqlite3_column_int(stmt, 25);
    *out = (struct store_replay){.number = (uint32_t)sqlite3_column_int64(stmt, 0),
                                 .from = (enum replay_from)from,
                                 .state = (enum replay_state)state,
                                 .since_ms = sqlite3_column_int64(stmt, 7),
                                 .until_ms = sqlite3_column_int64(stmt, 8),
                                 .rate = sqlite3_column_int64(stmt, 9),
                                 .max_lag_ms = sqlite3_column_int64(stmt, 10),
                                 .first = (uint64_t)sqlite3_column_int64(stmt, 11),
                                 .cursor = (uint64_t)sqlite3_column_int64(stmt, 12),
                                 .last = (uint64_t)sqlite3_column_int64(stmt, 13),
                                 .hooks = (uint64_t)sqlite3_column_int64(stmt, 14),
                                 .made = (uint64_t)sqlite3_column_int64(stmt, 15),
                                 .owed = (uint64_t)sqlite3_column_int64(stmt, 16),
                                 .done = (uint64_t)sqlite3_column_int64(stmt, 17),
                                 .dead = (uint64_t)sqlite3_column_int64(stmt, 18),
                                 .given_up = (uint64_t)sqlite3_column_int64(stmt, 19),
                                 .dead_run = (uint64_t)sqlite3_column_int64(stmt, 20),
                                 .created_ms = sqlite3_column_int64(stmt, 21),
                                 .changed_ms = sqlite3_column_int64(stmt, 22),
                                 .planned = (uint64_t)sqlite3_column_int64(stmt, 29),
                                 .gone = (uint64_t)sqlite3_column_int64(stmt, 30),
                                 .released = (uint64_t)sqlite3_column_int64(stmt, 31),
                                 .duplicates = (uint64_t)sqlite3_column_int64(stmt, 32),
                                 .failed = (uint64_t)sqlite3_column_int64(stmt, 33)};
    if (id.len != sizeof out->id || state < REPLAY_RUNNING || state > REPLAY_CANCELLED ||
        from < REPLAY_FROM_HOOKS || from > REPLAY_FROM_PEN)
        return false;
    memcpy(&out->id, id.at, id.len);
    text_into(out->why, sizeof out->why, stmt, 3);
    text_into(out->tenant, sizeof out->tenant, stmt, 4);
    text_into(out->source, sizeof out->source, stmt, 5);
    text_into(out->sink, sizeof out->sink, stmt, 6);
    text_into(out->who, sizeof out->who, stmt, 23);
    text_into(out->reason, sizeof out->reason, stmt, 24);
    text_into(out->failure, sizeof out->failure, stmt, 26);
    text_into(out->since_text, sizeof out->since_text, stmt, 27);
    text_into(out->until_text, sizeof out->until_text, stmt, 28);
    return true;
}

enum status store_list_replays(struct store_reader *reader, uint32_t from, uint32_t to,
                               bool (*each)(void *ctx, const struct store_replay *replay), void *ctx)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_REPLAYS);
    sqlite3_bind_int64(stmt, 1, from);
    sqlite3_bind_int64(stmt, 2, to);
    int rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct store_replay replay;
        if (!read_replay(stmt, &replay)) {
            rc = SQLITE_CORRUPT;
            break;
        }
        if (!each(ctx, &replay))
            break;
    }
    sqlite3_reset(stmt);
    return reader_status(rc, true);
}

enum status store_replayed_lanes(struct store_reader *reader, const struct store_replay *replay,
                                 void (*each)(void *ctx, uint32_t sink, uint32_t tenant,
                                              const uint8_t lane[16]),
                                 void *ctx)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_REPLAYED);
    sqlite3_bind_int64(stmt, 1, (int64_t)replay->first);
    sqlite3_bind_int64(stmt, 2, (int64_t)replay->cursor);
    sqlite3_bind_int64(stmt, 3, replay->number);
    int rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct bytes lane = db_column(stmt, 2);
        if (lane.len != 16) {
            rc = SQLITE_CORRUPT;
            break;
        }
        each(ctx, (uint32_t)sqlite3_column_int64(stmt, 0), (uint32_t)sqlite3_column_int64(stmt, 1),
             (const uint8_t *)lane.at);
    }
    sqlite3_reset(stmt);
    return reader_status(rc, true);
}

enum status store_list_replay_owed(struct store_reader *reader, const struct store_replay *replay,
                                   uint64_t *from_seq, bool *end,
                                   bool (*each)(void *ctx, const struct store_replay_owed *row), void *ctx)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_REPLAY_OWED);
    uint64_t from = *from_seq > replay->first ? *from_seq : replay->first, to = from + OWED_LOOK_SEQS;
    uint64_t last = replay->from == REPLAY_FROM_PEN ? atomic_load(&reader->store->next_seq) : replay->cursor;
    sqlite3_bind_int64(stmt, 1, (int64_t)from);
    sqlite3_bind_int64(stmt, 2, (int64_t)to);
    sqlite3_bind_int64(stmt, 3, replay->number);
    int rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct bytes lane = db_column(stmt, 3);
        bool was = sqlite3_column_type(stmt, 5) != SQLITE_NULL;
        struct store_replay_owed row = {.seq = (uint64_t)sqlite3_column_int64(stmt, 0),
                                        .sink = (uint32_t)sqlite3_column_int64(stmt, 1),
                                        .tenant = (uint32_t)sqlite3_column_int64(stmt, 2),
                                        .ordered = lane.len == sizeof row.lane,
                                        .received_at_ms = sqlite3_column_int64(stmt, 4),
                                        .before = was ? (enum row_state)sqlite3_column_int(stmt, 5)
                                                      : ROW_DISCARDED};
        if (row.ordered)
            memcpy(row.lane, lane.at, sizeof row.lane);
        if (!each(ctx, &row)) {
            to = row.seq;
            rc = SQLITE_DONE;
            break;
        }
    }
    sqlite3_reset(stmt);
    *from_seq = to;
    *end = to > last;
    return reader_status(rc, true);
}

static bool takes(struct store_reader *reader, const struct store_replay *replay, sqlite3_stmt *stmt)
{
    int64_t at_ms = sqlite3_column_int64(stmt, 1);
    if ((replay->since_ms && at_ms < replay->since_ms) || (replay->until_ms && at_ms >= replay->until_ms))
        return false;
    const struct name *tenant = names_by_id(&reader->store->names, (uint32_t)sqlite3_column_int64(stmt, 2));
    const struct name *source = names_by_id(&reader->store->names, (uint32_t)sqlite3_column_int64(stmt, 3));
    return tenant && source && (!*replay->tenant || strcmp(replay->tenant, tenant->text) == 0) &&
           (!*replay->source || strcmp(replay->source, source->text) == 0);
}

/* Behind the block of `seq` when nothing in it was received in the window; else `seq`. */
static uint64_t past_block(struct store_reader *reader, const struct store_replay *replay, uint64_t seq)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_BLOCK);
    uint64_t number = seq / BLOCK_SEQS;
    sqlite3_bind_int64(stmt, 1, (int64_t)number);
    bool past = sqlite3_step(stmt) == SQLITE_ROW &&
                ((replay->since_ms && sqlite3_column_int64(stmt, 1) < replay->since_ms) ||
                 (replay->until_ms && sqlite3_column_int64(stmt, 0) >= replay->until_ms));
    sqlite3_reset(stmt);
    return past ? (number + 1) * BLOCK_SEQS - 1 : seq;
}

enum status store_walk_hooks(struct store_reader *reader, const struct store_replay *replay, uint64_t *after,
                             size_t limit, void (*each)(void *ctx, uint64_t seq), void *ctx, bool *end)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_WALK);
    size_t taken = 0, looked = 0;
    int rc = SQLITE_ROW;
    uint64_t next = past_block(reader, replay, *after + 1);
    if (next > *after + 1)
        *after = next;
    sqlite3_bind_int64(stmt, 1, (int64_t)*after);
    sqlite3_bind_int64(stmt, 2, (int64_t)replay->last);
    while (taken < limit && looked < WALK_LOOK_MAX && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        uint64_t seq = (uint64_t)sqlite3_column_int64(stmt, 0);
        looked++;
        *after = seq;
        if (takes(reader, replay, stmt)) {
            taken++;
            each(ctx, seq);
        } else if (seq % BLOCK_SEQS == 0 && past_block(reader, replay, seq) != seq) {
            break; /* the next call jumps over it */
        }
    }
    sqlite3_reset(stmt);
    *end = rc == SQLITE_DONE;
    if (*end)
        *after = replay->last;
    return reader_status(rc, true);
}
