#include "limits/bucket.h"

#include <math.h>

enum { NS_A_SECOND = 1000000000 };

struct pace pace_of(struct limit limit)
{
    if (limit.rate <= 0)
        return (struct pace){0, 0};
    return (struct pace){.every_ns = llround(NS_A_SECOND / limit.rate), .burst = limit.burst};
}

/* How much of the bucket is gone, in time. */
static int64_t spent_ns(int64_t full_at_ns, struct pace pace, int64_t now_ns)
{
    int64_t spent = full_at_ns - now_ns, all = pace.burst * pace.every_ns;
    return spent < 0 ? 0 : spent > all ? all : spent;
}

int64_t bucket_wait_ns(int64_t full_at_ns, struct pace pace, int64_t now_ns)
{
    int64_t over = spent_ns(full_at_ns, pace, now_ns) + pace.every_ns - pace.burst * pace.every_ns;
    return over > 0 ? over : 0;
}

int64_t bucket_take(int64_t *full_at_ns, struct pace pace, int64_t now_ns)
{
    int64_t wait_ns = bucket_wait_ns(*full_at_ns, pace, now_ns);
    if (wait_ns == 0)
        *full_at_ns = now_ns + spent_ns(*full_at_ns, pace, now_ns) + pace.every_ns;
    return wait_ns;
}

int64_t bucket_level(int64_t full_at_ns, struct pace pace, int64_t now_ns)
{
    int64_t spent = spent_ns(full_at_ns, pace, now_ns);
    return pace.burst - (spent + pace.every_ns - 1) / pace.every_ns;
}
