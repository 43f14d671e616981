/* The commit, and the hinge of the program: calls push hooks in, lanes pull rows out. One writer thread puts
 * everything that waits into one transaction with one sync (group commit). What was answered is on the disk;
 * what was refused is not, and never comes back.
 *
 * Order of life: store_open, store_scan (rows owed from before, for lanes), store_start, ..., store_stop
 * (commits what is queued), store_close. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "envelope/envelope.h"
#include "metrics/metrics.h"
#include "util/list.h"
#include "util/status.h"

struct store;

/* One delivery row of a hook being committed. `key` is borrowed until done() was called. */
struct store_row {
    uint32_t sink; /* store_sink_id */
    bool ordered;  /* takes a lane; `lane` and `key` are unused otherwise */
    uint8_t lane[16];
    struct bytes key; /* as stamped; absent: the keyless lane */
};

/* What a hook turned out to be a duplicate of: then nothing of it is stored, and it got no seq. */
struct store_twin {
    bool found;
    bool dead; /* rows of the first are dead letters */
    uint64_t seq;
    struct uuid id; /* of the first, which may be erased or too old to be kept */
};

/* A hook on its way in. The caller owns the struct and its rows until done() is called; the store holds no
 * reference of its own to the envelope before and after. store_commit adds to the envelope's arena: until
 * then nobody else may be using it. */
struct store_hook {
    struct list node;          /* the store's */
    struct envelope *envelope; /* its seq is set when it is committed */
    const struct store_row *rows;
    size_t row_count;
    /* Writer thread, exactly once:
     *   OK           durable: answer a success.
     *   UNAVAILABLE  certainly not stored and never will be: answer 503.
     *   IO           nobody knows (the sync failed and no later commit replaced it in time): close the
     * connection without an answer. */
    void (*done)(struct store_hook *hook, enum status status);
    void *ctx;
    /* Into the pen instead, for that reason (static): no seq, no rows; committed() never sees it.
     * store_commit says PEN_FULL when its source would have more there than that. */
    const char *pen_reason;
    int64_t pen_share_bytes;
    /* Out of the pen, in the transaction that makes it a hook; 0: it was not there. done(NOT_FOUND): somebody
     * was faster, and it is no hook. */
    uint64_t pen_id;
    uint32_t replay; /* with pen_id: the job that lets it go, which counts it in that transaction; 0: none */
    /* There are other tenants: store_commit says SHARE_FULL when this one's hooks fill as much of the queue
     * as is left free. */
    bool shares_queue;
    int64_t dedupe_ttl_ms; /* over 0: it claims the envelope's dedupe_key, if it has one, for that long */

    uint32_t tenant;        /* out: store_tenant_name; set before committed() */
    struct store_twin twin; /* out, in done(OK) */

    uint32_t source;     /* the store's */
    struct share *share; /* the store's: where it counts, while it waits */
    struct bytes head;   /* the store's: the encoded envelope, in the envelope's own arena */
    struct pen_gone {
        int64_t hooks, bytes;
        uint32_t source;
    } pen_gone;                        /* the store's */
    uint8_t claim[16];                 /* the store's: of tenant, source and key */
    const struct store_hook *first_in; /* the store's: the first, when it is in the same batch */
};

/* Writer thread, after the sync and before any done(), in seq order: the hand-over to lanes. Whoever wants to
 * keep an envelope takes a reference. Must not block. */
typedef void (*store_committed)(void *ctx, struct store_hook *const *hooks, size_t count);

/* How many dead letters of a source, and how many bytes of them, are too many: from then on store_commit says
 * DLQ_FULL to its hooks. Those on their way may still die. 0: no bound. */
struct store_dlq_bound {
    const char *source;
    uint64_t max_rows;
    int64_t max_bytes;
};

