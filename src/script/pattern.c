/* A backtracking matcher. One function takes the pattern item by item; it calls itself where an item can be
 * taken in more than one way, at most PATTERN_DEPTH_MAX deep. Everything that looks at a byte pays a step. */
#include "script/pattern.h"

#include <string.h>

#define ESCAPE '%'

struct pattern pattern_of(struct bytes subject, struct bytes text, int64_t steps)
{
    return (struct pattern){.subject = subject.at,
                            .subject_end = subject.at + subject.len,
                            .end = text.at + text.len,
                            .steps = steps};
}

static const char *fail(struct pattern *m, const char *error)
{
    if (!m->error)
        m->error = error;
    return NULL;
}

static inline bool pay(struct pattern *m, int64_t steps)
{
    m->steps -= steps;
    return m->steps > 0;
}

/* ---- single bytes ---- */

static bool is_lower(unsigned char c)
{
    return c >= 'a' && c <= 'z';
}
static bool is_upper(unsigned char c)
{
    return c >= 'A' && c <= 'Z';
}
static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}
static bool is_graph(unsigned char c)
{
    return c > 32 && c < 127;
}

/* %a and its sisters; a letter that names no class, and anything else, stands for itself. */
static bool in_class(unsigned char c, unsigned char class)
{
    bool in;
    switch (class | 0x20) {
    case 'a':
        in = is_lower(c) || is_upper(c);
        break;
    case 'c':
        in = c < 32 || c == 127;
        break;
    case 'd':
        in = is_digit(c);
        break;
    case 'g':
        in = is_graph(c);
        break;
    case 'l':
        in = is_lower(c);
        break;
    case 'p':
        in = is_graph(c) && !is_lower(c) && !is_upper(c) && !is_digit(c);
        break;
    case 's':
        in = c == ' ' || (c >= 9 && c <= 13);
        break;
    case 'u':
        in = is_upper(c);
        break;
    case 'w':
        in = is_lower(c) || is_upper(c) || is_digit(c);
        break;
    case 'x':
        in = is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        break;
    case 'z':
        in = c == 0;
        break;
    default:
        return c == class;
    }
    if (!is_lower(class) && !is_upper(class))
        return c == class; /* the bit that makes upper case lower turns other bytes into letters */
    return is_lower(class) ? in : !in;
}

/* `set` is behind '[', `last` its ']'. */
static bool in_set(unsigned char c, const char *set, const char *last)
{
    bool wanted = true;
    if (*set == '^') {
        wanted = false;
        set++;
    }
    while (set < last) {
        if (*set == ESCAPE && set + 1 < last) {
            if (in_class(c, (unsigned char)set[1]))
                return wanted;
            set += 2;
        } else if (set + 2 < last && set[1] == '-') {
            if ((unsigned char)set[0] <= c && c <= (unsigned char)set[2])
                return wanted;
            set += 3;
        } else {
            if ((unsigned char)*set == c)
                return wanted;
            set++;
        }
    }
    return !wanted;
}

/* Behind the item of one byte at `p`: a byte, an escape, a set. */
static const char *item_end(struct pattern *m, const char *p)
{
    const char *const end = m->end;
    if (*p == ESCAPE)
        return p + 1 < end ? p + 2 : fail(m, "malformed pattern (ends with '%')");
    if (*p != '[')
        return p + 1;
    p++;
    if (p < end && *p == '^')
        p++;
    do { /* a ']' right here is a member */
        if (p >= end)
            return fail(m, "malformed pattern (missing ']')");
        if (*p++ == ESCAPE && p < end)
            p++;
    } while (p >= end || *p != ']');
    return p + 1;
}

/* Is there a byte at `s` that the item from `p` to `after` takes? */
static bool takes(struct pattern *m, const char *s, const char *p, const char *after)
{
    if (s >= m->subject_end || !pay(m, 1 + (after - p) / 8))
        return false;
    unsigned char c = (unsigned char)*s;
    switch (*p) {
    case '.':
        return true;
    case ESCAPE:
        return in_class(c, (unsigned char)p[1]);
    case '[':
        return in_set(c, p + 1, after - 1);
    default:
        return (unsigned char)*p == c;
    }
}

/* ---- items of more than one byte ---- */

/* %bxy, `p` behind the b. */
static const char *balanced(struct pattern *m, const char *s, const char *p)
{
    if (m->end - p < 2)
        return fail(m, "unbalanced pattern");
    if (s >= m->subject_end || *s != p[0])
        return NULL;
    size_t open = 1;
    while (++s < m->subject_end && pay(m, 1)) {
        if (*s == p[1]) {
            if (--open == 0)
                return s + 1;
        } else if (*s == p[0]) {
            open++;
        }
    }
    return NULL;
}

