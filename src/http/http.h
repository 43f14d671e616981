/* The wall around libh2o: HTTP/1.1 in, nothing else of it visible. A server is N loops (threads) that share
 * the listening sockets. A handler is called on a loop when a request is complete and answers then or later,
 * from any thread. Everything a stranger can make large is bounded here: heads, bodies, time, connections,
 * and the unhandled input of all connections together. */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metrics/metrics.h"
#include "util/bytes.h"
#include "util/status.h"

struct http_header {
    struct bytes name, value;
};

/* A complete request. All bytes are borrowed from the connection and valid until the handler returns, even if
 * it has answered already; what must live on is copied. */
struct http_request {
    struct bytes method;
    struct bytes path;   /* raw target before '?' */
    struct bytes query;  /* after it; absent when there is none */
    struct bytes target; /* whole */
    /* In the order sent, values trimmed. Names as sent, but that Host, Content-Length, Transfer-Encoding,
     * Expect and Upgrade are spelled so. */
    const struct http_header *headers;
    size_t header_count;
    struct bytes body;              /* never absent */
    struct bytes remote_ip;         /* text; v4-mapped as v4 */
    bool kept;                      /* not the first request of its connection */
    struct bytes invalid_header;    /* name of the first header with a byte outside 0x20-0x7E and tab in its
                                       value; absent when there is none. See http_options.judges_headers */
    struct bytes client_cert;       /* SHA-256 of the certificate (DER) that the client proved to hold, as 64
                                       lower-case hex digits; absent without TLS or without a certificate */
    unsigned loop;                  /* 0 .. threads-1: whose thread this is */
    struct http_exchange *exchange; /* answer to this */
};

/* On a loop thread. Must lead to exactly one http_answer or http_drop of request->exchange, now or later.
 * Must not block. */
typedef void (*http_handler)(void *ctx, const struct http_request *request);

/* A request refused by the wall itself (before any handler), for the metrics: a static reason, one of
 * "bad_request", "invalid_header", "body_read_failed", "payload_too_large", "expectation_failed", "timeout"
 * (handshake, head, body, or an answer not taken), "memory", "connections", "tls_handshake". A head that
 * can't be parsed at all is answered by libh2o and not told. Loop thread; several may call at once. */
typedef void (*http_on_refused)(void *ctx, const char *reason);

/* Files in PEM. `cert` begins with the server's own certificate, intermediate ones follow. */
struct http_tls_options {
    const char *cert, *key;
    const char *client_ca; /* NULL, or: only clients with a certificate that leads to one of these get in */
    bool asks_client; /* without client_ca: clients are asked for a certificate and any one is taken; what
                         it is worth is for the reader of http_request.client_cert to say */
};

struct http_options {
    const char *const *listen; /* "127.0.0.1:4000", "[::1]:0", ... ; port 0 picks one */
    size_t listen_count;
    unsigned threads; /* at least 1 */
    const char *name; /* of threads and in logs: "ingest", "admin" */
    size_t max_body_bytes;
    size_t max_buffered_bytes; /* all connections together; the slowest is shut first */
    int64_t header_timeout_ms, body_timeout_ms, idle_timeout_ms;
    int64_t close_timeout_ms;           /* how long http_close waits for open exchanges; 0: ten seconds */
    size_t max_connections;             /* beyond it the newest is closed */
    const struct http_tls_options *tls; /* NULL: plain. Needed by http_bind only */
    http_handler handler;
    bool judges_headers;        /* the handler looks at invalid_header; otherwise the wall answers 400 */
    http_on_refused on_refused; /* may be NULL */
    void *ctx;                  /* of both */
    struct metrics *metrics;    /* may be NULL */
};

struct http_server;

/* Binds and listens: clients may connect, and wait. Options are copied. On failure `err` names the address
 * and what to do; nothing is left open. */
enum status http_bind(const struct http_options *options, struct http_server **out, struct error *err);
/* Starts the loops: from here on the handler is called. Once; on failure http_close is still due. */
enum status http_start(struct http_server *server, struct error *err);
/* Both at once; nothing is left open on failure. */
enum status http_open(const struct http_options *options, struct http_server **out, struct error *err);

