#include <math.h>
#include <stdlib.h>

#include "json_diff.h"

struct neutral {
    const char *at, *end;
    struct buf *out;
    unsigned met;
    size_t depth;
};

static bool starts(const struct neutral *n, const char *text)
{
    size_t len = strlen(text);
    return (size_t)(n->end - n->at) >= len && memcmp(n->at, text, len) == 0;
}

static void copy(struct neutral *n, size_t len)
{
    size_t left = (size_t)(n->end - n->at);
    len = len < left ? len : left;
    buf_put(n->out, n->at, len);
    n->at += len;
}

static int unit_at(const char *at, const char *end)
{
    char digits[5] = {0}, *stop;
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    memcpy(digits, at + 2, 4);
    for (int i = 0; i < 4; i++)
        if (!strchr("0123456789abcdefABCDEF", digits[i]))
            return -1;
    return (int)strtol(digits, &stop, 16);
}

/* Is the string that begins at this quote a name, that is, does a colon follow it? */
static bool is_name(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\')
            at++;
    for (at++; at < end && strchr(" \t\r\n", *at) && *at; at++)
        ;
    return at < end && *at == ':';
}

static void neutral_string(struct neutral *n)
{
    bool name = is_name(n->at, n->end);
    copy(n, 1);
    while (n->at < n->end && *n->at != '"') {
        int unit = unit_at(n->at, n->end);
        bool high = unit >= 0xd800 && unit < 0xdc00, low = unit >= 0xdc00 && unit < 0xe000;
        int next = high ? unit_at(n->at + 6, n->end) : -1;
        if (unit == 0 && name) {
            buf_puts(n->out, "\\u0001");
            n->at += 6;
            n->met |= 1 << KIND_NUL_NAME;
        } else if (high && next >= 0xdc00 && next < 0xe000) {
            copy(n, 12);
        } else if (high || low) {
            buf_puts(n->out, "\\ufffd");
            n->at += 6;
            n->met |= 1 << KIND_SURROGATE;
        } else {
            copy(n, *n->at == '\\' ? 2 : 1);
        }
    }
    copy(n, 1);
}

/* A run of what numbers and words are made of, and the NUL byte that jansson does not see behind it. */
static void neutral_run(struct neutral *n)
{
    static const char made_of[] = "+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t len = 0;
    while (n->at + len < n->end && n->at[len] && strchr(made_of, n->at[len]))
        len++;
    char text[512] = {0}, *stop;
    memcpy(text, n->at, len < sizeof text ? len : sizeof text - 1);
    double value = strtod(text, &stop);
    if ((value == HUGE_VAL || value == -HUGE_VAL) && !strpbrk(text, "iInN") && !*stop) {
        buf_puts(n->out, "0");
        n->at += len;
        n->met |= 1 << KIND_OVERFLOW;
    } else {
        copy(n, len);
    }
    if (len > 0 && n->at < n->end && !*n->at) {
        n->at++;
        n->met |= 1 << KIND_NUL_BYTE;
    }
    if (n->depth == 2048)
        n->met |= 1 << KIND_DEPTH;
    if (len == 0)
        copy(n, 1);
}

unsigned neutralise(struct bytes body, struct buf *out)
{
    struct neutral n = {.at = body.at, .end = body.at + body.len, .out = out};
    buf_clear(out);
    if (starts(&n, "\xef\xbb\xbf")) {
        n.at += 3;
        n.met |= 1 << KIND_BOM;
    }
    while (n.at < n.end) {
        switch (*n.at) {
        case '"':
            if (n.depth == 2048)
                n.met |= 1 << KIND_DEPTH;
            neutral_string(&n);
            break;
        case '{':
        case '[':
            n.depth++;
            copy(&n, 1);
            break;
        case '}':
        case ']':
            n.depth -= n.depth > 0;
            copy(&n, 1);
            break;
        case ' ':
        case '\t':
        case '\r':
        case '\n':
        case ',':
        case ':':
            copy(&n, 1);
            break;
        default:
            neutral_run(&n);
            break;
        }
    }
    return n.met;
}
