/* application/x-www-form-urlencoded, as in queries and forms: one value by its name, decoded. Private to this
 * room. */
#ifndef SCRIPT_FORM_H
#define SCRIPT_FORM_H

#include <stdbool.h>

#include "util/bytes.h"

/* The raw value of the first pair whose decoded name is `name`; absent when there is none. */
struct bytes form_find(struct bytes text, struct bytes name);
/* Decodes: + is a blank, %XX a byte, a % before anything else itself. `out` has room for raw.len bytes; gives
 * the length. */
size_t form_decode(struct bytes raw, char *out);
bool form_is_type(struct bytes content_type);

#endif
