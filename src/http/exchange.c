/* The answer to a request. Given on the loop's own thread it goes out at once; given on another thread it is
 * copied into the exchange, posted to the loop (mailbox.c) and sent when the loop gets to it. libh2o does not
 * touch a request between its handler and its answer, but the socket can be closed by us: then conn->req is
 * NULL and nothing is sent. */
#include <string.h>

#include "http/http_priv.h"
#include "util/check.h"

#define JSON_TYPE "application/json"

static struct http_conn *conn_of(struct http_exchange *exchange)
{
    return LIST_OWNER(exchange, struct http_conn, exchange);
}

/* One writer, so a plain add is enough. */
static void exchanges_add(struct http_loop *loop, size_t n)
{
    size_t now = atomic_load_explicit(&loop->exchanges, memory_order_relaxed);
    atomic_store_explicit(&loop->exchanges, now + n, memory_order_release);
}

void http_exchange_open(struct http_conn *conn, h2o_req_t *req)
{
    CHECK(atomic_load_explicit(&conn->exchange.state, memory_order_relaxed) == EXCHANGE_NONE);
    atomic_store_explicit(&conn->exchange.state, EXCHANGE_OPEN, memory_order_release);
    conn->req = req;
    exchanges_add(conn->loop, 1);
}

static bool is_bodiless(int status)
{
    return status == 204 || status == 304;
}

/* `body` must stay until the write is done: memory of the request's pool or of the exchange. */
static void send_answer(struct http_conn *conn, h2o_req_t *req, const struct http_answer *answer,
                        h2o_iovec_t body)
{
    static h2o_generator_t generator; /* no callbacks: everything is given at once */
    const char *type = answer->type ? answer->type : JSON_TYPE;
    size_t bodies = 0;

    req->res.status = answer->status;
    req->res.reason = http_reason(answer->status);
    if (answer->close || conn->close_after ||
        atomic_load_explicit(&conn->loop->server->draining, memory_order_relaxed))
        req->http1_is_persistent = 0;
    if (!is_bodiless(answer->status)) {
        req->res.content_length = body.len;
        h2o_add_header(&req->pool, &req->res.headers, H2O_TOKEN_CONTENT_TYPE, NULL, type, strlen(type));
        bodies =
            body.len > 0 && !h2o_memis(req->input.method.base, req->input.method.len, H2O_STRLIT("HEAD"));
    }
    for (size_t i = 0; i < answer->header_count; i++) {
        const struct http_header *header = &answer->headers[i];
        h2o_add_header_by_str(&req->pool, &req->res.headers, header->name.at, header->name.len, 0, NULL,
                              header->value.at, header->value.len);
    }
    conn->answering = true;
    h2o_start_response(req, &generator);
    h2o_send(req, &body, bodies, H2O_SEND_STATE_FINAL);
    conn->answering = false;
}

/* There is no call to close a connection of libh2o's: it does so itself when its write fails. */
static void drop(struct http_conn *conn, h2o_req_t *req)
{
    http_conn_shut(conn, false);
    send_answer(conn, req, &(struct http_answer){.status = 500, .close = true}, h2o_iovec_init(NULL, 0));
}

/* libh2o stops reading while a request is answered, and would take the socket out of its poll and put it back
 * for every answer that comes later: two system calls a request. So it is left there, unread: what comes
 * early (the next request, or the end) is not touched before the answer, since it would move the input that
 * the request at hand lives in; it only ends the waiting. */
static void on_early(h2o_socket_t *sock, const char *err)
{
    (void)err;
    h2o_socket_read_stop(sock);
}

void http_exchange_await(struct http_conn *conn)
{
    if (!conn->req)
        return; /* answered already */
    h2o_socket_dont_read(conn->sock, 1);
    h2o_socket_read_start(conn->sock, on_early);
}

/* The exchange is over; gives the request to answer, or NULL when the client is gone. */
static h2o_req_t *finish(struct http_conn *conn)
{
    h2o_req_t *req = conn->req;
    if (req) {
        h2o_socket_read_stop(conn->sock);
        h2o_socket_dont_read(conn->sock, 0);
    }
    conn->req = NULL;
    atomic_store_explicit(&conn->exchange.state, EXCHANGE_NONE, memory_order_relaxed);
    exchanges_add(conn->loop, (size_t)-1);
    return req;
}

