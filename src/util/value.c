#include "util/value.h"

#include "util/check.h"

static const struct value nil = {.kind = VALUE_NIL};

const struct value *value_get(const struct value *map, const char *name)
{
    if (map->kind == VALUE_MAP)
        for (size_t i = 0; i < map->len; i++)
            if (bytes_eq(map->names[i], bytes_str(name)))
                return &map->items[i];
    return &nil;
}

int64_t value_int(const struct value *map, const char *name, int64_t otherwise)
{
    const struct value *v = value_get(map, name);
    if (v->kind == VALUE_NIL)
        return otherwise;
    CHECK(v->kind == VALUE_NUMBER);
    return (int64_t)v->number;
}

bool value_bool(const struct value *map, const char *name, bool otherwise)
{
    const struct value *v = value_get(map, name);
    if (v->kind == VALUE_NIL)
        return otherwise;
    CHECK(v->kind == VALUE_BOOL);
    return v->boolean;
}

const char *value_str(const struct value *map, const char *name, const char *otherwise)
{
    const struct value *v = value_get(map, name);
    if (v->kind == VALUE_NIL)
        return otherwise;
    CHECK(v->kind == VALUE_STRING);
    return v->string.at;
}
