/* Who is next? The scheduler of deliveries: lanes with one attempt in flight each, retries, fairness,
 * breakers. The rules live in sched.h (pure: no clock, no thread, no I/O); this header is the thread around
 * it, which talks to the store on one side and to deliver on the other. */
#ifndef LANES_LANES_H
#define LANES_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "deliver/deliver.h"
#include "lanes/policy.h"
#include "lanes/view.h"
#include "metrics/metrics.h"
#include "store/store.h"
#include "util/status.h"

struct lanes_sink {
    uint32_t id;               /* store_sink_id */
    const char *source, *name; /* borrowed until lanes_close: the store's own texts (store_sink_name) are */
    bool ordered;
    struct sink *sink; /* open; lanes takes a reference of its own, which keeps what the policy points to */
    struct sched_policy policy;
    int64_t dead_retention_ms; /* dead letters older than that are discarded; 0: never */
    bool moved;                /* lanes_reload: hooks go another way now, so what waits is tried at once */
};

struct events;

struct lanes_options {
    struct store *store;
    struct deliver *deliver;
    const struct lanes_sink *sinks; /* copied (names borrowed) */
    size_t sink_count;
    unsigned concurrency;      /* attempts running, all sinks */
    size_t max_inflight_bytes; /* envelopes in flight and waiting in memory */
    size_t max_pending_bytes;  /* the scheduler's own memory: beyond it the store says BACKLOG_FULL */
    int64_t attempt_timeout_ms;
    struct metrics *metrics; /* may be NULL, as may: */
    struct events *events;   /* attempts, deliveries, deaths, lanes that block */
};

struct lanes;

enum status lanes_open(const struct lanes_options *options, struct lanes **out, struct error *err);
/* Rebuilds from store_scan (before store_start), then starts the thread. */
enum status lanes_start(struct lanes *lanes, struct error *err);
/* store_options.committed, with ctx = lanes. */
void lanes_committed(void *ctx, struct store_hook *const *hooks, size_t count);
/* Starts no attempt any more. Then deliver_stop brings the last outcomes, then lanes_stop writes them and
 * joins. */
void lanes_quiesce(struct lanes *lanes);
/* Attempts running now. */
size_t lanes_inflight(struct lanes *lanes);
void lanes_stop(struct lanes *lanes);
void lanes_close(struct lanes *lanes);

/* ---- another configuration ---- */

/* Other sinks, policies and bounds; `options` as for lanes_open (of which the rooms stay what they are). A
 * sink that is there already keeps its rows, and what is known of them; its attempts under way end at the old
 * transport, the next one goes to the new. A sink that is missing leaves: it delivers what it is owed as it
 * did, until lanes_let_go. Before any row is made for a new sink. DONE, BUSY, DRAINING; not on the lanes
 * thread; one at a time. */
enum lanes_answer lanes_reload(struct lanes *lanes, const struct lanes_options *options);

/* A sink that is given up: what it is owed becomes dead letters of that class (a static text). */
struct lanes_gone {
    uint32_t sink;
    const char *cls;
};
/* Rows for sinks that left are made no more. Those of `gone` are given up, in slices; each that left is gone
 * when nothing is owed to it. DONE, BUSY, DRAINING. */
enum lanes_answer lanes_let_go(struct lanes *lanes, const struct lanes_gone *gone, size_t count);

enum lane_sort { LANE_SORT_AGE, LANE_SORT_DEPTH };

struct lane_filter {
    int64_t tenant, sink;     /* ids; -1: any. Several sinks of one source: sink_ids below */
    const uint32_t *sink_ids; /* NULL: any */
    size_t sink_id_count;
    const uint8_t *lane; /* NULL: any */
    int state;           /* -1: any */
    enum lane_sort sort; /* age: oldest head first; depth: deepest first */
    size_t offset, limit;
};

/* From a snapshot at most a second old. Fills up to `limit` views; gives how many, and the total that match.
 * Any thread but lanes' own; may wait for the scheduler for some milliseconds. */
