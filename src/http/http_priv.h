/* Inside the wall: a server, its loops, a connection and its one exchange. Everything here belongs to a
 * loop's thread unless it is atomic or a comment says otherwise. README.md says what each file is. */
#ifndef HTTP_HTTP_PRIV_H
#define HTTP_HTTP_PRIV_H

#include <h2o.h>
#include <h2o/http1.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "http/http.h"
#include "util/inbox.h"
#include "util/list.h"

#define HTTP_LISTENS_MAX 16
#define HTTP_THREADS_MAX 256
#define HTTP_LINGERS_MAX 256     /* a loop; beyond it a refused connection is closed at once */
#define HTTP_LINGER_MS 1000      /* how long a refused client may go on sending */
#define HTTP_SWEEP_MS 250        /* the longest time between two sweeps of a loop */
#define HTTP_DRAIN_GRACE_MS 1000 /* a request half here when draining began is waited for so long */
#define HTTP_CLOSE_MS 10000      /* close_timeout_ms, unless it is given */

/* The one answer of an exchange, on its way from another thread. */
struct http_reply {
    int status;
    bool close, drop;
    struct bytes type, body;
    struct http_header headers[HTTP_ANSWER_HEADERS_MAX];
    size_t header_count;
    char *copy; /* holds what the fields above borrow: `small`, or memory of h2o_mem_alloc_shared */
    char small[384];
};

enum exchange_state { EXCHANGE_NONE, EXCHANGE_OPEN, EXCHANGE_ANSWERED };

/* One a connection, since HTTP/1.1 answers in order. Used again for the next request. */
struct http_exchange {
    struct list node; /* answered by another thread: held there, then in loop->answers */
    atomic_int state; /* enum exchange_state */
    struct http_reply reply;
};

/* What a connection is doing, for the sweep. */
enum http_phase { PHASE_IDLE, PHASE_HEAD, PHASE_BODY, PHASE_HANDLING, PHASE_SENDING, PHASE_STREAM };

#define HTTP_FINGERPRINT_BYTES 32

/* What a connection under TLS has more. secure.c */
struct http_secure {
    SSL_CTX *ctx;             /* a reference; NULL: the connection is plain */
    struct list link;         /* in loop->secured */
    struct list ended;        /* in loop->ended, once the client has said that it sends no more */
    bool shaken;              /* the handshake is done */
    unsigned char record[64]; /* the last one written, while it is not */
    size_t record_len;        /* 0: a longer one */
    char fingerprint[2 * HTTP_FINGERPRINT_BYTES + 1]; /* of the client's certificate, or "" */
};

/* Ours beside libh2o's connection, found through sock->on_close.data. Lives until the socket is closed and no
 * exchange is open any more. */
struct http_conn {
    struct http_exchange exchange;
    struct http_loop *loop;
    h2o_socket_t *sock; /* NULL once closed */
    h2o_req_t *req;     /* of the open exchange; NULL when there is none, or the socket is closed */
    unsigned requests;  /* begun so far; tells one idle spell from the next */
    unsigned seen_requests;
    enum http_phase phase;
    int64_t phase_since_ms, looked_ms;
    int64_t seen_ms;            /* of the last sweep that found it in libh2o's list; 0: none yet */
    size_t held;                /* unhandled input at the last look */
    double pace;                /* of its arrival, bytes a millisecond, the last second or so weighing most */
    int linger_fd;              /* a second handle to a refused client's socket, or -1 */
    bool close_after;           /* the framing of the request at hand can't be trusted behind it */
    bool answering;             /* our own answer is passing libh2o's filters */
    bool ending;                /* no more is read: libh2o ends it when it has answered */
    bool shut;                  /* shutdown(2) was called; the read that sees it ends the connection */
    struct http_stream *stream; /* the answer that goes on, or NULL */
    h2o_req_t *stream_req;
    struct http_secure secure;
    char remote_ip[INET6_ADDRSTRLEN];
    size_t remote_ip_len;
};

struct http_loop {
    struct http_server *server;
    unsigned index;
    pthread_t thread;
    bool started;
    bool left;                        /* it ended with exchanges open: its memory has to stay */
    sem_t ready;                      /* posted by the thread when it serves */
    int listen_fds[HTTP_LISTENS_MAX]; /* until `listeners` take them over */
    h2o_socket_t *listeners[HTTP_LISTENS_MAX];
    bool accepting, accept_paused;
    int64_t accept_paused_ms;
    h2o_context_t h2o;
    h2o_accept_ctx_t accept_ctx;
    h2o_multithread_receiver_t mailbox, stream_mailbox;
    h2o_multithread_message_t bell; /* in the mailbox: there are answers */
    struct inbox answers;           /* of other threads: exchanges */
    struct inbox given;             /* of other loops: connections that they accepted. accept.c */
    struct list secured, ended;     /* connections under TLS: all, and those whose client sends no more */
    struct list lingers;
    size_t linger_count;
    atomic_size_t connection_count; /* open, or on their way here from another loop */
    atomic_bool takes;              /* other loops may give it connections */
    int64_t swept_ms, drain_since_ms;
    bool draining;
    /* Written by the loop, read by anybody. */
    atomic_size_t buffered;  /* bytes of unhandled input */
    atomic_size_t exchanges; /* open ones */
    atomic_size_t streams;   /* answers that go on */
    atomic_bool drained;     /* backlog taken, and no request half here, or the grace is over */
    atomic_uint holds; /* threads that are about to touch the mailbox: the loop stays until they are done */
};

/* The certificate in force. tls.c */
struct http_tls {
    pthread_mutex_t lock; /* of all but `on` */
    struct http_identity *identity;
    SSL_CTX *ctx;
    int64_t made_ms; /* when ctx was */
    atomic_bool on;
};

