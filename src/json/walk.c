/* The walk. Where a path may still match, one function per container goes member by member and asks the tree
 * of paths what is wanted there (take_*; they call each other, at most as deep as a path is long). Everything
 * else, which is nearly all of a body, is stepped over by skip_value: a flat loop that remembers only whether
 * each open container is an object, in one bit a level. */
#include "json/json.h"

#include "json/paths_priv.h"
#include "json/scan_priv.h"
#include "json/string_priv.h"

struct walk {
    const char *end;
    const struct json_paths *paths;
    struct json_found *found;
    uint64_t is_object[JSON_DEPTH_MAX / 64 + 1]; /* of skip_value: one bit a level */
};

static inline void mark_container(struct walk *w, unsigned depth, bool object)
{
    uint64_t bit = UINT64_C(1) << (depth & 63);
    if (object)
        w->is_object[depth >> 6] |= bit;
    else
        w->is_object[depth >> 6] &= ~bit;
}

static inline bool in_object(const struct walk *w, unsigned depth)
{
    return w->is_object[depth >> 6] >> (depth & 63) & 1;
}

/* `p` is where a value must begin, inside `outside` open containers. */
static const char *skip_value(struct walk *w, const char *p, unsigned outside)
{
    const char *const end = w->end;
    unsigned depth = outside;
    unsigned flags = 0;
    bool integer, object = false;

value:
    if (UNLIKELY(p == end))
        return NULL;
    switch (*p) {
    case '"':
        p = scan_string(p + 1, end, &flags);
        if (UNLIKELY(!p))
            return NULL;
        p++;
        break;
    case '{':
    case '[':
        if (UNLIKELY(depth == JSON_DEPTH_MAX))
            return NULL;
        object = *p == '{';
        mark_container(w, ++depth, object);
        p = scan_space(p + 1, end);
        if (p < end && *p == (object ? '}' : ']'))
            goto close;
        if (object)
            goto member;
        goto value;
    case 't':
        p = scan_word(p, end, "true", 4);
        break;
    case 'f':
        p = scan_word(p, end, "false", 5);
        break;
    case 'n':
        p = scan_word(p, end, "null", 4);
        break;
    default:
        p = scan_number(p, end, &integer);
        break;
    }
    if (UNLIKELY(!p))
        return NULL;

after:
    if (depth == outside)
        return p;
    p = scan_space(p, end);
    if (UNLIKELY(p == end))
        return NULL;
    if (LIKELY(*p == ',')) {
        p = scan_space(p + 1, end);
        if (object)
            goto member;
        goto value;
    }
    if (UNLIKELY(*p != (object ? '}' : ']')))
        return NULL;

close:
    p++;
    depth--;
    object = in_object(w, depth);
    goto after;

member:
    if (UNLIKELY(p == end || *p != '"'))
        return NULL;
    p = scan_string(p + 1, end, &flags);
    if (UNLIKELY(!p))
        return NULL;
    p = scan_space(p + 1, end);
    if (UNLIKELY(p == end || *p != ':'))
        return NULL;
    p = scan_space(p + 1, end);
    goto value;
}

static const char *take_value(struct walk *w, const struct path_node *node, const char *p, unsigned depth);

static const struct path_node *child_named(const struct path_node *node, struct bytes raw, bool escaped)
{
    if (LIKELY(!escaped)) {
        if (!(node->lengths & length_bit(raw.len)))
            return NULL;
        for (size_t i = 0; i < node->child_count; i++)
            if (bytes_eq(node->children[i].name, raw))
                return &node->children[i];
        return NULL;
    }
    for (size_t i = 0; i < node->child_count; i++)
        if (string_is(raw, node->children[i].name))
            return &node->children[i];
    return NULL;
}

static const struct path_node *child_numbered(const struct path_node *node, size_t index)
{
    for (size_t i = 0; i < node->child_count; i++)
        if (node->children[i].index == index)
            return &node->children[i];
    return NULL;
}

static const char *take_or_skip(struct walk *w, const struct path_node *node, const char *p, unsigned depth)
{
    return node ? take_value(w, node, p, depth) : skip_value(w, p, depth);
}

