/* What configuration says about scheduling, per sink. Values only. */
#ifndef LANES_POLICY_H
#define LANES_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct retry_policy {
    int64_t base_ms, max_ms;
    int64_t give_up_after_ms; /* since the first attempt; 0: never */
    uint32_t max_attempts;    /* 0: no limit */
    bool jitter;
    const int64_t *schedule_ms; /* explicit list, the last entry repeats; NULL: backoff. Borrowed */
    size_t schedule_count;
};

struct breaker_policy {
    uint32_t failures; /* of different lanes in a row, without an ok between */
    int64_t open_ms, max_open_ms;
};

enum on_dead { ON_DEAD_SKIP, ON_DEAD_HOLD };

struct sched_policy {
    unsigned concurrency;
    double rate; /* deliveries a second; 0: no limit */
    struct retry_policy retry;
    struct breaker_policy breaker;
    enum on_dead on_refused, on_exhausted; /* of ordered sinks; unordered rows just leave */
};

#endif
