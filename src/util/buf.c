#include "util/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/mem.h"

enum { BUF_MAX_DEFAULT = 64 << 20 };

void buf_free(struct buf *buf)
{
    free(buf->at);
    *buf = (struct buf){.max = buf->max};
}

void buf_clear(struct buf *buf)
{
    buf->len = 0;
    buf->overflow = false;
    if (buf->at)
        buf->at[0] = 0;
}

char *buf_extend(struct buf *buf, size_t len)
{
    size_t max = buf->max ? buf->max : BUF_MAX_DEFAULT;
    if (buf->overflow || len > max - buf->len) {
        buf->overflow = true;
        return NULL;
    }
    if (buf->len + len + 1 > buf->size) {
        size_t size = buf->size ? buf->size * 2 : 256;
        while (size < buf->len + len + 1)
            size *= 2;
        buf->at = mem_resize(buf->at, size);
        buf->size = size;
    }
    char *at = buf->at + buf->len;
    buf->len += len;
    buf->at[buf->len] = 0;
    return at;
}

void buf_put(struct buf *buf, const void *at, size_t len)
{
    char *room = buf_extend(buf, len);
    if (room && len)
        memcpy(room, at, len);
}

void buf_putb(struct buf *buf, struct bytes text)
{
    buf_put(buf, text.at, text.len);
}

void buf_puts(struct buf *buf, const char *text)
{
    buf_put(buf, text, strlen(text));
}

void buf_putc(struct buf *buf, char c)
{
    buf_put(buf, &c, 1);
}

void buf_putv(struct buf *buf, const char *format, va_list args)
{
    char small[256];
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(small, sizeof small, format, args);
    if (n >= 0 && (size_t)n < sizeof small) {
        buf_put(buf, small, (size_t)n);
    } else if (n >= 0) {
        char *room = buf_extend(buf, (size_t)n);
        if (room)
            vsnprintf(room, (size_t)n + 1, format, again);
    }
    va_end(again);
}

void buf_putf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_putv(buf, format, args);
    va_end(args);
}
