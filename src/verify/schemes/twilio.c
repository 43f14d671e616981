/* Twilio (www.twilio.com/docs/usage/security, "Validating requests are coming from Twilio"): HMAC-SHA1 in
 * base64, keyed with the auth token, over the full URL; behind it, for a form, the names and values of its
 * fields, sorted by name. Any other body is tied to the URL by its SHA-256 in the query, bodySHA256. */
#include <stdlib.h>

#include "util/digest.h"
#include "util/form_fields.h"
#include "util/mem.h"
#include "verify/recipe.h"
#include "verify/schemes.h"

enum { SIGNATURE_SIZE = 28 }; /* of 20 bytes in base64 */

struct key {
    struct bytes url; /* borrowed from the options */
    struct buf other; /* the same with the port of https, or without it: libraries of theirs sign either */
};

static const struct secret_form *text_form(const struct value *options)
{
    (void)options;
    return &secret_form_text;
}

/* https://host/path <-> https://host:443/path; nothing for any other port. */
static void other_port(struct bytes url, struct buf *out)
{
    static const struct bytes scheme = BYTES("https://");
    if (!bytes_starts(url, scheme))
        return;
    const char *host = url.at + scheme.len, *end = url.at + url.len;
    const char *path = memchr(host, '/', (size_t)(end - host));
    const char *user = memrchr(host, '@', (size_t)(path - host));
    const char *name = user ? user + 1 : host;
    struct bytes authority = bytes_of(name, (size_t)(path - name));
    const char *colon = memrchr(authority.at, ':', authority.len),
               *bracket = memrchr(authority.at, ']', authority.len);
    bool has_port = colon && (!bracket || colon > bracket);
    if (has_port && !bytes_eq(bytes_of(colon, (size_t)(path - colon)), BYTES(":443")))
        return;
    buf_put(out, url.at, (size_t)((has_port ? colon : path) - url.at));
    if (!has_port)
        buf_puts(out, ":443");
    buf_put(out, path, (size_t)(end - path));
}

static enum status twilio_open(const struct value *options, const struct recipe *facts,
                               const struct verify_engine *engine, void **out, struct error *err)
{
    (void)facts, (void)engine;
    struct key *key = mem_zalloc(sizeof *key);
    enum status status = read_url(options, &key->url, err);
    if (status != STATUS_OK) {
        free(key);
        return status;
    }
    other_port(key->url, &key->other);
    *out = key;
    return STATUS_OK;
}

static void twilio_close(void *opaque)
{
    struct key *key = opaque;
    buf_free(&key->other);
    free(key);
}

static bool is_form(const struct envelope *envelope)
{
    static const struct bytes type = BYTES("application/x-www-form-urlencoded");
    struct bytes given = envelope->content_type;
    return bytes_starts_nocase(given, type) &&
           (given.len == type.len || given.at[type.len] == ';' || given.at[type.len] == ' ');
}

/* Is this body the one whose digest the URL holds? An empty one needs none. */
static bool body_is_signed(const struct envelope *envelope)
{
    struct buf value = {0};
    uint8_t given[SHA256_SIZE], real[SHA256_SIZE];
    sha256(&envelope->body, 1, real);
    bool good;
    if (form_field(envelope->query, BYTES("bodySHA256"), &value))
        good = hex_decode(buf_bytes(&value), given, sizeof given) &&
               bytes_eq_constant_time(bytes_of(given, sizeof given), bytes_of(real, sizeof real));
    else
        good = envelope->body.len == 0;
    buf_free(&value);
    return good;
}

/* The query as it came, and as a client of theirs writes it whose URL parser escapes an apostrophe. */
static void escape_apostrophes(struct bytes query, struct buf *out)
{
    for (size_t i = 0; i < query.len; i++) {
        if (query.at[i] == '\'')
            buf_puts(out, "%27");
        else
            buf_putc(out, query.at[i]);
    }
}

/* The secret under which this URL and these fields give the signature, from 1; 0: none. */
static size_t which_secret(const struct secrets *secrets, struct bytes url, struct bytes query,
                           bool has_query, struct bytes fields, struct bytes signature)
{
    const struct bytes parts[] = {url, has_query ? BYTES("?") : BYTES(""), query, fields};
    struct buf expected = {0};
    for (size_t i = 0; i < secrets->count; i++) {
        uint8_t digest[MAC_SIZE_MAX];
        size_t size = mac(DIGEST_SHA1, buf_bytes(&secrets->at[i]), parts, 4, digest);
        base64_encode(&expected, bytes_of(digest, size));
    }
    size_t fits = which_fits(signature, &expected, SIGNATURE_SIZE);
    buf_free(&expected);
    return fits;
}

static size_t try_urls(const struct key *key, const struct attempt *attempt, struct bytes fields,
                       struct bytes signature)
{
    const struct envelope *envelope = attempt->envelope;
    bool has_query = envelope->query.at != NULL;
    struct buf escaped = {0};
    escape_apostrophes(has_query ? envelope->query : BYTES(""), &escaped);
    const struct bytes urls[] = {key->url, buf_bytes(&key->other)};
    const struct bytes queries[] = {has_query ? envelope->query : BYTES(""), buf_bytes(&escaped)};
    size_t first = 0;
    for (size_t u = 0; u < 2; u++) {
        if (urls[u].len == 0)
            continue;
        for (size_t q = 0; q < 2; q++) {
            size_t fits = which_secret(attempt->secrets, urls[u], queries[q], has_query, fields, signature);
            first = first ? first : fits;
        }
    }
    buf_free(&escaped);
    return first;
}

static struct verify_result twilio_check(const void *opaque, const struct attempt *attempt)
{
    const struct envelope *envelope = attempt->envelope;
    struct bytes signature;
    struct verify_result result;
    if (!signature_header(attempt, BYTES("x-twilio-signature"), &signature, &result))
        return result;
    struct buf fields = {0};
    if (is_form(envelope)) {
        if (!form_fields_sorted(envelope->body, &fields)) {
            buf_free(&fields);
            return verify_failed(REASON_MALFORMED);
        }
    } else if (!body_is_signed(envelope)) {
        return verify_failed(REASON_BAD_SIGNATURE);
    }
    attempt->trace->signatures = 1;
    attempt->trace->secret = try_urls(opaque, attempt, buf_bytes(&fields), signature);
    buf_free(&fields);
    return attempt->trace->secret ? verify_passed() : verify_failed(REASON_BAD_SIGNATURE);
}

const struct scheme scheme_twilio = {
    .secret_form = text_form, .open = twilio_open, .close = twilio_close, .check = twilio_check};