struct store_options {
    const char *data_dir; /* made 0700 when missing */
    size_t max_batch;     /* hooks in one transaction */
    size_t max_batch_bytes;
    size_t max_queue; /* hooks waiting for the writer */
    size_t max_queue_bytes;
    int64_t commit_timeout_ms;         /* an undecided batch is closed without an answer after it */
    int64_t retention_ms;              /* delivered hooks stay that long */
    int64_t max_bytes;                 /* of the store's files; 0: none */
    int64_t min_free_bytes;            /* below it store_commit says DISK_FULL */
    int64_t pen_retention_ms;          /* hooks in the pen stay that long */
    size_t max_dedupe_keys;            /* beyond it the oldest are forgotten before their time */
    const struct store_dlq_bound *dlq; /* of sources that have bounds; copied */
    size_t dlq_count;
    store_committed committed;
    /* Writer thread: before the first (true) and after the last (false) done() of a batch, so that answers
     * can be handed on together. May be NULL. */
    void (*answering)(void *ctx, bool begins);
    void *ctx;               /* of both */
    struct metrics *metrics; /* may be NULL */
};

/* BUSY when another process holds the directory (err names its pid); IO; CORRUPT. Nothing is written by
 * others from here on: the lock lasts until store_close. */
enum status store_open(const struct store_options *options, struct store **out, struct error *err);
enum status store_start(struct store *store, struct error *err);
/* Other bounds of dead letters, of all sources that have any. Any thread, one at a time. */
void store_set_dlq(struct store *store, const struct store_dlq_bound *bounds, size_t count);
/* No hook is taken any more (DRAINING); everything queued is committed, its done() called, changes written,
 * the log checkpointed. Blocks. */
void store_stop(struct store *store);
void store_close(struct store *store);

struct uuid store_epoch(const struct store *store);

/* Small durable numbers for names: rows carry these. A (source, sink name) keeps its id for ever. Made when
 * missing; any thread, but meant for load time (it may write). */
enum status store_sink_id(struct store *store, const char *source, const char *sink, uint32_t *id,
                          struct error *err);
/* Names by id; static for the store's life. NULL for an unknown id. Any thread. */
bool store_sink_name(const struct store *store, uint32_t id, const char **source, const char **sink);
const char *store_tenant_name(const struct store *store, uint32_t id);
/* Was that source, or sink (of that source), ever configured here, or has it stored anything? Absent: any.
 * Looks at every name. Any thread. */
bool store_knows(const struct store *store, struct bytes source, struct bytes sink);
/* False when no hook of that tenant was ever stored. Any thread. */
bool store_tenant_find(const struct store *store, struct bytes name, uint32_t *id);

/* Any thread, never blocks. OK: done() will be called. Else the hook was not taken: FULL (max_queue,
 * max_queue_bytes), SHARE_FULL, BACKLOG_FULL, DLQ_FULL, PEN_FULL, DISK_FULL, UNAVAILABLE (a commit is
 * undecided, or hangs), DRAINING. */
enum status store_commit(struct store *store, struct store_hook *hook);

/* The gate for ingest that lanes holds: true makes store_commit say BACKLOG_FULL. Any thread. */
void store_set_backlog_full(struct store *store, bool full);

/* Ready for a hook right now? Any thread. */
bool store_available(const struct store *store);
/* False while the last write failed, is undecided or hangs: outcomes would pile up. A full disk still takes
 * them. Any thread. */
bool store_writes(const struct store *store);

enum row_state {
    ROW_PENDING,   /* owed */
    ROW_DONE,      /* delivered */
    ROW_DEAD,      /* a dead letter; its lane went on */
    ROW_HELD,      /* a dead letter that holds its lane */
    ROW_DISCARDED, /* given up by an operator */
};
const char *row_state_name(enum row_state state);

/* What became of a row: rides in the writer's next transaction, within 50 ms whether hooks come or not. */
struct store_change {
    struct list node; /* the store's */
    int kind;         /* the store's; 0 */
    uint64_t seq;
    uint32_t sink;
    enum row_state state;     /* its state from now on */
    bool late;                /* a higher seq of its lane was delivered before */
    uint32_t attempts;        /* so far */
    int64_t first_attempt_ms; /* unix; 0: none yet */
    int64_t due_ms;           /* unix; of a pending row */
    int64_t at_ms;            /* unix: when this happened */
    int64_t waived_ms;        /* breaker and pause time that give_up_after does not count, so far */
    uint32_t replay;          /* of a replay's row: the job; 0: none */
    const char *cls; /* outcome class, static: "ok" "transient" "refused" "exhausted" ...; NULL: no outcome:
                        what the last one left (class, status, duration, reason) stays, and `at_ms` counts
                        only when the state is another one */
    int http_status; /* 0: none */
    int64_t duration_us;
    char reason[128];      /* "" when ok; text a person can act on */
    bool failed;           /* an attempt failed just now: it joins the last STORE_ATTEMPTS_KEPT of its row */
    struct bytes response; /* of a failed one: how the answer began; malloc'd, and the change's from now on */
    int was;               /* the store's */
    int64_t size;          /* the store's */
};
enum { STORE_ATTEMPTS_KEPT = 10 };
struct store_change *store_change_new(void);
/* Takes the whole list (of node) over. Any thread, never blocks, never refuses. Order per (seq, sink) is
 * kept. */
