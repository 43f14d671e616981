/* Answers on their way from another thread to their loops. A thread that gives many in a row (the store's
 * writer, a batch at a time) holds them until the last: each loop then gets one list and one wake, and does
 * not wake, send one answer and fall asleep again a hundred times a batch. */
#include "http/http_priv.h"
#include "util/check.h"

static _Thread_local struct {
    bool holds;
    struct list exchanges; /* while it holds */
} here;

static struct http_exchange *exchange_of(struct list *node)
{
    return LIST_OWNER(node, struct http_exchange, node);
}

/* All of one loop, which may send them and be going down before this thread is out of its inbox: the hold
 * keeps the loop until then. */
static void give(struct http_loop *loop, struct list *exchanges)
{
    http_loop_hold(loop, true);
    inbox_put_all(&loop->answers, exchanges);
    http_loop_hold(loop, false);
}

void http_mailbox_post(struct http_exchange *exchange)
{
    struct list one = LIST_INIT(one);
    list_append(here.holds ? &here.exchanges : &one, &exchange->node);
    if (!here.holds)
        give(http_exchange_loop(exchange), &one);
}

void http_answers_hold(void)
{
    CHECK(!here.holds && !http_loop_here);
    here.holds = true;
    list_init(&here.exchanges);
}

void http_answers_release(void)
{
    CHECK(here.holds);
    here.holds = false;
    while (!list_empty(&here.exchanges)) {
        struct http_loop *loop = http_exchange_loop(exchange_of(here.exchanges.next));
        struct list its = LIST_INIT(its);
        LIST_EACH_SAFE (node, &here.exchanges) {
            if (http_exchange_loop(exchange_of(node)) != loop)
                continue;
            list_remove(node);
            list_append(&its, node);
        }
        give(loop, &its);
    }
}

void http_mailbox_read(h2o_multithread_receiver_t *receiver, h2o_linklist_t *messages)
{
    struct http_loop *loop = H2O_STRUCT_FROM_MEMBER(struct http_loop, mailbox, receiver);
    struct list answered = LIST_INIT(answered);
    /* The bell comes off before the inbox is emptied: whoever finds that empty may hang it up again. */
    while (!h2o_linklist_is_empty(messages))
        h2o_linklist_unlink(messages->next);
    inbox_take(&loop->answers, &answered);
    for (struct list *node; (node = list_pop(&answered));)
        http_exchange_deliver(exchange_of(node));
}
