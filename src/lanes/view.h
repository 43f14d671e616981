/* Lanes and sinks as people see them, and what of their state survives a restart. */
#ifndef LANES_VIEW_H
#define LANES_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LANE_STATES(X)                                                                                       \
    X(READY, "ready")                                                                                        \
    X(RUNNING, "running")                                                                                    \
    X(RETRYING, "retrying")                                                                                  \
    X(HELD, "held")                                                                                          \
    X(PAUSED, "paused")                                                                                      \
    X(PARKED, "parked")                                                                                      \
    X(BREAKER_OPEN, "breaker_open")

enum lane_state {
#define LANE_STATE_ENUM(id, name) LANE_STATE_##id,
    LANE_STATES(LANE_STATE_ENUM)
#undef LANE_STATE_ENUM
        LANE_STATE_COUNT
};
const char *lane_state_name(enum lane_state state);

/* Why a row was given up on, as the store keeps it. */
#define DEAD_CLASSES(X)                                                                                      \
    X("refused")    /* the receiver has decided */                                                           \
    X("exhausted")  /* its time or its attempts are over */                                                  \
    X("skipped")    /* by a person */                                                                        \
    X("unreadable") /* its stored bytes do not decode */                                                     \
    X("withdrawn")  /* dead before; a replay had tried it again, and was cancelled */                        \
    X("sink_gone")  /* retired with what it was owed */                                                      \
    X("source_gone")
bool dead_class_known(const char *text, size_t len);

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_HALF_OPEN };
enum breaker_cause { BREAKER_BY_FAILURES, BREAKER_BY_REFUSALS, BREAKER_BY_CONFIG /* parked */ };
const char *breaker_cause_name(enum breaker_cause cause); /* "failures" "refused_storm" "config" */

/* What survives a restart of an open breaker. */
struct breaker_record {
    enum breaker_cause cause;
    uint32_t opens;      /* in a row; 0: closed */
    int64_t since_ms;    /* unix: not closed since */
    int64_t probe_at_ms; /* unix */
};
/* What survives a restart of a pause, of a sink or of a lane. */
struct pause_record {
    bool paused;
    int64_t since_ms, until_ms; /* unix; until 0: until resumed */
};

/* One lane as a list shows it. The key, the head's id and its last error are in the store:
 * store_row_of(head_seq). */
struct lane_view {
    uint32_t tenant, sink; /* the store's ids */
    uint8_t lane[16];
    enum lane_state state;
    uint64_t depth;    /* unfinished rows */
    int64_t oldest_ms; /* unix: the head was received */
    uint64_t head_seq;
    uint32_t head_attempts;
    int64_t head_due_ms;      /* unix */
    int64_t blocked_since_ms; /* unix: first attempt of a head that failed; 0: it did not */
    int64_t paused_since_ms;  /* unix; 0: the lane itself is not paused */
};

#endif
