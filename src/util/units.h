/* Text to numbers, in one place: durations to milliseconds, sizes to bytes. */
#ifndef UTIL_UNITS_H
#define UTIL_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/bytes.h"

/* "250ms" "30s" "5m" "72h" "7d", whole numbers; false on anything else or beyond 2^53. */
bool units_parse_ms(struct bytes text, int64_t *ms);
/* "100B" "64KiB" "8MiB" "1GiB" "2TiB"; false on anything else or beyond 2^53. */
bool units_parse_bytes(struct bytes text, int64_t *bytes);
/* Decimal digits only, no sign, no blanks, at most 2^63-1. */
bool units_parse_u63(struct bytes text, int64_t *n);
/* "50", "0.5": digits, and digits behind a point; at most 15 of them in all. */
bool units_parse_decimal(struct bytes text, double *n);
/* For people: "340 ms", "12 s", "4 min", "3 h", "2 d" / "12 KiB". `out` holds 32 bytes. */
void units_format_ms(int64_t ms, char out[32]);
void units_format_bytes(int64_t bytes, char out[32]);

#endif
