/* The tables.
 *
 * hooks: append only, in seq order; wide.
 *
 * rows: one a (hook, sink), appended in the same order, narrow: the scan at start reads it without touching
 * bodies. Its state is changed in place. Only dead letters are indexed.
 *
 * blocks: one a thousand seqs: times and whether anything is owed; see store_priv.h.
 *
 * names: tenants, sources, sinks; a number is never given twice.
 *
 * meta: epoch; seq_floor: no seq below it is given again; replaced: see undecided.c.
 *
 * attempts: the last failures of a row, with the start of what the receiver said.
 *
 * audit: what people did: who, when, what, why.
 *
 * claims: the dedupe keys that hooks claimed, appended in seq order; see claim.c.
 *
 * pen: hooks that failed verification; see pen.c.
 *
 * marks: open breakers, paused sinks and lanes.
 *
 * limits: rates of tenants that people set.
 *
 * replays: jobs that send stored hooks again; see replay.c.
 *
 * Nothing on the way of a hook writes to a B-tree anywhere but at its end. The layout grows by steps: a store
 * of an older version gets those it lacks when it is opened. */
#include "store/store_priv.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

enum { APPLICATION_ID = 0x4c616e65 /* "Lane" */ };

static const char first_tables[] =
    "CREATE TABLE hooks(seq INTEGER PRIMARY KEY, id BLOB NOT NULL, received_at INTEGER NOT NULL,"
    " tenant INTEGER NOT NULL, source INTEGER NOT NULL, head BLOB NOT NULL, body BLOB NOT NULL);"
    "CREATE TABLE rows(seq INTEGER NOT NULL, sink INTEGER NOT NULL, state INTEGER NOT NULL,"
    " tenant INTEGER NOT NULL, lane BLOB, key BLOB, received_at INTEGER NOT NULL, attempts INTEGER,"
    " first_attempt INTEGER, due INTEGER, at INTEGER, waived INTEGER, cls TEXT, http_status INTEGER,"
    " duration INTEGER, reason TEXT, late INTEGER, PRIMARY KEY(seq, sink)) WITHOUT ROWID;"
    "CREATE INDEX dead ON rows(seq, sink, tenant, cls, at, lane) WHERE state IN " DEAD_STATES ";"
    "CREATE TABLE blocks(block INTEGER PRIMARY KEY, hooks INTEGER NOT NULL, oldest INTEGER NOT NULL,"
    " newest INTEGER NOT NULL, settled INTEGER NOT NULL);"
    "CREATE TABLE names(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, text TEXT NOT NULL, sink TEXT);"
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;";

static const char attempts_and_audit[] =
    "CREATE TABLE attempts(id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, sink INTEGER NOT NULL,"
    " at INTEGER NOT NULL, attempt INTEGER NOT NULL, cls TEXT NOT NULL, http_status INTEGER NOT NULL,"
    " duration INTEGER NOT NULL, reason TEXT, response BLOB);"
    "CREATE INDEX attempts_of ON attempts(seq, sink);"
    "CREATE TABLE audit(id INTEGER PRIMARY KEY, at INTEGER NOT NULL, who TEXT NOT NULL, what TEXT NOT NULL,"
    " target BLOB, reason BLOB, matched INTEGER, done INTEGER);";

static const char marks[] =
    "CREATE TABLE marks(kind INTEGER NOT NULL, sink INTEGER NOT NULL, tenant INTEGER NOT NULL,"
    " lane BLOB NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL, cause INTEGER NOT NULL,"
    " opens INTEGER NOT NULL, PRIMARY KEY(kind, sink, tenant, lane)) WITHOUT ROWID;";

/* The index of dead letters tells all that their lists, sums and bounds ask for. */
static const char dead_letters[] =
    "ALTER TABLE rows ADD COLUMN size INTEGER;"
    "UPDATE rows INDEXED BY dead SET size = (SELECT length(head) + length(body) FROM hooks h"
    " WHERE h.seq = rows.seq) WHERE state IN " DEAD_STATES ";"
    "DROP INDEX dead;"
    "CREATE INDEX dead ON rows(seq, sink, tenant, cls, at, lane, late, size) WHERE state IN " DEAD_STATES ";";

static const char claims[] =
    "CREATE TABLE claims(seq INTEGER PRIMARY KEY, hash BLOB NOT NULL, id BLOB NOT NULL,"
    " expires INTEGER NOT NULL);";

