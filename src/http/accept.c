/* Accepting, and sharing out what came. All loops wait for the same sockets, and on a quiet machine the one
 * that the system wakes first takes nearly every connection. So whoever accepts gives the connection to the
 * loop that has fewest, and keeps it only when it has hardly more itself: then nobody need be woken. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/http_priv.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

enum {
    ACCEPTS_A_TURN = 16,    /* so that a burst does not hold up the loop that takes it */
    ACCEPT_PAUSE_MS = 1000, /* when the system has no descriptor or memory left */
    UNEVEN = 2,             /* connections that a loop may have more than another before it gives */
};

/* On its way to another loop. Counts there already. */
struct accepted {
    struct list node;
    int fd;
};

/* `connection_count` has it. */
static void open_here(struct http_loop *loop, int fd)
{
    http_conn_open(loop,
                   h2o_evloop_socket_create(loop->h2o.loop, fd, H2O_SOCKET_FLAG_IS_ACCEPTED_CONNECTION));
}

static struct http_loop *least_busy(struct http_loop *here)
{
    const struct http_server *server = here->server;
    struct http_loop *least = here;
    size_t fewest = atomic_load_explicit(&here->connection_count, memory_order_relaxed);
    if (fewest <= UNEVEN || atomic_load_explicit(&server->draining, memory_order_relaxed))
        return here;
    fewest -= UNEVEN;
    for (unsigned i = 0; i < server->loop_count; i++) {
        struct http_loop *other = server->loops[i];
        size_t count = atomic_load_explicit(&other->connection_count, memory_order_relaxed);
        if (count < fewest && atomic_load_explicit(&other->takes, memory_order_relaxed)) {
            least = other;
            fewest = count;
        }
    }
    return least;
}

/* False: it has just stopped taking. A loop that goes down first says so and then looks for holds, here it is
 * the other way round: one of the two sees the other. */
static bool give(struct http_loop *loop, int fd)
{
    http_loop_hold(loop, true);
    bool takes = atomic_load(&loop->takes);
    if (takes) {
        struct accepted *accepted = mem_alloc(sizeof *accepted);
        *accepted = (struct accepted){.fd = fd};
        atomic_fetch_add(&loop->connection_count, 1);
        inbox_put(&loop->given, &accepted->node);
    }
    http_loop_hold(loop, false);
    return takes;
}

void http_accept_given(struct http_loop *loop)
{
    struct list given = LIST_INIT(given);
    inbox_take(&loop->given, &given);
    for (struct list *node; (node = list_pop(&given));) {
        struct accepted *accepted = LIST_OWNER(node, struct accepted, node);
        open_here(loop, accepted->fd);
        free(accepted);
    }
}

static void pause_all(struct http_loop *loop, bool pause);

/* False when nothing waits any more. */
static bool accept_one(struct http_loop *loop, h2o_socket_t *listener)
{
    int fd = accept4(h2o_socket_get_fd(listener), NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        struct http_loop *taker = least_busy(loop);
        if (taker == loop || !give(taker, fd)) {
            atomic_fetch_add(&loop->connection_count, 1);
            open_here(loop, fd);
        }
        return true;
    }
    if (errno == ECONNABORTED || errno == EINTR)
        return true;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
        /* Out of descriptors or memory: the socket stays readable, and the loop would spin on it. */
        log_event(LOG_ERROR, "http_accept_failed", LOG_STR("server", loop->server->name),
                  LOG_INT("errno", errno));
        pause_all(loop, true);
    }
    return false;
}

static void on_acceptable(h2o_socket_t *listener, const char *err)
{
    struct http_loop *loop = listener->data;
    for (int i = 0; !err && i < ACCEPTS_A_TURN && accept_one(loop, listener); i++)
        ;
}

static void pause_all(struct http_loop *loop, bool pause)
{
    loop->accept_paused = pause;
    loop->accept_paused_ms = clock_mono_ms();
    for (size_t i = 0; loop->accepting && i < loop->server->options.listen_count; i++) {
        if (pause)
            h2o_socket_read_stop(loop->listeners[i]);
        else
            h2o_socket_read_start(loop->listeners[i], on_acceptable);
    }
}

void http_accept_begin(struct http_loop *loop)
{
    for (size_t i = 0; i < loop->server->options.listen_count; i++) {
        loop->listeners[i] =
            h2o_evloop_socket_create(loop->h2o.loop, loop->listen_fds[i], H2O_SOCKET_FLAG_DONT_READ);
        loop->listeners[i]->data = loop;
        loop->listen_fds[i] = -1;
    }
    loop->accepting = true;
    pause_all(loop, false);
    atomic_store(&loop->takes, true);
}

void http_accept_again(struct http_loop *loop, int64_t now_ms)
{
    if (loop->accept_paused && now_ms - loop->accept_paused_ms >= ACCEPT_PAUSE_MS)
        pause_all(loop, false);
}

/* What waits in the backlog would be reset with the last handle of its socket. */
void http_accept_end(struct http_loop *loop)
{
    atomic_store(&loop->takes, false);
    http_accept_given(loop);
    if (!loop->accepting)
        return;
    for (size_t i = 0; i < loop->server->options.listen_count; i++) {
        while (accept_one(loop, loop->listeners[i]))
            ;
        h2o_socket_close(loop->listeners[i]);
    }
    loop->accepting = false;
}
