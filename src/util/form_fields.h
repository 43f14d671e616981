/* Fields of a form or a query: application/x-www-form-urlencoded, as WHATWG's URL standard reads it. */
#ifndef UTIL_FORM_FIELDS_H
#define UTIL_FORM_FIELDS_H

#include "util/buf.h"
#include "util/bytes.h"

enum { FORM_FIELDS_MAX = 1000 };

/* The value of the first field of that name, decoded; false when there is none. `text` may be absent. */
bool form_field(struct bytes text, struct bytes name, struct buf *value);

/* Names and values, decoded and one after the other, sorted by name, then by value; a field that is there
 * twice with the same value counts once. False when there are more than FORM_FIELDS_MAX. */
bool form_fields_sorted(struct bytes text, struct buf *out);

#endif