size_t lanes_list(struct lanes *lanes, const struct lane_filter *filter, struct lane_view *out,
                  uint64_t *total);

struct lanes_sink_view {
    uint32_t id;
    uint64_t pending, running, lanes, retrying, held, dead;
    enum breaker_state breaker;
    struct breaker_record record;
    struct pause_record pause;
    bool parked;
    int64_t oldest_ms;        /* unix: oldest pending was received; 0: none */
    int64_t blocked_since_ms; /* unix: first failed attempt of the oldest failing head; 0: none */
    uint64_t rows_behind_blocked, lane_depth_max;
    char last_error[128];
};
/* Every sink that is configured, or is leaving and owed something; those of lanes_open first, in its order.
 * Gives how many, which may be more than `max`: so many are filled. Any thread; cheap, and some milliseconds
 * old. */
size_t lanes_sinks(struct lanes *lanes, struct lanes_sink_view *out, size_t max);
/* One of them; false when it is not there. */
bool lanes_sink_look(struct lanes *lanes, uint32_t sink, struct lanes_sink_view *out);
/* The views show all that is known now. DONE, BUSY, DRAINING. */
enum lanes_answer lanes_refresh(struct lanes *lanes);

/* ---- acts of operators ----
 *
 * Any thread but lanes' own; each waits for the scheduler, as a rule for less than a millisecond. What they
 * change of rows is with the store when they return: after store_flush it is durable, and readers see it. */

#define LANES_ANSWERS(X)                                                                                     \
    X(DONE, "done")                                                                                          \
    X(NOT_FOUND, "not_found")       /* no such lane, sink or row here */                                     \
    X(HEAD_CHANGED, "head_changed") /* `expect_head` is another one by now */                                \
    X(IN_FLIGHT, "in_flight")       /* its attempt runs */                                                   \
    X(NOTHING, "nothing")           /* it is so already */                                                   \
    X(FULL, "too_many_paused")      /* lanes of which nothing is known are paused up to a bound */           \
    X(BUSY, "busy")                 /* not reached in time: nothing was done, nor will be */                 \
    X(DRAINING, "draining")         /* the process goes down: nothing was done */

enum lanes_answer {
#define LANES_ANSWER_ENUM(id, name) LANES_##id,
    LANES_ANSWERS(LANES_ANSWER_ENUM)
#undef LANES_ANSWER_ENUM
};
const char *lanes_answer_name(enum lanes_answer answer);

enum {
    LANES_ACT_TIMEOUT_MS = 5000, /* before an act says BUSY */
    LANES_ROWS_MAX = 1000,       /* rows in one call */
};

/* The address of a lane. Its id says the sink already: LANES_SINK_ANY finds it, if anything is known of it.
 * Who names the sink can pause a lane that has had no hook yet. */
enum { LANES_SINK_ANY = UINT32_MAX };
struct lanes_lane {
    uint32_t sink, tenant;
    uint8_t lane[16];
};

enum lanes_lane_act {
    LANES_LANE_PAUSE, /* starts nothing more, until resumed */
    LANES_LANE_RESUME,
    LANES_LANE_RETRY, /* the head is due now; a held one with a fresh budget */
    LANES_LANE_SKIP,  /* the head becomes a dead letter (class "skipped"), the next one goes */
};
/* `expect_head`: the seq that the head must still have, for RETRY and SKIP; 0: any. */
enum lanes_answer lanes_lane_act(struct lanes *lanes, const struct lanes_lane *lane, enum lanes_lane_act act,
                                 uint64_t expect_head);
/* The lane as it is now, and the seqs of its next rows (at most `most`). */
enum lanes_answer lanes_lane_look(struct lanes *lanes, const struct lanes_lane *lane, struct lane_view *view,
                                  uint64_t *seqs, size_t most, size_t *count);

