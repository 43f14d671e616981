#include "cli/later.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "util/check.h"
#include "util/clock.h"
#include "util/cond.h"
#include "util/mem.h"
#include "util/thread.h"

struct later {
    void (*answer)(void *ctx, struct delivery *delivery);
    void (*give_up)(void *ctx, struct delivery *delivery);
    void *ctx;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* on the monotonic clock */
    struct list waiting;    /* by due time, the earliest first */
    struct list hanging;
    bool stopped;
};

static struct delivery *delivery_at(struct list *node)
{
    return LIST_OWNER(node, struct delivery, node);
}

static void *answer_when_due(void *ctx)
{
    struct later *later = ctx;
    pthread_mutex_lock(&later->lock);
    while (!later->stopped) {
        if (list_empty(&later->waiting)) {
            pthread_cond_wait(&later->changed, &later->lock);
            continue;
        }
        struct delivery *first = delivery_at(later->waiting.next);
        if (first->due_us > clock_mono_us()) {
            struct timespec until = {.tv_sec = first->due_us / 1000000,
                                     .tv_nsec = first->due_us % 1000000 * 1000};
            pthread_cond_timedwait(&later->changed, &later->lock, &until);
            continue;
        }
        list_remove(&first->node);
        pthread_mutex_unlock(&later->lock);
        later->answer(later->ctx, first);
        pthread_mutex_lock(&later->lock);
    }
    pthread_mutex_unlock(&later->lock);
    return NULL;
}

struct later *later_open(void (*answer)(void *ctx, struct delivery *delivery),
                         void (*give_up)(void *ctx, struct delivery *delivery), void *ctx)
{
    struct later *later = mem_zalloc(sizeof *later);
    later->answer = answer;
    later->give_up = give_up;
    later->ctx = ctx;
    list_init(&later->waiting);
    list_init(&later->hanging);
    pthread_mutex_init(&later->lock, NULL);
    cond_init_monotonic(&later->changed);
    CHECK(thread_start(&later->thread, "later", answer_when_due, later) == 0);
    return later;
}

void later_add(struct later *later, struct delivery *delivery)
{
    pthread_mutex_lock(&later->lock);
    bool stopped = later->stopped;
    if (!stopped && delivery->due_us == 0) {
        list_append(&later->hanging, &delivery->node);
    } else if (!stopped) {
        struct list *at = later->waiting.prev; /* most delays are alike, so the place is near the end */
        while (at != &later->waiting && delivery_at(at)->due_us > delivery->due_us)
            at = at->prev;
        list_insert_before(at->next, &delivery->node);
        pthread_cond_signal(&later->changed);
    }
    pthread_mutex_unlock(&later->lock);
    if (stopped)
        later->give_up(later->ctx, delivery);
}

static void give_up_all(struct later *later, struct list *deliveries)
{
    struct list *node;
    while ((node = list_pop(deliveries)))
        later->give_up(later->ctx, delivery_at(node));
}

void later_heal(struct later *later, struct bytes key)
{
    struct list healed = LIST_INIT(healed);
    bool all = !key.at || bytes_eq(key, BYTES("*"));
    pthread_mutex_lock(&later->lock);
    LIST_EACH_SAFE (node, &later->hanging) {
        if (all || bytes_eq(delivery_at(node)->key, key)) {
            list_remove(node);
            list_append(&healed, node);
        }
    }
    pthread_mutex_unlock(&later->lock);
    give_up_all(later, &healed);
}

void later_stop(struct later *later)
{
    struct list left = LIST_INIT(left);
    pthread_mutex_lock(&later->lock);
    later->stopped = true;
    list_splice(&left, &later->waiting);
    list_splice(&left, &later->hanging);
    pthread_cond_signal(&later->changed);
    pthread_mutex_unlock(&later->lock);
    pthread_join(later->thread, NULL);
    give_up_all(later, &left);
}

void later_close(struct later *later)
{
    pthread_cond_destroy(&later->changed);
    pthread_mutex_destroy(&later->lock);
    free(later);
}
