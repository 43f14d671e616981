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
    uint32_t id; /* store_sink_id */
    const char *source, *name;
    bool ordered;
    struct sink *sink; /* open; owned by the caller, outlives lanes */
    struct sched_policy policy;
};

struct lanes_options {
    struct store *store;
    struct deliver *deliver;
    const struct lanes_sink *sinks; /* copied (names borrowed) */
    size_t sink_count;
    unsigned concurrency;      /* attempts running, all sinks */
    size_t max_inflight_bytes; /* envelopes in flight and waiting in memory */
    size_t max_pending_bytes;  /* the scheduler's own memory: beyond it the store says BACKLOG_FULL */
    int64_t attempt_timeout_ms;
    struct metrics *metrics; /* may be NULL */
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
    bool paused, parked;
    int64_t oldest_ms;        /* unix: oldest pending was received; 0: none */
    int64_t blocked_since_ms; /* unix: first failed attempt of the oldest failing head; 0: none */
    uint64_t rows_behind_blocked, lane_depth_max;
    char last_error[128];
};
/* One entry per configured sink, in the order of lanes_options. Any thread; cheap. */
size_t lanes_sinks(struct lanes *lanes, struct lanes_sink_view *out, size_t max);

/* False when a runnable head has not moved for 30 s although a slot was free: for /ready and the watchdog. */
bool lanes_progress(struct lanes *lanes);

#endif
