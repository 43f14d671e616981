#include "deliver/loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "deliver/pool.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/inbox.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/thread.h"
#include "util/vec.h"

enum {
    EVENTS_MAX = 128, /* taken from epoll at once */
    CONNECTIONS_MAX =
        8192, /* in libcurl's pool. Counts busy ones too: were it near what runs, none would be kept */
};

/* What epoll knows of a socket, by its number. */
struct watched {
    struct loop_socket *socket; /* ours; the rest is about libcurl's */
    uint32_t events;            /* 0: it is not in epoll */
    bool wanted;                /* by libcurl, now */
    bool opened;                /* for a connection, which may not be there yet */
    bool connection; /* there: loop_leaves tells its end. Others are gone when libcurl wants them no more */
};

struct loop {
    unsigned index;
    struct deliver *deliver;
    pthread_t thread;
    CURLM *multi;
    int epoll, wake;
    struct inbox inbox;  /* of attempts */
    struct list running; /* of loop_transfer */
    struct list tasks;   /* of loop_task */
    struct pools pools;
    VEC(struct watched) watched;
    int64_t timer_us; /* when libcurl wants to be called; 0: never */
    int64_t tasks_us; /* no task is due before; 0: there was none */
    bool again;       /* something was posted from this very thread: look before sleeping */
    atomic_bool stopping;
    _Atomic int64_t deadline_ms; /* set before stopping */
};

static _Thread_local const struct loop *own; /* the loop that this thread is */

static void ring(struct loop *loop)
{
    uint64_t one = 1;
    while (write(loop->wake, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

/* What is posted at the end of a round, on the loop's own thread, needs no bell. */
static void on_wake(void *ctx)
{
    struct loop *loop = ctx;
    if (own == loop)
        loop->again = true;
    else
        ring(loop);
}

static struct watched *watched_at(struct loop *loop, int fd)
{
    while (loop->watched.len <= (size_t)fd)
        VEC_PUSH(&loop->watched, ((struct watched){0}));
    return &loop->watched.at[fd];
}

/* In epoll with these events instead of `before`; false when the system has no room for it: its transfer
 * hears nothing then, and ends at its timeout. */
static bool poll_for(struct loop *loop, int fd, uint32_t before, uint32_t events)
{
    struct epoll_event event = {.data.fd = fd, .events = events};
    if (before == events)
        return true;
    if (before && epoll_ctl(loop->epoll, EPOLL_CTL_MOD, fd, &event) == 0)
        return true;
    /* Not there any more, or never: the number may be another socket's by now. */
    if ((!before || errno == ENOENT) && epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) == 0)
        return true;
    log_event(LOG_ERROR, "deliver_socket_not_watched", LOG_STR("reason", strerror(errno)));
    return false;
}

static void watch(struct loop *loop, int fd, struct watched *watched, uint32_t events)
{
    if (poll_for(loop, fd, watched->events, events))
        watched->events = events;
}

static void unwatch(struct loop *loop, int fd, struct watched *watched)
{
    if (watched->events)
        epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL);
    watched->events = 0;
}

void loop_watch(struct loop *loop, struct loop_socket *socket, uint32_t events)
{
    watched_at(loop, socket->fd)->socket = socket;
    if (poll_for(loop, socket->fd, socket->events, events))
        socket->events = events;
}

void loop_unwatch(struct loop *loop, struct loop_socket *socket)
{
    if (socket->events)
        epoll_ctl(loop->epoll, EPOLL_CTL_DEL, socket->fd, NULL);
    socket->events = 0;
    *watched_at(loop, socket->fd) = (struct watched){0};
}

/* What curl wants to hear about a socket. A kept connection stays in epoll between two requests: nothing is
 * said on it as a rule, and what is, ends that. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *of_socket)
{
    (void)easy, (void)of_socket;
    struct loop *loop = ctx;
    struct watched *watched = watched_at(loop, fd);
    watched->wanted = what != CURL_POLL_REMOVE;
    if (watched->wanted) {
        /* One that is being made only waits to write; when that fails, libcurl closes it without telling. */
        watched->connection |= watched->opened && (what & CURL_POLL_IN);
        watch(loop, fd, watched,
              (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u));
    } else if (!watched->connection) {
        unwatch(loop, fd, watched);
        watched->opened = false;
    }
    return 0;
}

void loop_opened(struct loop *loop, int fd)
{
    *watched_at(loop, fd) = (struct watched){.opened = true};
}

