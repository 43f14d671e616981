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

#include "store/claims.h"
#include "store/db.h"
#include "store/store.h"
#include "store/writer_sql.h"
#include "util/vec.h"

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
