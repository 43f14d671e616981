#include "limits/buckets.h"

#include <pthread.h>
#include <stdlib.h>

#include "util/check.h"
#include "util/mem.h"

enum { SETS = BUCKETS_MAX / BUCKETS_WAYS, SHARDS = 64 };

struct slot {
    uint64_t key;
    int64_t full_at_ns; /* 0 of one that nobody has: full, or long forgotten */
};

struct set {
    struct slot ways[BUCKETS_WAYS];
};

struct shard {
    _Alignas(64) pthread_mutex_t lock;
};

struct buckets {
    struct set *sets;
    struct shard shards[SHARDS];
};

struct buckets *buckets_open(void)
{
    struct buckets *buckets = aligned_alloc(_Alignof(struct buckets), sizeof *buckets);
    CHECK(buckets != NULL);
    buckets->sets = mem_zalloc(SETS * sizeof *buckets->sets);
    for (int i = 0; i < SHARDS; i++)
        CHECK(pthread_mutex_init(&buckets->shards[i].lock, NULL) == 0);
    return buckets;
}

void buckets_close(struct buckets *buckets)
{
    if (!buckets)
        return;
    for (int i = 0; i < SHARDS; i++)
        pthread_mutex_destroy(&buckets->shards[i].lock);
    free(buckets->sets);
    free(buckets);
}

static struct set *lock(struct buckets *buckets, uint64_t key)
{
    size_t set = key % SETS;
    pthread_mutex_lock(&buckets->shards[set % SHARDS].lock);
    return &buckets->sets[set];
}

static void unlock(struct buckets *buckets, uint64_t key)
{
    pthread_mutex_unlock(&buckets->shards[key % SETS % SHARDS].lock);
}

static struct slot *find(struct set *set, uint64_t key)
{
    for (int i = 0; i < BUCKETS_WAYS; i++)
        if (set->ways[i].key == key)
            return &set->ways[i];
    return NULL;
}

/* The one that loses least by being forgotten. */
static struct slot *fullest(struct set *set)
{
    struct slot *slot = &set->ways[0];
    for (int i = 1; i < BUCKETS_WAYS; i++)
        if (set->ways[i].full_at_ns < slot->full_at_ns)
            slot = &set->ways[i];
    return slot;
}

int64_t buckets_take(struct buckets *buckets, uint64_t key, struct pace pace, int64_t now_ns)
{
    struct set *set = lock(buckets, key);
    struct slot *slot = find(set, key);
    if (!slot)
        slot = fullest(set);
    int64_t wait_ns = bucket_take(&slot->full_at_ns, pace, now_ns);
    if (wait_ns == 0)
        slot->key = key;
    unlock(buckets, key);
    return wait_ns;
}

static int64_t full_at(struct buckets *buckets, uint64_t key)
{
    struct set *set = lock(buckets, key);
    const struct slot *slot = find(set, key);
    int64_t at = slot ? slot->full_at_ns : 0;
    unlock(buckets, key);
    return at;
}

int64_t buckets_wait_ns(struct buckets *buckets, uint64_t key, struct pace pace, int64_t now_ns)
{
    return bucket_wait_ns(full_at(buckets, key), pace, now_ns);
}

int64_t buckets_level(struct buckets *buckets, uint64_t key, struct pace pace, int64_t now_ns)
{
    return bucket_level(full_at(buckets, key), pace, now_ns);
}

void buckets_give_back(struct buckets *buckets, uint64_t key, int64_t every_ns)
{
    struct set *set = lock(buckets, key);
    struct slot *slot = find(set, key);
    if (slot)
        slot->full_at_ns -= every_ns;
    unlock(buckets, key);
}

int64_t buckets_known_until(struct buckets *buckets, uint64_t key)
{
    return full_at(buckets, key);
}

void buckets_know(struct buckets *buckets, uint64_t key, int64_t until_ns)
{
    struct set *set = lock(buckets, key);
    struct slot *slot = find(set, key);
    if (!slot)
        slot = fullest(set);
    *slot = (struct slot){key, until_ns};
    unlock(buckets, key);
}
