/* A token bucket in one number: the moment at which it is full again if nobody takes anything (the "virtual
 * scheduling" form of the generic cell rate algorithm, ITU-T I.371). Nothing has to be filled up, so nothing
 * drifts; how long to wait falls out exactly; and a bucket that is full is the same as none at all, which is
 * what lets buckets.h forget. Pure: the caller holds the lock and has the clock. */
#ifndef LIMITS_BUCKET_H
#define LIMITS_BUCKET_H

#include <stdint.h>

#include "limits/limits.h"

/* A limit in whole nanoseconds a hook: exact to 0.05 % at the highest rate, better below. */
struct pace {
    int64_t every_ns; /* 0: no limit */
    int64_t burst;
};
struct pace pace_of(struct limit limit);

/* Takes one: 0. Or changes nothing, and says after how many nanoseconds there is one. A limit that was
 * lowered leaves a bucket empty at most, never with a debt. */
int64_t bucket_take(int64_t *full_at_ns, struct pace pace, int64_t now_ns);
/* The same, of a bucket that is only looked at. */
int64_t bucket_wait_ns(int64_t full_at_ns, struct pace pace, int64_t now_ns);
/* How many could be taken now. */
int64_t bucket_level(int64_t full_at_ns, struct pace pace, int64_t now_ns);

#endif
