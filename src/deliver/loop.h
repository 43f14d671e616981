/* One thread that waits on epoll for libcurl's transfers, on one multi handle, and for sockets of our own; so
 * a thousand attempts that hang cost nothing while ten others run. Private to the room. */
#ifndef DELIVER_LOOP_H
#define DELIVER_LOOP_H

#include <curl/curl.h>

#include "deliver/deliver_priv.h"

struct pools;

/* A transfer of libcurl's that runs on a loop. The first member of its owner. */
struct loop_transfer {
    struct list node;
    CURL *easy; /* CURLOPT_PRIVATE is this struct */
    /* On the loop; the easy handle is off it again. CURLE_ABORTED_BY_CALLBACK: the process goes down. */
    void (*finished)(struct loop_transfer *transfer, CURLcode code);
};

/* A socket of ours. */
struct loop_socket {
    int fd;
    uint32_t events;                                            /* waited for; 0: none */
    void (*ready)(struct loop_socket *socket, uint32_t events); /* epoll's; may close it */
};

/* Something with an end in time that is ours to watch. */
struct loop_task {
    struct list node;
    int64_t due_us; /* monotonic */
    /* On the loop, off its list: the time is over, or else the process goes down. */
    void (*end)(struct loop_task *task, bool timed_out);
};

/* Its thread runs from here on. `deliver` outlives it. */
enum status loop_open(struct deliver *deliver, unsigned index, struct loop **out, struct error *err);
/* Any thread: attempts are started through their sink's type. From the loop's own thread they begin in its
 * next round, which follows at once. */
void loop_post(struct loop *loop, struct list *attempts);
/* On the loop's thread, from a sink's start(). */
void loop_run(struct loop *loop, struct loop_transfer *transfer);
/* On the loop's thread: libcurl opened this socket for a connection; and before a connection is closed, or
 * becomes ours. One that comes to nothing may be closed without that. */
void loop_opened(struct loop *loop, int fd);
void loop_leaves(struct loop *loop, int fd);
/* On the loop's thread: these events are waited for from now on. When the system has no room for it, nothing
 * is heard. */
void loop_watch(struct loop *loop, struct loop_socket *socket, uint32_t events);
/* Before it is closed. */
void loop_unwatch(struct loop *loop, struct loop_socket *socket);
/* On the loop's thread; list_remove(&task->node) ends it. */
void loop_begin(struct loop *loop, struct loop_task *task);
struct pools *loop_pools(struct loop *loop);
/* Nothing is posted any more. What runs may go on until the deadline (monotonic ms). */
void loop_stop(struct loop *loop, int64_t deadline_ms);
void loop_join(struct loop *loop);
/* Joined; drops the connections. */
void loop_close(struct loop *loop);

#endif
