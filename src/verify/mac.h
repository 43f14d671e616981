/* HMAC (RFC 2104) with the digests that providers sign with. */
#ifndef VERIFY_MAC_H
#define VERIFY_MAC_H

#include "util/bytes.h"

enum digest { DIGEST_SHA256, DIGEST_SHA1, DIGEST_SHA384, DIGEST_SHA512 };
enum { MAC_SIZE_MAX = 64 };

/* "sha256", ...; false when `name` is none of them. */
bool digest_named(struct bytes name, enum digest *out);
const char *digest_name(enum digest digest);

/* Over the parts one after the other, so that a body is never copied. Gives the size. Any thread. */
size_t mac(enum digest digest, struct bytes secret, const struct bytes *parts, size_t n,
           uint8_t out[MAC_SIZE_MAX]);

#endif
