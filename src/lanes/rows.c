/* Rows come in at the end and leave at the front; both are cheap. What comes in the middle (a replayed dead
 * letter, a rewind) finds its chunk by a walk. A chunk keeps a base, its rows keep their distance from it: a
 * base lies half the range below the first row, so that lower ones fit too. */
#include "lanes/rows.h"

#include <stdlib.h>
#include <string.h>

#include "util/check.h"
#include "util/mem.h"

enum { CHUNK_LEAST = 4, CHUNK_MOST = 512, ALLOCATOR_COST = 8 };

struct row {
    uint32_t seq;
    int32_t received;
};

struct rows_chunk {
    struct rows_chunk *next;
    uint64_t base_seq;
    int64_t base_received_ms;
    uint16_t begin, end, size; /* rows are at[begin..end) */
    struct row at[];
};

static size_t chunk_cost(unsigned size)
{
    return sizeof(struct rows_chunk) + size * sizeof(struct row) + ALLOCATOR_COST;
}

static uint64_t seq_at(const struct rows_chunk *chunk, unsigned i)
{
    return chunk->base_seq + chunk->at[i].seq;
}

static uint64_t lowest(const struct rows_chunk *chunk)
{
    return seq_at(chunk, chunk->begin);
}

static uint64_t highest(const struct rows_chunk *chunk)
{
    return seq_at(chunk, chunk->end - 1u);
}

static bool fits(const struct rows_chunk *chunk, uint64_t seq, int64_t received_ms)
{
    int64_t age = received_ms - chunk->base_received_ms;
    return seq >= chunk->base_seq && seq - chunk->base_seq <= UINT32_MAX && age >= INT32_MIN &&
           age <= INT32_MAX;
}

