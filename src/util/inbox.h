/* A mailbox between threads: many put, one takes everything at once. Intrusive (list.h). A put into an empty
 * box wakes the owner through `wake`, and only then: one wake per batch, not per message. */
#ifndef UTIL_INBOX_H
#define UTIL_INBOX_H

#include <pthread.h>
#include <stdbool.h>

#include "util/list.h"

struct inbox {
    pthread_mutex_t lock;
    struct list items;
    void (*wake)(void *ctx);
    void *ctx;
};

void inbox_init(struct inbox *box, void (*wake)(void *ctx), void *ctx);
void inbox_destroy(struct inbox *box);
/* Any thread. Order is kept per putting thread. */
void inbox_put(struct inbox *box, struct list *item);
/* A whole list at once; `items` is empty afterwards. */
void inbox_put_all(struct inbox *box, struct list *items);
/* The owner: moves everything behind what `out` has; false when there was nothing. */
bool inbox_take(struct inbox *box, struct list *out);

#endif
