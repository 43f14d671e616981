/* The leaves of a walk: blanks, strings, numbers and words. Each function takes where it stands and where the
 * body ends, and gives where it stands afterwards, NULL when that is not JSON. Nothing is read at or behind
 * `end`.
 *
 * Runs of plain bytes are skipped sixteen at a time where the machine has SSE2 (every x86-64), else one by
 * one; JSON_NO_SIMD builds the latter anywhere, for tests. */
#ifndef JSON_SCAN_PRIV_H
#define JSON_SCAN_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) && !defined(JSON_NO_SIMD)
#include <emmintrin.h>
#define SCAN_SIMD 1
#else
#define SCAN_SIMD 0
#endif

#define SCAN_INLINE static inline __attribute__((always_inline))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* What a string holds beside plain bytes. */
enum { STRING_ESCAPED = 1, STRING_LONE_SURROGATE = 2 };

static inline bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Indentation comes in runs. Not inlined: compact JSON, the usual kind, never gets here. */
static __attribute__((noinline)) const char *space_run(const char *p, const char *end)
{
#if SCAN_SIMD
    const __m128i space = _mm_set1_epi8(' '), line = _mm_set1_epi8('\n'), carriage = _mm_set1_epi8('\r'),
                  tab = _mm_set1_epi8('\t');
    for (; end - p >= 16; p += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i blank = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, space), _mm_cmpeq_epi8(v, line)),
                                     _mm_or_si128(_mm_cmpeq_epi8(v, carriage), _mm_cmpeq_epi8(v, tab)));
        unsigned other = (unsigned)_mm_movemask_epi8(blank) ^ 0xffffu;
        if (other)
            return p + __builtin_ctz(other);
    }
#endif
    while (p < end && is_space(*p))
        p++;
    return p;
}

/* Never NULL. */
SCAN_INLINE const char *scan_space(const char *p, const char *end)
{
    if (LIKELY(p < end && (unsigned char)*p > ' '))
        return p;
    if (end - p > 1 && *p == ' ' && (unsigned char)p[1] > ' ')
        return p + 1;
    return space_run(p, end);
}

/* The first byte that is not plain ASCII text: a quote, a backslash, a control character, a byte over 0x7F.
 */
SCAN_INLINE const char *scan_plain(const char *p, const char *end)
{
#if SCAN_SIMD
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), space = _mm_set1_epi8(' ');
    for (; end - p >= 16; p += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        /* The comparison is signed: bytes over 0x7F are below the blank too. */
        __m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, backslash)),
                                   _mm_cmplt_epi8(v, space));
        unsigned mask = (unsigned)_mm_movemask_epi8(hit);
        if (mask)
            return p + __builtin_ctz(mask);
    }
#endif
    while (p < end && (signed char)*p >= ' ' && *p != '"' && *p != '\\')
        p++;
    return p;
}

/* Four hex digits as a number, or -1. */
static inline int hex4(const char *p)
{
    int n = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i], lower = (char)(c | 0x20);
        int digit = is_digit(c) ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
        if (digit < 0)
            return -1;
        n = n << 4 | digit;
    }
    return n;
}

static inline bool is_high_surrogate(int unit)
{
    return (unit & 0xfc00) == 0xd800;
}

static inline bool is_low_surrogate(int unit)
{
    return (unit & 0xfc00) == 0xdc00;
}

/* `p` is at a backslash. */
static inline const char *scan_escape(const char *p, const char *end, unsigned *flags)
{
    *flags |= STRING_ESCAPED;
    if (end - p < 2)
        return NULL;
    switch (p[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return p + 2;
    case 'u':
        break;
    default:
        return NULL;
    }
    int unit = end - p >= 6 ? hex4(p + 2) : -1;
    if (unit < 0)
        return NULL;
    if (is_high_surrogate(unit) && end - p >= 12 && p[6] == '\\' && p[7] == 'u' &&
        is_low_surrogate(hex4(p + 8)))
        return p + 12;
    if (is_high_surrogate(unit) || is_low_surrogate(unit))
        *flags |= STRING_LONE_SURROGATE;
    return p + 6;
}

/* `p` is at a byte over 0x7F: a run of whole characters as RFC 3629 allows them, without overlong forms and
 * surrogates. */
static __attribute__((noinline)) const char *scan_utf8(const char *p, const char *end)
{
    while (p < end && (*p & 0x80)) {
        const unsigned char *u = (const unsigned char *)p;
        ptrdiff_t left = end - p;
        unsigned least = 0x80, most = 0xbf; /* of the second byte */
        int size;
        if (u[0] >= 0xc2 && u[0] <= 0xdf) {
            size = 2;
        } else if ((u[0] & 0xf0) == 0xe0) {
            size = 3;
            least = u[0] == 0xe0 ? 0xa0 : least;
            most = u[0] == 0xed ? 0x9f : most;
        } else if (u[0] >= 0xf0 && u[0] <= 0xf4) {
            size = 4;
            least = u[0] == 0xf0 ? 0x90 : least;
            most = u[0] == 0xf4 ? 0x8f : most;
        } else {
            return NULL;
        }
        if (left < size || u[1] < least || u[1] > most)
            return NULL;
        for (int i = 2; i < size; i++)
            if ((u[i] & 0xc0) != 0x80)
                return NULL;
        p += size;
    }
    return p;
}

/* What stopped scan_plain was not a quote: the rest of the string, up to its closing quote. */
static __attribute__((noinline)) const char *string_rest(const char *p, const char *end, unsigned *flags)
{
    while (p && p < end && *p != '"') {
        if (*p == '\\')
            p = scan_escape(p, end, flags);
        else if (*p & 0x80)
            p = scan_utf8(p, end);
        else
            return NULL; /* a control character */
        if (p)
            p = scan_plain(p, end);
    }
    return p == end ? NULL : p;
}

/* `p` is behind the opening quote; gives where the closing one is. Flags are added to. */
SCAN_INLINE const char *scan_string(const char *p, const char *end, unsigned *flags)
{
    p = scan_plain(p, end);
    if (LIKELY(p < end && *p == '"'))
        return p;
    return string_rest(p, end, flags);
}

/* `p` is at the number's first byte. Any number of digits. */
SCAN_INLINE const char *scan_number(const char *p, const char *end, bool *integer)
{
    *integer = true;
    if (p < end && *p == '-')
        p++;
    if (p == end || !is_digit(*p))
        return NULL;
    if (*p++ != '0')
        while (p < end && is_digit(*p))
            p++;
    if (p < end && *p == '.') {
        *integer = false;
        if (++p == end || !is_digit(*p))
            return NULL;
        while (p < end && is_digit(*p))
            p++;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        *integer = false;
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        if (p == end || !is_digit(*p))
            return NULL;
        while (p < end && is_digit(*p))
            p++;
    }
    return p;
}

/* "true", "false", "null". */
SCAN_INLINE const char *scan_word(const char *p, const char *end, const char *word, size_t len)
{
    return (size_t)(end - p) >= len && memcmp(p, word, len) == 0 ? p + len : NULL;
}

#endif
