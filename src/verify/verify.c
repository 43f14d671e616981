#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>

#include "util/mem.h"
#include "verify/verify_priv.h"

struct verifier {
    const struct scheme_row *row;
    void *key;
};

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

enum status verifier_new(const struct value *options, struct verifier **out, struct error *err)
{
    *out = NULL;
    const struct value *type = value_get(options, "type");
    const struct scheme_row *row = type->kind == VALUE_STRING ? row_named(type->string) : NULL;
    if (!row)
        return unknown_type(err);
    void *key = NULL;
    enum status status = row->scheme->open(options, &key, err);
    if (status != STATUS_OK)
        return status;
    *out = mem_alloc(sizeof **out);
    **out = (struct verifier){.row = row, .key = key};
    return STATUS_OK;
}

void verifier_free(struct verifier *verifier)
{
    if (!verifier)
        return;
    verifier->row->scheme->close(verifier->key);
    free(verifier);
}

const char *verifier_type(const struct verifier *verifier)
{
    return verifier->row->name;
}

struct verify_result verify(const struct verifier *verifier, const struct envelope *envelope, int64_t now_ms)
{
    return verifier->row->scheme->check(verifier->key, envelope, now_ms);
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

bool one_header(const struct envelope *envelope, struct bytes name, struct bytes *value,
                struct verify_result *result)
{
    size_t count = 0;
    for (size_t i = 0; i < envelope->header_count; i++) {
        if (!bytes_eq_nocase(envelope->headers[i].name, name))
            continue;
        *value = envelope->headers[i].value;
        count++;
    }
    if (count == 1 && value->len > 0)
        return true;
    *result = verify_failed(count > 1 ? REASON_REPEATED_HEADER : REASON_MISSING_HEADER);
    return false;
}

bool within_tolerance(int64_t then_ms, int64_t now_ms, int64_t tolerance_ms)
{
    int64_t apart_ms;
    if (__builtin_sub_overflow(now_ms, then_ms, &apart_ms))
        return false;
    return apart_ms >= -tolerance_ms && apart_ms <= tolerance_ms;
}