void store_changes(struct store *store, struct list *changes);
/* How much was given so far, of all that rides; and is so much durable? Any thread, cheap. */
uint64_t store_changes_given(struct store *store);
bool store_changes_written(struct store *store, uint64_t given);
/* Returns when everything given to store_changes before is durable (false: the store can't write now).
 * Blocks; not for the writer's callbacks. */
bool store_flush(struct store *store);

/* The same without waiting: a mark for what was given so far, and whether all of that is durable by now. */
uint64_t store_given(struct store *store);
bool store_is_written(struct store *store, uint64_t given);

/* What of lanes' own state survives a restart. A mark is named by kind, sink, tenant and lane (the last two 0
 * but for LANE_PAUSE); the rest of it is replaced by the next one, and gone when `set` is false. */
enum mark_kind { MARK_BREAKER = 1, MARK_SINK_PAUSE, MARK_LANE_PAUSE };
struct store_mark {
    enum mark_kind kind;
    uint32_t sink, tenant;
    uint8_t lane[16];
    bool set;
    int64_t since_ms, until_ms; /* unix; until: of a breaker, its next probe */
    uint32_t cause, opens;      /* BREAKER: lanes' numbers */
};
/* Rides as changes do. Any thread, never blocks. */
void store_set_mark(struct store *store, const struct store_mark *mark);
/* All that are set. Between store_open and store_start. */
enum status store_marks(struct store *store, void (*each)(void *ctx, const struct store_mark *mark),
                        void *ctx, struct error *err);

/* How many hooks a second a tenant may send, as people set it at run time. It replaces what was set for that
 * tenant; gone when `set` is false. Rides as changes do, copied. Any thread, never blocks. */
enum { STORE_TENANT_MAX = 64 };
struct store_limit {
    char tenant[STORE_TENANT_MAX + 1];
    bool set;
    double rate;
    int64_t burst;
};
void store_set_limit(struct store *store, const struct store_limit *limit);
/* All that are set. Between store_open and store_start. */
enum status store_limits(struct store *store, void (*each)(void *ctx, const struct store_limit *limit),
                         void *ctx, struct error *err);

/* A row that waits is in another lane from now on, where it is late, or in none; copied. Rides as changes do.
 */
struct store_lane_move {
    uint64_t seq;
    uint32_t sink;
    bool ordered;
    uint8_t lane[16];
    struct bytes key; /* absent: the keyless lane */
};
void store_move_row(struct store *store, const struct store_lane_move *to);

/* A row that is not done, as found at start. */
struct store_owed {
    uint64_t seq;
    uint32_t sink, tenant;
    enum row_state state; /* ROW_PENDING, ROW_DEAD, ROW_HELD */
    bool ordered, late;
    uint32_t replay; /* the job that made it; 0: none */
    uint8_t lane[16];
    uint32_t attempts;
    int64_t first_attempt_ms, waived_ms;
    int64_t received_at_ms, at_ms; /* at: as of struct store_change */
};
/* Every such row, ascending in seq. Between store_open and store_start. `each` returns false to stop. */
enum status store_scan(struct store *store, bool (*each)(void *ctx, const struct store_owed *row), void *ctx,
                       struct error *err);

/* The guard: sinks that configuration names no longer, or by another name. Between store_open and
 * store_start, and before anybody keeps a name that the store gave out. */
struct store_sink_rows {
    uint32_t sink;
    const char *source, *name; /* borrowed for the call */
    uint64_t pending, held;    /* owed */
    uint64_t dead;             /* dead letters that hold nothing up */
};
typedef bool (*store_sink_wanted)(void *ctx, const char *source, const char *sink);
/* How many rows are not done, of every sink that `wanted` takes and that has any; ascending in id. Nothing is
 * read when it takes none; else what store_scan reads. */
