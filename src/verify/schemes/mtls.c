/* The client's own certificate, by the SHA-256 of its DER form: who holds its key has proved that to TLS
 * before a byte of the request was read. */
#include <stdlib.h>

#include "util/digest.h"
#include "util/mem.h"
#include "verify/schemes.h"
#include "verify/verify_priv.h"

enum { DIGITS = 2 * SHA256_SIZE };

struct key {
    size_t count;
    char prints[SECRETS_MAX][DIGITS + 1]; /* lower case */
};

/* 64 hex digits, with colons between the bytes or without, as `openssl x509 -fingerprint -sha256` prints. */
static const char *take_print(void *ctx, struct bytes text)
{
    struct key *key = ctx;
    char digits[DIGITS];
    uint8_t print[SHA256_SIZE];
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == ':' && i % 3 == 2)
            continue;
        if (count == sizeof digits)
            return "this is longer";
        digits[count++] = text.at[i];
    }
    if (!hex_decode(bytes_of(digits, count), print, SHA256_SIZE))
        return count < sizeof digits ? "this is shorter" : "this has other characters";
    hex_encode(print, SHA256_SIZE, key->prints[key->count++]);
    return NULL;
}

static enum status mtls_open(const struct value *options, const struct recipe *facts,
                             const struct verify_engine *engine, void **out, struct error *err)
{
    (void)facts, (void)engine;
    struct key *key = mem_zalloc(sizeof *key);
    enum status status = secrets_each(options, "fingerprint",
                                      "the SHA-256 of the client's certificate: 64 hex digits, with colons "
                                      "or without",
                                      take_print, key, err);
    if (status == STATUS_OK)
        *out = key;
    else
        free(key);
    return status;
}

static void mtls_close(void *key)
{
    free(key);
}

static struct verify_result mtls_check(const void *opaque, const struct attempt *attempt)
{
    const struct key *key = opaque;
    struct bytes given = attempt->envelope->client_cert;
    attempt->trace->secrets = key->count;
    if (given.len != DIGITS)
        return verify_failed(REASON_NO_CERTIFICATE);
    attempt->trace->signatures = 1;
    for (size_t i = 0; i < key->count; i++)
        if (bytes_eq_constant_time(given, bytes_of(key->prints[i], DIGITS)) && !attempt->trace->secret)
            attempt->trace->secret = i + 1;
    return attempt->trace->secret ? verify_passed() : verify_failed(REASON_BAD_SIGNATURE);
}

const struct scheme scheme_mtls = {.open = mtls_open, .close = mtls_close, .check = mtls_check};
