/* A signature that anybody can check and only the sender can make: Ed25519, RSA and ECDSA. The facts are a
 * row of schemes.c, or what the options say. */
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/rsa.h>
#include <stdlib.h>

#include "util/check.h"
#include "util/mem.h"
#include "verify/digest_evp.h"
#include "verify/public_keys.h"
#include "verify/recipe.h"
#include "verify/schemes.h"

struct key {
    struct form form;
    struct public_keys keys;
    bool pss;   /* RSA: the padding of PKCS #1 version 2 */
    bool p1363; /* ECDSA: r and s one after the other, each as long as the curve's order; else DER */
};

static void public_key_close(void *opaque)
{
    struct key *key = opaque;
    form_close(&key->form);
    public_keys_close(&key->keys);
    free(key);
}

static enum status open_recipe(const struct recipe *recipe, const struct value *options,
                               const struct public_key_kind *kind, struct key *made, void **out,
                               struct error *err)
{
    struct key *key = mem_alloc(sizeof *key);
    *key = *made;
    enum status status = public_keys_open(&key->keys, options, kind, err);
    if (status == STATUS_OK)
        status = form_open(&key->form, recipe, options, err);
    if (status == STATUS_OK)
        *out = key;
    else
        public_key_close(key);
    return status;
}

/* -- checking ------------------------------------------------------------------------------------------- */

struct message {
    const struct key *key;
    struct verify_trace *trace;
    bool bare;        /* Ed25519 takes the whole text; the others its digest */
    struct buf whole; /* the text, where it must be in one piece */
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned digest_size;
};

static void message_start(void *ctx, const struct bytes *parts, size_t n)
{
    struct message *message = ctx;
    if (message->bare) {
        ed25519_text(&message->whole, parts, n);
        return;
    }
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    CHECK(md && EVP_DigestInit_ex(md, digest_evp(message->key->form.digest), NULL) == 1);
    for (size_t i = 0; i < n; i++)
        EVP_DigestUpdate(md, parts[i].at, parts[i].len);
    CHECK(EVP_DigestFinal_ex(md, message->digest, &message->digest_size) == 1);
    EVP_MD_CTX_free(md);
}

static bool set_padding(EVP_PKEY_CTX *ctx, const struct key *key, EVP_PKEY *pkey)
{
    if (EVP_PKEY_get_base_id(pkey) != EVP_PKEY_RSA)
        return true;
    if (!key->pss)
        return EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PADDING) == 1;
    return EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PSS_PADDING) == 1 &&
           EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, RSA_PSS_SALTLEN_AUTO) == 1;
}

static bool digest_fits(const struct message *message, EVP_PKEY *pkey, struct bytes signature)
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(pkey, NULL);
    bool fits = ctx && EVP_PKEY_verify_init(ctx) == 1 && set_padding(ctx, message->key, pkey) &&
                EVP_PKEY_CTX_set_signature_md(ctx, digest_evp(message->key->form.digest)) == 1 &&
                EVP_PKEY_verify(ctx, (const uint8_t *)signature.at, signature.len, message->digest,
                                message->digest_size) == 1;
    EVP_PKEY_CTX_free(ctx);
    return fits;
}

/* r and s side by side to the DER form; false when they are not of the curve's size. */
static bool der_of(EVP_PKEY *pkey, struct bytes signature, struct buf *out)
{
    size_t half = ((size_t)EVP_PKEY_get_bits(pkey) + 7) / 8;
    if (signature.len != 2 * half)
        return false;
    const uint8_t *at = (const uint8_t *)signature.at;
    ECDSA_SIG *both = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(at, (int)half, NULL), *s = BN_bin2bn(at + half, (int)half, NULL);
    CHECK(both && r && s && ECDSA_SIG_set0(both, r, s) == 1);
    uint8_t *der = NULL;
    int len = i2d_ECDSA_SIG(both, &der);
    if (len > 0)
        buf_put(out, (const char *)der, (size_t)len);
    OPENSSL_free(der);
    ECDSA_SIG_free(both);
    return len > 0;
}

static bool key_fits(const struct message *message, EVP_PKEY *pkey, struct bytes signature)
{
    if (message->bare)
        return ed25519_fits(pkey, buf_bytes(&message->whole), signature);
    if (!message->key->p1363)
        return digest_fits(message, pkey, signature);
    struct buf der = {0};
    bool fits = der_of(pkey, signature, &der) && digest_fits(message, pkey, buf_bytes(&der));
    buf_free(&der);
    return fits;
}

