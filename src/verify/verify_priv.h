/* The inside of the room: what a scheme is, and why a hook may fail. */
#ifndef VERIFY_VERIFY_PRIV_H
#define VERIFY_VERIFY_PRIV_H

#include "verify/verify.h"

/* What a scheme does; `key` is its own, made from a source's options and immutable from then on. */
struct scheme {
    /* OK with *key, or INVALID with a sentence that begins with the option's name and never holds a secret.
     */
    enum status (*open)(const struct value *options, void **key, struct error *err);
    void (*close)(void *key); /* wipes what it held */
    struct verify_result (*check)(const void *key, const struct envelope *envelope, int64_t now_ms);
};

/* The table in schemes.c. */
struct scheme_row {
    const char *name; /* of `verify.type` */
    const struct scheme *scheme;
};
extern const struct scheme_row scheme_rows[];
extern const size_t scheme_row_count;

/* Every reason for a failure; a label of a metric, and what a 401 says. */
#define VERIFY_REASONS(X)                                                                                    \
    X(MISSING_HEADER, "missing_header")   /* one that the scheme needs is absent or empty */                 \
    X(REPEATED_HEADER, "repeated_header") /* it was sent twice: which one counts? */                         \
    X(MALFORMED, "malformed")             /* its text is not of the scheme's form */                         \
    X(TIMESTAMP, "timestamp")             /* too old, or in the future */                                    \
    X(BAD_SIGNATURE, "bad_signature")     /* none of the signatures fits any secret */

enum verify_reason {
#define REASON_ENUM(id, name) REASON_##id,
    VERIFY_REASONS(REASON_ENUM)
#undef REASON_ENUM
};

struct verify_result verify_failed(enum verify_reason reason);
static inline struct verify_result verify_passed(void)
{
    return (struct verify_result){.verification = VERIFICATION_OK};
}

/* The value of a header that must be there exactly once; false with *result when it is not. */
bool one_header(const struct envelope *envelope, struct bytes name, struct bytes *value,
                struct verify_result *result);

/* Two-sided: neither older than this nor further ahead of `now_ms`. */
bool within_tolerance(int64_t then_ms, int64_t now_ms, int64_t tolerance_ms);

#endif
