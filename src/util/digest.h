/* SHA-256, HMAC and base64, by OpenSSL. Rooms that need more (schemes of other providers) are in verify/. */
#ifndef UTIL_DIGEST_H
#define UTIL_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/bytes.h"

enum { SHA256_SIZE = 32 };

/* Over the parts one after the other. */
void sha256(const struct bytes *parts, size_t n, uint8_t out[SHA256_SIZE]);
/* The same, piece by piece. */
struct sha256_run;
struct sha256_run *sha256_begin(void);
void sha256_add(struct sha256_run *run, struct bytes piece);
void sha256_end(struct sha256_run *run, uint8_t out[SHA256_SIZE]); /* frees it */

void hmac_sha256(struct bytes secret, const struct bytes *parts, size_t n, uint8_t out[SHA256_SIZE]);

/* RFC 4648, section 4, with padding. */
void base64_encode(struct buf *out, struct bytes in);
/* The same into room for BASE64_SIZE(in.len) bytes; gives that many. */
#define BASE64_SIZE(len) (((size_t)(len) + 2) / 3 * 4)
size_t base64_write(struct bytes in, char *out);
/* Standard alphabet, padding required where due, nothing else in it; false otherwise. */
bool base64_decode(struct buf *out, struct bytes text);

#endif
