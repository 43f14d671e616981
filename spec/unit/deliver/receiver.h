/* A receiver for tests: raw sockets on 127.0.0.1, a thread per connection, and a function that says or
 * withholds an answer as the test likes. It keeps every request it read. */
#ifndef SPEC_DELIVER_RECEIVER_H
#define SPEC_DELIVER_RECEIVER_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

struct receiver;

/* One request, as it arrived. */
struct received {
    char *head; /* request line and header lines, each ended by LF */
    char *body;
    size_t body_len;
    unsigned connection; /* 1: the first */
};

/* The open connection of one request, for the answering function. */
struct exchange {
    struct receiver *receiver;
    int fd;
    SSL *ssl;        /* NULL: plain */
    unsigned number; /* of the request, over all connections, from 1 */
};

/* `text` is what receiver_open was given. True: read the next request of this connection. */
typedef bool (*answer_fn)(struct exchange *exchange, const char *text);

/* `tls` may be NULL. */
struct receiver *receiver_open(answer_fn answer, const char *text, SSL_CTX *tls);
void receiver_close(struct receiver *receiver);
unsigned receiver_port(const struct receiver *receiver);
unsigned receiver_connections(struct receiver *receiver);
unsigned receiver_requests(struct receiver *receiver);
/* The n-th request, from 1; it must have arrived. Lives as long as the receiver. */
const struct received *receiver_request(struct receiver *receiver, unsigned n);
/* Before answering functions run: answer without reading the body. */
void receiver_skip_bodies(struct receiver *receiver);

/* For answering functions. False when the peer has gone. */
bool say(struct exchange *exchange, const char *text);
/* Until the peer hangs up or the receiver closes. */
void hang(struct exchange *exchange);
/* The same, and nothing is read meanwhile. */
void wait_for_end(struct exchange *exchange);
/* What is left of a body that was not read (receiver_skip_bodies). */
void read_body(struct exchange *exchange);
/* From now on nobody is let in. */
void stop_listening(struct exchange *exchange);
/* Closes with a reset instead of an orderly end. */
void reset(struct exchange *exchange);

/* Values of a header, joined by '|' when it came more than once; NULL when it did not. Valid until the next
 * call. */
const char *received_header(const struct received *request, const char *name);

#endif
