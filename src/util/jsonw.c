#include "util/jsonw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void quoted(struct buf *out, struct bytes text)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *p = (const unsigned char *)text.at, *end = p + text.len;
    buf_putc(out, '"');
    while (p < end) {
        const unsigned char *run = p;
        while (p < end && *p >= 0x20 && *p != '"' && *p != '\\' && *p < 0x7f)
            p++;
        buf_put(out, run, (size_t)(p - run));
        if (p == end)
            break;
        unsigned char c = *p;
        if (c == '"' || c == '\\') {
            char pair[2] = {'\\', (char)c};
            buf_put(out, pair, 2);
            p++;
        } else if (c < 0x20 || c == 0x7f) {
            char escape[6] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};
            buf_put(out, escape, 6);
            p++;
        } else {
            /* RFC 3629: the shortest form only, no surrogates, at most U+10FFFF. */
            size_t n = c >= 0xc2 && c <= 0xdf   ? 2
                       : c >= 0xe0 && c <= 0xef ? 3
                       : c >= 0xf0 && c <= 0xf4 ? 4
                                                : 0;
            bool good = n && (size_t)(end - p) >= n;
            for (size_t i = 1; good && i < n; i++)
                good = (p[i] & 0xc0) == 0x80;
            if (good && n == 3)
                good = !(c == 0xe0 && p[1] < 0xa0) && !(c == 0xed && p[1] > 0x9f);
            if (good && n == 4)
                good = !(c == 0xf0 && p[1] < 0x90) && !(c == 0xf4 && p[1] > 0x8f);
            if (good) {
                buf_put(out, p, n);
                p += n;
            } else {
                buf_put(out, "\xef\xbf\xbd", 3);
                p++;
            }
        }
    }
    buf_putc(out, '"');
}

static void before(struct jsonw *w, const char *name)
{
    if (w->need_comma)
        buf_putc(w->out, ',');
    w->need_comma = true;
    if (name) {
        quoted(w->out, bytes_str(name));
        buf_putc(w->out, ':');
    }
}

void jsonw_object(struct jsonw *w, const char *name)
{
    before(w, name);
    buf_putc(w->out, '{');
    w->need_comma = false;
}

void jsonw_end_object(struct jsonw *w)
{
    buf_putc(w->out, '}');
    w->need_comma = true;
}

void jsonw_array(struct jsonw *w, const char *name)
{
    before(w, name);
    buf_putc(w->out, '[');
    w->need_comma = false;
}

void jsonw_end_array(struct jsonw *w)
{
    buf_putc(w->out, ']');
    w->need_comma = true;
}

void jsonw_bytes(struct jsonw *w, const char *name, struct bytes text)
{
    before(w, name);
    if (text.at)
        quoted(w->out, text);
    else
        buf_puts(w->out, "null");
}

void jsonw_str(struct jsonw *w, const char *name, const char *text)
{
    jsonw_bytes(w, name, bytes_str(text));
}

void jsonw_bytes_percent(struct jsonw *w, const char *name, struct bytes key)
{
    if (!key.at) {
        jsonw_null(w, name);
        return;
    }
    struct buf text = {0};
    percent_encode(&text, key);
    jsonw_bytes(w, name, buf_bytes(&text));
    buf_free(&text);
}

void jsonw_int(struct jsonw *w, const char *name, int64_t n)
{
    before(w, name);
    buf_putf(w->out, "%lld", (long long)n);
}

void jsonw_uint(struct jsonw *w, const char *name, uint64_t n)
{
    before(w, name);
    buf_putf(w->out, "%llu", (unsigned long long)n);
}

void jsonw_double(struct jsonw *w, const char *name, double n)
{
    before(w, name);
    if (!isfinite(n)) {
        buf_puts(w->out, "null");
        return;
    }
    char text[40];
    snprintf(text, sizeof text, "%.15g", n);
    if (strtod(text, NULL) != n) /* the short form does not read back as the same number */
        snprintf(text, sizeof text, "%.17g", n);
    buf_puts(w->out, text);
}

void jsonw_bool(struct jsonw *w, const char *name, bool b)
{
    before(w, name);
    buf_puts(w->out, b ? "true" : "false");
}

void jsonw_null(struct jsonw *w, const char *name)
{
    before(w, name);
    buf_puts(w->out, "null");
}

void jsonw_raw(struct jsonw *w, const char *name, struct bytes json)
{
    before(w, name);
    buf_putb(w->out, json);
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c <= 0x7e && c != '%';
}

void percent_encode(struct buf *out, struct bytes text)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t from = 0; /* of the run that goes out as it is */
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        bool edge_blank = c == ' ' && (i == 0 || i + 1 == text.len);
        if (is_plain(c) && !edge_blank)
            continue;
        char escape[3] = {'%', digits[c >> 4], digits[c & 15]};
        buf_put(out, text.at + from, i - from);
        buf_put(out, escape, 3);
        from = i + 1;
    }
    if (from < text.len)
        buf_put(out, text.at + from, text.len - from);
}

bool percent_decode(struct buf *out, struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] != '%') {
            buf_putc(out, text.at[i]);
            continue;
        }
        uint8_t byte;
        if (text.len - i < 3 || !hex_decode(bytes_of(text.at + i + 1, 2), &byte, 1))
            return false;
        buf_putc(out, (char)byte);
        i += 2;
    }
    return true;
}
