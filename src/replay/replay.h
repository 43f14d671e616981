/* Replay jobs: stored hooks are sent again, or hooks in quarantine are let go, at a pace. A job is durable:
 * what it has made and how far it is are one transaction of the store, so a killed gateway goes on where it
 * was.
 *
 * Stored hooks go to the sinks that configuration has now. On an ordered sink a job rewinds lanes (rule 9):
 * from a lane's first row of the job until its last one is done, nothing newer of that lane goes out.
 *
 * Hooks in quarantine are verified again; each that is good becomes a new hook with a new seq, and nothing is
 * rewound. Those that fail again stay.
 *
 * Order of life: replays_open (before lanes_start), replays_start (after store_start), replays_stop (before
 * lanes_stop), replays_close (after store_close). */
#ifndef REPLAY_REPLAY_H
#define REPLAY_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lanes/lanes.h"
#include "store/store.h"
#include "util/arena.h"

struct order_lane; /* order/order.h */
struct replays;

enum {
    REPLAYS_ACTIVE_MAX = 64,  /* running or paused at once */
    REPLAY_RATE_DEFAULT = 50, /* hooks/s */
    REPLAY_RATE_MAX = 100000,
    REPLAY_OUTSTANDING_MAX = 10000, /* rows made and not finished; beyond it the job waits */
    REPLAY_DEAD_RUN = 10,           /* rows that die in a row pause their job */
};

/* A hook out of the quarantine, to be verified again and committed. */
struct replay_release {
    uint64_t pen_id;
    struct envelope *envelope; /* whoever releases may change it, and keeps no reference */
    enum {
        REPLAY_RELEASE_VERIFIED, /* in a dry run */
        REPLAY_RELEASE_DONE,
        REPLAY_RELEASE_TWIN,   /* out of the quarantine, as a duplicate */
        REPLAY_RELEASE_FAILED, /* again */
        REPLAY_RELEASE_GONE,
        REPLAY_RELEASE_STOPPED, /* not now */
    } outcome;
    const char *reason; /* static: why it failed, or what stopped it */
};
enum { REPLAY_RELEASE_MAX = 100 };

struct replays_options {
    struct store *store;
    struct lanes *lanes;
    /* The configuration in force: its sinks, valid until it is let go with what hold gave. */
    void *(*hold)(void *ctx, const struct lanes_sink **sinks, size_t *count);
    void (*let_go)(void *of);
    /* The lane that it gives a stored hook at one of its sinks; memory from `arena`. Any thread. */
    void (*resolve)(void *of, const struct lanes_sink *sink, const struct envelope *envelope,
                    struct arena *arena, struct order_lane *out);
    /* At most REPLAY_RELEASE_MAX, for the job of that number; blocks until all are durable. */
    void (*release)(void *ctx, struct replay_release *releases, size_t count, uint32_t number, bool dry_run);
    void *ctx; /* of hold and release */
};

/* Finds the jobs that an earlier life has left, and rewinds their lanes. */
enum status replays_open(const struct replays_options *options, struct replays **out, struct error *err);
enum status replays_start(struct replays *replays, struct error *err);
/* Makes no more rows; those made are lanes' or the store's. NULL is fine here and below. */
void replays_stop(struct replays *replays);
void replays_close(struct replays *replays);

enum replay_answer {
    REPLAY_OK,
    REPLAY_SAME,     /* it runs already, or is paused: `replay` is that one */
    REPLAY_OVERLAPS, /* another one runs, or is paused, at one of its sinks: `replay` is that one */
    REPLAY_TOO_MANY,
    REPLAY_NO_SINK,   /* no configured sink matches */
    REPLAY_NOT_FOUND, /* none of that id */
    REPLAY_OVER,      /* it is done or cancelled */
    REPLAY_UNAVAILABLE,
};

/* What is asked for: from, tenant, source, sink, failure, since, until (and their texts), rate, max_lag_ms,
 * who, reason of `replay`; the rest is filled. The same is asked for when the filters are the same, and the
 * times as they were said: "2h" is "2h" an hour later. Durable when it says OK. Any thread. */
enum replay_answer replays_begin(struct replays *replays, struct store_replay *replay);

/* `state` RUNNING, PAUSED or CANCELLED, or -1: as it is; `rate` 0: as it is. Any thread. */
enum replay_answer replays_set(struct replays *replays, const struct uuid *id, int state, int64_t rate,
                               struct store_replay *replay);

/* Another configuration is in force, which may give keys to other lanes (`other_lanes`): plans are made
 * again. Returns when nothing is on its way that was begun under the old one, so that sinks may go; false:
 * that was not so until then (monotonic). */
bool replays_reloaded(struct replays *replays, bool other_lanes, int64_t until_ms);

/* What only memory knows of a job that is not over. */
struct replay_look {
    const char *waits;      /* static: why nothing is made now; NULL: it gets on */
    bool planned;           /* the following is known */
    uint64_t lanes;         /* that it rewinds */
    uint64_t lanes_rewound; /* now: whose newer hooks wait */
};
bool replays_look(struct replays *replays, uint32_t number, struct replay_look *out);

/* What a job of that filter would do, sink by sink; `reader` is the caller's. Gives up after `budget_ms`:
 * `complete` tells. Any thread. */
struct replay_count {
    const char *source, *sink; /* borrowed for the call */
    bool ordered;
    uint64_t rows, lanes; /* lanes: that are rewound */
};
struct replay_sum {
    uint64_t hooks;
    uint64_t verified, failed; /* from the quarantine: would be let go, would stay */
    bool complete;
};
enum status replays_count(struct replays *replays, struct store_reader *reader,
                          const struct store_replay *replay, int64_t budget_ms, struct replay_sum *sum,
                          void (*each)(void *ctx, const struct replay_count *count), void *ctx);

#endif