enum lanes_sink_act {
    LANES_SINK_PAUSE, /* for `for_ms`; 0: until resumed */
    LANES_SINK_RESUME,
    LANES_SINK_RETRY, /* closes the breaker, ends the parking, makes all heads due */
};
enum lanes_answer lanes_sink_act(struct lanes *lanes, uint32_t sink, enum lanes_sink_act act, int64_t for_ms);

/* A row as the store has it: `state` must be what a reader found after a store_flush, with no other act on
 * that row in between. */
struct lanes_row {
    uint64_t seq;
    uint32_t sink, tenant;
    enum row_state state;
    bool ordered, late;
    uint8_t lane[16];
    int64_t received_ms;
    uint32_t replay; /* lanes_withdraw: its job */
};
/* Dead letters (DEAD and HELD) are owed again, each with a fresh budget and its old seq; NOTHING for one that
 * is owed already. One answer a row in `answers`, which count only when the call says DONE. */
enum lanes_answer lanes_replay(struct lanes *lanes, const struct lanes_row *rows, size_t count,
                               enum lanes_answer *answers);
/* Given up for good (state DISCARDED): dead letters, held ones, and rows that still wait. */
enum lanes_answer lanes_discard(struct lanes *lanes, const struct lanes_row *rows, size_t count,
                                enum lanes_answer *answers);

/* Waiting rows of a sink move to other lanes (or out of them), keeping their seqs. The caller pauses the sink
 * first, so that no order is lost between two calls, and resumes it after store_flush: a row that starts is
 * read back with its new key. IN_FLIGHT while attempts of the sink run: then nothing was moved. `key` is
 * borrowed for the call. */
struct lanes_move {
    uint64_t seq;
    uint32_t tenant;
    bool from_ordered, to_ordered;
    uint8_t from[16], to[16];
    struct bytes key; /* of the new lane; absent: the keyless one */
};
enum lanes_answer lanes_rekey(struct lanes *lanes, uint32_t sink, const struct lanes_move *moves,
                              size_t count, enum lanes_answer *answers);

/* All rows of one hook that are not done, at once: given up for good, and nothing of them stays in memory. Or
 * none is: IN_FLIGHT when an attempt of one runs, NOTHING when one is in another state by now (read again).
 */
enum lanes_answer lanes_erase(struct lanes *lanes, const struct lanes_row *rows, size_t count);

/* ---- replay jobs (rule 9) ---- */

enum { LANES_REPLAY_MAX = LANES_ROWS_MAX }; /* rows of a job, and lanes it rewinds, in one call */

/* The id that goes out with the rows of a job. Any thread; before lanes_start for all that may have rows. */
void lanes_replay_known(struct lanes *lanes, uint32_t number, const struct uuid *id);

/* Rows above `frontier` of the lane wait until it is moved on; UINT64_MAX lets them go. */
struct lanes_rewind {
    struct lanes_lane lane;
    uint64_t frontier;
};
/* What an earlier life has rewound; before lanes_start. */
void lanes_rewind_restore(struct lanes *lanes, const struct lanes_rewind *rewind);
/* Rows of a job that are owed in the store from now on (`state` is what they were, DONE for those that are
 * new), and lanes whose frontier moves, at one moment: nothing starts in between. What was made is never
 * lost: a row that is owed already becomes the job's. */
enum lanes_answer lanes_replay_stored(struct lanes *lanes, uint32_t number, const struct lanes_row *rows,
                                      size_t row_count, const struct lanes_rewind *rewinds,
                                      size_t rewind_count);

/* Rows of a job (`replay`) are owed no more, where they still wait: `state` is what they were before it made
 * them. Dead letters are that again, all others are given up. One answer a row, IN_FLIGHT for one that runs.
 */
enum lanes_answer lanes_withdraw(struct lanes *lanes, const struct lanes_row *rows, size_t count,
                                 enum lanes_answer *answers);

/* False when a runnable head has not moved for 30 s although a slot was free: for /ready and the watchdog. */
bool lanes_progress(struct lanes *lanes);

#endif
