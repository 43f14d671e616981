/* The raw head of a request, judged by bytes. libh2o parses heads generously (it takes two lengths, two
 * hosts, bare line feeds) and hides the headers it uses itself, so the bytes are read once more here,
 * strictly. Pure: no connection, no libh2o. */
#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include <stdbool.h>

#include "http/http.h"

#define HEAD_HEADERS_MAX 100 /* libh2o's own bound */

enum head_verdict {
    HEAD_OK,
    HEAD_BAD,            /* the framing or the grammar is wrong, or says two things */
    HEAD_INVALID_HEADER, /* a byte outside 0x20-0x7E and tab in a value: see `culprit` */
    HEAD_UNKNOWN_EXPECT,
};

struct head {
    struct bytes method, target;
    /* In the order sent. Names as they stand in the bytes, but for the five that libh2o takes for itself
     * (Host, Content-Length, Transfer-Encoding, Expect, Upgrade), which are spelled so. Values are trimmed.
     */
    struct http_header headers[HEAD_HEADERS_MAX];
    bool taken[HEAD_HEADERS_MAX]; /* one of those five */
    size_t header_count;
    bool chunked;
    size_t culprit; /* index of the first bad header, for HEAD_INVALID_HEADER */
};

/* `raw` begins with the head and may go on behind it. Everything in `head` borrows from `raw` or is a
 * constant. `head` is whole for every verdict but HEAD_BAD. */
enum head_verdict head_check(struct bytes raw, struct head *head);

#endif
