#include "json/string_priv.h"

#include "util/check.h"
#include "json/json.h"
#include "json/scan_priv.h"

/* Decodes the escape at `*p`, which a walk has found to be well formed, and moves behind it. Gives how many
 * bytes of UTF-8 are in `out`, 0 for a lone surrogate. */
static size_t decode_escape(const char **p, const char *end, char out[4])
{
    static const char plain[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    char kind = (*p)[1];
    if (kind != 'u') {
        *out = means[strchr(plain, kind) - plain];
        *p += 2;
        return 1;
    }

    unsigned n = (unsigned)hex4(*p + 2);
    *p += 6;
    if (is_low_surrogate((int)n))
        return 0;
    if (is_high_surrogate((int)n)) {
        int low = end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u' ? hex4(*p + 2) : 0;
        if (!is_low_surrogate(low))
            return 0;
        *p += 6;
        n = 0x10000 + ((n & 0x3ff) << 10 | ((unsigned)low & 0x3ff));
        out[0] = (char)(0xf0 | n >> 18);
        out[1] = (char)(0x80 | (n >> 12 & 0x3f));
        out[2] = (char)(0x80 | (n >> 6 & 0x3f));
        out[3] = (char)(0x80 | (n & 0x3f));
        return 4;
    }
    if (n < 0x80) {
        out[0] = (char)n;
        return 1;
    }
    if (n < 0x800) {
        out[0] = (char)(0xc0 | n >> 6);
        out[1] = (char)(0x80 | (n & 0x3f));
        return 2;
    }
    out[0] = (char)(0xe0 | n >> 12);
    out[1] = (char)(0x80 | (n >> 6 & 0x3f));
    out[2] = (char)(0x80 | (n & 0x3f));
    return 3;
}

size_t json_string_decode(const struct json_found *found, char *out)
{
    CHECK(found->kind == JSON_KIND_STRING && !found->lone_surrogate);
    const char *p = found->raw.at, *end = p + found->raw.len;
    char *to = out;
    while (p < end) {
        const char *backslash = found->escaped ? memchr(p, '\\', (size_t)(end - p)) : NULL;
        size_t plain = (size_t)((backslash ? backslash : end) - p);
        memcpy(to, p, plain);
        p += plain;
        to += plain;
        if (p < end) {
            char four[4];
            size_t n = decode_escape(&p, end, four);
            memcpy(to, four, n);
            to += n;
        }
    }
    return (size_t)(to - out);
}

bool string_is(struct bytes raw, struct bytes name)
{
    const char *p = raw.at, *end = p + raw.len;
    size_t at = 0;
    while (p < end) {
        char four[4] = {*p};
        size_t n = 1;
        if (*p == '\\')
            n = decode_escape(&p, end, four);
        else
            p++;
        if (n == 0 || name.len - at < n || memcmp(name.at + at, four, n) != 0)
            return false;
        at += n;
    }
    return at == name.len;
}

const char *json_kind_name(enum json_kind kind)
{
    static const char *const names[] = {"nothing", "a string", "a number",  "true",
                                        "false",   "null",     "an object", "an array"};
    return names[kind];
}
