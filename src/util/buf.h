/* A growing text or byte buffer with an upper bound. Over the bound nothing more is added and `overflow`
 * stays set: check it once, at the end. A value inside its owner; {0} is an empty buffer bounded at 64 MiB.
 */
#ifndef UTIL_BUF_H
#define UTIL_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/bytes.h"

struct buf {
    char *at; /* NUL-terminated when not NULL */
    size_t len;
    size_t size;
    size_t max; /* bytes; 0 means 64 MiB */
    bool overflow;
};

void buf_free(struct buf *buf);  /* the buffer is empty again */
void buf_clear(struct buf *buf); /* keeps the memory */
void buf_put(struct buf *buf, const void *at, size_t len);
void buf_putb(struct buf *buf, struct bytes text);
void buf_puts(struct buf *buf, const char *text);
void buf_putc(struct buf *buf, char c);
void buf_putf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_putv(struct buf *buf, const char *format, va_list args);
/* Room for `len` bytes at the end, already counted in; NULL over the bound. Valid until the next call. */
char *buf_extend(struct buf *buf, size_t len);

static inline struct bytes buf_bytes(const struct buf *buf)
{
    return bytes_of(buf->at ? buf->at : "", buf->len);
}

#endif