static const char pen[] =
    "CREATE TABLE pen(id INTEGER PRIMARY KEY, hook BLOB NOT NULL UNIQUE, received_at INTEGER NOT NULL,"
    " tenant INTEGER NOT NULL, source INTEGER NOT NULL, size INTEGER NOT NULL, reason TEXT NOT NULL,"
    " head BLOB NOT NULL, body BLOB NOT NULL);"
    "CREATE INDEX pen_sizes ON pen(source, size);";

static const char replays[] =
    "ALTER TABLE rows ADD COLUMN replay INTEGER;"
    "CREATE TABLE replays(n INTEGER PRIMARY KEY, id BLOB NOT NULL, state INTEGER NOT NULL, why TEXT,"
    " tenant TEXT, source TEXT, sink TEXT, since INTEGER NOT NULL, until INTEGER NOT NULL,"
    " rate INTEGER NOT NULL, max_lag INTEGER NOT NULL, first INTEGER NOT NULL, cursor INTEGER NOT NULL,"
    " last INTEGER NOT NULL, hooks INTEGER NOT NULL DEFAULT 0, made INTEGER NOT NULL DEFAULT 0,"
    " owed INTEGER NOT NULL DEFAULT 0, done INTEGER NOT NULL DEFAULT 0, dead INTEGER NOT NULL DEFAULT 0,"
    " given_up INTEGER NOT NULL DEFAULT 0, dead_run INTEGER NOT NULL DEFAULT 0, created INTEGER NOT NULL,"
    " changed INTEGER NOT NULL, who TEXT, reason TEXT);";

static const char replays_of_pen[] = "ALTER TABLE replays ADD COLUMN origin INTEGER NOT NULL DEFAULT 0;"
                                     "ALTER TABLE replays ADD COLUMN failure TEXT;"
                                     "ALTER TABLE replays ADD COLUMN since_text TEXT;"
                                     "ALTER TABLE replays ADD COLUMN until_text TEXT;"
                                     "ALTER TABLE replays ADD COLUMN planned INTEGER NOT NULL DEFAULT 0;"
                                     "ALTER TABLE replays ADD COLUMN gone INTEGER NOT NULL DEFAULT 0;"
                                     "ALTER TABLE replays ADD COLUMN released INTEGER NOT NULL DEFAULT 0;"
                                     "ALTER TABLE replays ADD COLUMN duplicates INTEGER NOT NULL DEFAULT 0;"
                                     "ALTER TABLE replays ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;";

static const char limits[] =
    "CREATE TABLE limits(tenant TEXT PRIMARY KEY, rate REAL NOT NULL, burst INTEGER NOT NULL) WITHOUT ROWID;";

static const char rows_before_a_replay[] = "ALTER TABLE rows ADD COLUMN before INTEGER;";

/* A layout is the sum of its steps; user_version counts those that were taken. */
static const char *const steps[] = {
    first_tables, attempts_and_audit, marks,  dead_letters,        claims, pen,
    replays,      replays_of_pen,     limits, rows_before_a_replay};
enum { SCHEMA_VERSION = sizeof steps / sizeof steps[0] };

static bool take_steps(struct db *db, int64_t version)
{
    bool taken = true;
    for (; version < SCHEMA_VERSION && taken; version++)
        taken = db_exec(db, steps[version]);
    char *mark = mem_format("PRAGMA user_version = %d", SCHEMA_VERSION);
    taken = taken && db_exec(db, mark);
    free(mark);
    return taken;
}

/* What a new store has beside its tables. */
static bool give_birth(struct db *db)
{
    struct uuid epoch = uuid_new(clock_unix_ms());
    char hex[33];
    hex_encode(epoch.bytes, 16, hex);
    char *sql = mem_format("INSERT INTO meta VALUES('epoch', x'%s'), ('seq_floor', 1), ('replaced', 0);"
                           "PRAGMA application_id = %d;",
                           hex, APPLICATION_ID);
    bool born = db_exec(db, sql);
    free(sql);
    return born;
}

static bool grow(struct db *db, int64_t version)
{
    return db_exec(db, "BEGIN IMMEDIATE") && take_steps(db, version) && (version > 0 || give_birth(db)) &&
           db_exec(db, "COMMIT");
}

