/* What the files of the HTTP sink share: http.c runs transfers, http_check.c judges options, http_request.c
 * writes the head of a request, http_outcome.c reads what came of it. */
#ifndef DELIVER_SINKS_HTTP_PRIV_H
#define DELIVER_SINKS_HTTP_PRIV_H

#include "deliver/loop.h"

/* Contract, section 5: at most 64 KiB of a response is read, its head included. */
enum { HTTP_RESPONSE_MAX = 64 << 10 };

/* One request's header lines. Kept by a transfer and filled anew for each attempt, so that a warm one
 * allocates nothing. The list points into `text`. */
struct http_request {
    struct buf text; /* lines, each with a NUL behind it */
    size_t *starts;  /* of each line */
    struct curl_slist *list;
    size_t count, size;
};

/* What is the same for all requests of a sink. */
struct http_shape {
    const struct sink_options *options;
    char *prefix; /* "x-lanegate-" */
    size_t prefix_len;
    bool is_ankusa; /* the wire contract of that gateway: see put_identity() */
};

void http_shape_init(struct http_shape *shape, const struct sink_options *options);
void http_shape_free(struct http_shape *shape);
/* Every header of the attempt: the gateway's, the signature as of `unix_s`, the configured and the forwarded
 * ones. */
struct curl_slist *http_request_fill(struct http_request *request, const struct http_shape *shape,
                                     const struct attempt *attempt, int64_t unix_s);
void http_request_free(struct http_request *request);

/* Headers that no configuration may set, since libcurl or the gateway writes them. */
bool http_header_is_ours(const struct http_shape *shape, struct bytes name);

enum status http_check(const struct sink_options *options, const struct egress_rules *egress,
                       struct error *err);

/* What a transfer saw, beside what libcurl can tell. */
struct http_seen {
    bool cut; /* the body reached HTTP_RESPONSE_MAX; the status stands */
    bool head_too_large;
    bool has_retry_after;
    int64_t retry_after_ms;
    size_t received; /* bytes of head and body */

    bool dialled;      /* a connection was tried */
    int socket_errno;  /* socket() failed */
    struct ip address; /* tried last */
    unsigned port;
    bool forbidden; /* the egress rules refused at least one address, this one last */
    struct ip forbidden_address;

    size_t response_len;
    char error[CURL_ERROR_SIZE]; /* from here on not cleared between attempts, but for the first byte */
    char response[SINK_RESPONSE_KEPT];
};

/* Fills everything but duration_us and response. */
void http_outcome(const struct sink_options *options, CURL *easy, CURLcode code, const struct http_seen *seen,
                  int64_t timeout_ms, struct outcome *outcome);

/* Retry-After (RFC 9110, section 10.2.3): whole seconds or a date, as milliseconds from now, at most an hour.
 * False for what makes no sense: signs, fractions, other text, more than a year. */
bool http_retry_after_parse(struct bytes value, int64_t now_unix_ms, int64_t *ms);

#endif
