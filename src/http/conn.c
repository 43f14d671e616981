/* A connection from accept to close, and the slow close of a refused one: closing a socket that has unread
 * input makes the kernel send a reset, which reaches many clients before they have read our answer. So a
 * second handle is kept over libh2o's close; it is half-closed, and what still comes is thrown away for a
 * while. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/http_priv.h"
#include "util/clock.h"
#include "util/mem.h"

struct lingering {
    struct list link;
    struct http_loop *loop;
    h2o_socket_t *sock;
    int64_t until_ms;
};

static void linger_end(struct lingering *linger)
{
    h2o_socket_close(linger->sock);
    list_remove(&linger->link);
    linger->loop->linger_count--;
    free(linger);
}

static void linger_read(h2o_socket_t *sock, const char *err)
{
    struct lingering *linger = sock->data;
    h2o_buffer_consume(&sock->input, sock->input->size);
    if (err || clock_mono_ms() >= linger->until_ms)
        linger_end(linger);
}

static void linger_begin(struct http_loop *loop, int fd)
{
    struct lingering *linger = mem_zalloc(sizeof *linger);
    shutdown(fd, SHUT_WR);
    linger->loop = loop;
    linger->sock = h2o_evloop_socket_create(loop->h2o.loop, fd, 0);
    linger->sock->data = linger;
    linger->until_ms = clock_mono_ms() + HTTP_LINGER_MS;
    list_append(&loop->lingers, &linger->link);
    h2o_socket_read_start(linger->sock, linger_read);
}

void http_lingers_expire(struct http_loop *loop, int64_t now_ms)
{
    LIST_EACH_SAFE (node, &loop->lingers) {
        struct lingering *linger = LIST_OWNER(node, struct lingering, link);
        if (now_ms < linger->until_ms)
            break; /* they stand in order of their ends */
        linger_end(linger);
    }
}

void http_conn_linger(struct http_conn *conn)
{
    if (conn->linger_fd >= 0 || conn->shut || conn->loop->linger_count == HTTP_LINGERS_MAX)
        return;
    conn->linger_fd = fcntl(h2o_socket_get_fd(conn->sock), F_DUPFD_CLOEXEC, 0);
    if (conn->linger_fd >= 0)
        conn->loop->linger_count++;
}

void http_conn_release(struct http_conn *conn)
{
    if (!conn->sock && atomic_load_explicit(&conn->exchange.state, memory_order_relaxed) == EXCHANGE_NONE)
        free(conn);
}

static void on_close(void *data)
{
    struct http_conn *conn = data;
    struct http_loop *loop = conn->loop;
    conn->sock = NULL;
    conn->req = NULL;
    http_secure_close(conn);
    atomic_fetch_sub_explicit(&loop->connection_count, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&loop->server->connections, 1, memory_order_relaxed);
    if (conn->linger_fd >= 0)
        linger_begin(loop, conn->linger_fd);
    http_conn_release(conn);
}

static size_t peer_text(h2o_socket_t *sock, char text[INET6_ADDRSTRLEN])
{
    struct sockaddr_storage peer = {0};
    const void *address = NULL;
    int family = AF_INET;

    text[0] = 0;
    if (h2o_socket_getpeername(sock, (struct sockaddr *)&peer) == 0)
        return 0; /* reset before it was accepted */
    if (peer.ss_family == AF_INET) {
        address = &((struct sockaddr_in *)&peer)->sin_addr;
    } else if (peer.ss_family == AF_INET6) {
        const struct in6_addr *six = &((struct sockaddr_in6 *)&peer)->sin6_addr;
        bool is_mapped = IN6_IS_ADDR_V4MAPPED(six);
        family = is_mapped ? AF_INET : AF_INET6;
        address = is_mapped ? (const void *)&six->s6_addr[12] : six;
    }
    return address && inet_ntop(family, address, text, INET6_ADDRSTRLEN) ? strlen(text) : 0;
}

void http_conn_open(struct http_loop *loop, h2o_socket_t *sock)
{
    struct http_server *server = loop->server;
    if (atomic_fetch_add_explicit(&server->connections, 1, memory_order_relaxed) >=
        server->options.max_connections) {
        atomic_fetch_sub_explicit(&server->connections, 1, memory_order_relaxed);
        atomic_fetch_sub_explicit(&loop->connection_count, 1, memory_order_relaxed);
        http_refuse_count(server, "connections");
        h2o_socket_close(sock);
        return;
    }
    struct http_conn *conn = mem_zalloc(sizeof *conn);
    conn->loop = loop;
    conn->sock = sock;
    conn->linger_fd = -1;
    conn->phase_since_ms = clock_mono_ms();
    conn->remote_ip_len = peer_text(sock, conn->remote_ip);
    sock->on_close.cb = on_close;
    sock->on_close.data = conn;
    http_secure_open(conn, http_tls_take(server));
    loop->accept_ctx.ssl_ctx = conn->secure.ctx; /* looked at once, in the call below */
    h2o_accept(&loop->accept_ctx, sock);
}

struct http_conn *http_conn_of(h2o_req_t *req)
{
    return req->conn->callbacks->get_socket(req->conn)->on_close.data;
}

/* What the kernel still holds would be read first. With MSG_TRUNC TCP throws it away without a copy. */
static void discard_unread(int fd)
{
    char unused[16 * 1024];
    while (recv(fd, unused, sizeof unused, MSG_TRUNC | MSG_DONTWAIT) > 0)
        ;
}

void http_conn_shut(struct http_conn *conn, bool reset)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (!conn->sock || conn->shut)
        return;
    int fd = h2o_socket_get_fd(conn->sock);
    if (reset)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    shutdown(fd, SHUT_RDWR);
    if (reset)
        discard_unread(fd);
    conn->shut = true;
}

void http_conn_end(struct http_conn *conn)
{
    if (!conn->sock || conn->ending)
        return;
    shutdown(h2o_socket_get_fd(conn->sock), SHUT_RD);
    conn->ending = true;
}
