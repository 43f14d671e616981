/* Opening; the keys of buckets; what is worth a line in the log. */
#include "limits/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "limits/limits_priv.h"
#include "util/check.h"
#include "util/hash.h"
#include "util/mem.h"

#define NEWS_EVERY_NS (60LL * 1000000000)

bool limit_in_bounds(struct limit limit)
{
    return limit.rate >= LIMIT_RATE_MIN && limit.rate <= LIMIT_RATE_MAX && limit.burst >= 1 &&
           limit.burst <= LIMIT_BURST_MAX;
}

int64_t limit_burst_of(double rate)
{
    return rate > 1 ? (int64_t)ceil(rate) : 1;
}

const char *limit_kind_name(enum limit_kind kind)
{
    static const char *const names[] = {"tenant", "source", "address", "failed_signatures"};
    CHECK(kind < LIMIT_KINDS);
    return names[kind];
}

struct limits *limits_open(void)
{
    struct limits *limits = mem_zalloc(sizeof *limits);
    for (int kind = LIMIT_TENANT; kind <= LIMIT_SIGNATURES; kind++)
        limits->of[kind] = buckets_open();
    limits->pen = buckets_open();
    limits->known = buckets_open();
    tenants_open(&limits->tenants);
    return limits;
}

void limits_close(struct limits *limits)
{
    if (!limits)
        return;
    for (int kind = LIMIT_TENANT; kind <= LIMIT_SIGNATURES; kind++)
        buckets_close(limits->of[kind]);
    buckets_close(limits->pen);
    buckets_close(limits->known);
    tenants_close(&limits->tenants);
    free(limits);
}

int64_t limits_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

uint64_t limits_key(struct bytes name)
{
    return hash_bytes(name);
}

uint64_t limits_address_key(const struct ip *ip)
{
    uint64_t half[2];
    memcpy(half, ip->at, sizeof half);
    return ip_is_v4(ip) ? hash_u64(half[0], half[1]) : hash_u64(half[0], UINT64_MAX);
}

bool limits_news(struct limits *limits, enum limit_kind kind, int64_t now_ns, int64_t *count)
{
    struct news *news = &limits->news[kind];
    atomic_fetch_add_explicit(&news->count, 1, memory_order_relaxed);
    int64_t told_ns = atomic_load_explicit(&news->told_ns, memory_order_relaxed);
    if ((told_ns > 0 && now_ns - told_ns < NEWS_EVERY_NS) ||
        !atomic_compare_exchange_strong(&news->told_ns, &told_ns, now_ns))
        return false;
    *count = atomic_exchange_explicit(&news->count, 0, memory_order_relaxed);
    return true;
}