/* `p` is behind the opening brace; `depth` counts this object. */
static const char *take_object(struct walk *w, const struct path_node *node, const char *p, unsigned depth)
{
    const char *const end = w->end;
    p = scan_space(p, end);
    if (p < end && *p == '}')
        return p + 1;
    for (;;) {
        if (p == end || *p != '"')
            return NULL;
        const char *name = p + 1;
        unsigned flags = 0;
        p = scan_string(name, end, &flags);
        if (!p)
            return NULL;
        struct bytes raw = bytes_of(name, (size_t)(p - name));
        p = scan_space(p + 1, end);
        if (p == end || *p != ':')
            return NULL;
        p = take_or_skip(w, child_named(node, raw, flags & STRING_ESCAPED), scan_space(p + 1, end), depth);
        if (!p)
            return NULL;
        p = scan_space(p, end);
        if (p == end)
            return NULL;
        if (*p == '}')
            return p + 1;
        if (*p != ',')
            return NULL;
        p = scan_space(p + 1, end);
    }
}

static const char *take_array(struct walk *w, const struct path_node *node, const char *p, unsigned depth)
{
    const char *const end = w->end;
    p = scan_space(p, end);
    if (p < end && *p == ']')
        return p + 1;
    for (size_t index = 0;; index++) {
        p = take_or_skip(w, child_numbered(node, index), p, depth);
        if (!p)
            return NULL;
        p = scan_space(p, end);
        if (p == end)
            return NULL;
        if (*p == ']')
            return p + 1;
        if (*p != ',')
            return NULL;
        p = scan_space(p + 1, end);
    }
}

/* A value that a path leads to or through. The last of duplicate names wins, so what an earlier one gave is
 * forgotten with everything below it. */
static const char *take_value(struct walk *w, const struct path_node *node, const char *p, unsigned depth)
{
    const char *const start = p, *const end = w->end;
    const struct json_paths *paths = w->paths;
    for (size_t i = node->first; i < node->end; i++)
        w->found[paths->order[i]].kind = JSON_KIND_ABSENT;

    struct json_found value = {.kind = JSON_KIND_ABSENT};
    if (p == end)
        return NULL;
    unsigned flags = 0;
    switch (*p) {
    case '"':
        value.kind = JSON_KIND_STRING;
        p = scan_string(p + 1, end, &flags);
        break;
    case '{':
    case '[':
        value.kind = *p == '{' ? JSON_KIND_OBJECT : JSON_KIND_ARRAY;
        if (node->child_count == 0)
            p = skip_value(w, p, depth);
        else if (depth == JSON_DEPTH_MAX)
            p = NULL;
        else
            p = (*p == '{' ? take_object : take_array)(w, node, p + 1, depth + 1);
        break;
    case 't':
        value.kind = JSON_KIND_TRUE;
        p = scan_word(p, end, "true", 4);
        break;
    case 'f':
        value.kind = JSON_KIND_FALSE;
        p = scan_word(p, end, "false", 5);
        break;
    case 'n':
        value.kind = JSON_KIND_NULL;
        p = scan_word(p, end, "null", 4);
        break;
    default:
        value.kind = JSON_KIND_NUMBER;
        p = scan_number(p, end, &value.integer);
        break;
    }
    if (!p)
        return NULL;

    if (value.kind == JSON_KIND_STRING) {
        value.raw = bytes_of(start + 1, (size_t)(p - start - 1));
        value.escaped = flags & STRING_ESCAPED;
        value.lone_surrogate = flags & STRING_LONE_SURROGATE;
        p++;
    } else {
        value.raw = bytes_of(start, (size_t)(p - start));
    }
    for (size_t i = node->first; i < node->ends_here; i++)
        w->found[paths->order[i]] = value;
    return p;
}

static bool walk_body(struct walk *w, struct bytes body)
{
    const char *p = body.at;
    if (body.len == 0)
        return false;
    if (body.len >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        p += 3;
    p = scan_space(p, w->end);
    p = take_or_skip(w, w->paths ? w->paths->root : NULL, p, 0);
    return p && scan_space(p, w->end) == w->end;
}

bool json_walk(struct bytes body, const struct json_paths *paths, struct json_found *found)
{
    struct walk w = {.end = body.at + body.len, .paths = paths, .found = found};
    size_t count = paths ? paths->count : 0;
    for (size_t i = 0; i < count; i++)
        found[i] = (struct json_found){.kind = JSON_KIND_ABSENT};
    bool valid = walk_body(&w, body);
    for (size_t i = 0; i < count; i++)
        if (!valid || found[i].kind == JSON_KIND_ABSENT)
            found[i] = (struct json_found){.kind = JSON_KIND_ABSENT};
    return valid;
}
