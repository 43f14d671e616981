/* Names of members against names of paths. */
#ifndef JSON_STRING_PRIV_H
#define JSON_STRING_PRIV_H

#include <stdbool.h>

#include "util/bytes.h"

/* Is the name `raw`, as it stands between its quotes, these bytes once its escapes are decoded? A name with a
 * lone surrogate equals nothing. */
bool string_is(struct bytes raw, struct bytes name);

#endif
