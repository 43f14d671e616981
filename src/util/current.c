/* A hold's memory is never given back while anybody may be reaching for it: one whose users are gone waits in
 * `free` for the next value. So a thread that read `now` and was then overtaken finds either no users (it
 * looks again), or a hold that means another value by now (it drops that, and looks again). */
#include "util/current.h"

#include <stdbool.h>
#include <stdlib.h>

#include "util/check.h"
#include "util/mem.h"

void current_init(struct current *current, void (*release)(void *ctx, void *value), void *ctx)
{
    current->release = release;
    current->ctx = ctx;
    atomic_init(&current->now, NULL);
    CHECK(pthread_mutex_init(&current->lock, NULL) == 0);
    list_init(&current->free);
}

static struct current_hold *hold_for(struct current *current, void *value)
{
    pthread_mutex_lock(&current->lock);
    struct list *node = list_pop(&current->free);
    pthread_mutex_unlock(&current->lock);
    struct current_hold *hold = node ? LIST_OWNER(node, struct current_hold, node) : mem_zalloc(sizeof *hold);
    hold->value = value;
    atomic_store_explicit(&hold->users, 1, memory_order_release); /* being the newest counts as a user */
    return hold;
}

void current_set(struct current *current, void *value)
{
    struct current_hold *old = atomic_exchange(&current->now, hold_for(current, value));
    if (old)
        current_drop(current, old);
}

static bool join(struct current_hold *hold)
{
    unsigned users = atomic_load_explicit(&hold->users, memory_order_relaxed);
    while (users > 0)
        if (atomic_compare_exchange_weak_explicit(&hold->users, &users, users + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    return false;
}

struct current_hold *current_take(struct current *current)
{
    for (;;) {
        struct current_hold *hold = atomic_load_explicit(&current->now, memory_order_acquire);
        if (!join(hold))
            continue;
        if (atomic_load_explicit(&current->now, memory_order_acquire) == hold)
            return hold;
        current_drop(current, hold);
    }
}

void current_drop(struct current *current, struct current_hold *hold)
{
    if (atomic_fetch_sub_explicit(&hold->users, 1, memory_order_acq_rel) != 1)
        return;
    current->release(current->ctx, hold->value);
    pthread_mutex_lock(&current->lock);
    list_append(&current->free, &hold->node);
    pthread_mutex_unlock(&current->lock);
}

void current_close(struct current *current)
{
    struct current_hold *last = atomic_exchange(&current->now, NULL);
    if (last) {
        CHECK(atomic_load(&last->users) == 1);
        current_drop(current, last);
    }
    for (struct list *node; (node = list_pop(&current->free));)
        free(LIST_OWNER(node, struct current_hold, node));
    pthread_mutex_destroy(&current->lock);
}
