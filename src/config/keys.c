/* Ordering keys and filters out of their normal forms (lua/lanegate/keys.lua). */
#include "config/config_priv.h"

#include "util/check.h"

static struct json_path path_of(const struct value *segments, struct arena *arena)
{
    return (struct json_path){.segments = config_texts(segments, arena), .segment_count = segments->len};
}

static void fill_key(const struct value *tree, struct arena *arena, struct key_spec *key)
{
    if (config_is(tree, "kind", "header")) {
        key->kind = KEY_HEADER;
        key->header = value_get(tree, "header")->string;
    } else if (config_is(tree, "kind", "headers")) {
        const struct value *list = value_get(tree, "headers");
        key->kind = KEY_HEADERS;
        key->headers = config_texts(list, arena);
        key->header_count = list->len;
    } else if (config_is(tree, "kind", "json")) {
        key->kind = KEY_JSON;
        key->path = path_of(value_get(tree, "path"), arena);
        key->integers = value_bool(tree, "integers", false);
    } else if (config_is(tree, "kind", "script")) {
        key->kind = KEY_SCRIPT;
        key->module = value_str(tree, "module", NULL);
        key->function = value_str(tree, "call", NULL);
        key->args = value_get(tree, "args");
    } else {
        CHECK(config_is(tree, "kind", "first"));
        const struct value *list = value_get(tree, "items");
        struct key_spec *items = arena_zalloc(arena, (list->len + 1) * sizeof *items);
        for (size_t i = 0; i < list->len; i++)
            fill_key(&list->items[i], arena, &items[i]);
        key->kind = KEY_FIRST;
        key->items = items;
        key->item_count = list->len;
    }
}

const struct key_spec *config_key(const struct value *tree, struct arena *arena)
{
    if (tree->kind == VALUE_NIL)
        return NULL;
    struct key_spec *key = arena_zalloc(arena, sizeof *key);
    fill_key(tree, arena, key);
    return key;
}

const struct filter_spec *config_filter(const struct value *tree, struct arena *arena)
{
    if (tree->kind == VALUE_NIL)
        return NULL;
    struct filter_spec *filter = arena_zalloc(arena, sizeof *filter);
    const struct value *globs = value_get(tree, "match"), *header = value_get(tree, "header");
    filter->by_header = header->kind == VALUE_STRING;
    if (filter->by_header)
        filter->header = header->string;
    else
        filter->path = path_of(value_get(tree, "path"), arena);
    filter->globs = config_texts(globs, arena);
    filter->glob_count = globs->len;
    return filter;
}