enum status store_count_rows(struct store *store, store_sink_wanted wanted, void *ctx,
                             void (*each)(void *ctx, const struct store_sink_rows *rows), struct error *err);

/* The lane's id of a key (absent: none), which the store can't know. */
typedef void (*store_lane_of)(struct bytes source, struct bytes sink, struct bytes key, uint8_t lane[16]);
/* A sink of `source` is called `to` from now on: it keeps its id, and its owed and dead rows get the lane ids
 * of the new name, in one transaction. Nothing happens when no such row has the old name, so that it may be
 * said at every start; `renamed` tells. REFUSED, with the rest of a sentence about `to`, when rows are owed
 * under the old name and the new one has some too. */
enum status store_sink_rename(struct store *store, const char *source, const char *from, const char *to,
                              store_lane_of lane_of, bool *renamed, struct error *err);

/* What is owed to the sink becomes dead letters of that class, whatever held them. In many transactions:
 * stopped in the middle, the next call does the rest. Nothing happens when nothing is owed, or there is no
 * such sink. */
enum status store_sink_retire(struct store *store, const char *source, const char *sink, const char *cls,
                              uint64_t *retired, struct error *err);

/* Reading beside the writer: one reader a thread, closed before store_close. A call never holds a read
 * transaction longer than it lasts, and a listing stops at its limit. */
struct store_reader;
enum status store_reader_open(struct store *store, struct store_reader **out, struct error *err);
void store_reader_close(struct store_reader *reader);

/* The hook with its envelope (one reference, the caller's); NOT_FOUND, CORRUPT, IO. */
enum status store_read_hook(struct store_reader *reader, uint64_t seq, struct envelope **out);
enum status store_find_hook(struct store_reader *reader, const struct uuid *id, uint64_t *seq);

/* A row with all that is known of it. Bytes are borrowed for the call. */
struct store_row_view {
    uint64_t seq;
    struct uuid id;
    uint32_t sink, tenant;
    const char *tenant_name, *source, *sink_name;
    enum row_state state;
    bool ordered, late;
    uint32_t replay;
    uint8_t lane[16];
    struct bytes key;
    uint32_t attempts;
    int64_t received_at_ms, first_attempt_ms, due_ms, at_ms, waived_ms;
    const char *cls;
    int http_status;
    int64_t duration_us;
    struct bytes reason;
    size_t body_size;
};
typedef bool (*store_each_row)(void *ctx, const struct store_row_view *row);

/* The rows of one hook, by sink. */
enum status store_rows_of(struct store_reader *reader, uint64_t seq, store_each_row each, void *ctx);
/* One row; NOT_FOUND. */
enum status store_row_of(struct store_reader *reader, uint64_t seq, uint32_t sink, store_each_row each,
                         void *ctx);

/* A failed attempt. Bytes are borrowed for the call. */
struct store_attempt_view {
    uint32_t sink;
    const char *source, *sink_name;
    int64_t at_ms;
    uint32_t attempt; /* 1: the first; counted from 1 again after a replay */
    const char *cls;
    int http_status;
    int64_t duration_us;
    struct bytes reason, response; /* response absent: there was none */
};
/* The last failures of a hook's rows, by sink, oldest first. OK when there are none. */
enum status store_attempts_of(struct store_reader *reader, uint64_t seq,
                              bool (*each)(void *ctx, const struct store_attempt_view *attempt), void *ctx);

/* The rows that wait for a sink, ascending from `from_seq` until `each` says false. Their id and body_size
 * are not filled. */
enum status store_list_pending(struct store_reader *reader, uint32_t sink, uint64_t from_seq,
                               store_each_row each, void *ctx);

struct store_hook_filter {
    const char *tenant, *source; /* NULL: any */
    int64_t since_ms, until_ms;  /* received_at in [since, until); 0: open */
    struct bytes dedupe_key;     /* absent: any */
    int state;                   /* a row_state that one of its rows has, or -1 */
    uint64_t before_seq;         /* cursor: only below; 0: from the newest */
    size_t limit;
};
struct store_hook_view {
    uint64_t seq;
    struct uuid id;
    const char *tenant, *source;
    int64_t received_at_ms;
    size_t body_size;
    unsigned rows, rows_done, rows_dead; /* how many of each */
};
/* The hooks with the lowest and the highest seq that are stored; NOT_FOUND: there are none. */
struct store_end {
    uint64_t seq;
    struct uuid id;
    int64_t received_at_ms;
};
enum status store_ends(struct store_reader *reader, struct store_end *oldest, struct store_end *newest);
/* Newest first, without bodies. Looks at a bounded number of hooks a call; `next` is the cursor to go on with
 * (0: the end), even when fewer than `limit` matched. */
