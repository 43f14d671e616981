/* A moment as people and programs write it: unix milliseconds, or RFC 3339 ("2026-07-01T12:00:00Z", with a
 * fraction or an offset). Pure. */
#ifndef ADMIN_MOMENT_H
#define ADMIN_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "util/bytes.h"

/* Unix ms, after 1970. A blank where the offset's sign should be reads as '+': that is what an unescaped plus
 * of a query becomes. */
bool moment_parse(struct bytes text, int64_t *unix_ms);

#endif
