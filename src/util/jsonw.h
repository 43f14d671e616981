/* Writes JSON onto a buffer: commas and escapes are kept right, nothing is allocated beside the buffer. Bytes
 * that are not valid UTF-8 come out as U+FFFD, since JSON is text; use jsonw_bytes_percent for keys. */
#ifndef UTIL_JSONW_H
#define UTIL_JSONW_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"

struct jsonw {
    struct buf *out;
    bool need_comma;
};

static inline struct jsonw jsonw_on(struct buf *out)
{
    return (struct jsonw){.out = out};
}

/* `name` is NULL inside an array and at the top. */
void jsonw_object(struct jsonw *w, const char *name);
void jsonw_end_object(struct jsonw *w);
void jsonw_array(struct jsonw *w, const char *name);
void jsonw_end_array(struct jsonw *w);
void jsonw_str(struct jsonw *w, const char *name, const char *text);    /* NULL text gives null */
void jsonw_bytes(struct jsonw *w, const char *name, struct bytes text); /* absent gives null */
/* A key shown as text (contract, section 4, rule 8): percent-encoded where it is not plain. */
void jsonw_bytes_percent(struct jsonw *w, const char *name, struct bytes key);
void jsonw_int(struct jsonw *w, const char *name, int64_t n);
void jsonw_uint(struct jsonw *w, const char *name, uint64_t n);
void jsonw_double(struct jsonw *w, const char *name, double n); /* not finite gives null */
void jsonw_bool(struct jsonw *w, const char *name, bool b);
void jsonw_null(struct jsonw *w, const char *name);
/* Text that is JSON already. */
void jsonw_raw(struct jsonw *w, const char *name, struct bytes json);

/* Bytes outside 0x20-0x7E, '%', and blanks at either end as %XX, upper-case hex (rule 8). Used wherever
 * request data becomes a header value, a log line or something on a screen. */
void percent_encode(struct buf *out, struct bytes text);
/* The reverse; false (out unchanged in meaning) when a % is not followed by two hex digits. */
bool percent_decode(struct buf *out, struct bytes text);

#endif