static size_t message_fits(void *ctx, struct bytes text)
{
    const struct message *message = ctx;
    const struct key *key = message->key;
    struct buf signature = {0};
    size_t first = 0;
    if (coding_read(key->form.coding, text, &signature))
        for (size_t i = 0; !first && i < key->keys.count; i++) /* nothing here is secret */
            if (key_fits(message, key->keys.at[i], buf_bytes(&signature)))
                first = i + 1;
    buf_free(&signature);
    ERR_clear_error();
    return first;
}

static struct verify_result public_key_check(const void *opaque, const struct attempt *attempt)
{
    const struct key *key = opaque;
    struct message message = {.key = key, .bare = EVP_PKEY_get_base_id(key->keys.at[0]) == EVP_PKEY_ED25519};
    attempt->trace->secrets = key->keys.count;
    struct verify_result result = form_check(
        &key->form, attempt, &(struct judge){.ctx = &message, .start = message_start, .fits = message_fits});
    buf_free(&message.whole);
    return result;
}

/* -- the schemes ------------------------------------------------------------------------------------------
 */

static enum status provider_ed25519_open(const struct value *options, const struct recipe *facts,
                                         const struct verify_engine *engine, void **key, struct error *err)
{
    (void)engine;
    return open_recipe(facts, options, &public_key_ed25519, &(struct key){0}, key, err);
}

static enum status provider_ecdsa_open(const struct value *options, const struct recipe *facts,
                                       const struct verify_engine *engine, void **key, struct error *err)
{
    (void)engine;
    return open_recipe(facts, options, &public_key_ecdsa, &(struct key){0}, key, err);
}

static enum status open_generic(const struct value *options, const struct public_key_kind *kind,
                                struct key *made, void **key, struct error *err)
{
    static const struct recipe defaults = {.coding = CODING_BASE64, .signs = "{body}"};
    struct recipe recipe;
    struct recipe_scratch scratch;
    enum status status = recipe_read(options, &defaults, &recipe, &scratch, err);
    return status == STATUS_OK ? open_recipe(&recipe, options, kind, made, key, err) : status;
}

static enum status ed25519_open(const struct value *options, const struct recipe *facts,
                                const struct verify_engine *engine, void **key, struct error *err)
{
    (void)facts, (void)engine;
    return open_generic(options, &public_key_ed25519, &(struct key){0}, key, err);
}

static enum status rsa_open(const struct value *options, const struct recipe *facts,
                            const struct verify_engine *engine, void **key, struct error *err)
{
    (void)facts, (void)engine;
    const char *padding = value_str(options, "padding", "pkcs1");
    struct key made = {.pss = strcmp(padding, "pss") == 0};
    if (!made.pss && strcmp(padding, "pkcs1") != 0)
        return error_set(err, STATUS_INVALID, "padding: must be \"pkcs1\" or \"pss\"");
    return open_generic(options, &public_key_rsa, &made, key, err);
}

static enum status ecdsa_open(const struct value *options, const struct recipe *facts,
                              const struct verify_engine *engine, void **key, struct error *err)
{
    (void)facts, (void)engine;
    const char *format = value_str(options, "signature_format", "der");
    struct key made = {.p1363 = strcmp(format, "p1363") == 0};
    if (!made.p1363 && strcmp(format, "der") != 0)
        return error_set(err, STATUS_INVALID, "signature_format: must be \"der\" or \"p1363\"");
    return open_generic(options, &public_key_ecdsa, &made, key, err);
}

const struct scheme scheme_provider_ed25519 = {
    .open = provider_ed25519_open, .close = public_key_close, .check = public_key_check};
const struct scheme scheme_provider_ecdsa = {
    .open = provider_ecdsa_open, .close = public_key_close, .check = public_key_check};
const struct scheme scheme_ed25519 = {
    .open = ed25519_open, .close = public_key_close, .check = public_key_check};
const struct scheme scheme_rsa = {.open = rsa_open, .close = public_key_close, .check = public_key_check};
const struct scheme scheme_ecdsa = {.open = ecdsa_open, .close = public_key_close, .check = public_key_check};