struct http_server {
    struct http_options options;
    struct http_tls tls;
    char name[12];
    char *addresses[HTTP_LISTENS_MAX];
    int listen_fds[HTTP_LISTENS_MAX];
    h2o_globalconf_t conf;
    struct http_loop *loops[HTTP_THREADS_MAX];
    unsigned loop_count;
    struct series *connections_gauge, *buffered_gauge;
    atomic_size_t connections;
    atomic_bool draining, stopping;
};

/* listen.c: one socket an address; fills server->listen_fds and ->addresses. */
enum status http_listen_all(struct http_server *server, struct error *err);

/* loop.c: all are made before the first is started, since each looks at all. */
enum status http_loop_new(struct http_server *server, unsigned index, struct error *err);
enum status http_loop_start(struct http_loop *loop, struct error *err);
void http_loop_join(struct http_loop *loop); /* told to stop before; its memory is still there then */
void http_loop_hold(struct http_loop *loop, bool hold); /* any thread, in pairs */
void http_loop_wake(struct http_loop *loop);            /* any thread: look at the server's flags */
extern _Thread_local struct http_loop *http_loop_here;  /* the loop whose thread this is, or NULL */

/* accept.c */
void http_accept_begin(struct http_loop *loop);
void http_accept_given(struct http_loop *loop); /* opens what other loops have accepted for this one */
void http_accept_again(struct http_loop *loop, int64_t now_ms); /* after a pause, if it is over */
void http_accept_end(struct http_loop *loop);                   /* with what waits, for good */

/* conn.c */
void http_conn_open(struct http_loop *loop, h2o_socket_t *sock); /* counted by the caller already */
struct http_conn *http_conn_of(h2o_req_t *req);
/* Both ways; libh2o closes it at its next look. With `reset` the close is a reset: a client whose window is
 * shut while it sends would not notice a friendly one for a minute. */
void http_conn_shut(struct http_conn *conn, bool reset);
void http_conn_linger(struct http_conn *conn);  /* call before the refusing answer is sent */
void http_conn_release(struct http_conn *conn); /* frees it when nothing needs it any more */
void http_lingers_expire(struct http_loop *loop, int64_t now_ms); /* those whose time is over */

/* For one that is idle: libh2o finds the end of its input and closes it as its client would expect, with
 * TLS's farewell. */
void http_conn_end(struct http_conn *conn);

/* tls.c */
void http_tls_open(struct http_server *server);
void http_tls_close(struct http_server *server);
SSL_CTX *http_tls_take(struct http_server *server); /* a reference, the caller's; NULL: plain. Any thread */

/* secure.c */
void http_secure_watch(SSL_CTX *ctx);                        /* a context's connections tell us */
void http_secure_open(struct http_conn *conn, SSL_CTX *ctx); /* takes the reference; NULL: plain */
void http_secure_close(struct http_conn *conn);
void http_secure_end(struct http_loop *loop); /* after each turn: connections that their clients have ended */
/* Handshakes and farewells over their time; gives how many handshakes a drain waits for. */
size_t http_secure_sweep(struct http_loop *loop, int64_t now_ms);
void http_secure_shut(struct http_loop *loop);

/* request.c: libh2o's handler. */
int http_request_take(h2o_handler_t *handler, h2o_req_t *req);

/* exchange.c */
void http_exchange_open(struct http_conn *conn, h2o_req_t *req);
void http_exchange_refuse(struct http_conn *conn, h2o_req_t *req, int status, struct bytes json);
/* On the loop's own thread: the exchange is over, and its request is the caller's to answer. */
h2o_req_t *http_exchange_take(struct http_exchange *exchange, struct http_conn **conn);
struct http_loop *http_exchange_loop(struct http_exchange *exchange);
void http_exchange_deliver(struct http_exchange *exchange); /* its reply, on the loop's thread */
/* Behind the handler: while the answer is on its way the socket stays in the poll. */
void http_exchange_await(struct http_conn *conn);

/* mailbox.c: answers from other threads */
void http_mailbox_post(struct http_exchange *exchange);
void http_mailbox_read(h2o_multithread_receiver_t *receiver, h2o_linklist_t *messages);

/* stream.c */
void http_streams_read(h2o_multithread_receiver_t *receiver, h2o_linklist_t *messages);
bool http_stream_look(struct http_conn *conn, int64_t now_ms); /* the sweep's; false: it is stuck */
void http_stream_shut(struct http_conn *conn);                 /* at once; frees nothing yet */

/* refuse.c */
void http_refuse_bad_request(struct http_conn *conn, h2o_req_t *req);
void http_refuse_invalid_header(struct http_conn *conn, h2o_req_t *req, struct bytes name);
void http_refuse_too_large(struct http_conn *conn, h2o_req_t *req);
void http_refuse_expectation(struct http_conn *conn, h2o_req_t *req);
void http_refuse_count(struct http_server *server, const char *reason);
void http_refuse_install(h2o_hostconf_t *host, struct http_server *server);

/* sweep.c */
enum http_phase http_phase_of(const struct http_conn *conn, const h2o_req_t *req);
void http_sweep(struct http_loop *loop, int64_t now_ms);
bool http_sweep_due(const struct http_loop *loop, int64_t now_ms);
size_t http_buffered(const struct http_server *server); /* any thread */

/* debts.c */
void http_debts_once(void);                /* before the first loop of the process */
int http_debts_epoll_fd(h2o_loop_t *loop); /* -1 when it isn't where 2.2.5 keeps it */
void http_debts_thread(void);              /* last call of a thread that ran a loop */

#endif
