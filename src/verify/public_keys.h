/* The option `public_key`: one, or a list while the provider changes its key. */
#ifndef VERIFY_PUBLIC_KEYS_H
#define VERIFY_PUBLIC_KEYS_H

#include <openssl/evp.h>

#include "util/buf.h"
#include "util/status.h"
#include "util/value.h"
#include "verify/secrets.h"

struct public_keys {
    size_t count;
    EVP_PKEY *at[SECRETS_MAX];
};

/* What a scheme takes. */
struct public_key_kind {
    int type;           /* EVP_PKEY_ED25519, EVP_PKEY_RSA, EVP_PKEY_EC */
    const char *format; /* goes on from "must be" */
};
extern const struct public_key_kind public_key_ed25519, public_key_rsa, public_key_ecdsa;

/* A key is PEM (a public key, or a certificate that holds one), the base64 of its DER form alone, or, for
 * Ed25519, its 32 bytes in hex or behind "whpk_" in base64. `out` is zeroed by the caller, and to be closed
 * in either case. */
enum status public_keys_open(struct public_keys *out, const struct value *options,
                             const struct public_key_kind *kind, struct error *err);
void public_keys_close(struct public_keys *keys);

/* Ed25519 takes the whole text, in one piece: the parts one after the other. */
void ed25519_text(struct buf *out, const struct bytes *parts, size_t n);
bool ed25519_fits(EVP_PKEY *key, struct bytes text, struct bytes signature);

#endif
