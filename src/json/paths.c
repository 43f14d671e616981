#include "json/json.h"

#include <stdlib.h>

#include "util/arena.h"
#include "util/check.h"
#include "util/mem.h"
#include "json/paths_priv.h"

enum status json_path_split(struct bytes text, struct bytes segments[JSON_PATH_SEGMENTS_MAX], size_t *count,
                            struct error *err)
{
    *count = 0;
    if (text.len == 0)
        return error_set(err, STATUS_INVALID, "a JSON path must not be empty");
    for (const char *at = text.at, *end = text.at + text.len;;) {
        const char *dot = memchr(at, '.', (size_t)(end - at));
        struct bytes segment = bytes_of(at, (size_t)((dot ? dot : end) - at));
        if (segment.len == 0)
            return error_set(err, STATUS_INVALID, "a JSON path must not have an empty segment: \"%.*s\"",
                             BYTES_ARG(text));
        if (*count == JSON_PATH_SEGMENTS_MAX)
            return error_set(err, STATUS_INVALID, "a JSON path has at most %d segments",
                             JSON_PATH_SEGMENTS_MAX);
        segments[(*count)++] = segment;
        if (!dot)
            return STATUS_OK;
        at = dot + 1;
    }
}

/* "0", "17"; not "00", "+1", "1e3", nor what would wrap around. */
static size_t element_number(struct bytes segment)
{
    if (segment.len == 0 || segment.len > 18 || (segment.at[0] == '0' && segment.len > 1))
        return SIZE_MAX;
    size_t n = 0;
    for (size_t i = 0; i < segment.len; i++) {
        if (segment.at[i] < '0' || segment.at[i] > '9')
            return SIZE_MAX;
        n = n * 10 + (size_t)(segment.at[i] - '0');
    }
    return n;
}

/* By segments, then by length: a path stands right before those that go on from it. */
static int compare_paths(const void *left, const void *right, void *ctx)
{
    const struct json_path *paths = ctx;
    const struct json_path *a = &paths[*(const size_t *)left], *b = &paths[*(const size_t *)right];
    for (size_t i = 0; i < a->segment_count && i < b->segment_count; i++) {
        int order = bytes_cmp(a->segments[i], b->segments[i]);
        if (order)
            return order;
    }
    return (a->segment_count > b->segment_count) - (a->segment_count < b->segment_count);
}

/* Where the run of paths that share segment `depth` with the one at `first` ends. */
static size_t run_end(const struct json_path *paths, const size_t *order, size_t first, size_t end,
                      size_t depth)
{
    size_t i = first + 1;
    while (i < end && bytes_eq(paths[order[i]].segments[depth], paths[order[first]].segments[depth]))
        i++;
    return i;
}

/* Fills in what lies below a node whose run of `order` is known. As deep as the longest path. */
static void grow(struct json_paths *self, const struct json_path *paths, struct path_node *node, size_t depth)
{
    node->ends_here = node->first;
    while (node->ends_here < node->end && paths[self->order[node->ends_here]].segment_count == depth)
        node->ends_here++;

    for (size_t i = node->ends_here; i < node->end; i = run_end(paths, self->order, i, node->end, depth))
        node->child_count++;
    struct path_node *children = arena_zalloc(self->arena, node->child_count * sizeof *children);
    node->children = children;

    size_t next = node->ends_here;
    for (size_t i = 0; i < node->child_count; i++) {
        struct path_node *child = &children[i];
        child->first = next;
        child->end = next = run_end(paths, self->order, next, node->end, depth);
        child->name = arena_copy(self->arena, paths[self->order[child->first]].segments[depth]);
        child->index = element_number(child->name);
        node->lengths |= length_bit(child->name.len);
        grow(self, paths, child, depth + 1);
    }
}

struct json_paths *json_paths_new(const struct json_path *paths, size_t count)
{
    struct arena *arena = arena_new(1024);
    struct json_paths *self = arena_zalloc(arena, sizeof *self);
    size_t *order = arena_alloc(arena, count * sizeof *order);
    for (size_t i = 0; i < count; i++) {
        CHECK(paths[i].segment_count <= JSON_PATH_SEGMENTS_MAX);
        order[i] = i;
    }
    if (count)
        qsort_r(order, count, sizeof *order, compare_paths, (void *)paths);

    struct path_node *root = arena_zalloc(arena, sizeof *root);
    root->end = count;
    *self = (struct json_paths){.count = count, .order = order, .root = root, .arena = arena};
    grow(self, paths, root, 0);
    return self;
}

void json_paths_free(struct json_paths *paths)
{
    if (paths)
        arena_free(paths->arena);
}

size_t json_paths_count(const struct json_paths *paths)
{
    return paths->count;
}