enum status store_list_hooks(struct store_reader *reader, const struct store_hook_filter *filter,
                             bool (*each)(void *ctx, const struct store_hook_view *hook), void *ctx,
                             uint64_t *next);

/* The dedupe key of a stored hook is free from now on: the next post with it is a hook of its own. Rides as
 * changes do. Any thread, never blocks. */
void store_forget_key(struct store *store, uint64_t seq);

struct store_dead_filter {
    const char *tenant, *source, *sink, *cls; /* NULL: any */
    const uint8_t *lane;                      /* 16 bytes, or NULL */
    uint64_t seq;                             /* of one hook; 0: any */
    int64_t since_ms, until_ms;               /* of death */
    uint64_t after_seq;                       /* cursor */
    uint32_t after_sink;
    size_t limit;
};
/* Dead letters, oldest first; `total` counts those that match (bounded count: all dead rows are indexed). */
enum status store_list_dead(struct store_reader *reader, const struct store_dead_filter *filter,
                            store_each_row each, void *ctx, uint64_t *total);
/* The same without counting: from the cursor in the filter, which moves behind what was looked at. Looks at
 * `most` dead letters at most in one read transaction, so that fewer than `limit` may come although there are
 * more: `end` tells. */
enum status store_walk_dead(struct store_reader *reader, struct store_dead_filter *filter, size_t most,
                            store_each_row each, void *ctx, bool *end);

/* All that match, whatever the cursor. */
struct store_dead_sum {
    uint64_t rows;
    uint64_t late;           /* of them: a later hook of their lane was delivered already */
    int64_t delivered_after; /* such later hooks, as far as they are still stored; -1: too many to count */
};
enum status store_sum_dead(struct store_reader *reader, const struct store_dead_filter *filter,
                           struct store_dead_sum *sum);

/* ---- the pen: hooks that failed verification ---- */

enum { STORE_PEN_REASON_MAX = 63 };

struct store_pen_filter {
    const char *tenant, *source; /* NULL: any */
    struct bytes failure;        /* the reason they are there for; absent: any */
    const struct uuid *hook;     /* NULL: any */
    int64_t since_ms, until_ms;  /* received_at in [since, until); 0: open */
    uint64_t after_id;           /* cursor */
    size_t limit;
};
/* Bytes are borrowed for the call. */
struct store_pen_view {
    uint64_t id; /* ascending in order of arrival; of the pen alone */
    struct uuid hook;
    const char *tenant, *source;
    int64_t received_at_ms;
    size_t size; /* head and body */
    struct bytes reason;
};
/* Oldest first, from the cursor in the filter, which moves behind what was looked at: a bounded number a
 * call, so that fewer than `limit` may come although there are more: `end` tells. */
enum status store_walk_pen(struct store_reader *reader, struct store_pen_filter *filter,
                           bool (*each)(void *ctx, const struct store_pen_view *entry), void *ctx, bool *end);
/* The hook as it came, with all its headers (one reference, the caller's; its seq is 0); NOT_FOUND, CORRUPT,
 * IO. */
enum status store_read_pen(struct store_reader *reader, uint64_t id, struct envelope **out);

struct store_pen_sum {
    const char *source; /* static for the store's life */
    uint64_t hooks;
    int64_t bytes;
};
/* Of every source that ever had one there; gives the sum of all. Any thread, cheap; `each` must not call
 * back.
 */
uint64_t store_pen_sums(struct store *store, void (*each)(void *ctx, const struct store_pen_sum *sum),
                        void *ctx);
/* Gone; or there for another reason (copied, cut). Both ride as changes do: any thread, never block. An id
 * that is not there is nothing. */
void store_pen_discard(struct store *store, uint64_t id);
void store_pen_reason(struct store *store, uint64_t id, const char *reason);
/* As store_erase, for one in the pen. */
enum status store_pen_erase(struct store *store, uint64_t id);

