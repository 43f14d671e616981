/* Reads one answer off a plain connection, in whatever pieces it comes (RFC 9112). Pure: no socket, no clock
 * but the one that a Retry-After date is held against. Forgiving about what does not matter (a bare LF, no
 * reason phrase); where an answer's end could be seen in two places it is no HTTP, or its connection is not
 * used again. */
#ifndef DELIVER_SINKS_HTTP_ANSWER_H
#define DELIVER_SINKS_HTTP_ANSWER_H

#include "util/buf.h"

struct http_seen;

enum answer_state {
    ANSWER_GOES_ON,
    ANSWER_COMPLETE,
    ANSWER_CUT,        /* HTTP_RESPONSE_MAX bytes were read and it goes on; the status stands */
    ANSWER_HEAD_LARGE, /* the same within the head */
    ANSWER_NOT_HTTP,
};

enum answer_part {
    PART_HEAD,
    PART_BODY,
    PART_UNTIL_CLOSE,
    PART_CHUNK_SIZE,
    PART_CHUNK,
    PART_CHUNK_END,
    PART_TRAILER
};

/* {0} before the first; kept from answer to answer for its memory. */
struct answer {
    struct buf head; /* of an answer whose head came in pieces */
    enum answer_part part;
    int status;    /* 0: not known yet */
    bool keeps;    /* complete, and the connection may carry another request */
    uint64_t left; /* of the body, or of a chunk */

    /* of the line that frames a chunk, or of a trailer's */
    unsigned digits;
    bool beyond_digits, behind_cr, has_text;
};

/* Before the first byte of an answer. */
void answer_begin(struct answer *answer);
/* The next bytes. Fills `seen`: the start of the body, Retry-After, how much came. Bytes behind the end of
 * the answer are nobody's: it does not keep its connection then. */
enum answer_state answer_take(struct answer *answer, struct http_seen *seen, struct bytes bytes);
/* The peer has hung up: COMPLETE when that is how this answer ends, else GOES_ON. */
enum answer_state answer_end(struct answer *answer);
void answer_free(struct answer *answer);

#endif
