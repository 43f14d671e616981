/* The other end of the wire: a raw client that sends what a polite one would not. Every wait has a deadline;
 * a test fails when it passes. */
#ifndef SPEC_HTTP_WIRE_H
#define SPEC_HTTP_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "http/http.h"
#include "util/buf.h"
#include "util/bytes.h"

#define WIRE_PATIENCE_MS 10000

extern int (*wire_through)(int fd); /* unless NULL, every connection goes through that: see tunnel.h */

int wire_connect(const struct http_server *server);
/* All of it, or fails the test. */
void wire_send(int fd, struct bytes text);
#define WIRE_SEND(fd, literal) wire_send((fd), BYTES(literal))
/* As much as the other side takes before it closes or resets; false when it did that. */
bool wire_try_send(int fd, struct bytes text);
void wire_no_more(int fd); /* half-closes */

struct wire_reply {
    int status;  /* 0: the connection ended without an answer */
    bool closes; /* "Connection: close" */
    struct buf head, body;
};

/* One answer by its Content-Length; `without_body` for HEAD. */
void wire_read(int fd, struct wire_reply *reply, bool without_body);
void wire_reply_free(struct wire_reply *reply);
/* The value of a header of the answer, trimmed; absent when there is none. */
struct bytes wire_header(const struct wire_reply *reply, const char *name);

/* Reads on until the other side has closed; false when bytes came. */
bool wire_ends(int fd);
/* True when the other side has closed by now; does not wait. */
bool wire_has_ended(int fd);

#endif
