/* Standard Webhooks (github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md), which is
 * Svix's scheme under its own header names: over "id.timestamp.body", in a list with blanks between, "v1,"
 * and the base64 of an HMAC-SHA256 (option `secret`), or "v1a," and that of an Ed25519 signature
 * (`public_key`). Both may be configured; others in the list are for other receivers. Each brand of headers
 * is a form of its own; a request is judged by the one whose signature it carries. */
#include <stdlib.h>

#include "util/check.h"
#include "util/mem.h"
#include "verify/public_keys.h"
#include "verify/recipe.h"
#include "verify/schemes.h"

static const struct recipe brands[] = {
    {.header = "webhook-signature",
     .separators = " \t",
     .prefix = "v1",
     .ts_header = "webhook-timestamp",
     .signs = "{header:webhook-id}.{ts}.{body}",
     .coding = CODING_BASE64},
    {.header = "svix-signature",
     .separators = " \t",
     .prefix = "v1",
     .ts_header = "svix-timestamp",
     .signs = "{header:svix-id}.{ts}.{body}",
     .coding = CODING_BASE64},
};
enum { BRANDS = sizeof brands / sizeof *brands };

struct key {
    struct form forms[BRANDS];
    struct public_keys keys;
};

static const char *decode_secret(struct bytes text, struct buf *out)
{
    if (bytes_starts(text, BYTES("v1,")))
        return "take away the \"v1,\" in front of this one";
    if (bytes_starts(text, BYTES("whpk_")))
        return "this is a public key (whpk_), for v1a signatures: it belongs into public_key";
    if (bytes_starts(text, BYTES("whsk_")))
        return "this is a private signing key (whsk_), which belongs to the sender alone";
    if (bytes_starts(text, BYTES("whsec_")))
        text = bytes_of(text.at + 6, text.len - 6);
    if (text.len == 0)
        return "there is nothing behind \"whsec_\"";
    return coding_read_secret(CODING_BASE64, text, out) ? NULL : "this is not base64";
}

static const struct secret_form *standard_webhooks_form(const struct value *options)
{
    static const struct secret_form form = {"base64, with or without \"whsec_\" in front", decode_secret};
    bool without = value_get(options, "secret")->kind == VALUE_NIL &&
                   value_get(options, "public_key")->kind != VALUE_NIL;
    return without ? NULL : &form;
}

static void standard_webhooks_close(void *opaque)
{
    struct key *key = opaque;
    for (size_t i = 0; i < BRANDS; i++)
        form_close(&key->forms[i]);
    public_keys_close(&key->keys);
    free(key);
}

static enum status standard_webhooks_open(const struct value *options, const struct recipe *facts,
                                          const struct verify_engine *engine, void **out, struct error *err)
{
    (void)facts, (void)engine;
    struct key *key = mem_zalloc(sizeof *key);
    enum status status = STATUS_OK;
    if (value_get(options, "public_key")->kind != VALUE_NIL)
        status = public_keys_open(&key->keys, options, &public_key_ed25519, err);
    for (size_t i = 0; status == STATUS_OK && i < BRANDS; i++)
        status = form_open(&key->forms[i], &brands[i], options, err);
    if (status == STATUS_OK)
        *out = key;
    else
        standard_webhooks_close(key);
    return status;
}

static const struct form *form_of(const struct key *key, const struct envelope *envelope)
{
    for (size_t i = 0; i < BRANDS; i++)
        if (envelope_header(envelope, key->forms[i].header).at)
            return &key->forms[i];
    return &key->forms[0];
}

/* What the secrets give, one text after the other, and the signed text where a public key asks for it. */
struct expected {
    const struct key *key;
    const struct secrets *secrets;
    struct buf texts, signed_text;
    size_t size;
};

static void standard_webhooks_start(void *ctx, const struct bytes *parts, size_t n)
{
    struct expected *expected = ctx;
    for (size_t i = 0; i < expected->secrets->count; i++) {
        uint8_t digest[MAC_SIZE_MAX];
        size_t size = mac(DIGEST_SHA256, buf_bytes(&expected->secrets->at[i]), parts, n, digest);
        size_t before = expected->texts.len;
        coding_write(CODING_BASE64, bytes_of(digest, size), &expected->texts);
        expected->size = expected->texts.len - before;
    }
    if (expected->key->keys.count)
        ed25519_text(&expected->signed_text, parts, n);
}

static size_t standard_webhooks_fits(void *ctx, struct bytes signature)
{
    const struct expected *expected = ctx;
    const struct public_keys *keys = &expected->key->keys;
    if (bytes_starts(signature, BYTES(",")))
        return which_fits(bytes_of(signature.at + 1, signature.len - 1), &expected->texts, expected->size);
    struct buf raw = {0};
    size_t first = 0;
    if (keys->count && bytes_starts(signature, BYTES("a,")) &&
        coding_read(CODING_BASE64, bytes_of(signature.at + 2, signature.len - 2), &raw))
        for (size_t i = 0; !first && i < keys->count; i++) /* nothing here is secret */
            if (ed25519_fits(keys->at[i], buf_bytes(&expected->signed_text), buf_bytes(&raw)))
                first = i + 1;
    buf_free(&raw);
    return first ? expected->secrets->count + first : 0;
}

static struct verify_result standard_webhooks_check(const void *opaque, const struct attempt *attempt)
{
    const struct key *key = opaque;
    struct expected expected = {.key = key, .secrets = attempt->secrets};
    attempt->trace->secrets = attempt->secrets->count + key->keys.count;
    struct verify_result result = form_check(
        form_of(key, attempt->envelope), attempt,
        &(struct judge){.ctx = &expected, .start = standard_webhooks_start, .fits = standard_webhooks_fits});
    buf_free(&expected.texts);
    buf_free(&expected.signed_text);
    return result;
}

const struct scheme scheme_standard_webhooks = {.secret_form = standard_webhooks_form,
                                                .open = standard_webhooks_open,
                                                .close = standard_webhooks_close,
                                                .check = standard_webhooks_check};
