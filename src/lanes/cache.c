/* Hot hand-over: a hook that was just committed is delivered from memory. The cache is bounded in bytes, and
 * what falls out of it is read from the store when its turn comes. */
#include <stdlib.h>
#include <string.h>

#include "lanes/lanes_priv.h"
#include "util/hash.h"
#include "util/mem.h"

enum { LEAST_BUCKETS = 256 };

void cache_open(struct cache *cache)
{
    cache->bucket_count = LEAST_BUCKETS;
    cache->buckets = mem_zalloc(cache->bucket_count * sizeof cache->buckets[0]);
    list_init(&cache->parcels);
}

static struct parcel **bucket_of(const struct cache *cache, uint64_t seq)
{
    return &cache->buckets[hash_u64(seq, 0) & (cache->bucket_count - 1)];
}

static void grow(struct cache *cache)
{
    free(cache->buckets);
    cache->bucket_count *= 2;
    cache->buckets = mem_zalloc(cache->bucket_count * sizeof cache->buckets[0]);
    LIST_EACH (node, &cache->parcels) {
        struct parcel *parcel = LIST_OWNER(node, struct parcel, node);
        struct parcel **bucket = bucket_of(cache, parcel->seq);
        parcel->hash_next = *bucket;
        *bucket = parcel;
    }
}

/* Writer's thread: everything is copied, the envelope is not taken yet. */
struct parcel *parcel_new(const struct store_hook *hook)
{
    size_t keys = 0;
    for (size_t i = 0; i < hook->row_count; i++)
        keys += hook->rows[i].key.len;
    size_t head = sizeof(struct parcel) + hook->row_count * sizeof(struct parcel_row);
    struct parcel *parcel = mem_alloc(head + keys);
    *parcel = (struct parcel){.seq = hook->envelope->seq,
                              .received_ms = hook->envelope->received_at_ms,
                              .row_count = (uint32_t)hook->row_count,
                              .rows_left = (uint32_t)hook->row_count,
                              .replay = hook->replay,
                              .alloc_size = head + keys,
                              .keys = (const char *)parcel + head};
    list_init(&parcel->node);
    char *key_at = (char *)parcel + head;
    for (size_t i = 0; i < hook->row_count; i++) {
        const struct store_row *from = &hook->rows[i];
        struct parcel_row *row = &parcel->rows[i];
        *row = (struct parcel_row){
            .place = {.sink = from->sink, .tenant = hook->tenant, .ordered = from->ordered},
            .has_key = from->ordered && from->key.at,
            .key_at = (uint32_t)(key_at - parcel->keys),
            .key_len = from->ordered ? (uint32_t)from->key.len : 0};
        if (!from->ordered)
            continue;
        memcpy(row->place.lane, from->lane, sizeof row->place.lane);
        if (from->key.len)
            memcpy(key_at, from->key.at, from->key.len);
        key_at += from->key.len;
    }
    return parcel;
}

void parcel_free(struct lanes *lanes, struct parcel *parcel)
{
    if (parcel->envelope)
        atomic_fetch_sub(&lanes->held_bytes, parcel->size);
    envelope_unref(parcel->envelope);
    free(parcel);
}

void cache_add(struct lanes *lanes, struct parcel *parcel)
{
    struct cache *cache = &lanes->cache;
    if (!parcel->envelope || parcel->rows_left == 0) {
        parcel_free(lanes, parcel);
        return;
    }
    list_append(&cache->parcels, &parcel->node);
    if (++cache->count > cache->bucket_count) {
        grow(cache);
        return;
    }
    struct parcel **bucket = bucket_of(cache, parcel->seq);
    parcel->hash_next = *bucket;
    *bucket = parcel;
}

static void drop(struct lanes *lanes, struct parcel *parcel)
{
    struct parcel **at = bucket_of(&lanes->cache, parcel->seq);
    while (*at != parcel)
        at = &(*at)->hash_next;
    *at = parcel->hash_next;
    list_remove(&parcel->node);
    lanes->cache.count--;
    parcel_free(lanes, parcel);
}

struct parcel *cache_find(struct lanes *lanes, uint64_t seq, uint32_t sink, struct parcel_row **row)
{
    struct parcel *parcel = *bucket_of(&lanes->cache, seq);
    while (parcel && parcel->seq != seq)
        parcel = parcel->hash_next;
    for (uint32_t i = 0; parcel && i < parcel->row_count; i++) {
        *row = &parcel->rows[i];
        if (parcel->rows[i].place.sink == sink && !parcel->rows[i].gone)
            return parcel;
    }
    return NULL;
}

/* A row that is tried once is not kept for its retry: what waits long must not crowd out what is fresh. */
void cache_row_done(struct lanes *lanes, struct parcel *parcel, struct parcel_row *row)
{
    row->gone = true;
    if (--parcel->rows_left == 0)
        drop(lanes, parcel);
}

/* The oldest go when they have been lying for long (a blocked lane's backlog), else the newest: those that
 * came last are needed last. */
void cache_make_room(struct lanes *lanes, size_t bytes)
{
    enum { LONG_MS = 2000 };
    struct list *parcels = &lanes->cache.parcels;
    int64_t now_ms = lanes_now().mono_ms;
    while (!list_empty(parcels) &&
           atomic_load(&lanes->held_bytes) + atomic_load(&lanes->flight_bytes) + bytes >
               atomic_load(&lanes->max_bytes)) {
        struct parcel *oldest = LIST_OWNER(parcels->next, struct parcel, node);
        bool stale = now_ms - oldest->came_ms > LONG_MS;
        drop(lanes, stale ? oldest : LIST_OWNER(parcels->prev, struct parcel, node));
    }
}

void cache_close(struct lanes *lanes)
{
    while (!list_empty(&lanes->cache.parcels))
        drop(lanes, LIST_OWNER(lanes->cache.parcels.next, struct parcel, node));
    free(lanes->cache.buckets);
}
