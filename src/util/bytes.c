#include "util/bytes.h"

static inline unsigned char lower(char c)
{
    unsigned char u = (unsigned char)c;
    return u >= 'A' && u <= 'Z' ? u | 0x20 : u;
}

bool bytes_eq_nocase(struct bytes a, struct bytes b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.at[i]) != lower(b.at[i]))
            return false;
    return true;
}

bool bytes_starts_nocase(struct bytes text, struct bytes prefix)
{
    return text.len >= prefix.len && bytes_eq_nocase(bytes_of(text.at, prefix.len), prefix);
}

bool bytes_starts(struct bytes text, struct bytes prefix)
{
    return text.len >= prefix.len && bytes_eq(bytes_of(text.at, prefix.len), prefix);
}

int bytes_cmp(struct bytes a, struct bytes b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n ? memcmp(a.at, b.at, n) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

struct bytes bytes_trim(struct bytes text)
{
    while (text.len && (text.at[0] == ' ' || text.at[0] == '\t'))
        text.at++, text.len--;
    while (text.len && (text.at[text.len - 1] == ' ' || text.at[text.len - 1] == '\t'))
        text.len--;
    return text;
}

bool bytes_next_item(struct bytes *list, struct bytes *item)
{
    if (!list->at)
        return false;
    const char *comma = list->len ? memchr(list->at, ',', list->len) : NULL;
    size_t len = comma ? (size_t)(comma - list->at) : list->len;
    *item = bytes_of(list->at, len);
    *list = comma ? bytes_of(comma + 1, list->len - len - 1) : BYTES_NONE;
    return true;
}

bool bytes_list_has(struct bytes list, struct bytes word)
{
    struct bytes item;
    while (bytes_next_item(&list, &item))
        if (bytes_eq_nocase(bytes_trim(item), word))
            return true;
    return false;
}

bool bytes_eq_constant_time(struct bytes a, struct bytes b)
{
    if (a.len != b.len)
        return false;
    volatile unsigned char different = 0;
    for (size_t i = 0; i < a.len; i++)
        different |= (unsigned char)(a.at[i] ^ b.at[i]);
    return different == 0;
}

void hex_encode(const void *in, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *p = in;
    for (size_t i = 0; i < n; i++) {
        *out++ = digits[p[i] >> 4];
        *out++ = digits[p[i] & 15];
    }
    *out = 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    unsigned char l = lower(c);
    return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

bool hex_decode(struct bytes text, uint8_t *out, size_t n)
{
    if (text.len != 2 * n)
        return false;
    for (size_t i = 0; i < n; i++) {
        int high = hex_digit(text.at[2 * i]), low = hex_digit(text.at[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool bytes_is_token(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c <= 0x20 || c >= 0x7f || strchr("()<>@,;:\\\"/[]?={}", c))
            return false;
    }
    return text.len > 0;
}
