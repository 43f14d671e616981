/* The configuration as JSON. What may be shown was decided when it was loaded, by the marks of the schema
 * (lua/lanegate/redact.lua); here nothing else is in reach. */
#include "config/config_priv.h"

#include <math.h>
#include <stdlib.h>

#include "util/jsonw.h"
#include "util/mem.h"

static void write_value(struct jsonw *w, const char *name, const struct value *value);

struct member {
    struct bytes name;
    const struct value *value;
};

static int by_name(const void *a, const void *b)
{
    return bytes_cmp(((const struct member *)a)->name, ((const struct member *)b)->name);
}

/* In the order of names, so that two outputs can be compared. */
static void write_members(struct jsonw *w, const struct value *map)
{
    struct member *members = mem_alloc((map->len + 1) * sizeof *members);
    for (size_t i = 0; i < map->len; i++)
        members[i] = (struct member){.name = map->names[i], .value = &map->items[i]};
    qsort(members, map->len, sizeof *members, by_name);
    for (size_t i = 0; i < map->len; i++)
        write_value(w, members[i].name.at, members[i].value);
    free(members);
}

static void write_value(struct jsonw *w, const char *name, const struct value *value)
{
    switch (value->kind) {
    case VALUE_NIL:
        jsonw_null(w, name);
        break;
    case VALUE_BOOL:
        jsonw_bool(w, name, value->boolean);
        break;
    case VALUE_NUMBER:
        if (value->number == floor(value->number))
            jsonw_int(w, name, (int64_t)value->number);
        else
            jsonw_double(w, name, value->number);
        break;
    case VALUE_STRING:
        jsonw_bytes(w, name, value->string);
        break;
    case VALUE_LIST:
        jsonw_array(w, name);
        for (size_t i = 0; i < value->len; i++)
            write_value(w, NULL, &value->items[i]);
        jsonw_end_array(w);
        break;
    case VALUE_MAP:
        jsonw_object(w, name);
        write_members(w, value);
        jsonw_end_object(w);
        break;
    }
}

void config_write_json(const struct config *config, struct buf *out)
{
    struct jsonw w = jsonw_on(out);
    write_value(&w, NULL, config->shown);
}
