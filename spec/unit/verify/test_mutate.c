/* A request that is signed, through every kind of scheme, with one byte changed anywhere in what is signed:
 * refused. A control that nothing was changed in passes each time. Signed with keys made here. */
#include "verify_support.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdio.h>

#include "random.h"
#include "util/digest.h"
#include "verify/mac.h"

#define NOW_MS INT64_C(1700000000000)
#define TS "1700000000"
#define URL "https://hooks.example.com/in"

enum signer { HMAC_HEX, HMAC_BASE64, ED25519_HEX, ED25519_BASE64, RSA_PSS, ECDSA_DER };

struct kind {
    const char *name;
    const char *options[12][2]; /* beside the key */
    enum signer signer;
    enum digest digest;
    const char *header, *prefix; /* of the signature: FRONT, digits */
    const char *front, *before;  /* the signed text: before, body */
    const char *other[2];        /* another header that is signed */
};

static const struct kind kinds[] = {
    {.name = "stripe", .header = "stripe-signature", .prefix = "t=" TS ",v1=", .before = TS "."},
    {.name = "github", .header = "x-hub-signature-256", .prefix = "sha256=", .before = ""},
    {.name = "shopify", .signer = HMAC_BASE64, .header = "x-shopify-hmac-sha256", .prefix = "", .before = ""},
    {.name = "slack",
     .header = "x-slack-signature",
     .prefix = "v0=",
     .before = "v0:" TS ":",
     .other = {"x-slack-request-timestamp", TS}},
    {.name = "zoom",
     .header = "x-zm-signature",
     .prefix = "v0=",
     .before = "v0:" TS ":",
     .other = {"x-zm-request-timestamp", TS}},
    {.name = "paddle", .header = "paddle-signature", .prefix = "ts=" TS ";h1=", .before = TS ":"},
    {.name = "square",
     .options = {{"url", URL}},
     .signer = HMAC_BASE64,
     .header = "x-square-hmacsha256-signature",
     .prefix = "",
     .before = URL},
    {.name = "hmac",
     .options = {{"header", "x-sig"},
                 {"algorithm", "sha512"},
                 {"template", "{method} {url} {header:x-id} {body}"},
                 {"url", URL}},
     .digest = DIGEST_SHA512,
     .header = "x-sig",
     .prefix = "",
     .before = "POST " URL " id-1 ",
     .other = {"x-id", "id-1"}},
    {.name = "discord",
     .signer = ED25519_HEX,
     .header = "x-signature-ed25519",
     .prefix = "",
     .before = TS,
     .other = {"x-signature-timestamp", TS}},
    {.name = "ed25519",
     .options = {{"header", "x-sig"}},
     .signer = ED25519_BASE64,
     .header = "x-sig",
     .prefix = "",
     .before = ""},
    {.name = "rsa",
     .options = {{"header", "x-sig"}, {"padding", "pss"}},
     .signer = RSA_PSS,
     .header = "x-sig",
     .prefix = "",
     .before = ""},
    {.name = "ecdsa",
     .options = {{"header", "x-sig"}},
     .signer = ECDSA_DER,
     .header = "x-sig",
     .prefix = "",
     .before = ""},
    {.name = "sendgrid",
     .signer = ECDSA_DER,
     .header = "x-twilio-email-event-webhook-signature",
     .prefix = "",
     .before = TS,
     .other = {"x-twilio-email-event-webhook-timestamp", TS}},
};

static EVP_PKEY *key_of(enum signer signer)
{
    static EVP_PKEY *made[ECDSA_DER + 1];
    if (!made[signer])
        made[signer] = signer == RSA_PSS     ? EVP_RSA_gen(2048)
                       : signer == ECDSA_DER ? EVP_EC_gen("P-256")
                                             : EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    assert_non_null(made[signer]);
    return made[signer];
}

static const char *public_pem(EVP_PKEY *key)
{
    static char text[2048];
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PUBKEY(bio, key), 1);
    int len = BIO_read(bio, text, sizeof text - 1);
    BIO_free(bio);
    text[len] = 0;
    return text;
}

static void sign_with_key(EVP_PKEY *key, enum signer signer, struct bytes text, struct buf *out)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    EVP_PKEY_CTX *how = NULL;
    const EVP_MD *md = signer == ED25519_HEX || signer == ED25519_BASE64 ? NULL : EVP_sha256();
    uint8_t raw[512];
    size_t len = sizeof raw;
    assert_int_equal(EVP_DigestSignInit(ctx, &how, md, NULL, key), 1);
    if (signer == RSA_PSS)
        assert_int_equal(EVP_PKEY_CTX_set_rsa_padding(how, RSA_PKCS1_PSS_PADDING), 1);
    assert_int_equal(EVP_DigestSign(ctx, raw, &len, (const uint8_t *)text.at, text.len), 1);
    EVP_MD_CTX_free(ctx);
    char hex[1025];
    hex_encode(raw, len, hex);
    if (signer == ED25519_HEX)
        buf_puts(out, hex);
    else
        base64_encode(out, bytes_of(raw, len));
}

static void sign(const struct kind *kind, struct bytes body, struct buf *out)
{
    struct buf text = {0};
    buf_puts(&text, kind->before);
    buf_putb(&text, body);
    buf_puts(out, kind->prefix);
    if (kind->signer > HMAC_BASE64) {
        sign_with_key(key_of(kind->signer), kind->signer, buf_bytes(&text), out);
    } else {
        uint8_t digest[MAC_SIZE_MAX];
        char hex[2 * MAC_SIZE_MAX + 1];
        struct bytes part = buf_bytes(&text);
        size_t size = mac(kind->digest, BYTES("a secret"), &part, 1, digest);
        hex_encode(digest, size, hex);
        if (kind->signer == HMAC_HEX)
            buf_puts(out, hex);
        else
            base64_encode(out, bytes_of(digest, size));
    }
    buf_free(&text);
}

