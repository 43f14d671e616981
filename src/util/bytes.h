/* A borrowed run of bytes: pointer and length, no terminator promised. Whoever hands one out says how long it
 * lives. An absent value is {NULL, 0}; an empty one is {non-NULL, 0}. */
#ifndef UTIL_BYTES_H
#define UTIL_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    const char *at;
    size_t len;
};

#define BYTES_NONE ((struct bytes){NULL, 0})
/* For string literals only. */
#define BYTES(literal) ((struct bytes){"" literal, sizeof(literal) - 1})

/* For printf's "%.*s". */
#define BYTES_ARG(b) (int)(b).len, (b).at

static inline struct bytes bytes_of(const void *at, size_t len)
{
    return (struct bytes){at, len};
}

static inline struct bytes bytes_str(const char *text)
{
    return text ? (struct bytes){text, strlen(text)} : BYTES_NONE;
}

static inline bool bytes_eq(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/* ASCII case only: what header names need. */
bool bytes_eq_nocase(struct bytes a, struct bytes b);
bool bytes_starts_nocase(struct bytes text, struct bytes prefix);
bool bytes_starts(struct bytes text, struct bytes prefix);
/* <0, 0, >0 by bytes, then by length. */
int bytes_cmp(struct bytes a, struct bytes b);
/* Without blanks and tabs at both ends; what is left of an all-blank text is empty, not absent. */
struct bytes bytes_trim(struct bytes text);
/* Takes the next item off the front of a comma-separated list, blanks included; `list` is absent behind the
 * last. False: it is absent. An empty list has one empty item. */
bool bytes_next_item(struct bytes *list, struct bytes *item);
/* Is `word` an item of the list, blanks around it and case aside? */
bool bytes_list_has(struct bytes list, struct bytes word);
/* An HTTP token (RFC 9110, section 5.6.2): a method or the name of a header. */
bool bytes_is_token(struct bytes text);
/* Equal in time that depends on the lengths only. */
bool bytes_eq_constant_time(struct bytes a, struct bytes b);

/* Writes 2*n lower-case digits and a NUL. */
void hex_encode(const void *in, size_t n, char *out);
/* True when `text` is exactly 2*n hex digits (any case); fills `out`. */
bool hex_decode(struct bytes text, uint8_t *out, size_t n);

#endif
