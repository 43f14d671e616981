/* The database as everybody here uses it: connections, the layout, the lock of the directory, names by
 * number. */
#ifndef STORE_DB_H
#define STORE_DB_H

#include <pthread.h>
#include <sqlite3.h>

#include "store/store.h"
#include "util/vec.h"

/* ---- db.c: one connection and its prepared statements ----------------------------------------------------
 */

#define PAGE_SIZE_PRAGMA "PRAGMA page_size = 8192;" /* before anything else: of an empty file only */

struct db {
    sqlite3 *handle;
    sqlite3_stmt **sql; /* by the enum that goes with the texts */
    const char *const *texts;
    size_t count;
};

enum db_use {
    DB_WRITE,
    DB_READ,
    DB_BESIDE, /* reads beside another process that serves it */
    DB_STILL,  /* reads what nobody writes: a store, with its log, or a single file; touches nothing */
    DB_MAKE,   /* a file that is being made, and counts for nothing before it is done */
};

/* `texts` are prepared in order. OK, IO, CORRUPT. */
enum status db_open(struct db *db, const char *path, enum db_use use, struct error *err);
enum status db_prepare(struct db *db, const char *const *texts, size_t count, struct error *err);
/* Those of a connection that may never need most of them: each is prepared when it is first asked for. */
void db_prepare_later(struct db *db, const char *const *texts, size_t count);
/* NULL when it can't be prepared, which SQLite's own calls take as SQLITE_MISUSE. */
sqlite3_stmt *db_sql(struct db *db, size_t which);
void db_close(struct db *db);
/* Steps a statement that gives no rows, to its end; false on any error (db_problem tells). */
bool db_run(sqlite3_stmt *stmt);
/* Any number of statements without parameters. */
bool db_exec(struct db *db, const char *sql);
/* A single integer; `otherwise` when there is no row or it is null. False on an error. */
bool db_int(struct db *db, const char *sql, int64_t otherwise, int64_t *out);
const char *db_problem(const struct db *db);
enum status db_status(int rc);

/* vfs.c: the layer under every connection; once. Its name. */
const char *vfs_register(void);

/* Absent is NULL, empty is an empty blob; the memory stays the caller's until the statement ran. */
void db_bind(sqlite3_stmt *stmt, int at, struct bytes text);
struct bytes db_column(sqlite3_stmt *stmt, int at);

/* ---- schema.c --------------------------------------------------------------------------------------------
 */

/* Its layout, 0 for an empty file. CORRUPT when it is another program's or a later version's. */
enum status schema_version(struct db *db, int *version, struct error *err);
/* Makes what is missing; fails likewise. */
enum status schema_ensure(struct db *db, struct error *err);
enum status schema_epoch(struct db *db, struct uuid *epoch, struct error *err);
/* What a restore leaves: another epoch, which remembers the one it comes from, and no mark of a backup. */
enum status schema_new_epoch(struct db *db, struct uuid *was, struct uuid *is, struct error *err);
/* A backup that somebody has put in the store's place by hand is a restore too: seqs that were given after it
 * are given again. Its seal, which no served store keeps, tells. */
enum status schema_serve_backup(struct db *db, struct error *err);
int schema_newest(void); /* the layout that schema_ensure gives */
/* A value of the table meta; false, and 0, when there is none of its kind. */
bool meta_int(struct db *db, const char *name, int64_t *out);
bool meta_uuid(struct db *db, const char *name, struct uuid *out);

/* The columns of a row, in the order that row_view_of reads. */
#define ROW_COLUMNS                                                                                          \
    "r.seq, r.sink, r.state, r.tenant, r.lane, r.key, r.received_at, r.attempts, r.first_attempt, r.due, "   \
    "r.at, r.waived, r.cls, r.http_status, r.duration, r.reason, r.late, r.replay"
enum { ROW_COLUMN_COUNT = 18 };
/* States that keep a hook from being removed: pending, dead, held. */
#define KEPT_STATES "(0, 2, 3)"
#define DEAD_STATES "(2, 3)"

/* Everything but id and body_size. False when a value can't be one of ours. */
bool row_view_of(struct store *store, sqlite3_stmt *stmt, struct store_row_view *view);

static inline bool row_state_dead(enum row_state state)
{
    return state == ROW_DEAD || state == ROW_HELD;
}

/* ---- begin.c ---------------------------------------------------------------------------------------------
 */

/* Made where there is none, and there after a crash. CORRUPT: what is there is not to be begun anew. */
enum status begin_dir(const char *path, struct error *err);
enum status begin_store(const char *path, struct error *err);

/* ---- lock.c ----------------------------------------------------------------------------------------------
 */

/* The one process that may write here; BUSY names it. The file descriptor is the lock. `restores`: it brings
 * back a store, and serves none. */
enum status lock_take(const char *data_dir, bool restores, int *fd, struct error *err);
void lock_drop(int fd);
/* For those who only look: nobody serves while it is held. OK, -1 when there was never a lock to take. BUSY
 * (`restored`: by a restore, beside which nothing is to be read), IO. */
enum status lock_share(const char *data_dir, int *fd, bool *restored, struct error *err);

/* ---- names.c: small numbers for names --------------------------------------------------------------------
 */

enum name_kind { NAME_TENANT = 1, NAME_SOURCE, NAME_SINK };
enum { NAMES_MAX = 1 << 20, CLASSES_MAX = 64 };

struct name {
    uint32_t id; /* 1.. in order of making */
    enum name_kind kind;
    char *text;
    char *sink; /* of a NAME_SINK; its text is the source */
    struct name *chain;
};

struct names {
    pthread_rwlock_t lock;
    VEC(struct name *) all; /* by id - 1; a name lives as long as the store */
    struct name **buckets;
    size_t bucket_count;
    size_t durable, writing; /* how many of `all` are stored, and will be when the transaction under way is */
    const char *classes[CLASSES_MAX]; /* outcome classes seen in rows */
    size_t class_count;
};

void names_init(struct names *names);
void names_free(struct names *names);
enum status names_load(struct names *names, struct db *db, struct error *err);
/* NULL when unknown. `sink` is absent but for sinks. Any thread. */
const struct name *names_find(struct names *names, enum name_kind kind, struct bytes text, struct bytes sink);
/* Found or made; a made one rides in the next transaction. NULL at NAMES_MAX. Any thread. */
const struct name *names_add(struct names *names, enum name_kind kind, struct bytes text, struct bytes sink);
const struct name *names_by_id(struct names *names, uint32_t id);
/* Is there a source or a sink of these names? Absent: any. Looks at all. Any thread. */
bool names_any_sink(struct names *names, struct bytes source, struct bytes sink);
/* The text with the life of the store; "other" when there are too many. */
const char *names_class(struct names *names, const char *text);
/* Inside a transaction: inserts what is not stored yet with `insert`; then, when it is durable,
 * names_written. */
bool names_write(struct names *names, sqlite3_stmt *insert);
void names_written(struct names *names);
bool names_all_durable(struct names *names, uint32_t upto);

#endif
