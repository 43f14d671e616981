/* UUID version 7 (RFC 9562, section 5.7): 48 bits of unix milliseconds, then random bits. */
#ifndef UTIL_UUID_H
#define UTIL_UUID_H

#include <stdbool.h>
#include <stdint.h>

#include "util/bytes.h"

enum { UUID_TEXT = 37 }; /* 36 characters and a NUL */

struct uuid {
    uint8_t bytes[16];
};

/* Any thread. Within one thread and millisecond the result still ascends (the 12 bits of rand_a count). */
struct uuid uuid_new(int64_t unix_ms);
/* The unix milliseconds in it. */
int64_t uuid_unix_ms(const struct uuid *id);
void uuid_format(const struct uuid *id, char text[UUID_TEXT]);
/* The 36-character form, any case; false on anything else. */
bool uuid_parse(struct bytes text, struct uuid *id);

#endif