enum status schema_version(struct db *db, int *version, struct error *err)
{
    int64_t layout, application, objects;
    if (!db_int(db, "PRAGMA user_version", 0, &layout) ||
        !db_int(db, "PRAGMA application_id", 0, &application) ||
        !db_int(db, "SELECT count(*) FROM sqlite_schema", 0, &objects))
        return error_set(err, db_status(sqlite3_errcode(db->handle)), "the store can't be read: %s",
                         db_problem(db));
    *version = 0;
    if (objects == 0 && application == 0)
        return STATUS_OK;
    if (application != APPLICATION_ID)
        return error_set(err, STATUS_CORRUPT, "the database is not one of Lanegate's");
    if (layout < 1 || layout > SCHEMA_VERSION)
        return error_set(err, STATUS_CORRUPT,
                         "the store has layout %lld, this version of Lanegate reads layouts up to %d",
                         (long long)layout, SCHEMA_VERSION);
    *version = (int)layout;
    return STATUS_OK;
}

enum status schema_ensure(struct db *db, struct error *err)
{
    int version;
    enum status status = schema_version(db, &version, err);
    if (status == STATUS_OK && version < SCHEMA_VERSION && !grow(db, version))
        status = error_set(err, STATUS_IO, "the store can't be made: %s", db_problem(db));
    return status;
}

enum status schema_epoch(struct db *db, struct uuid *epoch, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = STATUS_OK;
    if (sqlite3_prepare_v2(db->handle, "SELECT value FROM meta WHERE name = 'epoch'", -1, &stmt, NULL) ==
            SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_bytes(stmt, 0) == (int)sizeof epoch->bytes)
        memcpy(epoch->bytes, sqlite3_column_blob(stmt, 0), sizeof epoch->bytes);
    else
        status = error_set(err, STATUS_CORRUPT, "the store has no epoch");
    sqlite3_finalize(stmt);
    return status;
}

static sqlite3_stmt *meta_value(struct db *db, const char *name, int type)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db->handle, "SELECT value FROM meta WHERE name = ?1", -1, &stmt, NULL) !=
        SQLITE_OK)
        return NULL;
    sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
    if (sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_type(stmt, 0) == type)
        return stmt;
    sqlite3_finalize(stmt);
    return NULL;
}

enum status schema_new_epoch(struct db *db, struct uuid *was, struct uuid *is, struct error *err)
{
    int64_t now_ms = clock_unix_ms();
    char was_hex[33], is_hex[33];
    enum status status = schema_epoch(db, was, err);
    if (status != STATUS_OK)
        return status;
    *is = uuid_new(now_ms);
    hex_encode(was->bytes, 16, was_hex);
    hex_encode(is->bytes, 16, is_hex);
    /* One transaction: a seal is there as long as the old epoch is. */
    char *sql = mem_format("SAVEPOINT epoch;"
                           "DELETE FROM meta WHERE name IN ('backup_at', 'seal');"
                           "INSERT OR REPLACE INTO meta VALUES('epoch', x'%s'), ('restored_from', x'%s'), "
                           "('restored_at', %lld);"
                           "RELEASE epoch",
                           is_hex, was_hex, (long long)now_ms);
    if (!db_exec(db, sql))
        status = error_set(err, STATUS_IO, "the store can't begin an epoch: %s", db_problem(db));
    free(sql);
    return status;
}

enum status schema_serve_backup(struct db *db, struct error *err)
{
    sqlite3_stmt *seal = meta_value(db, "seal", SQLITE_BLOB);
    struct uuid was, is;
    char was_text[UUID_TEXT], is_text[UUID_TEXT];
    if (!seal)
        return STATUS_OK;
    sqlite3_finalize(seal);
    enum status status = schema_new_epoch(db, &was, &is, err);
    if (status != STATUS_OK)
        return status;
    uuid_format(&was, was_text);
    uuid_format(&is, is_text);
    log_event(LOG_WARN, "store_is_a_backup", LOG_STR("epoch", is_text), LOG_STR("from_epoch", was_text));
    return STATUS_OK;
}

int schema_newest(void)
{
    return SCHEMA_VERSION;
}

bool meta_int(struct db *db, const char *name, int64_t *out)
{
    sqlite3_stmt *stmt = meta_value(db, name, SQLITE_INTEGER);
    *out = stmt ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_finalize(stmt);
    return stmt != NULL;
}

bool meta_uuid(struct db *db, const char *name, struct uuid *out)
{
    sqlite3_stmt *stmt = meta_value(db, name, SQLITE_BLOB);
    bool good = stmt && sqlite3_column_bytes(stmt, 0) == (int)sizeof out->bytes;
    *out = (struct uuid){{0}};
    if (good)
        memcpy(out->bytes, sqlite3_column_blob(stmt, 0), sizeof out->bytes);
    sqlite3_finalize(stmt);
    return good;
}
