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

struct ip_ranges config_ranges(const struct value *list, struct arena *arena)
{
    struct ip_range *out = arena_zalloc(arena, (list->len + 1) * sizeof *out);
    struct ip_ranges ranges = {.at = out};
    for (size_t i = 0; i < list->len; i++)
        if (ip_range_parse(list->items[i].string.at, &out[ranges.len], NULL) == STATUS_OK)
            ranges.len++; /* else it is a placeholder */
    return ranges;
}

struct ip_gate config_gate(const struct value *addresses, struct arena *arena)
{
    return (struct ip_gate){.deny = config_ranges(value_get(addresses, "deny"), arena),
                            .allow = config_ranges(value_get(addresses, "allow"), arena)};
}

bool config_is(const struct value *map, const char *name, const char *word)
{
    const char *value = value_str(map, name, NULL);
    return value && strcmp(value, word) == 0;
}
