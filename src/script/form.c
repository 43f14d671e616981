#include "script/form.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte at `*p`, which moves behind it. */
static char next_byte(const char **p, const char *end)
{
    const char *at = *p;
    if (*at == '%' && end - at >= 3 && hex_digit(at[1]) >= 0 && hex_digit(at[2]) >= 0) {
        *p += 3;
        return (char)(hex_digit(at[1]) << 4 | hex_digit(at[2]));
    }
    *p += 1;
    return *at == '+' ? ' ' : *at;
}

size_t form_decode(struct bytes raw, char *out)
{
    char *to = out;
    for (const char *p = raw.at, *end = p + raw.len; p < end;)
        *to++ = next_byte(&p, end);
    return (size_t)(to - out);
}

static bool is_name(struct bytes raw, struct bytes name)
{
    size_t i = 0;
    for (const char *p = raw.at, *end = p + raw.len; p < end; i++)
        if (i == name.len || next_byte(&p, end) != name.at[i])
            return false;
    return i == name.len;
}

struct bytes form_find(struct bytes text, struct bytes name)
{
    for (const char *p = text.at, *end = p + text.len; p && p < end;) {
        const char *and = memchr(p, '&', (size_t)(end - p)), *stop = and? and : end;
        const char *equals = memchr(p, '=', (size_t)(stop - p)), *name_end = equals ? equals : stop;
        if (stop > p && is_name(bytes_of(p, (size_t)(name_end - p)), name))
            return equals ? bytes_of(equals + 1, (size_t)(stop - equals - 1)) : bytes_of(stop, 0);
        p = stop + 1;
    }
    return BYTES_NONE;
}

bool form_is_type(struct bytes content_type)
{
    static const char form[] = "application/x-www-form-urlencoded";
    if (!bytes_starts_nocase(content_type, BYTES("application/x-www-form-urlencoded")))
        return false;
    size_t len = sizeof form - 1;
    return content_type.len == len || strchr("; \t", content_type.at[len]);
}
