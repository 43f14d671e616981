#include "admin/worker.h"

#include <pthread.h>
#include <stdlib.h>

#include "admin/admin_priv.h"
#include "util/check.h"
#include "util/mem.h"
#include "util/thread.h"

struct worker {
    struct store_reader *reader; /* the thread's */
    pthread_t thread;

    pthread_mutex_t lock; /* over what follows */
    pthread_cond_t news;
    struct list waiting; /* of struct ask */
    size_t count;        /* of them */
    bool draining;
};

static void *run(void *ctx)
{
    struct worker *worker = ctx;
    pthread_mutex_lock(&worker->lock);
    for (;;) {
        struct list *node;
        while (!(node = list_pop(&worker->waiting)) && !worker->draining)
            pthread_cond_wait(&worker->news, &worker->lock);
        if (!node)
            break;
        worker->count--;
        bool draining = worker->draining;
        pthread_mutex_unlock(&worker->lock);
        struct ask *ask = LIST_OWNER(node, struct ask, node);
        ask->reader = worker->reader;
        if (draining)
            ask_refuse(ask, 503, "draining");
        else
            ask->work(ask);
        ask_finish(ask);
        pthread_mutex_lock(&worker->lock);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

enum status worker_open(struct store *store, struct worker **out, struct error *err)
{
    struct store_reader *reader;
    enum status status = store_reader_open(store, &reader, err);
    if (status != STATUS_OK)
        return status;
    struct worker *worker = mem_zalloc(sizeof *worker);
    worker->reader = reader;
    list_init(&worker->waiting);
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->news, NULL);
    CHECK(thread_start(&worker->thread, "admin_work", run, worker) == 0);
    *out = worker;
    return STATUS_OK;
}

void worker_take(struct worker *worker, struct ask *ask)
{
    pthread_mutex_lock(&worker->lock);
    bool draining = worker->draining, full = worker->count == WORKER_WAITING_MAX;
    if (!draining && !full) {
        list_append(&worker->waiting, &ask->node);
        worker->count++;
        pthread_cond_signal(&worker->news);
    }
    pthread_mutex_unlock(&worker->lock);
    if (!draining && !full)
        return;
    if (draining)
        ask_refuse(ask, 503, "draining");
    else
        ask_refuse_with(ask, 503, "busy", "expected",
                        "fewer questions at once that take long; ask again in a moment");
    ask_finish(ask);
}

void worker_drain(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->draining = true;
    pthread_cond_signal(&worker->news);
    pthread_mutex_unlock(&worker->lock);
}

void worker_close(struct worker *worker)
{
    if (!worker)
        return;
    worker_drain(worker);
    CHECK(pthread_join(worker->thread, NULL) == 0);
    store_reader_close(worker->reader);
    pthread_cond_destroy(&worker->news);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
}
