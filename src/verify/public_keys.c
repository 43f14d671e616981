#include "verify/public_keys.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "util/check.h"
#include "verify/coding.h"

enum { RSA_BITS_MIN = 1024, ED25519_SIZE = 32 };

const struct public_key_kind public_key_ed25519 = {
    EVP_PKEY_ED25519, "an Ed25519 public key: 64 hex digits, or PEM (\"-----BEGIN PUBLIC KEY-----\")"};
const struct public_key_kind public_key_rsa = {
    EVP_PKEY_RSA, "an RSA public key or a certificate in PEM (\"-----BEGIN PUBLIC KEY-----\")"};
const struct public_key_kind public_key_ecdsa = {
    EVP_PKEY_EC,
    "an ECDSA public key or a certificate in PEM (\"-----BEGIN PUBLIC KEY-----\"), or the base64 of it"};

static EVP_PKEY *from_pem(struct bytes text)
{
    BIO *bio = BIO_new_mem_buf(text.at, (int)text.len);
    EVP_PKEY *key = bio ? PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL) : NULL;
    BIO_free(bio);
    return key;
}

static EVP_PKEY *from_certificate(struct bytes text)
{
    BIO *bio = BIO_new_mem_buf(text.at, (int)text.len);
    X509 *certificate = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    EVP_PKEY *key = certificate ? X509_get_pubkey(certificate) : NULL;
    X509_free(certificate);
    BIO_free(bio);
    return key;
}

/* The 32 bytes of an Ed25519 key, or DER. */
static EVP_PKEY *from_bytes(struct bytes bytes, bool bare)
{
    const unsigned char *at = (const unsigned char *)bytes.at;
    if (bare)
        return bytes.len == ED25519_SIZE ? EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, at, bytes.len)
                                         : NULL;
    EVP_PKEY *key = d2i_PUBKEY(NULL, &at, (long)bytes.len);
    if (key && at != (const unsigned char *)bytes.at + bytes.len) {
        EVP_PKEY_free(key);
        return NULL;
    }
    return key;
}

static EVP_PKEY *from_text(struct bytes text, enum coding coding, bool bare)
{
    struct buf bytes = {0};
    EVP_PKEY *key = coding_read_secret(coding, text, &bytes) ? from_bytes(buf_bytes(&bytes), bare) : NULL;
    buf_free(&bytes);
    return key;
}

static bool holds(struct bytes text, const char *word)
{
    return memmem(text.at, text.len, word, strlen(word)) != NULL;
}

static EVP_PKEY *read_key(const struct public_key_kind *kind, struct bytes text)
{
    if (holds(text, "-----BEGIN CERTIFICATE"))
        return from_certificate(text);
    if (holds(text, "-----BEGIN"))
        return from_pem(text);
    text = bytes_trim(text);
    if (kind->type == EVP_PKEY_ED25519 && bytes_starts(text, BYTES("whpk_")))
        return from_text(bytes_of(text.at + 5, text.len - 5), CODING_BASE64, true);
    if (kind->type == EVP_PKEY_ED25519 && text.len == 2 * ED25519_SIZE)
        return from_text(text, CODING_HEX, true);
    return from_text(text, CODING_BASE64, false);
}

struct opening {
    struct public_keys *out;
    const struct public_key_kind *kind;
};

static const char *take_key(void *ctx, struct bytes text)
{
    struct opening *opening = ctx;
    if (holds(text, "PRIVATE KEY-----") || bytes_starts(text, BYTES("whsk_")))
        return "this is a private key, which belongs to the sender alone";
    EVP_PKEY *key = read_key(opening->kind, text);
    ERR_clear_error();
    if (!key)
        return "this can't be read as one";
    opening->out->at[opening->out->count++] = key;
    if (EVP_PKEY_get_base_id(key) != opening->kind->type)
        return "this is a key of another kind";
    if (opening->kind->type == EVP_PKEY_RSA && EVP_PKEY_get_bits(key) < RSA_BITS_MIN)
        return "this one is too short to prove anything (under 1024 bits)";
    return NULL;
}

enum status public_keys_open(struct public_keys *out, const struct value *options,
                             const struct public_key_kind *kind, struct error *err)
{
    struct opening opening = {.out = out, .kind = kind};
    return secrets_each(options, "public_key", kind->format, take_key, &opening, err);
}

void public_keys_close(struct public_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        EVP_PKEY_free(keys->at[i]);
    keys->count = 0;
}

void ed25519_text(struct buf *out, const struct bytes *parts, size_t n)
{
    size_t size = 1;
    for (size_t i = 0; i < n; i++)
        size += parts[i].len;
    out->max = size;
    for (size_t i = 0; i < n; i++)
        buf_putb(out, parts[i]);
    CHECK(!out->overflow);
}

bool ed25519_fits(EVP_PKEY *key, struct bytes text, struct bytes signature)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool fits = ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1 &&
                EVP_DigestVerify(ctx, (const uint8_t *)signature.at, signature.len, (const uint8_t *)text.at,
                                 text.len) == 1;
    EVP_MD_CTX_free(ctx);
    ERR_clear_error();
    return fits;
}