/* Removes a hook for good: its rows, failures, head and body are overwritten in the database, and the log is
 * emptied. Blocks, for as long as a sync of the whole log takes. Nobody may be delivering it any more: lanes
 * was asked before, and its changes were given to the store. UNAVAILABLE: it is not certain that it is gone;
 * BUSY: it is gone, but readers kept the log from being emptied, which goes on being tried. */
enum status store_erase(struct store *store, uint64_t seq);

/* What somebody did: a line in the audit table, which keeps the newest 100,000. Everything is copied; texts
 * are cut at a kilobyte. The time is now. */
struct store_audit {
    const char *who;             /* the name of a token, or "local" */
    const char *what;            /* "dlq.replay", "lane.skip", "hook.erase" */
    struct bytes target, reason; /* to what; in whose words: absent when not said */
    int64_t matched, done;       /* of what was done to many; -1: it was not */
};
/* Rides with the changes given before it: in the same transaction or a later one. Any thread, never blocks.
 */
void store_audit(struct store *store, const struct store_audit *audit);

struct store_audit_view {
    uint64_t id; /* ascending in time */
    int64_t at_ms;
    struct store_audit line; /* bytes are borrowed for the call */
};
struct store_audit_filter {
    struct bytes who, what;     /* absent: any */
    int64_t since_ms, until_ms; /* [since, until); 0: open */
    uint64_t before_id;         /* cursor: only below; 0: from the newest */
    size_t limit;
};
/* Newest first. */
enum status store_list_audit(struct store_reader *reader, const struct store_audit_filter *filter,
                             bool (*each)(void *ctx, const struct store_audit_view *line), void *ctx);

/* ---- replays: jobs that send stored hooks again ---- */

enum replay_state {
    REPLAY_RUNNING,
    REPLAY_PAUSED,
    REPLAY_DONE,     /* all of it was made, and delivered or given up */
    REPLAY_CANCELLED /* no more of it is made */
};
const char *replay_state_name(enum replay_state state);

/* Where the hooks of a job are: stored, and sent again; or in the pen, and let go. */
enum replay_from { REPLAY_FROM_HOOKS, REPLAY_FROM_PEN };
const char *replay_from_name(enum replay_from from);

enum { REPLAY_NAME_MAX = 64, REPLAY_WHEN_MAX = 40, REPLAY_WHY_MAX = 128, REPLAY_REASON_MAX = 1024 };

/* Texts are "" where nothing was said: any, none. */
struct store_replay {
    uint32_t number; /* 1.., ascending */
    struct uuid id;
    enum replay_from from;
    enum replay_state state;
    char why[REPLAY_WHY_MAX]; /* it is paused */
    char tenant[REPLAY_NAME_MAX + 1], source[REPLAY_NAME_MAX + 1], sink[REPLAY_NAME_MAX + 1];
    char failure[REPLAY_NAME_MAX + 1]; /* of the pen: the reason they are there for */
    int64_t since_ms, until_ms;        /* received_at in [since, until); 0: open */
    /* The two as they were said ("2h"). */
    char since_text[REPLAY_WHEN_MAX + 1], until_text[REPLAY_WHEN_MAX + 1];
    int64_t rate;       /* hooks/s */
    int64_t max_lag_ms; /* 0: none */
    /* Seqs, or ids of the pen: it looks at (first, last], and has done so up to cursor. */
    uint64_t first, cursor, last;
    uint64_t planned; /* hooks that its window held when it was looked at; 0: it was not yet */
    uint64_t hooks;   /* that it took so far */
    uint64_t gone;    /* of planned: not there any more, or unreadable, when it came to them */
    /* Of hooks from the pen: new hooks; duplicates, which left it too; and those that stay there. */
    uint64_t released, duplicates, failed;
    uint64_t made, owed;           /* rows of them that are owed (again); that were owed anyway */
    uint64_t done, dead, given_up; /* what became of those made: the last are discarded */
    uint64_t dead_run;             /* how many died since the last that was delivered */
    int64_t created_ms, changed_ms;
    char who[REPLAY_NAME_MAX + 1], reason[REPLAY_REASON_MAX + 1];
};
/* A new job, or another state, why and rate of a known one, and what `planned` and `gone` rose to (the rest
 * is the store's: nothing else changes).
 * Copied; rides as changes do. Any thread, never blocks. Of those that are over the newest thousand stay. */
