/* The newest of something that is replaced while others use it: a configuration, a table. Whoever takes it
 * may use it until he drops it; a replaced one is released when its last user dropped it. Taking is one
 * atomic load and one addition, dropping a subtraction: no lock, whatever the threads do.
 *
 *     struct current_hold *hold = current_take(&current);
 *     use(hold->value);
 *     current_drop(&current, hold);
 */
#ifndef UTIL_CURRENT_H
#define UTIL_CURRENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "util/list.h"

struct current_hold {
    void *value; /* what was taken */
    atomic_uint users;
    struct list node;
};

/* A value inside its owner. */
struct current {
    struct current_hold *_Atomic now;
    void (*release)(void *ctx, void *value);
    void *ctx;
    pthread_mutex_t lock; /* of `free` */
    struct list free;     /* holds that nobody uses, to be used again: their memory stays until the close */
};

/* `release` is called once for each value, on the thread that drops it last. */
void current_init(struct current *current, void (*release)(void *ctx, void *value), void *ctx);
/* Takes `value` over. Any thread, one at a time. */
void current_set(struct current *current, void *value);
/* Never NULL, behind the first current_set. Any thread. */
struct current_hold *current_take(struct current *current);
void current_drop(struct current *current, struct current_hold *hold);
/* Nobody takes any more, and everything taken was dropped. */
void current_close(struct current *current);

#endif
