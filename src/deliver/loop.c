#include "deliver/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/check.h"
#include "util/clock.h"
#include "util/inbox.h"
#include "util/log.h"
#include "util/mem.h"

enum {
    EVENTS_MAX = 128, /* taken from epoll at once */
    CONNECTIONS_MAX =
        8192, /* in a loop's pool. Counts busy ones too: were it near what runs, none would be kept */
};

struct loop {
    unsigned index;
    struct deliver *deliver;
    pthread_t thread;
    CURLM *multi;
    int epoll, wake;
    struct inbox inbox;  /* of attempts */
    struct list running; /* of loop_transfer */
    int64_t timer_us;    /* when curl wants to be called; 0: never */
    bool again;          /* something was posted from this very thread: look before sleeping */
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

/* `known`: it should be in epoll already. The number of a socket may have been given to another one since, so
 * either guess may be wrong. When the system has no room for it, its transfer hears nothing, and ends at its
 * timeout. */
static void watch(struct loop *loop, int fd, struct epoll_event *event, bool known)
{
    int guess = known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, other = known ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (epoll_ctl(loop->epoll, guess, fd, event) == 0)
        return;
    if (errno == (known ? ENOENT : EEXIST) && epoll_ctl(loop->epoll, other, fd, event) == 0)
        return;
    log_event(LOG_ERROR, "deliver_socket_not_watched", LOG_STR("reason", strerror(errno)));
}

/* What curl wants to hear about a socket. It says REMOVE before it closes one; `known` is set once it is in
 * epoll. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *known)
{
    (void)easy;
    struct loop *loop = ctx;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    struct epoll_event event = {.data.fd = fd};
    if (what & CURL_POLL_IN)
        event.events |= EPOLLIN;
    if (what & CURL_POLL_OUT)
        event.events |= EPOLLOUT;
    watch(loop, fd, &event, known);
    curl_multi_assign(loop->multi, fd, loop);
    return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *ctx)
{
    (void)multi;
    struct loop *loop = ctx;
    loop->timer_us = timeout_ms < 0 ? 0 : clock_mono_us() + timeout_ms * 1000;
    return 0;
}

static int wait_ms(const struct loop *loop)
{
    if (loop->again)
        return 0;
    int64_t now_us = clock_mono_us(), until_us = loop->timer_us;
    if (loop->stopping) {
        int64_t deadline_us = loop->deadline_ms * 1000;
        if (!until_us || deadline_us < until_us)
            until_us = deadline_us;
    }
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

static void run_timer(struct loop *loop)
{
    int running;
    if (loop->timer_us && loop->timer_us <= clock_mono_us()) {
        loop->timer_us = 0;
        curl_multi_socket_action(loop->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
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
}

static void end_round(struct deliver *deliver)
{
    if (atomic_load_explicit(&deliver->has_round, memory_order_acquire))
        deliver->round(deliver->round_ctx);
}

static void *loop_main(void *ctx)
{
    struct loop *loop = ctx;
    struct epoll_event events[EVENTS_MAX];
    own = loop;
    for (;;) {
        int n = epoll_wait(loop->epoll, events, EVENTS_MAX, wait_ms(loop));
        loop->again = false;
        for (int i = 0; i < n; i++)
            take_event(loop, &events[i]);
        bool stopping = loop->stopping; /* before the inbox is emptied: nothing is posted behind it */
        start_posted(loop);
        run_timer(loop);
        collect_finished(loop);
        if (stopping && clock_mono_ms() >= loop->deadline_ms)
            abort_running(loop);
        end_round(loop->deliver);
        if (stopping && list_empty(&loop->running))
            return NULL;
    }
}

static enum status start_thread(struct loop *loop, struct error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals belong to main */
    int code = pthread_create(&loop->thread, NULL, loop_main, loop);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code)
        return error_set(err, STATUS_IO, "can't start a thread: %s", strerror(code));
    char name[16];
    snprintf(name, sizeof name, "deliver/%u", loop->index % 1000);
    pthread_setname_np(loop->thread, name);
    return STATUS_OK;
}

enum status loop_open(struct deliver *deliver, unsigned index, struct loop **out, struct error *err)
{
    struct loop *loop = mem_zalloc(sizeof *loop);
    loop->deliver = deliver;
    loop->index = index;
    list_init(&loop->running);
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
    if (loop->wake >= 0)
        close(loop->wake);
    if (loop->epoll >= 0)
        close(loop->epoll);
    inbox_destroy(&loop->inbox);
    free(loop);
}