static struct verifier *open_kind(const struct kind *kind)
{
    static struct value items[16], map;
    static struct bytes names[16];
    bool keyed = kind->signer > HMAC_BASE64;
    map = (struct value){.kind = VALUE_MAP, .items = items, .names = names};
    names[map.len] = BYTES("type");
    items[map.len++] = string_value(bytes_str(kind->name));
    names[map.len] = keyed ? BYTES("public_key") : BYTES("secret");
    items[map.len++] = string_value(keyed ? bytes_str(public_pem(key_of(kind->signer))) : BYTES("a secret"));
    for (size_t i = 0; kind->options[i][0]; i++) {
        names[map.len] = bytes_str(kind->options[i][0]);
        items[map.len++] = string_value(bytes_str(kind->options[i][1]));
    }
    struct verifier *verifier;
    struct error err = {0};
    if (verifier_new(&map, NULL, &verifier, &err) != STATUS_OK)
        fail_msg("%s: %s", kind->name, err.text);
    return verifier;
}

static bool passes(const struct verifier *verifier, const struct kind *kind, struct bytes body,
                   struct bytes signature, struct bytes other)
{
    struct envelope *e = hook(body, NULL);
    struct header headers[] = {{bytes_str(kind->header), signature}, {bytes_str(kind->other[0]), other}};
    e->method = BYTES("POST");
    e->headers = headers;
    e->header_count = kind->other[0] ? 2 : 1;
    bool good = verify(verifier, e, NOW_MS).verification == VERIFICATION_OK;
    envelope_unref(e);
    return good;
}

/* One byte is another, is gone, or is new. */
static struct bytes mutate(struct random *random, struct bytes text, char *room)
{
    size_t at = random_below(random, text.len);
    memcpy(room, text.at, text.len);
    switch (random_below(random, 3)) {
    case 0:
        room[at] = (char)(room[at] ^ (1 << random_below(random, 7)));
        return bytes_of(room, text.len);
    case 1:
        memmove(room + at, room + at + 1, text.len - at - 1);
        return bytes_of(room, text.len - 1);
    default:
        memmove(room + at + 1, room + at, text.len - at);
        room[at] = (char)('!' + random_below(random, 90));
        return bytes_of(room, text.len + 1);
    }
}

static void a_changed_byte_is_refused(void **state)
{
    (void)state;
    struct random random = {7};
    for (const struct kind *kind = kinds; kind < kinds + sizeof kinds / sizeof *kinds; kind++) {
        struct verifier *verifier = open_kind(kind);
        for (int round = 0; round < 150; round++) {
            char body_text[64], room[1024];
            size_t len = 1 + random_below(&random, sizeof body_text - 1);
            for (size_t i = 0; i < len; i++)
                body_text[i] = (char)random_below(&random, 256);
            struct bytes body = bytes_of(body_text, len), other = bytes_str(kind->other[1]);
            struct buf signature = {0};
            sign(kind, body, &signature);
            struct bytes good = buf_bytes(&signature);
            assert_true(passes(verifier, kind, body, good, other));

            struct bytes changed = mutate(&random, body, room);
            if (!bytes_eq(changed, body) && passes(verifier, kind, changed, good, other))
                fail_msg("%s takes a changed body", kind->name);
            /* Behind the prefix; a separator more changes nothing, and hex of Ed25519 is read in any case. */
            size_t prefix = strlen(kind->prefix);
            memcpy(room, good.at, good.len);
            room[prefix + random_below(&random, good.len - prefix)] ^= 1 << random_below(&random, 5);
            if (passes(verifier, kind, body, bytes_of(room, good.len), other))
                fail_msg("%s takes \"%.*s\" for \"%s\"", kind->name, (int)good.len, room, signature.at);
            if (passes(verifier, kind, body, bytes_of(good.at, good.len - 1), other))
                fail_msg("%s takes a signature that is cut", kind->name);
            if (other.at) {
                changed = mutate(&random, other, room);
                if (!bytes_eq(changed, other) && passes(verifier, kind, body, good, changed))
                    fail_msg("%s takes another %s", kind->name, kind->other[0]);
            }
            buf_free(&signature);
        }
        verifier_free(verifier);
    }
}

/* Whatever stands in the headers: an answer, and never a yes. The sanitizers watch. */
static void noise_in_the_headers_is_refused(void **state)
{
    (void)state;
    struct random random = {11};
    static const char letters[] = "tshv01=,;: .-+/aAfFzZ0123456789\t\x80\xff\"";
    for (const struct kind *kind = kinds; kind < kinds + sizeof kinds / sizeof *kinds; kind++) {
        struct verifier *verifier = open_kind(kind);
        for (int round = 0; round < 300; round++) {
            char text[2][200];
            struct bytes noise[2];
            for (size_t n = 0; n < 2; n++) {
                size_t len = random_below(&random, sizeof text[n]);
                for (size_t i = 0; i < len; i++)
                    text[n][i] = letters[random_below(&random, sizeof letters - 1)];
                noise[n] = bytes_of(text[n], len);
            }
            assert_false(passes(verifier, kind, BYTES("{}"), noise[0], noise[1]));
            assert_false(passes(verifier, kind, BYTES("{}"), noise[0], bytes_str(TS)));
        }
        verifier_free(verifier);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_changed_byte_is_refused),
                                       cmocka_unit_test(noise_in_the_headers_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
