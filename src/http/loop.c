/* A loop: one thread, one libh2o context, its own handles of the listening sockets. Everything libh2o gives
 * out is made and freed on that thread, since libh2o keeps memory per thread. Other threads reach it by the
 * mailbox (answers) and by the server's flags with a wake. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/http_priv.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/thread.h"

#define WIND_DOWN_TURN_MS 10

_Thread_local struct http_loop *http_loop_here;

static void context_open(struct http_loop *loop)
{
    struct http_server *server = loop->server;
    h2o_context_init(&loop->h2o, h2o_evloop_create(), &server->conf);
    h2o_multithread_register_receiver(loop->h2o.queue, &loop->mailbox, http_mailbox_read);
    h2o_multithread_register_receiver(loop->h2o.queue, &loop->stream_mailbox, http_streams_read);
    loop->accept_ctx = (h2o_accept_ctx_t){.ctx = &loop->h2o, .hosts = server->conf.hosts};
}

static void context_close(struct http_loop *loop)
{
    h2o_loop_t *evloop = loop->h2o.loop;
    h2o_multithread_queue_t *queue = loop->h2o.queue;
    int epoll_fd = http_debts_epoll_fd(evloop);

    h2o_multithread_unregister_receiver(queue, &loop->stream_mailbox);
    h2o_multithread_unregister_receiver(queue, &loop->mailbox);
    h2o_context_dispose(&loop->h2o);
    free(queue); /* disposed of, but not freed, by the context */
    h2o_evloop_destroy(evloop);
    if (epoll_fd >= 0)
        close(epoll_fd);
}

static void drain_begin(struct http_loop *loop, int64_t now_ms)
{
    loop->draining = true;
    loop->drain_since_ms = now_ms;
    loop->h2o.shutdown_requested = 1; /* requests from now on are answered with "Connection: close" */
    http_accept_end(loop);
    http_sweep(loop, now_ms);
}

static int shut_one(h2o_req_t *req, void *arg)
{
    struct http_conn *conn = http_conn_of(req);
    enum http_phase phase = http_phase_of(conn, req);
    (void)arg;
    if (phase == PHASE_STREAM)
        http_stream_shut(conn);
    else if (phase == PHASE_IDLE)
        http_conn_end(conn);
    else
        http_conn_shut(conn, phase == PHASE_BODY);
    return 0;
}

static bool is_over(struct http_loop *loop)
{
    return atomic_load(&loop->holds) == 0 && atomic_load(&loop->connection_count) == 0 &&
           atomic_load_explicit(&loop->exchanges, memory_order_relaxed) == 0;
}

/* Connections end when libh2o reads or writes into what was shut; open exchanges when their answers arrive.
 * False when they do not: going down can't wait for ever for a thread that is stuck. */
static bool wind_down(struct http_loop *loop)
{
    int64_t until_ms = clock_mono_ms() + loop->server->options.close_timeout_ms;
    http_accept_end(loop);
    while (!is_over(loop) && clock_mono_ms() < until_ms) {
        loop->server->conf.http1.callbacks.foreach_request(&loop->h2o, shut_one, NULL);
        http_secure_shut(loop);
        h2o_evloop_run(loop->h2o.loop, WIND_DOWN_TURN_MS);
        http_accept_given(loop);
    }
    http_lingers_expire(loop, INT64_MAX);
    if (is_over(loop))
        return true;
    log_event(LOG_ERROR, "http_exchanges_left", LOG_STR("server", loop->server->name),
              LOG_INT("exchanges", atomic_load_explicit(&loop->exchanges, memory_order_relaxed)),
              LOG_INT("connections", atomic_load(&loop->connection_count)));
    return false;
}

static void turn(struct http_loop *loop)
{
    h2o_evloop_run(loop->h2o.loop, loop->draining ? WIND_DOWN_TURN_MS : HTTP_SWEEP_MS);
    int64_t now_ms = clock_mono_ms();
    http_accept_given(loop);
    http_secure_end(loop);
    if (!loop->draining && atomic_load_explicit(&loop->server->draining, memory_order_acquire))
        drain_begin(loop, now_ms);
    if (http_sweep_due(loop, now_ms)) {
        http_accept_again(loop, now_ms);
        http_sweep(loop, now_ms);
    }
}

static void *run(void *arg)
{
    struct http_loop *loop = arg;
    http_loop_here = loop;
    context_open(loop);
    http_accept_begin(loop);
    sem_post(&loop->ready);
    while (!atomic_load_explicit(&loop->server->stopping, memory_order_acquire))
        turn(loop);
    loop->left = !wind_down(loop);
    if (!loop->left)
        context_close(loop);
    http_debts_thread();
    return NULL;
}

/* The inbox was empty, so the bell does not hang in the mailbox: see http_mailbox_read. */
static void ring(void *arg)
{
    struct http_loop *loop = arg;
    h2o_multithread_send_message(&loop->mailbox, &loop->bell);
}

static void wake(void *arg)
{
    http_loop_wake(arg);
}

enum status http_loop_new(struct http_server *server, unsigned index, struct error *err)
{
    struct http_loop *loop = mem_zalloc(sizeof *loop);
    server->loops[index] = loop;
    server->loop_count = index + 1;
    loop->server = server;
    loop->index = index;
    list_init(&loop->secured);
    list_init(&loop->ended);
    list_init(&loop->lingers);
    inbox_init(&loop->answers, ring, loop);
    inbox_init(&loop->given, wake, loop);
    CHECK(sem_init(&loop->ready, 0, 0) == 0);
    for (size_t i = 0; i < HTTP_LISTENS_MAX; i++)
        loop->listen_fds[i] = -1;
    for (size_t i = 0; i < server->options.listen_count; i++) {
        loop->listen_fds[i] = fcntl(server->listen_fds[i], F_DUPFD_CLOEXEC, 0);
        if (loop->listen_fds[i] < 0)
            return error_set(err, STATUS_IO, "http: too many open files to listen on every thread");
    }
    return STATUS_OK;
}

enum status http_loop_start(struct http_loop *loop, struct error *err)
{
    char name[16];
    snprintf(name, sizeof name, "%s-%u", loop->server->name, loop->index);
    /* libh2o writes without MSG_NOSIGNAL: SIGPIPE must be blocked, as thread_start does. */
    loop->started = thread_start(&loop->thread, name, run, loop) == 0;
    if (!loop->started)
        return error_set(err, STATUS_IO, "http: the system refused thread %u", loop->index);
    while (sem_wait(&loop->ready) != 0)
        ;
    return STATUS_OK;
}

void http_loop_join(struct http_loop *loop)
{
    if (loop->started)
        CHECK(pthread_join(loop->thread, NULL) == 0);
    for (size_t i = 0; !loop->started && i < HTTP_LISTENS_MAX; i++)
        if (loop->listen_fds[i] >= 0)
            close(loop->listen_fds[i]);
    sem_destroy(&loop->ready);
    if (!loop->left) {
        inbox_destroy(&loop->answers);
        inbox_destroy(&loop->given);
    }
}

void http_loop_hold(struct http_loop *loop, bool hold)
{
    if (hold)
        atomic_fetch_add(&loop->holds, 1);
    else
        atomic_fetch_sub_explicit(&loop->holds, 1, memory_order_release);
}

void http_loop_wake(struct http_loop *loop)
{
    h2o_multithread_send_message(&loop->mailbox, NULL);
}