void store_put_replay(struct store *store, const struct store_replay *replay);

/* One (hook, sink) to be owed again. */
struct store_replay_row {
    uint64_t seq;
    uint32_t sink;
    bool ordered; /* in `lane`, with `key` (absent: the keyless lane; borrowed until done()) */
    uint8_t lane[16];
    struct bytes key;
    /* Out, in done(): */
    bool made;    /* else it is owed anyway, or its hook is gone */
    int was;      /* its row_state before; -1: there was no such row */
    int64_t size; /* the store's */
};
/* Rows and how far the job has come, in one transaction. A dead letter keeps the lane in which it died, which
 * `lane` and `ordered` tell then. The caller's until done() was called: once, on the writer's thread or that
 * of store_close; false: it was not written and never will be. */
struct store_replay_step {
    struct list node; /* the store's */
    int kind;         /* the store's */
    uint32_t number;
    uint64_t cursor;       /* from now on */
    uint64_t hooks;        /* in this step; of the pen, those that left it were counted when they did */
    uint64_t gone, failed; /* of them */
    struct store_replay_row *rows;
    size_t count;
    void (*done)(struct store_replay_step *step, bool durable);
    void *ctx;
};
/* Any thread, never blocks; in order with changes. */
void store_step_replay(struct store *store, struct store_replay_step *step);

/* Newest first, numbers in [from, to]; `each` returns false to stop. */
enum status store_list_replays(struct store_reader *reader, uint32_t from, uint32_t to,
                               bool (*each)(void *ctx, const struct store_replay *replay), void *ctx);
/* The lanes that have rows of a job, as far as they are stored. For a start: it takes a microsecond a row. */
enum status store_replayed_lanes(struct store_reader *reader, const struct store_replay *replay,
                                 void (*each)(void *ctx, uint32_t sink, uint32_t tenant,
                                              const uint8_t lane[16]),
                                 void *ctx);
/* Rows of a job that are owed, ascending, from *from_seq on, which moves behind what was looked at: a bounded
 * number a call. `each` returns false to stop behind it, and then its seq is looked at again. `before` is
 * what the row was when the job made it (DISCARDED: there was none). */
struct store_replay_owed {
    uint64_t seq;
    uint32_t sink, tenant;
    bool ordered;
    uint8_t lane[16];
    int64_t received_at_ms;
    enum row_state before;
};
enum status store_list_replay_owed(struct store_reader *reader, const struct store_replay *replay,
                                   uint64_t *from_seq, bool *end,
                                   bool (*each)(void *ctx, const struct store_replay_owed *row), void *ctx);
/* The hooks that a job asks for, ascending, behind `*after`, which moves to where the next call goes on;
 * looks at a bounded number. `end`: there are none left. */
enum status store_walk_hooks(struct store_reader *reader, const struct store_replay *replay, uint64_t *after,
                             size_t limit, void (*each)(void *ctx, uint64_t seq), void *ctx, bool *end);

struct store_stats {
    uint64_t hooks, next_seq, dead, dedupe_keys;
    int64_t disk_bytes, free_bytes, log_bytes;
    uint64_t queued, queued_bytes;
    bool available, disk_full, backlog_full, draining, undecided;
    bool hung;    /* a transaction does not come to an end: commit_timeout_ms / 3, 100 ms at least */
    bool failing; /* the last transaction was rolled back */
    int layout;   /* of the tables */
    int64_t dead_bytes, pen_hooks, pen_bytes;        /* of all sources */
    int64_t retention_ms, max_bytes, min_free_bytes; /* as it was opened with */
    int64_t committed_ms, commit_us; /* the last commit: when (unix; 0: none yet), and how long it took */
    int64_t undecided_since_ms;      /* unix; 0: it is not */
    int64_t checkpoint_ms;           /* the last copy of the log into the database (unix; 0: none yet) */
    int64_t log_left_bytes;          /* of the log: not in the database yet */
    int64_t restored_ms;             /* from a backup (unix; 0: never), whose epoch was: */
    struct uuid restored_from;
};
/* Cheap: no scan. Any thread. */
void store_stats(struct store *store, struct store_stats *out);

#endif