/* What capture number `digit` holds, again. */
static const char *again(struct pattern *m, const char *s, char digit)
{
    int i = digit - '1';
    if (i < 0 || i >= m->captures || m->capture[i].len == PATTERN_OPEN)
        return fail(m, "invalid capture index");
    if (m->capture[i].len == PATTERN_POSITION)
        return NULL;
    size_t len = (size_t)m->capture[i].len;
    if (!pay(m, 1 + (int64_t)(len / 16)) || (size_t)(m->subject_end - s) < len ||
        memcmp(m->capture[i].at, s, len) != 0)
        return NULL;
    return s + len;
}

/* %f[set], `p` at the set. */
static bool at_frontier(struct pattern *m, const char *s, const char *p, const char *after)
{
    if (!pay(m, 1 + (after - p) / 4))
        return false;
    unsigned char before = s == m->subject ? 0 : (unsigned char)s[-1];
    unsigned char here = s == m->subject_end ? 0 : (unsigned char)*s;
    return !in_set(before, p + 1, after - 1) && in_set(here, p + 1, after - 1);
}

static const char *match(struct pattern *m, const char *s, const char *p);

static const char *open_capture(struct pattern *m, const char *s, const char *p, ptrdiff_t len)
{
    if (m->captures == PATTERN_CAPTURES_MAX)
        return fail(m, "too many captures");
    m->capture[m->captures++] = (struct pattern_capture){s, len};
    const char *end = match(m, s, p);
    if (!end)
        m->captures--;
    return end;
}

static const char *close_capture(struct pattern *m, const char *s, const char *p)
{
    int i = m->captures - 1;
    while (i >= 0 && m->capture[i].len != PATTERN_OPEN)
        i--;
    if (i < 0)
        return fail(m, "invalid pattern capture");
    m->capture[i].len = s - m->capture[i].at;
    const char *end = match(m, s, p);
    if (!end)
        m->capture[i].len = PATTERN_OPEN;
    return end;
}

/* The item as often as it goes, then less and less. `after` is its quantifier. */
static const char *most(struct pattern *m, const char *s, const char *p, const char *after)
{
    ptrdiff_t n = 0;
    while (takes(m, s + n, p, after))
        n++;
    for (; n >= 0 && m->steps > 0 && !m->error; n--) {
        const char *end = match(m, s + n, after + 1);
        if (end)
            return end;
    }
    return NULL;
}

/* The item as seldom as it goes. */
static const char *least(struct pattern *m, const char *s, const char *p, const char *after)
{
    for (;;) {
        const char *end = match(m, s, after + 1);
        if (end || m->error)
            return end;
        if (!takes(m, s, p, after))
            return NULL;
        s++;
    }
}

/* The rest of the pattern, item by item. */
static const char *match_rest(struct pattern *m, const char *s, const char *p)
{
    while (p < m->end) {
        if (!pay(m, 1))
            return NULL;
        const char *after;
        switch (*p) {
        case '(':
            if (p + 1 < m->end && p[1] == ')')
                return open_capture(m, s, p + 2, PATTERN_POSITION);
            return open_capture(m, s, p + 1, PATTERN_OPEN);
        case ')':
            return close_capture(m, s, p + 1);
        case '$':
            if (p + 1 == m->end)
                return s == m->subject_end ? s : NULL;
            break;
        case ESCAPE:
            if (p + 1 == m->end)
                break;
            if (p[1] == 'b') {
                s = balanced(m, s, p + 2);
                if (!s)
                    return NULL;
                p += 4;
                continue;
            }
            if (p[1] == 'f') {
                p += 2;
                if (p >= m->end || *p != '[')
                    return fail(m, "missing '[' after '%f' in pattern");
                after = item_end(m, p);
                if (!after || !at_frontier(m, s, p, after))
                    return NULL;
                p = after;
                continue;
            }
            if (is_digit((unsigned char)p[1])) {
                s = again(m, s, p[1]);
                if (!s)
                    return NULL;
                p += 2;
                continue;
            }
            break;
        }

        after = item_end(m, p);
        if (!after)
            return NULL;
        switch (after < m->end ? *after : 0) {
        case '?':
            if (takes(m, s, p, after)) {
                const char *end = match(m, s + 1, after + 1);
                if (end || m->error)
                    return end;
            }
            p = after + 1;
            break;
        case '*':
            return most(m, s, p, after);
        case '+':
            return takes(m, s, p, after) ? most(m, s + 1, p, after) : NULL;
        case '-':
            return least(m, s, p, after);
        default:
            if (!takes(m, s, p, after))
                return NULL;
            s++;
            p = after;
        }
    }
    return s;
}

static const char *match(struct pattern *m, const char *s, const char *p)
{
    if (m->depth == PATTERN_DEPTH_MAX)
        return fail(m, "pattern too complex");
    m->depth++;
    const char *end = match_rest(m, s, p);
    m->depth--;
    return m->steps > 0 ? end : NULL;
}

const char *pattern_match(struct pattern *pattern, const char *at, const char *text)
{
    pattern->captures = 0;
    pattern->depth = 0;
    return match(pattern, at, text);
}
