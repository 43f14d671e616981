/* The tables.
 *
 *   hooks   append only, in seq order; wide
 *   rows    one a (hook, sink), appended in the same order, narrow: the scan at start reads it without
 * touching bodies. Its state is changed in place. Only dead letters are indexed. blocks  one a thousand seqs:
 * times and whether anything is owed; see store_priv.h names   tenants, sources, sinks; a number is never
 * given twice meta    epoch; seq_floor: no seq below it is given again; replaced: see undecided.c
 *
 * Nothing on the way of a hook writes to a B-tree anywhere but at its end. */
#include "store/store_priv.h"
#include "util/clock.h"

enum { SCHEMA_VERSION = 1, APPLICATION_ID = 0x4c616e65 /* "Lane" */ };

static const char tables[] =
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

static bool make(struct db *db)
{
    struct uuid epoch = uuid_new(clock_unix_ms());
    char hex[33];
    hex_encode(epoch.bytes, 16, hex);
    char *rest = mem_format("INSERT INTO meta VALUES('epoch', x'%s'), ('seq_floor', 1), ('replaced', 0);"
                            "PRAGMA application_id = %d; PRAGMA user_version = %d;",
                            hex, APPLICATION_ID, SCHEMA_VERSION);
    bool made =
        db_exec(db, "BEGIN IMMEDIATE") && db_exec(db, tables) && db_exec(db, rest) && db_exec(db, "COMMIT");
    free(rest);
    return made;
}

enum status schema_ensure(struct db *db, struct error *err)
{
    int64_t version, application, objects;
    if (!db_int(db, "PRAGMA user_version", 0, &version) ||
        !db_int(db, "PRAGMA application_id", 0, &application) ||
        !db_int(db, "SELECT count(*) FROM sqlite_schema", 0, &objects))
        goto failed;
    if (objects == 0 && application == 0)
        return make(db) ? STATUS_OK
                        : error_set(err, STATUS_IO, "the store can't be made: %s", db_problem(db));
    if (application != APPLICATION_ID)
        return error_set(err, STATUS_CORRUPT, "the database is not one of Lanegate's");
    if (version != SCHEMA_VERSION)
        return error_set(err, STATUS_CORRUPT,
                         "the store has layout %lld, this version of Lanegate reads layout %d",
                         (long long)version, SCHEMA_VERSION);
    return STATUS_OK;

failed:
    return error_set(err, db_status(sqlite3_errcode(db->handle)), "the store can't be read: %s",
                     db_problem(db));
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
