#include "verify/mac.h"

#include <openssl/evp.h>

#include "util/check.h"
#include "verify/digest_evp.h"

enum { BLOCK_MAX = 128 }; /* of SHA-512 */

static const struct {
    const char *name;
    const EVP_MD *(*md)(void);
} rows[] = {
    [DIGEST_SHA256] = {"sha256", EVP_sha256},
    [DIGEST_SHA1] = {"sha1", EVP_sha1},
    [DIGEST_SHA384] = {"sha384", EVP_sha384},
    [DIGEST_SHA512] = {"sha512", EVP_sha512},
};

const EVP_MD *digest_evp(enum digest digest)
{
    return rows[digest].md();
}

const char *digest_name(enum digest digest)
{
    return rows[digest].name;
}

bool digest_named(struct bytes name, enum digest *out)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!bytes_eq(name, bytes_str(rows[i].name)))
            continue;
        *out = (enum digest)i;
        return true;
    }
    return false;
}

/* One pass: the padded key, then the parts. */
static void pass(EVP_MD_CTX *ctx, const EVP_MD *md, const uint8_t *key, size_t block, uint8_t pad,
                 const struct bytes *parts, size_t n, uint8_t *out)
{
    uint8_t padded[BLOCK_MAX];
    for (size_t i = 0; i < block; i++)
        padded[i] = key[i] ^ pad;
    CHECK(EVP_DigestInit_ex(ctx, md, NULL) == 1);
    EVP_DigestUpdate(ctx, padded, block);
    for (size_t i = 0; i < n; i++)
        EVP_DigestUpdate(ctx, parts[i].at, parts[i].len);
    CHECK(EVP_DigestFinal_ex(ctx, out, NULL) == 1);
    explicit_bzero(padded, sizeof padded);
}

size_t mac(enum digest digest, struct bytes secret, const struct bytes *parts, size_t n,
           uint8_t out[MAC_SIZE_MAX])
{
    const EVP_MD *md = digest_evp(digest);
    size_t size = (size_t)EVP_MD_get_size(md), block = (size_t)EVP_MD_get_block_size(md);
    uint8_t key[BLOCK_MAX] = {0}, inner[MAC_SIZE_MAX];
    CHECK(block <= BLOCK_MAX && size <= MAC_SIZE_MAX);

    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    CHECK(ctx);
    if (secret.len > block) {
        CHECK(EVP_DigestInit_ex(ctx, md, NULL) == 1);
        EVP_DigestUpdate(ctx, secret.at, secret.len);
        CHECK(EVP_DigestFinal_ex(ctx, key, NULL) == 1);
    } else if (secret.len) {
        memcpy(key, secret.at, secret.len);
    }
    pass(ctx, md, key, block, 0x36, parts, n, inner);
    struct bytes once = bytes_of(inner, size);
    pass(ctx, md, key, block, 0x5c, &once, 1, out);
    EVP_MD_CTX_free(ctx);
    explicit_bzero(key, sizeof key);
    return size;
}
