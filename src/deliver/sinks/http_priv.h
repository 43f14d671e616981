/* What the files of the HTTP sink share. http.c is the sink: it begins and ends attempts. An attempt goes one
 * of two ways: http_plain.c speaks HTTP/1.1 itself, over kept connections, to receivers with an http URL and
 * no proxy; http_library.c leaves TLS and proxies to libcurl, and opens the plain way's connections.
 * http_check.c judges options, http_request.c writes heads, http_answer.c reads answers, http_outcome.c says
 * what came of it. */
#ifndef DELIVER_SINKS_HTTP_PRIV_H
#define DELIVER_SINKS_HTTP_PRIV_H

#include "deliver/loop.h"
#include "deliver/pool.h"
#include "deliver/sinks/http_answer.h"

/* Contract, section 5: at most 64 KiB of a response is read, its head included. */
enum { HTTP_RESPONSE_MAX = 64 << 10 };

/* -- requests: http_request.c */

/* One request's header lines. Kept by a transfer and filled anew for each attempt, so that a warm one
 * allocates nothing. */
struct http_request {
    struct buf text; /* the head as it is sent, or libcurl's lines, each with a NUL behind it */
    bool plain;
    size_t *starts; /* of each of libcurl's lines */
    struct curl_slist *list;
    size_t count, size;
};

/* What is the same for all requests of a sink. */
struct http_shape {
    const struct sink_options *options;
    char *prefix; /* "x-lanegate-" */
    size_t prefix_len;
    bool is_ankusa; /* the wire contract of that gateway: see put_identity() */
    char *start;    /* of a plain head: "POST /hook HTTP/1.1", Host; NULL: requests are libcurl's */
};

void http_shape_init(struct http_shape *shape, const struct sink_options *options);
/* For http_request_head: the path with its query, and what Host says. */
void http_shape_plain(struct http_shape *shape, const char *target, const char *authority);
void http_shape_free(struct http_shape *shape);
/* Every header of the attempt: the gateway's, the signature as of `unix_s`, the configured and the forwarded
 * ones. For libcurl, as a list into `request`; or as the whole head of a message. Valid until the next. */
struct curl_slist *http_request_list(struct http_request *request, const struct http_shape *shape,
                                     const struct attempt *attempt, int64_t unix_s);
struct bytes http_request_head(struct http_request *request, const struct http_shape *shape,
                               const struct attempt *attempt, int64_t unix_s);
void http_request_free(struct http_request *request);

/* Headers that no configuration may set, since libcurl or the gateway writes them. */
bool http_header_is_ours(const struct http_shape *shape, struct bytes name);

enum status http_check(const struct sink_options *options, const struct egress_rules *egress,
                       struct error *err);

/* -- outcomes: http_outcome.c */

/* How far an attempt came. */
enum http_phase { PHASE_NAME, PHASE_CONNECT, PHASE_TLS, PHASE_SEND, PHASE_ANSWER };

/* What an attempt saw on its way. */
struct http_seen {
    bool cut; /* the body reached HTTP_RESPONSE_MAX; the status stands */
    bool head_too_large;
    bool has_retry_after;
    int64_t retry_after_ms;
    size_t received; /* bytes of head and body */

    bool dialled;      /* a socket was opened for a connection */
    int socket_errno;  /* socket() failed */
    struct ip address; /* tried last */
    unsigned port;
    bool forbidden; /* the egress rules refused at least one address, this one last */
    struct ip forbidden_address;

    size_t response_len;
    char error[CURL_ERROR_SIZE]; /* from here on not cleared between attempts, but for the first byte */
    char response[SINK_RESPONSE_KEPT];
};

/* How it ended, in libcurl's words whoever sent it. */
struct http_end {
    CURLcode code;         /* CURLE_ABORTED_BY_CALLBACK: forbidden, or the process goes down */
    enum http_phase phase; /* reached */
    int status;            /* 0: no answer, or none whose status was read */
    int connect_errno;     /* COULDNT_CONNECT */
    long proxy_status;     /* of CONNECT; 0: none */
    long verify_result;    /* PEER_FAILED_VERIFICATION: an X509_V code */
    bool unsent;           /* no byte of the request left */
};

/* Fills everything but duration_us and response. */
void http_outcome(const struct sink_options *options, const struct http_end *end,
                  const struct http_seen *seen, int64_t timeout_ms, struct outcome *outcome);

/* Retry-After (RFC 9110, section 10.2.3): whole seconds or a date, as milliseconds from now, at most an hour.
 * False for what makes no sense: signs, fractions, other text, more than a year. */
bool http_retry_after_parse(struct bytes value, int64_t now_unix_ms, int64_t *ms);

/* -- attempts: http.c */

struct idle_list {
    struct list items; /* of transfer.idle; touched by one loop only */
    size_t count;
};

struct sink_http {
    struct sink base;
    struct sink_options options;
    struct http_shape shape;
    char *authority;        /* "host:port" of a plain receiver; NULL: the way of libcurl */
    struct idle_list *idle; /* one per loop */
    struct pool **pools;    /* one per loop, of the authority; NULL until its loop needs it */
};

/* An attempt under way, and what is kept for the next one. */
struct transfer {
    struct loop_transfer base; /* libcurl's side; its handle is made when it is first needed */
    struct list idle;
    struct sink_http *sink;
    unsigned loop;
    struct http_request request;

    /* of one attempt */
    struct attempt *attempt;
    int64_t started_us, timeout_ms;
    struct http_seen seen;

    /* the plain way */
    struct loop_task task;
    struct connection *connection; /* NULL while it is opened */
    struct bytes head;
    size_t sent;   /* of head and body, on this connection */
    bool sent_any; /* on any */
    bool is_new;   /* opened for this attempt */
    bool answered; /* in full, while the request is still being sent */
    struct answer answer;
    int opened_fd; /* the socket that libcurl leaves to us; -1: none */
};

struct loop *transfer_loop(const struct transfer *transfer);
/* Do the egress rules of this moment let it through? What they refuse is noted in `seen`. */
bool transfer_may_reach(struct transfer *transfer, const struct ip *address);
/* The last thing that a way does with an attempt: done() is called, and the transfer may be gone. */
void transfer_finish(struct transfer *transfer, const struct http_end *end);

/* -- the two ways. Both begin with `attempt`, `started_us`, `timeout_ms` and a fresh `seen`. */
void http_library_start(struct transfer *transfer);
void http_plain_start(struct transfer *transfer);
/* Opens a connection to the sink's host within the time that is left, TCP only; then http_plain_opened, with
 * the socket or with how it failed. */
void http_library_dial(struct transfer *transfer, int64_t left_ms);
void http_plain_opened(struct transfer *transfer, int fd, const struct http_end *end);

#endif
