/* Inside the store. One thread writes (writer.c, with undecided.c, change.c, block.c and remove.c in its
 * hands); one copies the log into the database (checkpoint.c); one looks after space and age (keeper.c).
 * Everybody else reads through a reader of his own, or puts something into queue.c.
 *
 * The database: see schema.c. */
#ifndef STORE_STORE_PRIV_H
#define STORE_STORE_PRIV_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include "store/store.h"
#include "util/vec.h"

/* ---- db.c: one connection and its prepared statements ----------------------------------------------------
 */

struct db {
    sqlite3 *handle;
    sqlite3_stmt **sql; /* by the enum that goes with the texts */
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

/* ---- queue.c: hooks on their way to the writer -----------------------------------------------------------
 */

struct queue {
    _Atomic(struct list *)
        newest;                 /* a stack through node.next; the writer takes all of it and turns it round */
    atomic_size_t hooks, bytes; /* waiting, or about to be pushed */
    atomic_bool poked, sleeping;
    pthread_mutex_t lock;
    pthread_cond_t wake;
};

void queue_init(struct queue *queue);
void queue_free(struct queue *queue);
void queue_push(struct queue *queue, struct list *node);
/* Wakes the writer, now or as soon as it wants to sleep. */
void queue_poke(struct queue *queue);
/* The writer: everything pushed, in order, behind what `out` has. */
void queue_take(struct queue *queue, struct list *out);
/* The writer: until poked, or until that moment (monotonic; INT64_MAX: for ever). */
void queue_sleep(struct queue *queue, int64_t until_us);

/* ---- share.c: what of the queue each tenant has ----------------------------------------------------------
 */

void shares_open(struct store *store);
void shares_close(struct store *store);
/* Counts a hook of so many bytes that comes into a queue of `hooks` and `held` bytes, which has room for it;
 * false, and nothing is counted, when its tenant has its share. Any thread. */
bool share_take(struct store *store, struct store_hook *hook, size_t bytes, size_t hooks, size_t held);
/* Nothing happens for a hook that was not counted. */
void share_leave(struct store_hook *hook, size_t bytes);

/* ---- change.c: outcomes ----------------------------------------------------------------------------------
 */

/* What rides begins with its node and its kind, as struct store_change does, and is one allocation
 * (beside a change's response). */
enum change_kind {
    CHANGE_OUTCOME,
    CHANGE_AUDIT,
    CHANGE_MARK,
    CHANGE_LIMIT,
    CHANGE_MOVE,
    CHANGE_ERASE,
    CHANGE_FORGET,
    CHANGE_PEN,
    CHANGE_REPLAY,
    CHANGE_REPLAY_STEP
};

static inline enum change_kind change_kind(const struct list *node)
{
    return (enum change_kind)LIST_OWNER(node, struct store_change, node)->kind;
}

void change_free(struct list *node);

struct changes {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct list waiting;
    uint64_t given, written; /* counts, for store_flush */
    int64_t since_us;        /* when the first of `waiting` came */
    bool hurry;              /* somebody waits in store_flush */
    bool stuck;              /* the store can't write: no use waiting */
};

void changes_init(struct changes *changes);
void changes_free(struct changes *changes);
/* store_changes, for whatever rides. */
void changes_give(struct store *store, struct list *given);
/* When they have to be written at the latest (monotonic); INT64_MAX: there are none. */
int64_t changes_due_us(struct changes *changes);
/* The writer: at most `max`, behind what `out` has. */
void changes_take(struct changes *changes, struct list *out, size_t max);
/* Inside a transaction. Sets `was` of each. */
bool changes_write(struct store *store, const struct list *changes);
/* They are durable: counts them, frees them. */
void changes_written(struct store *store, struct list *changes);
void changes_set_stuck(struct changes *changes, bool stuck);

/* ---- audit.c ---------------------------------------------------------------------------------------------
 */

enum { AUDIT_ROWS = 100000, AUDIT_TEXT_MAX = 1024 };

/* Inside a transaction. */
bool audit_write(sqlite3_stmt **sql, const struct list *node);

/* ---- attempt.c -------------------------------------------------------------------------------------------
 */

/* Inside a transaction: the failed attempt that a change tells of. */
bool attempt_write(sqlite3_stmt **sql, const struct store_change *change);

/* ---- dlq.c: dead letters of each source, in sums --------------------------------------------------------
 */

struct dead_sum {
    struct dead_sum *next;
    const char *source; /* behind the struct */
    uint64_t max_rows;  /* 0: no bound, as for a source that is not configured */
    int64_t max_bytes;
    int64_t rows, bytes;
    bool full;
};

struct dlq {
    pthread_mutex_t lock;
    struct dead_sum *sums; /* sources that are configured, or have dead letters; under the lock */
    atomic_uint full;      /* how many of them are: while none is, nobody asks for the lock */
};

void dlq_open(struct store *store);
void dlq_close(struct dlq *dlq);
/* Adds up what is dead. Before the writer's thread starts. */
enum status dlq_load(struct store *store, struct error *err);
/* The writer: so many rows more (or fewer) of this sink are dead, each of that size. */
void dlq_shift(struct store *store, uint32_t sink, int64_t rows, int64_t size);
/* Any thread. */
bool dlq_is_full(struct dlq *dlq, struct bytes source);
int64_t dlq_bytes(struct dlq *dlq); /* of all sources */

/* ---- erase.c ---------------------------------------------------------------------------------------------
 */

/* Inside a transaction; and once it is durable. */
bool erase_write(struct store *store, struct list *node);
/* Any thread, blocks: true when the log was emptied after this call began. */
bool erase_scrub(struct store *store);
void erase_written(struct store *store, const struct list *node);
/* Emptying the log, so that it keeps nothing of what was erased. */
struct scrub {
    atomic_uint_least64_t asked;
    uint64_t done;    /* of those; under changes.lock */
    int64_t retry_us; /* the writer's */
};
/* The writer: when the log is to be emptied (monotonic; INT64_MAX: it is not); tries to. */
int64_t scrub_due_us(const struct store *store);
void scrub_turn(struct store *store);

/* ---- mark.c, limit.c, move.c -----------------------------------------------------------------------------
 */

/* Inside a transaction. */
bool mark_write(sqlite3_stmt **sql, const struct list *node);
bool limit_write(sqlite3_stmt **sql, const struct list *node);
bool move_write(sqlite3_stmt **sql, const struct list *node);

/* ---- replay.c --------------------------------------------------------------------------------------------
 */

enum { REPLAYS_KEPT = 1000 }; /* that are over */

/* Inside a transaction: a job as it is from now on; a step; what became of a row of a job. */
bool replay_write(sqlite3_stmt **sql, const struct list *node);
bool replay_step_write(struct store *store, struct list *node);
bool replay_count(sqlite3_stmt **sql, const struct store_change *change);
/* A hook that a job let out of the pen, in its transaction; `seq` 0: it is a duplicate. */
bool replay_count_released(sqlite3_stmt **sql, const struct store_hook *hook, uint64_t seq);
/* It is durable; or never will be. */
int64_t replay_step_written(struct store *store, struct list *node);
void replay_step_lost(struct list *node);
/* Before the writer runs: rows of jobs that died while nobody counted (a sink that was retired). */
enum status replays_settle_accounts(struct store *store, struct error *err);
/* In the transaction that renames a sink, with the SQL function lane_of(key): its jobs go by the new name, in
 * the new lanes. */
bool replays_follow(struct db *db, const char *source, const char *from,
                    const char *to); /* their words alone */
bool replays_rename_sink(struct db *db, uint32_t sink, const char *source, const char *from, const char *to);

/* ---- claim_index.c: who claimed a key, in memory ---------------------------------------------------------
 */

enum { CLAIM_SIZE = 16, CLAIM_RUN_MAX = 1 << 20, CLAIM_RUN_MIN = 1 << 12 };

struct claim_slot {
    uint32_t tag, offset; /* offset 0: free */
};

/* Claims that follow one another, so that they expire at about the same time, and then go as a whole. */
struct claim_run {
    uint64_t base, last;         /* seqs */
    int64_t first_ms, until_ms;  /* unix: when the first one expires, and the last to do so */
    uint32_t used, size, places; /* claims; how many it takes; slots */
    struct claim_slot *slots;
};

struct claim_index {
    VEC(struct claim_run) runs; /* ascending in seq */
    size_t count;
};

void claim_index_free(struct claim_index *index);
/* `seq` is above all that were added. */
void claim_index_add(struct claim_index *index, const uint8_t claim[CLAIM_SIZE], uint64_t seq,
                     int64_t expires_ms);
/* Calls `is_it` with every seq that may have claimed this, newest first, until it says true. True when it
 * did. */
bool claim_index_find(const struct claim_index *index, const uint8_t claim[CLAIM_SIZE],
                      bool (*is_it)(void *ctx, uint64_t seq), void *ctx);
void claim_index_remove(struct claim_index *index, const uint8_t claim[CLAIM_SIZE], uint64_t seq);
/* Forgets runs all of whose claims have expired, oldest first; and beyond `max` the oldest ones, expired or
 * not: how many of those. */
size_t claim_index_expire(struct claim_index *index, int64_t now_ms, size_t max);
/* When the oldest run goes (unix); INT64_MAX: there is none. */
int64_t claim_index_due_ms(const struct claim_index *index);
/* No seq below is known here. */
uint64_t claim_index_floor(const struct claim_index *index);

/* ---- claim.c: the writer's side of it --------------------------------------------------------------------
 */

struct claims {
    struct claim_index index;
    uint32_t *places; /* the batch by claim: its number + 1; 0: free */
    size_t place_count;
    uint64_t swept,
        sweeping;      /* no row below is left; none will be when the transaction under way is durable */
    struct list twins; /* hooks of the batch that are duplicates */
    atomic_size_t keys;
};

/* Any thread: fills hook->claim. */
void claim_make(struct store_hook *hook);
enum status claims_load(struct store *store, struct error *err);
void claims_free(struct claims *claims);
/* The writer, before a batch gets its seqs: duplicates leave it for claims.twins. False on an error. */
bool claims_part(struct store *store);
/* Inside a transaction: the claim of a hook; the removal of some that expired. */
bool claim_write(struct store *store, const struct store_hook *hook, uint64_t seq);
bool claims_sweep(struct store *store);
/* It is durable, and every hook of the batch has its seq. */
void claims_written(struct store *store);
/* When the next removal is due (monotonic); INT64_MAX: none is. */
int64_t claims_due_us(const struct store *store);
/* For change.c. */
bool forget_write(struct store *store, struct list *node);
void forget_written(struct store *store, const struct list *node);

/* ---- pen.c: hooks that failed verification ---------------------------------------------------------------
 */

struct pen_sum {
    uint32_t source;
    int64_t hooks, bytes; /* those on their way into it too */
};

struct pen {
    pthread_mutex_t lock;
    VEC(struct pen_sum) sums; /* under `lock` */
    /* The writer's. */
    struct list batch; /* hooks of the batch that go into the pen */
    int64_t oldest_ms; /* unix; INT64_MAX: it is empty */
    struct pen_gone expired[64];
    size_t expired_len;
};

void pen_init(struct pen *pen);
void pen_free(struct pen *pen);
enum status pen_load(struct store *store, struct error *err);
/* Any thread: room for a hook, whose head is made; false when its source has no more. */
bool pen_reserve(struct store *store, struct store_hook *hook);
void pen_unreserve(struct store *store, const struct store_hook *hook);
/* The writer, before a batch gets its seqs: hooks for the pen leave it, and those out of it that are not
 * there are answered. False on an error. */
bool pen_part(struct store *store);
/* Inside a transaction; once it is durable; and the answers to those that went in. */
bool pen_write(struct store *store, uint64_t first_seq);
void pen_written(struct store *store);
void pen_answer(struct store *store, enum status status);
/* When the oldest has to go (monotonic); INT64_MAX: none is there. */
int64_t pen_due_us(const struct store *store);
/* For change.c. */
bool pen_change_write(struct store *store, struct list *node);
void pen_change_written(struct store *store, const struct list *node);

/* ---- block.c: 1,024 seqs at a time -----------------------------------------------------------------------
 */

/* What is known of a run of BLOCK_SEQS seqs. Its stored row is written when the block is full, and again when
 * nothing in it is owed any more ("settled"): the scan at start skips settled blocks, and a look-up by time
 * skips those whose times do not match. That costs one small write in a thousand hooks, where an index costs
 * one each. */
enum { BLOCK_SEQS = 1024 };

struct block {
    uint64_t number; /* seq / BLOCK_SEQS */
    uint32_t hooks;
    uint32_t pending; /* rows */
    int64_t oldest_ms, newest_ms;
    bool dirty, writing; /* the stored row is behind; is being brought up to date */
};

struct blocks {
    VEC(struct block) open; /* not settled, or not stored as such yet; ascending */
    uint64_t last;          /* the block that new hooks go to */
    size_t dirty;
};

/* The blocks that may hold owed rows: stored unsettled ones, and those too new to have a row. Adds up all
 * hooks. */
enum status blocks_load(struct store *store, struct error *err);
void blocks_free(struct blocks *blocks);
/* The scan at start: pending rows from none, one by one; then the blocks that turn out settled say so. */
void blocks_forget_owed(struct blocks *blocks);
void blocks_count_owed(struct blocks *blocks, uint64_t seq, enum row_state state);
void blocks_counted(struct blocks *blocks);
/* The writer, once a transaction is durable. */
void blocks_add_hook(struct blocks *blocks, const struct envelope *envelope, size_t rows);
void blocks_shift_row(struct blocks *blocks, uint64_t seq, enum row_state was, enum row_state is);
void blocks_count_removed(struct blocks *blocks, uint64_t number, uint32_t hooks);
/* Inside a transaction, and after it: as with names. */
bool blocks_write(struct store *store);
void blocks_written(struct store *store);

/* ---- checkpoint.c: the log -------------------------------------------------------------------------------
 */

struct checkpointer {
    pthread_t thread;
    bool started;
    struct db db;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop, asked, failing;
    uint64_t round;         /* counts the restarts of the log */
    int64_t frames, copied; /* in the log; of them in the database */
    int64_t page_size;
    atomic_int_least64_t at_ms; /* the last copy (unix) */
    pthread_mutex_t copying;    /* held by whoever copies: the thread, or the writer */
};

enum status checkpoint_open(struct store *store, struct error *err);
enum status checkpoint_start(struct store *store, struct error *err);
void checkpoint_stop(struct store *store);
void checkpoint_close(struct store *store);
int64_t checkpoint_left(struct checkpointer *log); /* bytes that are in the log alone */
/* The writer, between two transactions: copies the last frames when few are left, so that the log starts
 * again. */
void checkpoint_finish(struct store *store);
/* The writer, between two transactions: copies everything and cuts the file to nothing. False when a reader
 * is in the way. */
bool checkpoint_empty(struct store *store);

/* ---- keeper.c, remove.c: age, size, space ----------------------------------------------------------------
 */

struct range {
    uint64_t from, to; /* [from, to), within one block */
};
/* A range holds one hook, or several of so many bytes together: it goes in one step of a transaction. */
enum { PLAN_MAX = 64, RANGE_BYTES = 256 << 10 };

struct keeper {
    pthread_t thread;
    bool started;
    struct db db;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
    /* What the writer shall remove next. The keeper fills it when it is empty. */
    struct range plan[PLAN_MAX];
    size_t plan_len, plan_done;
    uint64_t from; /* hooks below were looked at, and are gone or have to stay */
    atomic_bool planned;
};

enum status keeper_open(struct store *store, struct error *err);
enum status keeper_start(struct store *store, struct error *err);
void keeper_stop(struct store *store);
void keeper_close(struct store *store);
/* Sizes and free space, now. */
void keeper_sample(struct store *store);
/* A row below may have stopped holding its hook: look there again. */
void keeper_look_again(struct store *store, uint64_t seq);

/* The writer, inside a transaction: removes planned hooks for about a millisecond. False on an error. */
bool remove_step(struct store *store);
void remove_written(struct store *store);
void remove_undone(struct store *store);

/* ---- writer.c, undecided.c -------------------------------------------------------------------------------
 */

#define WRITER_SQL(X)                                                                                        \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                              \
    X(COMMIT, "COMMIT")                                                                                      \
    X(ROLLBACK, "ROLLBACK")                                                                                  \
    X(HOOK, "INSERT INTO hooks(seq, id, received_at, tenant, source, head, body) "                           \
            "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                                            \
    X(ROW, "INSERT INTO rows(seq, sink, state, tenant, lane, key, received_at, size) "                       \
           "VALUES(?1, ?2, 0, ?3, ?4, ?5, ?6, ?7)")                                                          \
    X(STATE, "SELECT state, coalesce(size, 0) FROM rows WHERE seq = ?1 AND sink = ?2")                       \
    X(STATES, "SELECT state, coalesce(size, 0), sink FROM rows WHERE seq = ?1")                              \
    X(ERASE_ATTEMPTS, "DELETE FROM attempts WHERE seq = ?1")                                                 \
    X(ERASE_ROWS, "DELETE FROM rows WHERE seq = ?1")                                                         \
    X(ERASE_HOOK, "DELETE FROM hooks WHERE seq = ?1")                                                        \
    X(CHANGE, "UPDATE rows SET state = ?3, late = ?4, attempts = ?5, first_attempt = ?6, due = ?7, "         \
              "at = ?8, waived = ?9, cls = ?10, http_status = ?11, duration = ?12, reason = ?13 "            \
              "WHERE seq = ?1 AND sink = ?2")                                                                \
    X(NOTE, "UPDATE rows SET state = ?3, late = ?4, attempts = ?5, first_attempt = ?6, due = ?7, "           \
            "at = iif(state = ?3, at, ?8), waived = ?9 WHERE seq = ?1 AND sink = ?2")                        \
    X(AUDIT, "INSERT INTO audit(at, who, what, target, reason, matched, done) "                              \
             "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                                           \
    X(AUDIT_TRIM, "DELETE FROM audit WHERE id <= last_insert_rowid() - ?1")                                  \
    X(ATTEMPT, "INSERT INTO attempts(seq, sink, at, attempt, cls, http_status, duration, reason, response) " \
               "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                                                 \
    X(ATTEMPT_TRIM, "DELETE FROM attempts WHERE id IN (SELECT id FROM attempts WHERE seq = ?1 AND "          \
                    "sink = ?2 ORDER BY id DESC LIMIT -1 OFFSET ?3)")                                        \
    X(MARK, "INSERT OR REPLACE INTO marks(kind, sink, tenant, lane, since, until, cause, opens) "            \
            "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                                                        \
    X(LIMIT, "INSERT OR REPLACE INTO limits(tenant, rate, burst) VALUES(?1, ?2, ?3)")                        \
    X(LIMIT_DROP, "DELETE FROM limits WHERE tenant = ?1")                                                    \
    X(UNMARK, "DELETE FROM marks WHERE kind = ?1 AND sink = ?2 AND tenant = ?3 AND lane = ?4")               \
    X(PEN_PUT, "INSERT INTO pen(hook, received_at, tenant, source, size, reason, head, body) "               \
               "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                                                     \
    X(PEN_HAS, "SELECT 1 FROM pen WHERE id = ?1")                                                            \
    X(PEN_DROP, "DELETE FROM pen WHERE id = ?1 RETURNING source, size")                                      \
    X(PEN_EXPIRE, "DELETE FROM pen WHERE id IN (SELECT id FROM pen WHERE received_at < ?1 ORDER BY id "      \
                  "LIMIT ?2) RETURNING source, size")                                                        \
    X(PEN_OLDEST, "SELECT received_at FROM pen ORDER BY id LIMIT 1")                                         \
    X(PEN_REASON, "UPDATE pen SET reason = ?2 WHERE id = ?1")                                                \
    X(CLAIM, "INSERT INTO claims(seq, hash, id, expires) VALUES(?1, ?2, ?3, ?4)")                            \
    X(CLAIM_GET, "SELECT hash, id, expires FROM claims WHERE seq = ?1")                                      \
    X(CLAIM_DROP, "DELETE FROM claims WHERE seq = ?1")                                                       \
    X(CLAIM_SWEEP,                                                                                           \
      "DELETE FROM claims WHERE seq IN (SELECT seq FROM claims WHERE seq < ?1 ORDER BY seq LIMIT ?2)")       \
    X(MOVE, "UPDATE rows SET lane = ?3, key = ?4, attempts = coalesce(attempts, 0), "                        \
            "late = max(coalesce(late, 0), ?3 IS NOT NULL) WHERE seq = ?1 AND sink = ?2")                    \
    X(REPLAY, "INSERT INTO replays(n, id, state, why, tenant, source, sink, since, until, rate, max_lag, "   \
              "first, cursor, last, created, changed, who, reason, origin, failure, since_text, "            \
              "until_text, planned, gone) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "                           \
              "?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24) "              \
              "ON CONFLICT(n) DO UPDATE SET state = ?3, why = ?4, rate = ?10, changed = ?16, "               \
              "planned = max(planned, ?23), gone = max(gone, ?24), dead_run = 0")                            \
    X(REPLAY_TRIM, "DELETE FROM replays WHERE n <= ?1 AND state IN (2, 3)")                                  \
    X(REPLAY_STEP, "UPDATE replays SET cursor = ?2, first = iif(hooks = 0 AND origin = 0, ?6, first), "      \
                   "hooks = hooks + ?3, made = made + ?4, owed = owed + ?5, gone = gone + ?7, "              \
                   "failed = failed + ?8 WHERE n = ?1")                                                      \
    X(REPLAY_RELEASED, "UPDATE replays SET hooks = hooks + 1, released = released + ?2, "                    \
                       "duplicates = duplicates + ?3, made = made + ?4 WHERE n = ?1")                        \
    X(REPLAY_OWN, "UPDATE rows SET replay = ?2, attempts = 0 WHERE seq = ?1") /* 0: it has a story */        \
    X(REPLAY_COUNT, "UPDATE replays SET done = done + ?2, dead = dead + ?3, given_up = given_up + ?4, "      \
                    "dead_run = iif(?2 > 0, 0, dead_run + max(?3, 0)) WHERE n = ?1")                         \
    X(REPLAY_LOOK, "SELECT state, coalesce(size, 0), lane FROM rows WHERE seq = ?1 AND sink = ?2")           \
    X(REPLAY_ROW,                                                                                            \
      "INSERT INTO rows(seq, sink, state, tenant, lane, key, received_at, size, attempts, "                  \
      "late, replay) SELECT seq, ?2, 0, tenant, ?3, ?4, received_at, "                                       \
      "length(head) + length(body), 0, 0, ?5 FROM hooks WHERE seq = ?1 "                                     \
      "ON CONFLICT(seq, sink) DO UPDATE SET before = state, state = 0, "                                     \
      "lane = iif(state IN " DEAD_STATES ", lane, excluded.lane), "                                          \
      "key = iif(state IN " DEAD_STATES ", key, excluded.key), attempts = 0, first_attempt = 0, "            \
      "due = 0, waived = 0, replay = excluded.replay WHERE state <> 0")                                      \
    X(REPLAY_NO_MORE, "UPDATE rows SET replay = NULL WHERE seq = ?1 AND sink = ?2 AND replay IS NOT NULL")   \
    X(NAME, "INSERT OR IGNORE INTO names(id, kind, text, sink) VALUES(?1, ?2, ?3, ?4)")                      \
    X(META, "INSERT INTO meta(name, value) VALUES(?1, ?2) "                                                  \
            "ON CONFLICT(name) DO UPDATE SET value = excluded.value")                                        \
    X(BLOCK_PUT, "INSERT INTO blocks(block, hooks, oldest, newest, settled) VALUES(?1, ?2, ?3, ?4, ?5) "     \
                 "ON CONFLICT(block) DO UPDATE SET hooks = excluded.hooks, oldest = excluded.oldest, "       \
                 "newest = excluded.newest, settled = excluded.settled")                                     \
    X(BLOCK_GET, "SELECT hooks, oldest, newest FROM blocks WHERE block = ?1")                                \
    X(BLOCK_TAKE, "UPDATE blocks SET hooks = hooks - ?2 WHERE block = ?1")                                   \
    X(BLOCK_DROP, "DELETE FROM blocks WHERE block = ?1 AND hooks <= ?2")                                     \
    X(BLOCK_OWED, "UPDATE blocks SET settled = 0 WHERE block = ?1")                                          \
    X(REMOVE_ROWS, "DELETE FROM rows WHERE seq >= ?1 AND seq < ?2 AND NOT EXISTS "                           \
                   "(SELECT 1 FROM rows k WHERE k.seq = rows.seq AND k.state IN " KEPT_STATES ")")           \
    X(REMOVE_ATTEMPTS, "DELETE FROM attempts WHERE seq >= ?1 AND seq < ?2 AND NOT EXISTS "                   \
                       "(SELECT 1 FROM rows k WHERE k.seq = attempts.seq AND k.state IN " KEPT_STATES ")")   \
    X(REMOVE_HOOKS, "DELETE FROM hooks WHERE seq >= ?1 AND seq < ?2 AND NOT EXISTS "                         \
                    "(SELECT 1 FROM rows k WHERE k.seq = hooks.seq AND k.state IN " KEPT_STATES ")")

enum writer_sql {
#define WRITER_SQL_ENUM(id, text) WRITER_##id,
    WRITER_SQL(WRITER_SQL_ENUM)
#undef WRITER_SQL_ENUM
        WRITER_SQL_COUNT
};

struct writer {
    pthread_t thread;
    bool started;
    struct db db;
    struct list waiting;       /* hooks taken from the queue */
    struct store_hook **batch; /* hooks of the transaction under way, or of the undecided one */
    size_t batch_len;
    struct list changes; /* outcomes of it; kept when it fails */
    uint64_t next_seq;
    bool floor_dirty; /* seqs were used up by a failed batch: persist the floor */
    int64_t
        pause_until_us; /* after a failure that was rolled back: no transaction of outcomes alone before */
    unsigned failures;  /* in a row */
    /* What remove_step did in the transaction under way. */
    struct range removed[PLAN_MAX];
    uint32_t removed_hooks[PLAN_MAX];
    size_t removed_len;
    /* undecided.c */
    int64_t undecided_since_us, replace_at_us;
    int64_t replaced; /* counts the tries; makes each one's bytes its own */
};

enum status writer_open(struct store *store, struct error *err);
enum status writer_start(struct store *store, struct error *err);
void writer_stop(struct store *store);
void writer_close(struct store *store);
/* One transaction of new names alone. Only while no writer runs. */
bool writer_store_names(struct store *store);
bool writer_put_floor(struct store *store);
/* The batch's hooks get `status`; it is empty afterwards. */
void writer_answer(struct store *store, enum status status);
void writer_refuse_waiting(struct store *store);

void undecided_enter(struct store *store);
/* One turn of the writer's loop while undecided. False: the process goes down and no more can be done. */
bool undecided_turn(struct store *store);

/* ---- store.c ---------------------------------------------------------------------------------------------
 */

struct store {
    struct store_options options;
    char *data_dir, *path;
    int lock_fd;
    struct uuid epoch;
    struct names names;
    struct queue queue;
    struct share *shares;
    struct changes changes;
    struct blocks blocks;
    struct writer writer;
    struct checkpointer log;
    struct keeper keeper;
    struct dlq dlq;
    struct claims claims;
    struct pen pen;
    struct scrub scrub;
    bool scanned; /* pending rows of each block are known */

    atomic_bool running, draining, undecided, backlog_full, disk_full;
    atomic_bool
        failing; /* the last transaction was rolled back; the writer tries by itself until one is not */
    atomic_int_least64_t writing_since_us; /* a transaction is under way since then (monotonic); 0: none */
    atomic_uint_least64_t next_seq, hooks, dead;
    atomic_int_least64_t disk_bytes, free_bytes, log_bytes;
    atomic_int_least64_t committed_ms, commit_us, undecided_since_ms; /* as store_stats says */
    int64_t restored_ms;
    struct uuid restored_from;

    struct series *commit_duration, *commit_batch, *commit_failures, *disk_gauge, *free_gauge, *queue_gauge,
        *queue_bytes_gauge, *keys_gauge; /* or NULL */
};

/* Bytes that a waiting hook counts for. */
size_t store_hook_bytes(const struct store_hook *hook);

#endif
