/* Standard Webhooks (github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md), which is
 * Svix's scheme under its own header names: HMAC-SHA256 over "id.timestamp.body", base64, in a list of
 * "version,signature" with blanks between. Only v1 is known here; others in the list are for other receivers.
 */
#include <stdlib.h>

#include "util/check.h"
#include "util/digest.h"
#include "util/mem.h"
#include "util/units.h"
#include "verify/schemes.h"
#include "verify/secrets.h"
#include "verify/verify_priv.h"

enum { TOLERANCE_MS = 300000, SIGNATURE_SIZE = 44 }; /* of 32 bytes in base64 */

struct key {
    struct secrets secrets;
    int64_t tolerance_ms;
};

static const struct brand {
    struct bytes id, timestamp, signature;
} brands[] = {
    {{"webhook-id", 10}, {"webhook-timestamp", 17}, {"webhook-signature", 17}},
    {{"svix-id", 7}, {"svix-timestamp", 14}, {"svix-signature", 14}},
};
enum { BRANDS = sizeof brands / sizeof *brands };

/* Padding may be left out, and the last digit may hold bits that no byte needs: the libraries of the
 * providers take both, so secrets like that are about. */
static bool decode_base64(struct bytes text, struct buf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (text.len % 4 == 0)
        for (int i = 0; i < 2 && text.len && text.at[text.len - 1] == '='; i++)
            text.len--;
    size_t over = text.len % 4;
    const char *last = text.len ? memchr(digits, text.at[text.len - 1], 64) : NULL;
    if (!last || over == 1)
        return false;

    struct buf whole = {0};
    buf_putb(&whole, text);
    if (over) {
        int unused = over == 2 ? 0x0f : 0x03;
        whole.at[text.len - 1] = digits[(last - digits) & ~unused];
        buf_puts(&whole, over == 2 ? "==" : "=");
    }
    bool good = base64_decode(out, buf_bytes(&whole)) && out->len > 0;
    explicit_bzero(whole.at, whole.size);
    buf_free(&whole);
    return good;
}

static const char *decode_secret(struct bytes text, struct buf *out)
{
    if (bytes_starts(text, BYTES("v1,")))
        return "take away the \"v1,\" in front of this one";
    if (bytes_starts(text, BYTES("whpk_")))
        return "this is a public key (whpk_), for v1a signatures";
    if (bytes_starts(text, BYTES("whsk_")))
        return "this is a private signing key (whsk_), which belongs to the sender alone";
    if (bytes_starts(text, BYTES("whsec_")))
        text = bytes_of(text.at + 6, text.len - 6);
    if (text.len == 0)
        return "there is nothing behind \"whsec_\"";
    return decode_base64(text, out) ? NULL : "this is not base64";
}

static enum status read_tolerance(const struct value *options, int64_t *ms, struct error *err)
{
    const struct value *option = value_get(options, "tolerance_ms");
    *ms = TOLERANCE_MS;
    bool good = option->kind == VALUE_NIL || option->kind == VALUE_NUMBER ||
                (option->kind == VALUE_STRING && units_parse_ms(option->string, ms));
    if (option->kind == VALUE_NUMBER)
        *ms = value_int(options, "tolerance_ms", TOLERANCE_MS);
    if (!good || *ms <= 0)
        return error_set(err, STATUS_INVALID, "tolerance_ms: must be a duration above 0");
    return STATUS_OK;
}

static void standard_webhooks_close(void *opaque)
{
    struct key *key = opaque;
    secrets_close(&key->secrets);
    free(key);
}

static enum status standard_webhooks_open(const struct value *options, void **out, struct error *err)
{
    struct key *key = mem_zalloc(sizeof *key);
    enum status status = secrets_open(&key->secrets, options, "base64, with or without \"whsec_\" in front",
                                      decode_secret, err);
    if (status == STATUS_OK)
        status = read_tolerance(options, &key->tolerance_ms, err);
    if (status == STATUS_OK)
        *out = key;
    else
        standard_webhooks_close(key);
    return status;
}

static const struct brand *brand_of(const struct envelope *envelope)
{
    for (size_t i = 0; i < BRANDS; i++)
        if (envelope_header(envelope, brands[i].signature).at)
            return &brands[i];
    return &brands[0];
}

/* The next text between blanks; absent at the end. */
static struct bytes next_word(struct bytes *list)
{
    *list = bytes_trim(*list);
    size_t len = 0;
    while (len < list->len && list->at[len] != ' ' && list->at[len] != '\t')
        len++;
    struct bytes word = len ? bytes_of(list->at, len) : BYTES_NONE;
    *list = bytes_of(list->at + len, list->len - len);
    return word;
}

/* Every v1 against every secret, without stopping at the first that fits. */
static bool any_fits(const struct secrets *secrets, const struct bytes *content, size_t parts,
                     struct bytes list)
{
    struct buf expected = {0}; /* one signature after the other */
    for (size_t i = 0; i < secrets->count; i++) {
        uint8_t digest[SHA256_SIZE];
        hmac_sha256(buf_bytes(&secrets->at[i]), content, parts, digest);
        base64_encode(&expected, bytes_of(digest, sizeof digest));
    }
    CHECK(expected.len == secrets->count * SIGNATURE_SIZE);

    bool fits = false;
    for (struct bytes word; (word = next_word(&list)).at;) {
        if (!bytes_starts(word, BYTES("v1,")))
            continue;
        word = bytes_of(word.at + 3, word.len - 3);
        for (size_t i = 0; i < secrets->count; i++)
            fits |= bytes_eq_constant_time(word, bytes_of(expected.at + i * SIGNATURE_SIZE, SIGNATURE_SIZE));
    }
    buf_free(&expected);
    return fits;
}

static struct verify_result standard_webhooks_check(const void *opaque, const struct envelope *envelope,
                                                    int64_t now_ms)
{
    const struct key *key = opaque;
    const struct brand *brand = brand_of(envelope);
    struct bytes id, timestamp, signatures;
    struct verify_result result;
    if (!one_header(envelope, brand->id, &id, &result) ||
        !one_header(envelope, brand->timestamp, &timestamp, &result) ||
        !one_header(envelope, brand->signature, &signatures, &result))
        return result;

    int64_t seconds;
    if (!units_parse_u63(timestamp, &seconds) || seconds > INT64_MAX / 1000)
        return verify_failed(REASON_MALFORMED);
    if (!within_tolerance(seconds * 1000, now_ms, key->tolerance_ms))
        return verify_failed(REASON_TIMESTAMP);
    const struct bytes content[] = {id, BYTES("."), timestamp, BYTES("."), envelope->body};
    if (!any_fits(&key->secrets, content, sizeof content / sizeof *content, signatures))
        return verify_failed(REASON_BAD_SIGNATURE);
    return verify_passed();
}

const struct scheme scheme_standard_webhooks = {
    .open = standard_webhooks_open, .close = standard_webhooks_close, .check = standard_webhooks_check};