static h2o_iovec_t copy_to_pool(h2o_req_t *req, struct bytes text)
{
    if (text.len == 0)
        return h2o_iovec_init(NULL, 0);
    char *copy = h2o_mem_alloc_pool(&req->pool, text.len);
    memcpy(copy, text.at, text.len);
    return h2o_iovec_init(copy, text.len);
}

static struct bytes put(char **to, struct bytes text)
{
    struct bytes copy = bytes_of(*to, text.len);
    if (text.len)
        memcpy(*to, text.at, text.len);
    *to += text.len;
    return copy;
}

static void reply_fill(struct http_reply *reply, const struct http_answer *answer)
{
    struct bytes type = bytes_str(answer->type ? answer->type : JSON_TYPE);
    size_t size = type.len + 1 + answer->body.len;
    for (size_t i = 0; i < answer->header_count; i++)
        size += answer->headers[i].name.len + answer->headers[i].value.len;

    reply->drop = false;
    reply->status = answer->status;
    reply->close = answer->close;
    reply->header_count = answer->header_count;
    reply->copy = size <= sizeof reply->small ? reply->small : h2o_mem_alloc_shared(NULL, size, NULL);
    char *to = reply->copy;
    reply->type = put(&to, bytes_of(type.at, type.len + 1)); /* with its NUL */
    reply->body = put(&to, answer->body);
    for (size_t i = 0; i < answer->header_count; i++) {
        reply->headers[i].name = put(&to, answer->headers[i].name);
        reply->headers[i].value = put(&to, answer->headers[i].value);
    }
}

struct http_loop *http_exchange_loop(struct http_exchange *exchange)
{
    return conn_of(exchange)->loop;
}

void http_exchange_deliver(struct http_exchange *exchange)
{
    struct http_conn *conn = conn_of(exchange);
    struct http_reply *reply = &conn->exchange.reply;
    bool is_shared = !reply->drop && reply->copy != reply->small;
    h2o_req_t *req = finish(conn);

    if (req && reply->drop) {
        drop(conn, req);
    } else if (req) {
        struct http_answer answer = {.status = reply->status,
                                     .type = reply->type.at,
                                     .body = reply->body,
                                     .headers = reply->headers,
                                     .header_count = reply->header_count,
                                     .close = reply->close};
        if (is_shared)
            h2o_mem_link_shared(&req->pool, reply->copy);
        send_answer(conn, req, &answer, h2o_iovec_init(reply->body.at, reply->body.len));
    }
    if (is_shared)
        h2o_mem_release_shared(reply->copy);
    http_conn_release(conn);
}

/* Exactly once: a second answer is our own mistake. */
static void claim(struct http_exchange *exchange)
{
    CHECK(atomic_exchange_explicit(&exchange->state, EXCHANGE_ANSWERED, memory_order_acq_rel) ==
          EXCHANGE_OPEN);
}

void http_answer(struct http_exchange *exchange, const struct http_answer *answer)
{
    struct http_conn *conn = conn_of(exchange);
    CHECK(answer->header_count <= HTTP_ANSWER_HEADERS_MAX);
    claim(exchange);
    if (http_loop_here != conn->loop) {
        reply_fill(&exchange->reply, answer);
        http_mailbox_post(exchange);
        return;
    }
    h2o_req_t *req = finish(conn);
    if (req)
        send_answer(conn, req, answer, copy_to_pool(req, answer->body));
    http_conn_release(conn);
}

void http_drop(struct http_exchange *exchange)
{
    struct http_conn *conn = conn_of(exchange);
    claim(exchange);
    if (http_loop_here != conn->loop) {
        exchange->reply.drop = true;
        http_mailbox_post(exchange);
        return;
    }
    h2o_req_t *req = finish(conn);
    if (req)
        drop(conn, req);
    http_conn_release(conn);
}

void http_exchange_refuse(struct http_conn *conn, h2o_req_t *req, int status, struct bytes json)
{
    http_conn_linger(conn);
    send_answer(conn, req, &(struct http_answer){.status = status, .close = true}, copy_to_pool(req, json));
}

h2o_req_t *http_exchange_take(struct http_exchange *exchange, struct http_conn **conn)
{
    *conn = conn_of(exchange);
    CHECK(http_loop_here == (*conn)->loop);
    claim(exchange);
    return finish(*conn);
}
