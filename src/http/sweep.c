/* libh2o has one timer for a whole request and no bound on the input it holds, so every loop looks over its
 * connections a few times a second: who is in which phase since when, and how much unhandled input they hold
 * together. Who is over time, and while there is too much input the slowest, is shut down; the read that
 * notices it closes the connection. Nothing is closed while libh2o walks its list.
 *
 *   IDLE ──first byte──▶ HEAD ──head complete──▶ BODY ──complete──▶ HANDLING ──answer──▶ SENDING ──▶ IDLE
 *                                                        └──▶ STREAM
 *
 * A connection between two sweeps counts as in the phase it was last seen in; times are exact to one sweep.
 */
#include <stdlib.h>
#include <sys/ioctl.h>

#include "http/http_priv.h"
#include "util/clock.h"
#include "util/vec.h"

/* Sweeping costs some 0.1 us a connection. A loop that is awake anyway sweeps more often while that is cheap,
 * and much more often while there is something to fear, so that little can arrive unseen between two looks.
 */
#define HTTP_SWEEP_CHEAP_MS 20
#define HTTP_SWEEP_CHEAP_CONNECTIONS 1000
#define HTTP_SWEEP_FEAR_MS 2 /* from a quarter of max_buffered_bytes on */

/* Shutting a connection that holds less than this frees nothing worth it; such go last. */
#define HTTP_SHED_LEAST_BYTES (16 * 1024)
/* How long a burst is remembered: one that came fast and then stalls is soon slower than one that drips. */
#define HTTP_PACE_MEMORY_MS 1000

struct sweep {
    struct http_loop *loop;
    int64_t now_ms;
    size_t held;
    size_t half_here; /* requests begun but not complete, while draining */
    VEC(struct http_conn *) holders;
};

enum http_phase http_phase_of(const struct http_conn *conn, const h2o_req_t *req)
{
    if (conn->stream)
        return PHASE_STREAM;
    if (conn->req)
        return PHASE_HANDLING;
    if (h2o_socket_is_writing(conn->sock))
        return PHASE_SENDING;
    if (req->version != 0)
        return PHASE_BODY;
    return conn->sock->input->size > 0 ? PHASE_HEAD : PHASE_IDLE;
}

static int64_t limit_ms(const struct http_options *options, enum http_phase phase)
{
    switch (phase) {
    case PHASE_HEAD:
        return options->header_timeout_ms;
    case PHASE_BODY:
        return options->body_timeout_ms;
    case PHASE_IDLE:
    case PHASE_SENDING: /* a client that does not take its answer is as good as idle */
        return options->idle_timeout_ms;
    case PHASE_HANDLING: /* the handler's owner has its own limits */
    case PHASE_STREAM:   /* stream.c has */
        break;
    }
    return INT64_MAX;
}

static void cut_off(struct http_conn *conn, const char *reason)
{
    http_refuse_count(conn->loop->server, reason);
    http_conn_shut(conn, true);
}

/* Kept connections that say nothing are closed at once, new ones get the grace to say their first word, as
 * does a request that has begun to arrive. */
static void drain(struct sweep *sweep, struct http_conn *conn, enum http_phase phase)
{
    bool grace = sweep->now_ms - sweep->loop->drain_since_ms < HTTP_DRAIN_GRACE_MS;
    int unread = 0;
    if (phase == PHASE_HANDLING || phase == PHASE_SENDING)
        return;
    if (phase == PHASE_IDLE)
        ioctl(h2o_socket_get_fd(conn->sock), FIONREAD, &unread);
    if (phase == PHASE_IDLE && unread == 0 && (conn->requests > 0 || !grace))
        http_conn_end(conn);
    else if (grace)
        sweep->half_here++;
}

/* A new request begins with the pace of what is here already, as if it had come at once. */
static void measure(struct http_conn *conn, int64_t now_ms, bool is_new)
{
    size_t held = conn->sock->input->size;
    double passed_ms = (double)(now_ms - conn->looked_ms);
    if (is_new)
        conn->pace = (double)held;
    else if (passed_ms > 0)
        conn->pace += (((double)held - (double)conn->held) / passed_ms - conn->pace) * passed_ms /
                      (passed_ms + HTTP_PACE_MEMORY_MS);
    conn->held = held;
    conn->looked_ms = now_ms;
}

