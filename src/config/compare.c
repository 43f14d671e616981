/* What is other than before? Compared are the normalised trees, so that a default written out is no change,
 * nor is "30s" for 30000. Only paths are told: a value may be a secret. */
#include "config/config_priv.h"

#include <string.h>

#include "util/buf.h"
#include "util/vec.h"

/* What only a start can do: a path, and everything under it. The bounds of http are those of libh2o's one
 * configuration, which its loops read without asking. */
static const char *const start_only[] = {
    "data_dir",
    "store",
    "quarantine.retention_ms",
    "http.listen",
    "http.threads",
    "http.max_body_bytes",
    "http.max_buffered_bytes",
    "http.header_timeout_ms",
    "http.body_timeout_ms",
    "http.idle_timeout_ms",
    "http.max_connections",
    "admin.listen",
};

struct comparison {
    struct arena *arena;
    struct buf path;
    VEC(struct config_change) changes;
};

static bool under(const char *path, const char *root)
{
    size_t len = strlen(root);
    return strncmp(path, root, len) == 0 && (path[len] == 0 || path[len] == '.');
}

static void note(struct comparison *c)
{
    struct config_change change = {.path = arena_strdup(c->arena, c->path.at)};
    for (size_t i = 0; i < sizeof start_only / sizeof *start_only; i++)
        change.needs_restart |= under(change.path, start_only[i]);
    VEC_PUSH(&c->changes, change);
}

static bool same(const struct value *a, const struct value *b);

static bool same_items(const struct value *a, const struct value *b)
{
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++) {
        bool found = a->kind == VALUE_LIST && same(&a->items[i], &b->items[i]);
        for (size_t k = 0; a->kind == VALUE_MAP && k < b->len && !found; k++)
            found = bytes_eq(a->names[i], b->names[k]) && same(&a->items[i], &b->items[k]);
        if (!found)
            return false;
    }
    return true;
}

static bool same(const struct value *a, const struct value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case VALUE_NIL:
        return true;
    case VALUE_BOOL:
        return a->boolean == b->boolean;
    case VALUE_NUMBER:
        return a->number == b->number;
    case VALUE_STRING:
        return bytes_eq(a->string, b->string);
    case VALUE_LIST:
    case VALUE_MAP:
        return same_items(a, b);
    }
    return false;
}

/* Every item has a name of its own, as sinks have: their order means nothing. */
static bool is_named_list(const struct value *list)
{
    if (list->kind != VALUE_LIST || list->len == 0)
        return false;
    for (size_t i = 0; i < list->len; i++)
        if (value_get(&list->items[i], "name")->kind != VALUE_STRING)
            return false;
    return true;
}

static const struct value nothing = {.kind = VALUE_NIL};

static const struct value *named(const struct value *list, struct bytes name)
{
    for (size_t i = 0; i < list->len; i++)
        if (bytes_eq(value_get(&list->items[i], "name")->string, name))
            return &list->items[i];
    return &nothing;
}

static void compare(struct comparison *c, const struct value *a, const struct value *b);

static void compare_at(struct comparison *c, struct bytes name, const struct value *a, const struct value *b)
{
    size_t len = c->path.len;
    if (len)
        buf_putc(&c->path, '.');
    buf_putb(&c->path, name);
    compare(c, a, b);
    c->path.len = len;
    c->path.at[len] = 0;
}

static void compare_maps(struct comparison *c, const struct value *a, const struct value *b)
{
    for (size_t i = 0; i < a->len; i++)
        compare_at(c, a->names[i], &a->items[i], value_get(b, a->names[i].at));
    for (size_t i = 0; i < b->len; i++)
        if (value_get(a, b->names[i].at)->kind == VALUE_NIL)
            compare_at(c, b->names[i], &nothing, &b->items[i]);
}

static void compare_named(struct comparison *c, const struct value *a, const struct value *b)
{
    for (size_t i = 0; i < a->len; i++) {
        struct bytes name = value_get(&a->items[i], "name")->string;
        compare_at(c, name, &a->items[i], named(b, name));
    }
    for (size_t i = 0; i < b->len; i++) {
        struct bytes name = value_get(&b->items[i], "name")->string;
        if (named(a, name)->kind == VALUE_NIL)
            compare_at(c, name, &nothing, &b->items[i]);
    }
}

/* As deep as both sides have members; below that, the path at hand is the change. */
static void compare(struct comparison *c, const struct value *a, const struct value *b)
{
    if (same(a, b))
        return;
    if (a->kind == VALUE_MAP && b->kind == VALUE_MAP)
        compare_maps(c, a, b);
    else if (is_named_list(a) && is_named_list(b))
        compare_named(c, a, b);
    else
        note(c);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct config_change *)a)->path, ((const struct config_change *)b)->path);
}

size_t config_compare(const struct config *from, const struct config *to, struct arena *arena,
                      const struct config_change **out)
{
    struct comparison c = {.arena = arena};
    compare(&c, from->root, to->root);
    size_t count = c.changes.len;
    struct config_change *changes = arena_zalloc(arena, (count + 1) * sizeof *changes);
    if (count) {
        memcpy(changes, c.changes.at, count * sizeof *changes);
        qsort(changes, count, sizeof *changes, by_path);
    }
    VEC_FREE(&c.changes);
    buf_free(&c.path);
    *out = changes;
    return count;
}
