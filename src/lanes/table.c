/* Where lanes live, and how one is found. They lie in slabs, so that a listing reads memory in order. The
 * table grows and shrinks by one bucket at a time (linear hashing): a million lanes never wait for one big
 * rehash. */
#include <stdlib.h>
#include <string.h>

#include "lanes/sched_priv.h"
#include "util/check.h"
#include "util/hash.h"
#include "util/mem.h"

enum { LEAST_BUCKETS = 64 };

static uint64_t hash_of(const struct flow *flow, const uint8_t id[16])
{
    uint64_t word[2];
    memcpy(word, id, sizeof word);
    return hash_u64(word[0] ^ (uint64_t)flow->sink->id << 32 ^ flow->tenant->id, word[1]);
}

static struct lane **bucket_of(const struct table *table, uint64_t hash)
{
    size_t i = hash & (table->base - 1);
    if (i < table->split)
        i = hash & (2 * table->base - 1);
    return &table->buckets[i];
}

/* ---- slabs ---- */

static struct lane *slab_take(struct sched *sched)
{
    if (sched->room.len == 0) {
        VEC_PUSH(&sched->room, (uint32_t)sched->slabs.len);
        VEC_PUSH(&sched->slabs, ((struct slab_slot){.listed = true}));
    }
    struct slab_slot *slot = &sched->slabs.at[sched->room.at[sched->room.len - 1]];
    if (!slot->slab) {
        slot->slab = mem_zalloc(sizeof *slot->slab);
    }
    struct slab *slab = slot->slab;
    struct lane *lane = slab->free;
    if (lane)
        slab->free = lane->hash_next;
    else
        lane = &slab->lanes[slab->next_unused++];
    if (++slab->used == SLAB_LANES) {
        slot->listed = false;
        sched->room.len--;
    }
    *lane = (struct lane){.used = true, .slab = (uint32_t)(slot - sched->slabs.at)};
    return lane;
}

static void slab_give(struct sched *sched, struct lane *lane)
{
    uint32_t index = lane->slab;
    struct slab_slot *slot = &sched->slabs.at[index];
    lane->used = false;
    lane->hash_next = slot->slab->free;
    slot->slab->free = lane;
    slot->slab->used--;
    if (!slot->listed) {
        slot->listed = true;
        VEC_PUSH(&sched->room, index);
    }
    if (slot->slab->used == 0 && sched->room.len > 1) {
        free(slot->slab);
        slot->slab = NULL;
    }
}

/* ---- buckets ---- */

static void grow(struct table *table)
{
    size_t target = table->base + table->split;
    if (target == table->room) {
        table->room *= 2;
        table->buckets = mem_resize(table->buckets, table->room * sizeof table->buckets[0]);
    }
    table->buckets[target] = NULL;
    struct lane *lane = table->buckets[table->split];
    table->buckets[table->split] = NULL;
    if (++table->split == table->base) {
        table->base *= 2;
        table->split = 0;
    }
    while (lane) {
        struct lane *next = lane->hash_next;
        struct lane **bucket = bucket_of(table, hash_of(lane->flow, lane->id));
        lane->hash_next = *bucket;
        *bucket = lane;
        lane = next;
    }
}

static void shrink(struct table *table)
{
    if (table->split == 0) {
        table->base /= 2;
        table->split = table->base;
    }
    table->split--;
    struct lane *lane = table->buckets[table->base + table->split];
    struct lane **bucket = &table->buckets[table->split];
    while (lane) {
        struct lane *next = lane->hash_next;
        lane->hash_next = *bucket;
        *bucket = lane;
        lane = next;
    }
    if (table->split == 0 && table->room > 4 * table->base) {
        table->room = 2 * table->base;
        table->buckets = mem_resize(table->buckets, table->room * sizeof table->buckets[0]);
    }
}

struct lane *table_find(struct sched *sched, const struct flow *flow, bool ordered, const uint8_t id[16])
{
    struct table *table = &sched->table;
    if (!table->buckets)
        return NULL;
    struct lane *lane = *bucket_of(table, hash_of(flow, id));
    while (lane &&
           !(lane->flow == flow && lane->ordered == ordered && memcmp(lane->id, id, sizeof lane->id) == 0))
        lane = lane->hash_next;
    return lane;
}

void table_prefetch(const struct sched *sched, const struct flow *flow, const uint8_t id[16], bool lane_too)
{
    const struct table *table = &sched->table;
    if (!table->buckets)
        return;
    struct lane **bucket = bucket_of(table, hash_of(flow, id));
    if (!lane_too) {
        __builtin_prefetch(bucket);
        return;
    }
    const char *lane = (const char *)*bucket;
    for (size_t line = 0; lane && line < sizeof(struct lane); line += 64)
        __builtin_prefetch(lane + line);
}

struct lane *table_add(struct sched *sched, struct flow *flow, bool ordered, const uint8_t id[16])
{
    struct table *table = &sched->table;
    if (!table->buckets) {
        table->base = table->room = LEAST_BUCKETS;
        table->buckets = mem_zalloc(table->room * sizeof table->buckets[0]);
    }
    struct lane *lane = slab_take(sched);
    lane->flow = flow;
    lane->ordered = ordered;
    memcpy(lane->id, id, sizeof lane->id);
    list_init(&lane->node);
    struct lane **bucket = bucket_of(table, hash_of(flow, id));
    lane->hash_next = *bucket;
    *bucket = lane;
    if (++table->count > table->base + table->split)
        grow(table);
    return lane;
}

void table_remove(struct sched *sched, struct lane *lane)
{
    struct table *table = &sched->table;
    struct lane **at = bucket_of(table, hash_of(lane->flow, lane->id));
    while (*at != lane)
        at = &(*at)->hash_next;
    *at = lane->hash_next;
    table->count--;
    slab_give(sched, lane);
    if (table->base + table->split > LEAST_BUCKETS && table->count < (table->base + table->split) / 2)
        shrink(table);
}

void table_free(struct sched *sched)
{
    VEC_EACH (slot, &sched->slabs)
        free(slot->slab);
    VEC_FREE(&sched->slabs);
    VEC_FREE(&sched->room);
    free(sched->table.buckets);
}