void loop_leaves(struct loop *loop, int fd)
{
    struct watched *watched = watched_at(loop, fd);
    unwatch(loop, fd, watched);
    *watched = (struct watched){0};
}

static int on_timer(CURLM *multi, long timeout_ms, void *ctx)
{
    (void)multi;
    struct loop *loop = ctx;
    loop->timer_us = timeout_ms < 0 ? 0 : clock_mono_us() + timeout_ms * 1000;
    return 0;
}

/* The earlier of two times of which 0 is never. */
static int64_t earlier(int64_t a_us, int64_t b_us)
{
    return !a_us || (b_us && b_us < a_us) ? b_us : a_us;
}

static int wait_ms(const struct loop *loop)
{
    if (loop->again)
        return 0;
    int64_t now_us = clock_mono_us();
    int64_t until_us = earlier(loop->timer_us, earlier(loop->tasks_us, pools_due_us(&loop->pools)));
    if (loop->stopping)
        until_us = earlier(until_us, loop->deadline_ms * 1000);
    if (!until_us)
        return -1;
    if (until_us <= now_us)
        return 0;
    int64_t ms = (until_us - now_us + 999) / 1000;
    return ms > 60000 ? 60000 : (int)ms;
}

static void take_event(struct loop *loop, const struct epoll_event *event)
{
    int running;
    if (event->data.fd == loop->wake) {
        uint64_t count;
        ssize_t n = read(loop->wake, &count, sizeof count);
        (void)n; /* non-blocking: an empty one is fine */
        return;
    }
    struct watched *watched = watched_at(loop, event->data.fd);
    if (watched->socket) {
        watched->socket->ready(watched->socket, event->events);
        return;
    }
    if (!watched->wanted) {
        unwatch(loop, event->data.fd, watched);
        return;
    }
    int mask = 0;
    if (event->events & EPOLLIN)
        mask |= CURL_CSELECT_IN;
    if (event->events & EPOLLOUT)
        mask |= CURL_CSELECT_OUT;
    if (event->events & (EPOLLERR | EPOLLHUP))
        mask |= CURL_CSELECT_ERR;
    curl_multi_socket_action(loop->multi, event->data.fd, mask, &running);
}

static void start_posted(struct loop *loop)
{
    struct list attempts = LIST_INIT(attempts), *node;
    inbox_take(&loop->inbox, &attempts);
    while ((node = list_pop(&attempts))) {
        struct attempt *attempt = LIST_OWNER(node, struct attempt, node);
        if (loop->stopping)
            attempt_turn_away(attempt);
        else
            attempt->sink->type->start(attempt->sink, loop->index, attempt);
    }
}

void loop_begin(struct loop *loop, struct loop_task *task)
{
    list_append(&loop->tasks, &task->node);
    loop->tasks_us = earlier(loop->tasks_us, task->due_us);
}

/* `tasks_us` stays behind when the task that it was for ends in time. So one look at all of them serves as
 * long as a task may take, and beginning and ending one cost nothing. */
static void end_due_tasks(struct loop *loop, int64_t now_us)
{
    loop->tasks_us = 0;
    LIST_EACH_SAFE (node, &loop->tasks) {
        struct loop_task *task = LIST_OWNER(node, struct loop_task, node);
        if (task->due_us > now_us) {
            loop->tasks_us = earlier(loop->tasks_us, task->due_us);
            continue;
        }
        list_remove(node);
        task->end(task, true);
    }
}

static void run_timers(struct loop *loop)
{
    int running;
    int64_t now_us = clock_mono_us();
    if (loop->timer_us && loop->timer_us <= now_us) {
        loop->timer_us = 0;
        curl_multi_socket_action(loop->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    if (loop->tasks_us && loop->tasks_us <= now_us)
        end_due_tasks(loop, now_us);
    pools_expire(&loop->pools, now_us);
}

static void end_transfer(struct loop *loop, struct loop_transfer *transfer, CURLcode code)
{
    list_remove(&transfer->node);
    CHECK(curl_multi_remove_handle(loop->multi, transfer->easy) == CURLM_OK);
    transfer->finished(transfer, code);
}

static void collect_finished(struct loop *loop)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(loop->multi, &left))) {
        CHECK(message->msg == CURLMSG_DONE);
        CURLcode code = message->data.result; /* the message dies with the handle's removal */
        char *owner = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner);
        end_transfer(loop, (struct loop_transfer *)(void *)owner, code);
    }
}

