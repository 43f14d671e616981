/* Dedupe keys in memory. A B-tree of them would write a page for each hook, at a random place: eight times
 * the bytes of the hook. Here a key is eight bytes in a hash table, and what makes it durable is a row at the
 * end of a table, in the transaction of its hook (claim.c), from which this is made again at start.
 *
 *      runs    [ oldest ]  [ ... ]  [ newest: takes what comes ]
 *                   |
 *                   +- places, open addressing: 32 bits of the hash, 32 bits of seq - base
 *
 * A run takes as many claims as were in the one before and as many again, so that no table is ever made anew.
 * Its claims expire at about the same time; it goes as a whole, and costs nothing until then. Equal tags are
 * a guess: whoever asks looks at the row. */
#include "store/store_priv.h"
#include "util/mem.h"

enum { OFFSET_GONE = UINT32_MAX }; /* removed: what was behind it is still found */
#define OFFSET_MAX (OFFSET_GONE - 1)
/* A claim that expires that much later than the first of a run begins another one. */
#define RUN_SPAN_MS (24 * 60 * 60 * 1000LL)

struct probe {
    uint64_t where;
    uint32_t tag;
};

static struct probe probe_of(const uint8_t claim[CLAIM_SIZE])
{
    struct probe probe;
    memcpy(&probe.where, claim, sizeof probe.where);
    memcpy(&probe.tag, claim + sizeof probe.where, sizeof probe.tag);
    return probe;
}

static uint32_t home_of(const struct claim_run *run, struct probe probe)
{
    return (uint32_t)((probe.where >> 32) * run->places >> 32);
}

static uint32_t after(const struct claim_run *run, uint32_t at)
{
    return at + 1 == run->places ? 0 : at + 1;
}

static struct claim_run *begin_run(struct claim_index *index, uint64_t seq, int64_t expires_ms)
{
    uint32_t size = CLAIM_RUN_MIN;
    if (index->runs.len > 0)
        size = index->runs.at[index->runs.len - 1].used * 2;
    size = size < CLAIM_RUN_MIN ? CLAIM_RUN_MIN : size > CLAIM_RUN_MAX ? CLAIM_RUN_MAX : size;
    struct claim_run *run = VEC_ADD(&index->runs);
    *run = (struct claim_run){.base = seq, .first_ms = expires_ms, .size = size, .places = size / 3 * 4 + 4};
    run->slots = mem_zalloc(run->places * sizeof *run->slots);
    return run;
}

void claim_index_add(struct claim_index *index, const uint8_t claim[CLAIM_SIZE], uint64_t seq,
                     int64_t expires_ms)
{
    struct claim_run *run = index->runs.len > 0 ? &index->runs.at[index->runs.len - 1] : NULL;
    if (!run || run->used == run->size || seq - run->base + 1 > OFFSET_MAX ||
        expires_ms - run->first_ms > RUN_SPAN_MS)
        run = begin_run(index, seq, expires_ms);
    struct probe probe = probe_of(claim);
    uint32_t at = home_of(run, probe);
    while (run->slots[at].offset != 0)
        at = after(run, at);
    run->slots[at] = (struct claim_slot){.tag = probe.tag, .offset = (uint32_t)(seq - run->base + 1)};
    run->last = seq;
    run->used++;
    run->until_ms = expires_ms > run->until_ms ? expires_ms : run->until_ms;
    index->count++;
}

bool claim_index_find(const struct claim_index *index, const uint8_t claim[CLAIM_SIZE],
                      bool (*is_it)(void *ctx, uint64_t seq), void *ctx)
{
    struct probe probe = probe_of(claim);
    for (size_t i = index->runs.len; i-- > 0;) {
        const struct claim_run *run = &index->runs.at[i];
        for (uint32_t at = home_of(run, probe); run->slots[at].offset != 0; at = after(run, at)) {
            const struct claim_slot *slot = &run->slots[at];
            if (slot->tag == probe.tag && slot->offset != (uint32_t)OFFSET_GONE &&
                is_it(ctx, run->base + slot->offset - 1))
                return true;
        }
    }
    return false;
}

void claim_index_remove(struct claim_index *index, const uint8_t claim[CLAIM_SIZE], uint64_t seq)
{
    struct probe probe = probe_of(claim);
    VEC_EACH (run, &index->runs) {
        if (seq < run->base || seq > run->last)
            continue;
        uint32_t at = home_of(run, probe), offset = (uint32_t)(seq - run->base + 1);
        while (run->slots[at].offset != 0 && run->slots[at].offset != offset)
            at = after(run, at);
        if (run->slots[at].offset == offset)
            run->slots[at].offset = (uint32_t)OFFSET_GONE;
        return;
    }
}

/* It still counts for its run, which is as full as it was. */
static size_t drop_oldest(struct claim_index *index)
{
    size_t used = index->runs.at[0].used;
    free(index->runs.at[0].slots);
    index->runs.len--;
    memmove(index->runs.at, index->runs.at + 1, index->runs.len * sizeof *index->runs.at);
    index->count -= used;
    return used;
}

size_t claim_index_expire(struct claim_index *index, int64_t now_ms, size_t max)
{
    size_t early = 0;
    while (index->runs.len > 0 && index->runs.at[0].until_ms <= now_ms)
        drop_oldest(index);
    while (index->runs.len > 1 && index->count > max)
        early += drop_oldest(index);
    return early;
}

int64_t claim_index_due_ms(const struct claim_index *index)
{
    return index->runs.len > 0 ? index->runs.at[0].until_ms : INT64_MAX;
}

uint64_t claim_index_floor(const struct claim_index *index)
{
    return index->runs.len > 0 ? index->runs.at[0].base : UINT64_MAX;
}

void claim_index_free(struct claim_index *index)
{
    VEC_EACH (run, &index->runs)
        free(run->slots);
    VEC_FREE(&index->runs);
}
