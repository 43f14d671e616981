/* Dedupe keys: who claimed one, in memory and on the disk. */
#ifndef STORE_CLAIMS_H
#define STORE_CLAIMS_H

#include <stdatomic.h>

#include "store/store.h"
#include "util/vec.h"

/* ---- claim_index.c: who claimed a key, in memory ---------------------------------------------------------
 */

enum { CLAIM_SIZE = 16, CLAIM_RUN_MAX = 1 << 20, CLAIM_RUN_MIN = 1 << 12 };

struct claim_slot {
    uint32_t tag, offset; /* offset 0: free */
};

/* Claims that follow one another, so that they expire at about the same time, and then go as a whole. */
struct claim_run {
    uint64_t base, last;         /* seqs */
    int64_t first_ms, until_ms;  /* unix: when the first one expires, and the last to do so */
    uint32_t used, size, places; /* claims; how many it takes; slots */
    struct claim_slot *slots;
};

struct claim_index {
    VEC(struct claim_run) runs; /* ascending in seq */
    size_t count;
};

void claim_index_free(struct claim_index *index);
/* `seq` is above all that were added. */
void claim_index_add(struct claim_index *index, const uint8_t claim[CLAIM_SIZE], uint64_t seq,
                     int64_t expires_ms);
/* Calls `is_it` with every seq that may have claimed this, newest first, until it says true. True when it
 * did. */
bool claim_index_find(const struct claim_index *index, const uint8_t claim[CLAIM_SIZE],
                      bool (*is_it)(void *ctx, uint64_t seq), void *ctx);
void claim_index_remove(struct claim_index *index, const uint8_t claim[CLAIM_SIZE], uint64_t seq);
/* Forgets runs all of whose claims have expired, oldest first; and beyond `max` the oldest ones, expired or
 * not: how many of those. */
size_t claim_index_expire(struct claim_index *index, int64_t now_ms, size_t max);
/* When the oldest run goes (unix); INT64_MAX: there is none. */
int64_t claim_index_due_ms(const struct claim_index *index);
/* No seq below is known here. */
uint64_t claim_index_floor(const struct claim_index *index);

/* ---- claim.c: the writer's side of it --------------------------------------------------------------------
 */

struct claims {
    struct claim_index index;
    uint32_t *places; /* the batch by claim: its number + 1; 0: free */
    size_t place_count;
    uint64_t swept,
        sweeping;      /* no row below is left; none will be when the transaction under way is durable */
    struct list twins; /* hooks of the batch that are duplicates */
    atomic_size_t keys;
};

/* Any thread: fills hook->claim. */
void claim_make(struct store_hook *hook);
enum status claims_load(struct store *store, struct error *err);
void claims_free(struct claims *claims);
/* The writer, before a batch gets its seqs: duplicates leave it for claims.twins. False on an error. */
bool claims_part(struct store *store);
/* Inside a transaction: the claim of a hook; the removal of some that expired. */
bool claim_write(struct store *store, const struct store_hook *hook, uint64_t seq);
bool claims_sweep(struct store *store);
/* It is durable, and every hook of the batch has its seq. */
void claims_written(struct store *store);
/* When the next removal is due (monotonic); INT64_MAX: none is. */
int64_t claims_due_us(const struct store *store);
/* For change.c. */
bool forget_write(struct store *store, struct list *node);
void forget_written(struct store *store, const struct list *node);

#endif