/* Would these files do? INVALID with a sentence that begins with the option's name ("key: ..."). */
enum status http_tls_check(const struct http_tls_options *options, struct error *err);
/* Reads the files again, or other ones: in force from the next accepted connection on; those that are open
 * keep what they have. NULL: plain from now on. On failure nothing has changed. Any thread. */
enum status http_tls_reload(struct http_server *server, const struct http_tls_options *options,
                            struct error *err);

/* "127.0.0.1:4000": the i-th listen address with its real port. Lives as long as the server. */
const char *http_address(const struct http_server *server, size_t i);
unsigned http_threads(const struct http_server *server);

/* Answers: any thread, exactly once an exchange; everything is copied before it returns. On the loop's own
 * thread the answer is sent at once; answers given in a row by another thread wake a loop once. The client
 * may be gone: then nothing happens. 204 and 304 have no body, nor has an answer to HEAD. The connection of a
 * chunked request is closed behind its answer in any case. */
#define HTTP_ANSWER_HEADERS_MAX 16
struct http_answer {
    int status;
    const char *type; /* NULL: application/json */
    struct bytes body;
    const struct http_header *headers; /* clean: what comes from a request is percent-encoded */
    size_t header_count;               /* at most HTTP_ANSWER_HEADERS_MAX */
    bool close;                        /* close the connection behind it */
};
void http_answer(struct http_exchange *exchange, const struct http_answer *answer);
/* Closes the connection without an answer. Any thread. Instead of http_answer. */
void http_drop(struct http_exchange *exchange);

/* Around many answers in a row on a thread that is no loop's: between the two calls they are kept back, then
 * each loop gets all of its own with one wake. No http_close may wait for them meanwhile. */
void http_answers_hold(void);
void http_answers_release(void);

/* An answer that goes on: status 200, chunked, the connection closed at its end. The handle is the opener's,
 * and good until http_stream_end, whatever becomes of the client. */
struct http_stream;
struct http_stream_options {
    const char *type; /* static: "text/event-stream" */
    const struct http_header *headers;
    size_t header_count;
    struct bytes greeting;     /* goes out with the head; not empty (":\n\n") */
    size_t max_buffered_bytes; /* what may wait for a client that takes it slowly */
    /* The client is gone, took nothing for idle_timeout_ms, or the server drains: nothing that is written
     * arrives any more. On the loop's thread, at most once, and never after http_stream_end has returned;
     * must not call the stream. May be NULL. */
    void (*closed)(void *ctx);
    void *ctx;
};
/* Instead of http_answer; inside the handler only. */
struct http_stream *http_stream_open(struct http_exchange *exchange,
                                     const struct http_stream_options *options);
/* Copies. All of it or nothing: FULL over max_buffered_bytes, NOT_FOUND when the answer is over. Any thread.
 */
enum status http_stream_write(struct http_stream *stream, struct bytes text);
/* Gives the handle back; what was written goes out, then the connection ends. Any thread, also after
 * http_close. */
void http_stream_end(struct http_stream *stream);

/* The sentence for a status code ("Created"). */
const char *http_reason(int status);

/* First step of going down: accepts what waits in the backlog, closes the listeners; from now on every answer
 * closes its connection and idle ones are closed. Handlers still run. Any thread; returns at once. */
void http_drain(struct http_server *server);
/* True when http_drain was called, the backlog is taken, no exchange is open, and no request is half here (of
 * those that do not arrive for a second nobody waits). */
bool http_drained(struct http_server *server);
/* Stops the loops, closes what is still connected and frees everything. Every exchange must be answered or
 * dropped by then, or be so within close_timeout_ms by a thread that still runs. If one is not, because its
 * owner is stuck, the log says so ("http_exchanges_left"), and what a late answer touches is left in memory:
 * it does no harm then. Not on a loop thread. */
void http_close(struct http_server *server);

#endif
