/* The way into the writer. Pushing is one compare-and-swap; the first push into an empty queue wakes the
 * writer, if it sleeps at all: under load it is in a sync and finds everything when it comes back. */
#include <time.h>

#include "store/store_priv.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/cond.h"

void queue_init(struct queue *queue)
{
    *queue = (struct queue){0};
    CHECK(pthread_mutex_init(&queue->lock, NULL) == 0);
    cond_init_monotonic(&queue->wake);
}

void queue_free(struct queue *queue)
{
    CHECK(atomic_load(&queue->newest) == NULL);
    pthread_cond_destroy(&queue->wake);
    pthread_mutex_destroy(&queue->lock);
}

void queue_poke(struct queue *queue)
{
    /* Either this store is seen by a writer about to sleep, or the writer is seen sleeping: both are
     * sequentially consistent, and in opposite order over there. */
    atomic_store(&queue->poked, true);
    if (!atomic_load(&queue->sleeping))
        return;
    pthread_mutex_lock(&queue->lock);
    pthread_cond_signal(&queue->wake);
    pthread_mutex_unlock(&queue->lock);
}

void queue_push(struct queue *queue, struct list *node)
{
    struct list *older = atomic_load_explicit(&queue->newest, memory_order_relaxed);
    do
        node->next = older;
    while (!atomic_compare_exchange_weak_explicit(&queue->newest, &older, node, memory_order_release,
                                                  memory_order_relaxed));
    if (!older)
        queue_poke(queue);
}

void queue_take(struct queue *queue, struct list *out)
{
    struct list *node = atomic_exchange_explicit(&queue->newest, NULL, memory_order_acquire);
    struct list *end = out->prev; /* newest first: each goes in front of the one before */
    while (node) {
        struct list *older = node->next;
        list_insert_before(end->next, node);
        node = older;
    }
}

void queue_sleep(struct queue *queue, int64_t until_us)
{
    struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
    pthread_mutex_lock(&queue->lock);
    atomic_store(&queue->sleeping, true);
    while (!atomic_exchange(&queue->poked, false)) {
        if (until_us == INT64_MAX)
            pthread_cond_wait(&queue->wake, &queue->lock);
        else if (clock_mono_us() >= until_us)
            break;
        else
            pthread_cond_timedwait(&queue->wake, &queue->lock, &until);
    }
    atomic_store(&queue->sleeping, false);
    pthread_mutex_unlock(&queue->lock);
}
