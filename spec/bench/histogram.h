/* Latencies in microseconds, counted in buckets that are at most 1/64 of their value wide: quantiles without
 * keeping samples. One thread. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_SUB = 64, HISTOGRAM_BUCKETS = 32 * HISTOGRAM_SUB };

struct histogram {
    uint64_t count;
    int64_t max_us;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

static inline unsigned histogram_bucket(uint64_t us)
{
    if (us < HISTOGRAM_SUB)
        return (unsigned)us;
    unsigned power = 63 - (unsigned)__builtin_clzll(us); /* at least 6 */
    unsigned bucket = (power - 5) * HISTOGRAM_SUB + (unsigned)((us >> (power - 6)) % HISTOGRAM_SUB);
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

static inline void histogram_add(struct histogram *histogram, int64_t us)
{
    us = us > 0 ? us : 0;
    histogram->count++;
    histogram->max_us = us > histogram->max_us ? us : histogram->max_us;
    histogram->buckets[histogram_bucket((uint64_t)us)]++;
}

/* The upper end of the bucket that holds this share (0 to 1) of what was counted; never above the greatest.
 */
static inline int64_t histogram_at(const struct histogram *histogram, double share)
{
    uint64_t wanted = (uint64_t)(share * (double)histogram->count), seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen <= wanted)
            continue;
        unsigned power = i / HISTOGRAM_SUB;
        int64_t end = power == 0 ? i : (int64_t)(HISTOGRAM_SUB + i % HISTOGRAM_SUB + 1) << (power - 1);
        return end < histogram->max_us ? end : histogram->max_us;
    }
    return histogram->max_us;
}

#endif
