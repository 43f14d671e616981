/* The inside of the room: what a scheme is, and why a hook may fail. */
#ifndef VERIFY_VERIFY_PRIV_H
#define VERIFY_VERIFY_PRIV_H

#include "verify/secrets.h"
#include "verify/verify.h"

struct recipe;

/* One hook on its way through a scheme. */
struct attempt {
    const struct envelope *envelope;
    int64_t now_ms;
    const struct secrets *secrets; /* of the source; count 0 where the scheme has no `secret` */
    struct verify_trace *trace;    /* never NULL; nobody reads it at ingest */
};

/* What a scheme does; `key` is its own, made from a source's options and immutable from then on. */
struct scheme {
    /* How it reads `secret`; NULL: it has none (with these options). */
    const struct secret_form *(*secret_form)(const struct value *options);
    /* `facts` are those of the table's row. OK with *key, or INVALID with a sentence that begins with the
     * option's name and never holds a secret. */
    enum status (*open)(const struct value *options, const struct recipe *facts,
                        const struct verify_engine *engine, void **key, struct error *err);
    void (*close)(void *key);
    struct verify_result (*check)(const void *key, const struct attempt *attempt);
    /* The header that carries the secret itself; NULL: the scheme signs. */
    struct bytes (*secret_header)(const void *key);
};

/* The table in schemes.c. */
struct scheme_row {
    const char *name; /* of `verify.type` */
    const struct scheme *scheme;
    const struct recipe *facts; /* NULL: the options say it all */
};
extern const struct scheme_row scheme_rows[];
extern const size_t scheme_row_count;

struct verifier {
    const struct scheme_row *row;
    const struct value *options;
    struct secrets secrets;
    void *key;
};

/* Every reason for a failure; a label of a metric, and what a 401 says. */
#define VERIFY_REASONS(X)                                                                                    \
    X(MISSING_HEADER, "missing_header")   /* one that the scheme needs is absent or empty */                 \
    X(REPEATED_HEADER, "repeated_header") /* it was sent twice: which one counts? */                         \
    X(MALFORMED, "malformed")             /* its text is not of the scheme's form */                         \
    X(TIMESTAMP, "timestamp")             /* too old, or in the future */                                    \
    X(BAD_SIGNATURE, "bad_signature")     /* none of the signatures fits any secret */                       \
    X(NO_CERTIFICATE, "no_certificate")   /* mtls: the connection has none */                                \
    X(SCRIPT_REFUSED, "script_refused")   /* lua: the function gave false */                                 \
    X(SCRIPT_ERROR, "script_error")       /* lua: it raised, or broke its bounds */

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
bool one_header(const struct attempt *attempt, struct bytes name, struct bytes *value,
                struct verify_result *result);
/* The same for the header that carries the signature. */
bool signature_header(const struct attempt *attempt, struct bytes name, struct bytes *value,
                      struct verify_result *result);

/* Judges the text of a time stamp: digits, in seconds (`unit_ms` 1000) or milliseconds (1), neither older
 * than `tolerance_ms` nor further ahead. `header` is where it stood. False with *result when it fails. */
bool timestamp_fits(const struct attempt *attempt, struct bytes text, int64_t unit_ms, int64_t tolerance_ms,
                    struct bytes header, struct verify_result *result);

/* The option `tolerance_ms`, or `otherwise`. */
enum status read_tolerance(const struct value *options, int64_t otherwise, int64_t *ms, struct error *err);

/* Compares against each, without stopping at the first that fits: how long it takes says nothing. `expected`
 * holds one text after the other, `size` each. Gives the number of the first that fits, from 1; 0: none. */
size_t which_fits(struct bytes given, const struct buf *expected, size_t size);

/* The entries of a header between any of these characters. Empty ones are passed over. Absent at the end. */
struct bytes next_entry(struct bytes *list, struct bytes separators);

#endif
