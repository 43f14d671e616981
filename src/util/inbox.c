#include "util/inbox.h"

#include "util/check.h"

void inbox_init(struct inbox *box, void (*wake)(void *ctx), void *ctx)
{
    CHECK(pthread_mutex_init(&box->lock, NULL) == 0);
    list_init(&box->items);
    box->wake = wake;
    box->ctx = ctx;
}

void inbox_destroy(struct inbox *box)
{
    CHECK(list_empty(&box->items));
    pthread_mutex_destroy(&box->lock);
}

void inbox_put(struct inbox *box, struct list *item)
{
    pthread_mutex_lock(&box->lock);
    bool first = list_empty(&box->items);
    list_append(&box->items, item);
    pthread_mutex_unlock(&box->lock);
    if (first)
        box->wake(box->ctx);
}

void inbox_put_all(struct inbox *box, struct list *items)
{
    if (list_empty(items))
        return;
    pthread_mutex_lock(&box->lock);
    bool first = list_empty(&box->items);
    list_splice(&box->items, items);
    pthread_mutex_unlock(&box->lock);
    if (first)
        box->wake(box->ctx);
}

bool inbox_take(struct inbox *box, struct list *out)
{
    pthread_mutex_lock(&box->lock);
    bool any = !list_empty(&box->items);
    list_splice(out, &box->items);
    pthread_mutex_unlock(&box->lock);
    return any;
}