static int look_at(h2o_req_t *req, void *arg)
{
    struct sweep *sweep = arg;
    struct http_conn *conn = http_conn_of(req);
    conn->seen_ms = sweep->now_ms;
    if (conn->shut)
        return 0;

    enum http_phase phase = http_phase_of(conn, req), before = conn->phase;
    if (phase == PHASE_STREAM) {
        if (!http_stream_look(conn, sweep->now_ms)) {
            http_refuse_count(sweep->loop->server, "timeout");
            http_stream_shut(conn);
        }
        return 0;
    }
    bool is_next = conn->requests != conn->seen_requests;
    if (phase != before || is_next) {
        conn->phase = phase;
        conn->phase_since_ms = sweep->now_ms;
        conn->seen_requests = conn->requests;
    }
    if (sweep->now_ms - conn->phase_since_ms >= limit_ms(&sweep->loop->server->options, phase)) {
        if (phase == PHASE_IDLE)
            http_conn_end(conn);
        else
            cut_off(conn, "timeout");
        return 0;
    }
    if (phase == PHASE_HEAD || phase == PHASE_BODY) {
        measure(conn, sweep->now_ms, is_next || (before != PHASE_HEAD && before != PHASE_BODY));
        sweep->held += conn->held;
        VEC_PUSH(&sweep->holders, conn);
    }
    if (sweep->loop->draining)
        drain(sweep, conn, phase);
    return 0;
}

static int slowest_first(const void *left, const void *right)
{
    const struct http_conn *a = *(struct http_conn *const *)left, *b = *(struct http_conn *const *)right;
    bool a_little = a->held < HTTP_SHED_LEAST_BYTES, b_little = b->held < HTTP_SHED_LEAST_BYTES;
    if (a_little != b_little)
        return a_little - b_little;
    return (a->pace > b->pace) - (a->pace < b->pace);
}

/* This loop frees its share of what all loops together hold too much. */
static void shed(struct sweep *sweep)
{
    size_t all = http_buffered(sweep->loop->server), bound = sweep->loop->server->options.max_buffered_bytes;
    if (all <= bound || sweep->holders.len == 0)
        return;
    double share = (double)sweep->held / (double)all;
    size_t excess = (size_t)((double)(all - bound) * share) + 1;
    size_t freed = 0;

    qsort(sweep->holders.at, sweep->holders.len, sizeof *sweep->holders.at, slowest_first);
    for (size_t i = 0; i < sweep->holders.len && freed < excess; i++) {
        cut_off(sweep->holders.at[i], "memory");
        freed += sweep->holders.at[i]->held;
    }
    atomic_store_explicit(&sweep->loop->buffered, sweep->held - freed, memory_order_relaxed);
}

size_t http_buffered(const struct http_server *server)
{
    size_t all = 0;
    for (unsigned i = 0; i < server->loop_count; i++)
        all += atomic_load_explicit(&server->loops[i]->buffered, memory_order_relaxed);
    return all;
}

static void set_gauges(struct http_server *server)
{
    if (!server->connections_gauge)
        return;
    gauge_set(server->connections_gauge,
              (double)atomic_load_explicit(&server->connections, memory_order_relaxed));
    gauge_set(server->buffered_gauge, (double)http_buffered(server));
}

bool http_sweep_due(const struct http_loop *loop, int64_t now_ms)
{
    int64_t every_ms = HTTP_SWEEP_MS;
    if (http_buffered(loop->server) > loop->server->options.max_buffered_bytes / 4)
        every_ms = HTTP_SWEEP_FEAR_MS;
    else if (loop->draining || atomic_load_explicit(&loop->connection_count, memory_order_relaxed) <=
                                   HTTP_SWEEP_CHEAP_CONNECTIONS)
        every_ms = HTTP_SWEEP_CHEAP_MS;
    return now_ms - loop->swept_ms >= every_ms;
}

void http_sweep(struct http_loop *loop, int64_t now_ms)
{
    struct sweep sweep = {.loop = loop, .now_ms = now_ms};
    bool awaits = atomic_load(&loop->holds) > 0; /* perhaps a connection of another loop */
    http_accept_given(loop);
    loop->swept_ms = now_ms;
    loop->server->conf.http1.callbacks.foreach_request(&loop->h2o, look_at, &sweep);
    sweep.half_here += http_secure_sweep(loop, now_ms);
    atomic_store_explicit(&loop->buffered, sweep.held, memory_order_relaxed);
    shed(&sweep);
    VEC_FREE(&sweep.holders);
    http_lingers_expire(loop, now_ms);
    if (loop->draining)
        atomic_store_explicit(&loop->drained, sweep.half_here == 0 && !awaits, memory_order_release);
    if (loop->index == 0)
        set_gauges(loop->server);
}
