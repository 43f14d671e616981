#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>

#include "util/digest.h"
#include "util/mem.h"
#include "util/units.h"
#include "verify/verify_priv.h"

static const struct scheme_row *row_named(struct bytes name)
{
    for (size_t i = 0; i < scheme_row_count; i++)
        if (bytes_eq(bytes_str(scheme_rows[i].name), name))
            return &scheme_rows[i];
    return NULL;
}

static enum status unknown_type(struct error *err)
{
    char names[256] = "";
    size_t len = 0;
    for (const char *const *name = verify_scheme_names(); *name && len < sizeof names; name++)
        len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", len ? ", " : "", *name);
    return error_set(err, STATUS_INVALID, "type: must be one of %s", names);
}

enum status verifier_new(const struct value *options, const struct verify_engine *engine,
                         struct verifier **out, struct error *err)
{
    *out = NULL;
    const struct value *type = value_get(options, "type");
    const struct scheme_row *row = type->kind == VALUE_STRING ? row_named(type->string) : NULL;
    if (!row)
        return unknown_type(err);

    struct verifier *verifier = mem_zalloc(sizeof *verifier);
    verifier->row = row;
    verifier->options = options;
    const struct secret_form *form = row->scheme->secret_form ? row->scheme->secret_form(options) : NULL;
    enum status status = STATUS_OK;
    if (form)
        status = secrets_open(&verifier->secrets, options, form, err);
    if (status == STATUS_OK)
        status = row->scheme->open(options, row->facts, engine, &verifier->key, err);
    if (status == STATUS_OK) {
        *out = verifier;
        return STATUS_OK;
    }
    secrets_close(&verifier->secrets);
    free(verifier);
    return status;
}

void verifier_free(struct verifier *verifier)
{
    if (!verifier)
        return;
    verifier->row->scheme->close(verifier->key);
    secrets_close(&verifier->secrets);
    free(verifier);
}

const char *verifier_type(const struct verifier *verifier)
{
    return verifier->row->name;
}

struct verify_result verify_traced(const struct verifier *verifier, const struct envelope *envelope,
                                   int64_t now_ms, struct verify_trace *trace)
{
    *trace = (struct verify_trace){.secrets = verifier->secrets.count};
    const struct attempt attempt = {
        .envelope = envelope, .now_ms = now_ms, .secrets = &verifier->secrets, .trace = trace};
    return verifier->row->scheme->check(verifier->key, &attempt);
}

struct verify_result verify(const struct verifier *verifier, const struct envelope *envelope, int64_t now_ms)
{
    struct verify_trace trace;
    return verify_traced(verifier, envelope, now_ms, &trace);
}

struct bytes verify_secret_header(const struct verifier *verifier)
{
    const struct scheme *scheme = verifier ? verifier->row->scheme : NULL;
    return scheme && scheme->secret_header ? scheme->secret_header(verifier->key) : BYTES_NONE;
}

bool verify_countersign(const struct verifier *verifier, const struct envelope *envelope, int64_t now_ms,
                        struct bytes text, char hex[65])
{
    struct verify_trace trace;
    if (verify_traced(verifier, envelope, now_ms, &trace).verification != VERIFICATION_OK)
        return false;
    if (trace.secret == 0 || trace.secret > verifier->secrets.count)
        return false;
    uint8_t digest[SHA256_SIZE];
    hmac_sha256(buf_bytes(&verifier->secrets.at[trace.secret - 1]), &text, 1, digest);
    hex_encode(digest, sizeof digest, hex);
    return true;
}

const char *const *verify_reasons(void)
{
    static const char *const names[] = {
#define REASON_NAME(id, name) name,
        VERIFY_REASONS(REASON_NAME)
#undef REASON_NAME
            NULL};
    return names;
}

struct verify_result verify_failed(enum verify_reason reason)
{
    return (struct verify_result){.verification = VERIFICATION_FAILED, .reason = verify_reasons()[reason]};
}

bool one_header(const struct attempt *attempt, struct bytes name, struct bytes *value,
                struct verify_result *result)
{
    const struct envelope *envelope = attempt->envelope;
    size_t count = 0;
    for (size_t i = 0; i < envelope->header_count; i++) {
        if (!bytes_eq_nocase(envelope->headers[i].name, name))
            continue;
        *value = envelope->headers[i].value;
        count++;
    }
    if (count == 1 && value->len > 0)
        return true;
    attempt->trace->fault_header = name;
    *result = verify_failed(count > 1 ? REASON_REPEATED_HEADER : REASON_MISSING_HEADER);
    return false;
}

bool signature_header(const struct attempt *attempt, struct bytes name, struct bytes *value,
                      struct verify_result *result)
{
    const struct envelope *envelope = attempt->envelope;
    attempt->trace->header = name;
    attempt->trace->header_count = 0;
    for (size_t i = 0; i < envelope->header_count; i++)
        attempt->trace->header_count += bytes_eq_nocase(envelope->headers[i].name, name);
    return one_header(attempt, name, value, result);
}

bool timestamp_fits(const struct attempt *attempt, struct bytes text, int64_t unit_ms, int64_t tolerance_ms,
                    struct bytes header, struct verify_result *result)
{
    struct verify_trace *trace = attempt->trace;
    int64_t units, apart_ms;
    if (!units_parse_u63(text, &units) || units > INT64_MAX / unit_ms) {
        trace->fault_header = header;
        *result = verify_failed(REASON_MALFORMED);
        return false;
    }
    trace->has_timestamp = true;
    trace->timestamp_ms = units * unit_ms;
    trace->tolerance_ms = tolerance_ms;
    *result = verify_failed(REASON_TIMESTAMP);
    return !__builtin_sub_overflow(attempt->now_ms, units * unit_ms, &apart_ms) &&
           apart_ms >= -tolerance_ms && apart_ms <= tolerance_ms;
}

enum status read_tolerance(const struct value *options, int64_t otherwise, int64_t *ms, struct error *err)
{
    const struct value *option = value_get(options, "tolerance_ms");
    *ms = otherwise;
    bool good = option->kind == VALUE_NIL || option->kind == VALUE_NUMBER ||
                (option->kind == VALUE_STRING && units_parse_ms(option->string, ms));
    if (option->kind == VALUE_NUMBER)
        *ms = value_int(options, "tolerance_ms", otherwise);
    if (!good || *ms <= 0)
        return error_set(err, STATUS_INVALID, "tolerance_ms: must be a duration above 0");
    return STATUS_OK;
}

size_t which_fits(struct bytes given, const struct buf *expected, size_t size)
{
    size_t first = 0;
    for (size_t at = 0, number = 1; size && at < expected->len; at += size, number++)
        if (bytes_eq_constant_time(given, bytes_of(expected->at + at, size)) && !first)
            first = number;
    return first;
}

struct bytes next_entry(struct bytes *list, struct bytes separators)
{
    while (list->len && separators.len && memchr(separators.at, list->at[0], separators.len))
        *list = bytes_of(list->at + 1, list->len - 1);
    size_t len = 0;
    while (len < list->len && !(separators.len && memchr(separators.at, list->at[len], separators.len)))
        len++;
    struct bytes entry = len ? bytes_of(list->at, len) : BYTES_NONE;
    *list = bytes_of(list->at + len, list->len - len);
    return entry;
}