/* First index in [begin, end] whose seq is not below `seq`. */
static unsigned lower_bound(const struct rows_chunk *chunk, uint64_t seq)
{
    unsigned low = chunk->begin, high = chunk->end;
    while (low < high) {
        unsigned mid = (low + high) / 2;
        if (seq_at(chunk, mid) < seq)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct rows_chunk *chunk_new(unsigned size, uint64_t seq, int64_t received_ms, size_t *bytes)
{
    struct rows_chunk *chunk = mem_alloc(sizeof *chunk + size * sizeof chunk->at[0]);
    chunk->next = chunk;
    chunk->base_seq = seq > INT32_MAX ? seq - INT32_MAX : 0;
    chunk->base_received_ms = received_ms;
    chunk->begin = chunk->end = 0;
    chunk->size = (uint16_t)size;
    *bytes += chunk_cost(size);
    return chunk;
}

static void chunk_free(struct rows_chunk *chunk, size_t *bytes)
{
    *bytes -= chunk_cost(chunk->size);
    free(chunk);
}

/* The chunk before `chunk` in the ring. */
static struct rows_chunk *chunk_before(const struct rows *rows, const struct rows_chunk *chunk)
{
    struct rows_chunk *at = rows->last;
    while (at->next != chunk)
        at = at->next;
    return at;
}

static void link_after(struct rows *rows, struct rows_chunk *at, struct rows_chunk *chunk, bool is_last)
{
    if (at) {
        chunk->next = at->next;
        at->next = chunk;
    }
    if (is_last)
        rows->last = chunk;
}

static void unlink_after(struct rows *rows, struct rows_chunk *before, size_t *bytes)
{
    struct rows_chunk *chunk = before->next;
    before->next = chunk->next;
    if (rows->last == chunk)
        rows->last = before == chunk ? NULL : before;
    chunk_free(chunk, bytes);
}

/* Twice the size; `before` is the chunk in front of it in the ring (itself when alone). */
static struct rows_chunk *chunk_grow(struct rows *rows, struct rows_chunk *before, size_t *bytes)
{
    struct rows_chunk *chunk = before->next;
    bool alone = before == chunk, is_last = rows->last == chunk;
    unsigned size = chunk->size * 2u;
    *bytes += chunk_cost(size) - chunk_cost(chunk->size);
    chunk = mem_resize(chunk, sizeof *chunk + size * sizeof chunk->at[0]);
    chunk->size = (uint16_t)size;
    if (alone)
        chunk->next = chunk;
    else
        before->next = chunk;
    if (is_last)
        rows->last = chunk;
    return chunk;
}

/* A full chunk gives its upper half to a new one behind it. */
static void chunk_split(struct rows *rows, struct rows_chunk *chunk, size_t *bytes)
{
    struct rows_chunk *upper = chunk_new(chunk->size, 0, 0, bytes);
    upper->base_seq = chunk->base_seq;
    upper->base_received_ms = chunk->base_received_ms;
    unsigned mid = (chunk->begin + chunk->end) / 2u;
    upper->end = (uint16_t)(chunk->end - mid);
    memcpy(upper->at, chunk->at + mid, upper->end * sizeof upper->at[0]);
    chunk->end = (uint16_t)mid;
    link_after(rows, chunk, upper, rows->last == chunk);
}

/* Makes room at `i` in a chunk that has some, and says where that is afterwards. */
static unsigned open_gap(struct rows_chunk *chunk, unsigned i)
{
    if (chunk->begin > 0 && (chunk->end == chunk->size || i - chunk->begin < chunk->end - i)) {
        memmove(chunk->at + chunk->begin - 1, chunk->at + chunk->begin,
                (i - chunk->begin) * sizeof chunk->at[0]);
        chunk->begin--;
        return i - 1;
    }
    memmove(chunk->at + i + 1, chunk->at + i, (chunk->end - i) * sizeof chunk->at[0]);
    chunk->end++;
    return i;
}

static void chunk_put(struct rows *rows, struct rows_chunk *chunk, uint64_t seq, int64_t received_ms,
                      size_t *bytes)
{
    bool full = chunk->begin == 0 && chunk->end == chunk->size;
    if (full && chunk->size < CHUNK_MOST) {
        chunk = chunk_grow(rows, chunk_before(rows, chunk), bytes);
    } else if (full) {
        chunk_split(rows, chunk, bytes);
        if (seq > highest(chunk))
            chunk = chunk->next;
    }
    unsigned i = open_gap(chunk, lower_bound(chunk, seq));
    chunk->at[i] = (struct row){.seq = (uint32_t)(seq - chunk->base_seq),
                                .received = (int32_t)(received_ms - chunk->base_received_ms)};
}

/* Into the chunks; `seq` is not in them. */
static void insert(struct rows *rows, uint64_t seq, int64_t received_ms, size_t *bytes)
{
    struct rows_chunk *last = rows->last;
    if (!last || seq > highest(last)) {
        bool full = last && last->begin == 0 && last->end == CHUNK_MOST;
        if (last && !full && fits(last, seq, received_ms)) {
            chunk_put(rows, last, seq, received_ms, bytes);
            return;
        }
        struct rows_chunk *chunk = chunk_new(CHUNK_LEAST, seq, received_ms, bytes);
        link_after(rows, last, chunk, true);
        chunk_put(rows, chunk, seq, received_ms, bytes);
        return;
    }
    struct rows_chunk *before = last;
    while (highest(before->next) < seq)
        before = before->next;
    if (fits(before->next, seq, received_ms)) {
        chunk_put(rows, before->next, seq, received_ms, bytes);
        return;
    }
    struct rows_chunk *at = before->next;
    if (seq > lowest(at)) { /* received at another age: it stands alone between two halves */
        chunk_split(rows, at, bytes);
        unsigned i = lower_bound(at, seq);
        struct rows_chunk *upper = at->next;
        if (i == at->end && lowest(upper) < seq) {
            before = at;
            at = upper;
            i = lower_bound(at, seq);
        }
        if (i > at->begin && i < at->end) { /* cut exactly there */
            struct rows_chunk *rest = chunk_new(at->size, 0, 0, bytes);
            rest->base_seq = at->base_seq;
            rest->base_received_ms = at->base_received_ms;
            rest->end = (uint16_t)(at->end - i);
            memcpy(rest->at, at->at + i, rest->end * sizeof rest->at[0]);
            at->end = (uint16_t)i;
            link_after(rows, at, rest, rows->last == at);
        }
        if (lowest(at) < seq)
            before = at;
    }
    struct rows_chunk *chunk = chunk_new(CHUNK_LEAST, seq, received_ms, bytes);
    link_after(rows, before, chunk, false);
    chunk_put(rows, chunk, seq, received_ms, bytes);
}

/* The lowest row of the chunks becomes the first. */
static void refill(struct rows *rows, size_t *bytes)
{
    if (!rows->last) {
        rows->first = 0;
        rows->received_ms = 0;
        return;
    }
    struct rows_chunk *chunk = rows->last->next;
    rows->first = lowest(chunk);
    rows->received_ms = chunk->base_received_ms + chunk->at[chunk->begin].received;
    if (++chunk->begin == chunk->end)
        unlink_after(rows, rows->last, bytes);
}

bool rows_add(struct rows *rows, uint64_t seq, int64_t received_ms, size_t *bytes)
{
    CHECK(seq != 0);
    if (rows->count == 0) {
        rows->first = seq;
        rows->received_ms = received_ms;
    } else if (seq < rows->first) {
        insert(rows, rows->first, rows->received_ms, bytes);
        rows->first = seq;
        rows->received_ms = received_ms;
    } else {
        bool above = rows->last ? seq > highest(rows->last) : seq > rows->first;
        if (!above && rows_has(rows, seq))
            return false;
        insert(rows, seq, received_ms, bytes);
    }
    rows->count++;
    return true;
}

bool rows_remove(struct rows *rows, uint64_t seq, int64_t *received_ms, size_t *bytes)
{
    if (rows->count == 0 || seq < rows->first)
        return false;
    if (seq == rows->first) {
        if (received_ms)
            *received_ms = rows->received_ms;
        refill(rows, bytes);
        rows->count--;
        return true;
    }
    if (!rows->last || seq > highest(rows->last))
        return false;
    struct rows_chunk *before = rows->last;
    while (highest(before->next) < seq)
        before = before->next;
    struct rows_chunk *chunk = before->next;
    unsigned i = lower_bound(chunk, seq);
    if (i == chunk->end || seq_at(chunk, i) != seq)
        return false;
    if (received_ms)
        *received_ms = chunk->base_received_ms + chunk->at[i].received;
    memmove(chunk->at + i, chunk->at + i + 1, (chunk->end - i - 1u) * sizeof chunk->at[0]);
    if (--chunk->end == chunk->begin)
        unlink_after(rows, before, bytes);
    rows->count--;
    return true;
}

uint64_t rows_next(const struct rows *rows, uint64_t after)
{
    if (rows->count == 0)
        return 0;
    if (after < rows->first)
        return rows->first;
    if (!rows->last || highest(rows->last) <= after)
        return 0;
    struct rows_chunk *chunk = rows->last->next;
    while (highest(chunk) <= after)
        chunk = chunk->next;
    return seq_at(chunk, lower_bound(chunk, after + 1));
}

bool rows_has(const struct rows *rows, uint64_t seq)
{
    return seq != 0 && rows_next(rows, seq - 1) == seq;
}

void rows_free(struct rows *rows, size_t *bytes)
{
    while (rows->last)
        unlink_after(rows, rows->last, bytes);
    *rows = (struct rows){0};
}
