/* Connections: how they are opened, and the few shapes in which statements are run. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/store_priv.h"
#include "util/buf.h"
#include "util/check.h"

static const char *vfs_name;

static void configure(void)
{
    /* Memory statistics take a process-wide lock at every allocation. Refused, and no harm, when somebody has
     * started the library before. */
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_initialize();
    vfs_name = vfs_register();
}

/* secure_delete: what goes out of a page that is written anyway is overwritten; but freed pages are not,
 * which Debian's build would do, and so removal would write each of them once more. erase.c asks for all.
 * cache_spill: a transaction touches the log at its commit only, so that everything before can be rolled back
 * for certain.
 */
static const char pragmas[] = "PRAGMA wal_autocheckpoint = 0;"
                              "PRAGMA secure_delete = FAST;"
                              "PRAGMA cache_spill = OFF;"
                              "PRAGMA foreign_keys = OFF;"
                              "PRAGMA temp_store = MEMORY;"
                              "PRAGMA trusted_schema = OFF;";
enum status db_status(int rc)
{
    int primary = rc & 0xff;
    return primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB ? STATUS_CORRUPT : STATUS_IO;
}

const char *db_problem(const struct db *db)
{
    return db->handle ? sqlite3_errmsg(db->handle) : "out of memory";
}

/* A path in a URI: what would end it, or stand for something else, as %XX. */
static char *uri_of(const char *path, const char *options)
{
    struct buf uri = {0};
    /* An absolute path behind an empty host: "//data" alone would be taken for a host of that name. */
    buf_puts(&uri, *path == '/' ? "file://" : "file:");
    for (const char *c = path; *c; c++)
        buf_putf(&uri, strchr("?#%", *c) ? "%%%02X" : "%c", *c);
    buf_puts(&uri, options);
    return uri.at;
}

static bool has_log(const char *path)
{
    char *log_path = mem_format("%s-wal", path);
    struct stat found;
    bool has = stat(log_path, &found) == 0 && found.st_size > 0;
    free(log_path);
    return has;
}

/* Nothing is made beside the file and nothing is locked. A log that nobody has copied yet is read too,
 * through an index in this process's own memory: that needs the exclusive mode, whose locks this file system
 * does not take. */
static int open_still(struct db *db, const char *path)
{
    bool log = has_log(path);
    char *uri = uri_of(path, log ? "?vfs=unix-none" : "?immutable=1");
    int rc = sqlite3_open_v2(
        uri, &db->handle,
        SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    free(uri);
    if (rc == SQLITE_OK && log)
        rc = sqlite3_exec(db->handle, "PRAGMA locking_mode = EXCLUSIVE;", NULL, NULL, NULL);
    return rc;
}

/* What each use needs beside the common pragmas. Those of a reader don't make SQLite look into the file yet:
 * the first statement does, on the thread that needs it. */
static const char *const use_pragmas[] = {
    /* The writer appends: what it needs again are the last pages of each table and the rows that get
     * outcomes. */
    [DB_WRITE] = "PRAGMA synchronous = FULL; PRAGMA cache_size = -16384;",
    [DB_READ] = "PRAGMA query_only = ON;",
    [DB_BESIDE] = "PRAGMA query_only = ON;",
    [DB_STILL] = "PRAGMA query_only = ON;",
    /* Nobody else knows of it, and it is thrown away when anything goes wrong. */
    [DB_MAKE] = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;",
};

static int open_as(struct db *db, const char *path, enum db_use use)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (use == DB_WRITE)
        flags |= SQLITE_OPEN_CREATE;
    int rc = use == DB_STILL ? open_still(db, path) : sqlite3_open_v2(path, &db->handle, flags, vfs_name);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_busy_timeout(db->handle, 1000);
    if (use == DB_WRITE)
        rc = sqlite3_exec(db->handle, PAGE_SIZE_PRAGMA "PRAGMA journal_mode = WAL;", NULL, NULL, NULL);
    else if (use != DB_READ) /* the last one to go would copy the log and remove it */
        rc = sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db->handle, pragmas, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db->handle, use_pragmas[use], NULL, NULL, NULL);
    return rc;
}

enum status db_open(struct db *db, const char *path, enum db_use use, struct error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, configure);

    *db = (struct db){0};
    int rc = open_as(db, path, use);
    if (rc == SQLITE_OK)
        return STATUS_OK;
    error_set(err, db_status(rc), "%s: %s", path, db_problem(db));
    db_close(db);
    return db_status(rc);
}

enum status db_prepare(struct db *db, const char *const *texts, size_t count, struct error *err)
{
    db_prepare_later(db, texts, count);
    for (size_t i = 0; i < count; i++)
        if (!db_sql(db, i))
            return error_set(err, db_status(sqlite3_errcode(db->handle)), "%s: %s", texts[i], db_problem(db));
    return STATUS_OK;
}

void db_prepare_later(struct db *db, const char *const *texts, size_t count)
{
    db->sql = mem_zalloc(count * sizeof *db->sql);
    db->texts = texts;
    db->count = count;
}

sqlite3_stmt *db_sql(struct db *db, size_t which)
{
    sqlite3_stmt **stmt = &db->sql[which];
    if (!*stmt)
        sqlite3_prepare_v3(db->handle, db->texts[which], -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL);
    return *stmt;
}

void db_close(struct db *db)
{
    for (size_t i = 0; i < db->count; i++)
        sqlite3_finalize(db->sql[i]);
    free(db->sql);
    CHECK(sqlite3_close(db->handle) == SQLITE_OK);
    *db = (struct db){0};
}

bool db_run(sqlite3_stmt *stmt)
{
    int rc = sqlite3_step(stmt);
    sqlite3_reset(stmt);
    return rc == SQLITE_DONE;
}

bool db_exec(struct db *db, const char *sql)
{
    return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK;
}

bool db_int(struct db *db, const char *sql, int64_t otherwise, int64_t *out)
{
    sqlite3_stmt *stmt;
    if (sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL) != SQLITE_OK)
        return false;
    int rc = sqlite3_step(stmt);
    *out = rc == SQLITE_ROW && sqlite3_column_type(stmt, 0) == SQLITE_INTEGER ? sqlite3_column_int64(stmt, 0)
                                                                              : otherwise;
    sqlite3_finalize(stmt);
    return rc == SQLITE_ROW || rc == SQLITE_DONE;
}

void db_bind(sqlite3_stmt *stmt, int at, struct bytes text)
{
    if (text.at)
        sqlite3_bind_blob64(stmt, at, text.at, text.len, SQLITE_STATIC);
    else
        sqlite3_bind_null(stmt, at);
}

struct bytes db_column(sqlite3_stmt *stmt, int at)
{
    if (sqlite3_column_type(stmt, at) == SQLITE_NULL)
        return BYTES_NONE;
    const void *text = sqlite3_column_blob(stmt, at);
    return text ? bytes_of(text, (size_t)sqlite3_column_bytes(stmt, at)) : BYTES("");
}
