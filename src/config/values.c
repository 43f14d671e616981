#include "config/config_priv.h"

#include <string.h>

const char *const *config_strings(const struct value *list, struct arena *arena)
{
    const char **out = arena_zalloc(arena, (list->len + 1) * sizeof *out);
    for (size_t i = 0; i < list->len; i++)
        out[i] = list->items[i].string.at;
    return out;
}

const struct bytes *config_texts(const struct value *list, struct arena *arena)
{
    struct bytes *out = arena_zalloc(arena, (list->len + 1) * sizeof *out);
    for (size_t i = 0; i < list->len; i++)
        out[i] = list->items[i].string;
    return out;
}

bool config_is(const struct value *map, const char *name, const char *word)
{
    const char *value = value_str(map, name, NULL);
    return value && strcmp(value, word) == 0;
}