static void abort_running(struct loop *loop)
{
    while (!list_empty(&loop->running))
        end_transfer(loop, LIST_OWNER(loop->running.next, struct loop_transfer, node),
                     CURLE_ABORTED_BY_CALLBACK);
    struct list *node;
    while ((node = list_pop(&loop->tasks))) {
        struct loop_task *task = LIST_OWNER(node, struct loop_task, node);
        task->end(task, false);
    }
}

static void end_round(struct deliver *deliver)
{
    if (atomic_load_explicit(&deliver->has_round, memory_order_acquire))
        deliver->round(deliver->round_ctx);
}

/* False at the end of the loop's life. */
static bool round_of(struct loop *loop)
{
    bool stopping = loop->stopping; /* before the inbox is emptied: nothing is posted behind it */
    loop->again = false;
    start_posted(loop);
    run_timers(loop);
    collect_finished(loop);
    if (stopping && clock_mono_ms() >= loop->deadline_ms)
        abort_running(loop);
    end_round(loop->deliver);
    return !stopping || !list_empty(&loop->running) || !list_empty(&loop->tasks);
}

static void *loop_main(void *ctx)
{
    struct loop *loop = ctx;
    struct epoll_event events[EVENTS_MAX];
    own = loop;
    for (;;) {
        int n = epoll_wait(loop->epoll, events, EVENTS_MAX, wait_ms(loop));
        for (int i = 0; i < n; i++)
            take_event(loop, &events[i]);
        /* What a round's end starts goes out at once: other answers may be there by now, and would be first.
         */
        for (unsigned rounds = 0; rounds < 2 && (rounds == 0 || loop->again); rounds++)
            if (!round_of(loop))
                return NULL;
    }
}

static enum status start_thread(struct loop *loop, struct error *err)
{
    char name[16];
    snprintf(name, sizeof name, "deliver/%u", loop->index % 1000);
    int code = thread_start(&loop->thread, name, loop_main, loop);
    if (code)
        return error_set(err, STATUS_IO, "can't start a thread: %s", strerror(code));
    return STATUS_OK;
}

enum status loop_open(struct deliver *deliver, unsigned index, struct loop **out, struct error *err)
{
    struct loop *loop = mem_zalloc(sizeof *loop);
    loop->deliver = deliver;
    loop->index = index;
    list_init(&loop->running);
    list_init(&loop->tasks);
    pools_init(&loop->pools);
    inbox_init(&loop->inbox, on_wake, loop);
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    loop->multi = curl_multi_init();
    CHECK(loop->multi);
    enum status status;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = loop->wake};
    if (loop->epoll < 0 || loop->wake < 0 || epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->wake, &event) != 0) {
        status = error_set(err, STATUS_IO, "can't make an event loop: %s", strerror(errno));
        goto close_loop;
    }
    curl_multi_setopt(loop->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(loop->multi, CURLMOPT_SOCKETDATA, loop);
    curl_multi_setopt(loop->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(loop->multi, CURLMOPT_TIMERDATA, loop);
    curl_multi_setopt(loop->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_MAX);
    status = start_thread(loop, err);
    if (status != STATUS_OK)
        goto close_loop;
    *out = loop;
    return STATUS_OK;

close_loop:
    loop_close(loop);
    return status;
}

void loop_post(struct loop *loop, struct list *attempts)
{
    inbox_put_all(&loop->inbox, attempts);
}

void loop_run(struct loop *loop, struct loop_transfer *transfer)
{
    list_append(&loop->running, &transfer->node);
    CHECK(curl_multi_add_handle(loop->multi, transfer->easy) == CURLM_OK);
}

struct pools *loop_pools(struct loop *loop)
{
    return &loop->pools;
}

void loop_stop(struct loop *loop, int64_t deadline_ms)
{
    loop->deadline_ms = deadline_ms;
    loop->stopping = true;
    ring(loop);
}

void loop_join(struct loop *loop)
{
    pthread_join(loop->thread, NULL);
}

void loop_close(struct loop *loop)
{
    curl_multi_cleanup(loop->multi);
    pools_close(&loop->pools);
    if (loop->wake >= 0)
        close(loop->wake);
    if (loop->epoll >= 0)
        close(loop->epoll);
    inbox_destroy(&loop->inbox);
    VEC_FREE(&loop->watched);
    free(loop);
}
