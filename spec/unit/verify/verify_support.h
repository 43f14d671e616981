/* What the tests of the room share: options as the configuration makes them, and a signed hook. */
#ifndef VERIFY_SUPPORT_H
#define VERIFY_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "verify/verify.h"

static inline struct value string_value(struct bytes text)
{
    return (struct value){.kind = VALUE_STRING, .string = text};
}

/* { type = ..., secret = ..., tolerance_ms = ... } in static memory: one at a time. A nil is left out. */
static inline const struct value *options_of(const char *type, struct value secret, struct value tolerance)
{
    static const struct bytes names[] = {{"type", 4}, {"secret", 6}, {"tolerance_ms", 12}};
    static struct value items[3], options;
    items[0] = string_value(bytes_str(type));
    items[1] = secret;
    items[2] = tolerance;
    options = (struct value){.kind = VALUE_MAP, .len = 3, .items = items, .names = names};
    return &options;
}

static inline struct verifier *open_with(const char *type, struct value secret)
{
    struct verifier *verifier;
    struct error err = {0};
    if (verifier_new(options_of(type, secret, (struct value){0}), NULL, &verifier, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return verifier;
}

/* Refused; the sentence holds `expected` and not the secret. */
static inline void is_refused(const char *type, struct value secret, const char *expected)
{
    struct verifier *verifier;
    struct error err = {0};
    assert_int_equal(verifier_new(options_of(type, secret, (struct value){0}), NULL, &verifier, &err),
                     STATUS_INVALID);
    assert_null(verifier);
    if (!strstr(err.text, expected))
        fail_msg("\"%s\" does not hold \"%s\"", err.text, expected);
    if (secret.kind == VALUE_STRING && secret.string.len > 7)
        assert_null(strstr(err.text, secret.string.at));
}

/* Up to eight headers: name, value, ..., NULL. */
static inline struct envelope *hook(struct bytes body, const char *const *headers)
{
    struct envelope *e = envelope_new(256);
    e->body = body;
    struct header *list = arena_zalloc(e->arena, 8 * sizeof *list);
    for (; headers && headers[2 * e->header_count]; e->header_count++)
        list[e->header_count] = (struct header){bytes_str(headers[2 * e->header_count]),
                                                bytes_str(headers[2 * e->header_count + 1])};
    e->headers = list;
    return e;
}

/* NULL reason: it passes. */
static inline void expect_result(const struct verifier *verifier, const struct envelope *e, int64_t now_ms,
                                 const char *reason)
{
    struct verify_result result = verify(verifier, e, now_ms);
    assert_int_equal(result.verification, reason ? VERIFICATION_FAILED : VERIFICATION_OK);
    if (reason)
        assert_string_equal(result.reason, reason);
    else
        assert_null(result.reason);
}

#endif
