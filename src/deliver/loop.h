/* One thread around one curl multi handle. It waits on epoll, so that a thousand transfers that hang cost
 * nothing while ten others run. Private to the room. */
#ifndef DELIVER_LOOP_H
#define DELIVER_LOOP_H

#include <curl/curl.h>

#include "deliver/deliver_priv.h"

/* Something that runs on a loop. The first member of its owner. */
struct loop_transfer {
    struct list node;
    CURL *easy; /* CURLOPT_PRIVATE is this struct */
    /* On the loop; the easy handle is off it again. CURLE_ABORTED_BY_CALLBACK: the process goes down. */
    void (*finished)(struct loop_transfer *transfer, CURLcode code);
};

/* Its thread runs from here on. `deliver` outlives it. */
enum status loop_open(struct deliver *deliver, unsigned index, struct loop **out, struct error *err);
/* Any thread: attempts are started through their sink's type. From the loop's own thread they begin in its
 * next round, which follows at once. */
void loop_post(struct loop *loop, struct list *attempts);
/* On the loop's thread, from a sink's start(). */
void loop_run(struct loop *loop, struct loop_transfer *transfer);
/* On the loop's thread: a transfer opened this socket; and before a socket so opened is closed, whoever
 * closes it. */
void loop_opened(struct loop *loop, int fd);
void loop_closes(struct loop *loop, int fd);
/* Nothing is posted any more. Running transfers may go on until the deadline (monotonic ms). */
void loop_stop(struct loop *loop, int64_t deadline_ms);
void loop_join(struct loop *loop);
/* Joined; drops the connections. */
void loop_close(struct loop *loop);

#endif
