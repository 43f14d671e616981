/* What each tenant has in the queue. Whoever floods it may fill as much as he leaves free: one tenant alone
 * gets half of the queue, two get a third each, and so on, so that there is room for a tenant who comes now
 * ("dynamic thresholds" of shared buffers, Choudhury and Hahne 1998). No count of tenants, no state but sums.
 *
 * Sums stand in SHARES places by a hash that nobody outside can aim: two tenants who meet in one, which
 * happens to one in SHARES, are taken for one. */
#include <stdlib.h>

#include "store/store_priv.h"
#include "util/hash.h"
#include "util/mem.h"

enum { SHARES = 65536 };

struct share {
    atomic_size_t hooks, bytes;
};

void shares_open(struct store *store)
{
    store->shares = mem_zalloc(SHARES * sizeof *store->shares);
}

void shares_close(struct store *store)
{
    free(store->shares);
}

bool share_take(struct store *store, struct store_hook *hook, size_t bytes, size_t hooks, size_t held)
{
    const struct store_options *options = &store->options;
    struct share *share = &store->shares[hash_bytes(hook->envelope->tenant) % SHARES];
    size_t own = atomic_fetch_add_explicit(&share->hooks, 1, memory_order_relaxed);
    size_t own_bytes = atomic_fetch_add_explicit(&share->bytes, bytes, memory_order_relaxed);
    hook->share = share;
    /* The first of a tenant is judged by the queue alone. */
    bool over =
        own > 0 && (own >= options->max_queue - hooks || own_bytes + bytes > options->max_queue_bytes - held);
    if (over)
        share_leave(hook, bytes);
    return !over;
}

void share_leave(struct store_hook *hook, size_t bytes)
{
    if (!hook->share)
        return;
    atomic_fetch_sub_explicit(&hook->share->bytes, bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&hook->share->hooks, 1, memory_order_relaxed);
    hook->share = NULL;
}
