/* An answer that goes on. Its owner writes from any thread into a bounded buffer; the loop hands that to
 * libh2o, one write at a time. Three may hold a stream: its owner, its connection, and a message on its way
 * to the loop.
 *
 * libh2o neither reads nor polls while an answer is under way, so the sweep asks the kernel whether the
 * client is still there. And it ends a connection inside the call that sends the last bytes, which must not
 * happen while it walks its list: whoever walks posts a message instead. */
#include <poll.h>
#include <stdlib.h>

#include "http/http_priv.h"
#include "util/check.h"
#include "util/mem.h"

struct http_stream {
    h2o_generator_t generator; /* first: libh2o hands it back */
    h2o_multithread_message_t message;
    struct http_stream_options options;

    pthread_mutex_t lock; /* of what follows */
    int refs;
    struct http_conn *conn; /* NULL once the answer is over */
    struct buf waiting;
    size_t writing_bytes;
    bool posted, ended;

    /* The loop's own. */
    struct buf writing;
    bool busy; /* libh2o has `writing`, or the head */
    unsigned written, seen_written;
    int64_t stuck_since_ms;
};

static void release(struct http_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    bool last = --stream->refs == 0;
    pthread_mutex_unlock(&stream->lock);
    if (!last)
        return;
    buf_free(&stream->waiting);
    buf_free(&stream->writing);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

/* Under the lock, while there is a connection: its loop can't leave before the message is read. */
static void post(struct http_stream *stream)
{
    if (stream->posted)
        return;
    stream->posted = true;
    stream->refs++;
    http_loop_hold(stream->conn->loop, true);
    h2o_multithread_send_message(&stream->conn->loop->stream_mailbox, &stream->message);
}

/* Under the lock: once, and never behind the owner's own end. */
static void tell_closed(struct http_stream *stream)
{
    if (!stream->ended && stream->options.closed)
        stream->options.closed(stream->options.ctx);
    stream->ended = true;
}

/* The answer is over; on the loop, once. */
static void detach(struct http_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    struct http_conn *conn = stream->conn;
    stream->conn = NULL;
    tell_closed(stream);
    pthread_mutex_unlock(&stream->lock);
    conn->stream = NULL;
    atomic_fetch_sub_explicit(&conn->loop->streams, 1, memory_order_release);
    release(stream);
}

/* Sends what waits, or ends the answer when that is wished and nothing waits. */
static void pump(struct http_stream *stream, h2o_req_t *req)
{
    if (stream->busy)
        return;
    pthread_mutex_lock(&stream->lock);
    struct buf empty = stream->writing;
    stream->writing = stream->waiting;
    stream->waiting = empty;
    stream->writing_bytes = stream->writing.len;
    bool over = stream->ended || stream->conn->loop->draining;
    pthread_mutex_unlock(&stream->lock);

    h2o_iovec_t piece = h2o_iovec_init(stream->writing.at, stream->writing.len);
    if (piece.len > 0) {
        stream->busy = true;
        h2o_send(req, &piece, 1, H2O_SEND_STATE_IN_PROGRESS);
    } else if (over) {
        detach(stream);
        h2o_send(req, NULL, 0, H2O_SEND_STATE_FINAL);
    }
}

static void on_written(h2o_generator_t *generator, h2o_req_t *req)
{
    struct http_stream *stream = (struct http_stream *)generator;
    pthread_mutex_lock(&stream->lock);
    stream->writing_bytes = 0;
    pthread_mutex_unlock(&stream->lock);
    buf_clear(&stream->writing);
    stream->busy = false;
    stream->written++;
    pump(stream, req);
}

static void on_gone(h2o_generator_t *generator, h2o_req_t *req)
{
    (void)req;
    detach((struct http_stream *)generator);
}

static void start(struct http_stream *stream, struct http_conn *conn, h2o_req_t *req)
{
    const struct http_stream_options *options = &stream->options;
    req->res.status = 200;
    req->res.reason = http_reason(200);
    req->http1_is_persistent = 0; /* its end is the end of the connection */
    h2o_add_header(&req->pool, &req->res.headers, H2O_TOKEN_CONTENT_TYPE, NULL, options->type,
                   strlen(options->type));
    for (size_t i = 0; i < options->header_count; i++)
        h2o_add_header_by_str(&req->pool, &req->res.headers, options->headers[i].name.at,
                              options->headers[i].name.len, 0, NULL, options->headers[i].value.at,
                              options->headers[i].value.len);
    conn->answering = true;
    stream->busy = true;
    buf_putb(&stream->writing, options->greeting);
    h2o_iovec_t greeting = h2o_iovec_init(stream->writing.at, stream->writing.len);
    h2o_start_response(req, &stream->generator);
    h2o_send(req, &greeting, 1, H2O_SEND_STATE_IN_PROGRESS); /* nothing would not send the head either */
    conn->answering = false;
    stream->options.headers = NULL; /* the caller's */
    stream->options.greeting = BYTES_NONE;
}

struct http_stream *http_stream_open(struct http_exchange *exchange,
                                     const struct http_stream_options *options)
{
    struct http_conn *conn;
    h2o_req_t *req = http_exchange_take(exchange, &conn);
    CHECK(req && options->type && options->greeting.len > 0);
    struct http_stream *stream = mem_zalloc(sizeof *stream);
    stream->generator = (h2o_generator_t){.proceed = on_written, .stop = on_gone};
    stream->options = *options;
    stream->refs = 2; /* the caller's and the connection's */
    stream->conn = conn;
    pthread_mutex_init(&stream->lock, NULL);
    conn->stream = stream;
    conn->stream_req = req;
    atomic_fetch_add_explicit(&conn->loop->streams, 1, memory_order_relaxed);
    start(stream, conn, req);
    return stream;
}

enum status http_stream_write(struct http_stream *stream, struct bytes text)
{
    enum status status = STATUS_OK;
    pthread_mutex_lock(&stream->lock);
    if (!stream->conn)
        status = STATUS_NOT_FOUND;
    else if (stream->waiting.len + stream->writing_bytes + text.len > stream->options.max_buffered_bytes)
        status = STATUS_FULL;
    if (status == STATUS_OK) {
        buf_putb(&stream->waiting, text);
        post(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    return status;
}

void http_stream_end(struct http_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->ended = true;
    if (stream->conn)
        post(stream);
    pthread_mutex_unlock(&stream->lock);
    release(stream);
}

void http_streams_read(h2o_multithread_receiver_t *receiver, h2o_linklist_t *messages)
{
    struct http_loop *loop = LIST_OWNER(receiver, struct http_loop, stream_mailbox);
    while (!h2o_linklist_is_empty(messages)) {
        h2o_multithread_message_t *message =
            H2O_STRUCT_FROM_MEMBER(h2o_multithread_message_t, link, messages->next);
        h2o_linklist_unlink(&message->link);
        struct http_stream *stream = LIST_OWNER(message, struct http_stream, message);
        pthread_mutex_lock(&stream->lock);
        stream->posted = false;
        struct http_conn *conn = stream->conn;
        pthread_mutex_unlock(&stream->lock);
        if (conn)
            pump(stream, conn->stream_req);
        release(stream);
        http_loop_hold(loop, false);
    }
}

/* Under TLS the end may be a farewell without a FIN: whoever listens has nothing else to send. */
static bool client_left(const struct http_conn *conn)
{
    struct pollfd end = {.fd = h2o_socket_get_fd(conn->sock),
                         .events = conn->secure.ctx ? POLLRDHUP | POLLIN : POLLRDHUP};
    return poll(&end, 1, 0) > 0;
}

void http_stream_shut(struct http_conn *conn)
{
    struct http_stream *stream = conn->stream;
    http_conn_shut(conn, false);
    pthread_mutex_lock(&stream->lock);
    tell_closed(stream);
    post(stream);
    pthread_mutex_unlock(&stream->lock);
}

bool http_stream_look(struct http_conn *conn, int64_t now_ms)
{
    struct http_stream *stream = conn->stream;
    if (!stream->busy || stream->written != stream->seen_written || stream->stuck_since_ms == 0)
        stream->stuck_since_ms = now_ms;
    stream->seen_written = stream->written;
    if (now_ms - stream->stuck_since_ms >= conn->loop->server->options.idle_timeout_ms)
        return false;
    if (client_left(conn)) {
        http_stream_shut(conn);
    } else if (conn->loop->draining) {
        pthread_mutex_lock(&stream->lock);
        post(stream);
        pthread_mutex_unlock(&stream->lock);
    }
    return true;
}
