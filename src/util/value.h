/* A plain tree of values, in an arena: how a Lua table reaches rooms that may not see Lua. Immutable once
 * made. Strings are any bytes. A map keeps no order. */
#ifndef UTIL_VALUE_H
#define UTIL_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "util/bytes.h"

enum value_kind { VALUE_NIL, VALUE_BOOL, VALUE_NUMBER, VALUE_STRING, VALUE_LIST, VALUE_MAP };

struct value {
    enum value_kind kind;
    bool boolean;
    double number;       /* whole up to 2^53 */
    struct bytes string; /* NUL behind it */
    size_t len;          /* of a list or a map */
    const struct value *items;
    const struct bytes *names; /* of a map: one an item */
};

/* The member, or a nil value (never NULL). `map` may be anything. */
const struct value *value_get(const struct value *map, const char *name);
/* The value, or `otherwise` when it is nil. A wrong kind is our own mistake (the schema has checked it). */
int64_t value_int(const struct value *map, const char *name, int64_t otherwise);
bool value_bool(const struct value *map, const char *name, bool otherwise);
const char *value_str(const struct value *map, const char *name, const char *otherwise);

#endif
