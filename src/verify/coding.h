/* How bytes are written in a header or a secret: hex or base64. */
#ifndef VERIFY_CODING_H
#define VERIFY_CODING_H

#include "util/buf.h"
#include "util/bytes.h"

enum coding { CODING_HEX, CODING_BASE64 };

/* Lower-case digits, or RFC 4648 section 4 with padding: what providers send. */
void coding_write(enum coding coding, struct bytes in, struct buf *out);
/* Exactly that form, but hex digits in any case; false otherwise. */
bool coding_read(enum coding coding, struct bytes text, struct buf *out);

/* For secrets: padding may be left out, and the last digit may hold bits that no byte needs, since the
 * providers' own libraries take both. Not empty. */
bool coding_read_secret(enum coding coding, struct bytes text, struct buf *out);

#endif
