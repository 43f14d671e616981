/* Who sent this? One verifier a source, immutable, used by any number of threads. schemes.c is the table of
 * schemes. Knows nothing of HTTP: it sees an envelope. */
#ifndef VERIFY_VERIFY_H
#define VERIFY_VERIFY_H

#include <stdint.h>

#include "envelope/envelope.h"
#include "util/status.h"
#include "util/value.h"

struct verifier;

/* From the `verify` table of a source, already checked in shape by the configuration's schema: { type =
 * "...", ... }. INVALID with a sentence when a secret is not usable; the sentence never holds a secret. */
enum status verifier_new(const struct value *options, struct verifier **out, struct error *err);
void verifier_free(struct verifier *verifier); /* wipes the secrets; NULL is fine */
/* As the configuration calls it: "svix" for the alias. Static. */
const char *verifier_type(const struct verifier *verifier);

struct verify_result {
    enum verification verification; /* skipped (type none), ok, failed */
    const char
        *reason; /* static, when failed: "missing_header", "bad_signature", "timestamp", "malformed", ... */
};

/* `now_ms`: unix time against which a signature's time stamp is judged. Constant time in the secret. Looks at
 * the headers and the body as they arrived; any thread. */
struct verify_result verify(const struct verifier *verifier, const struct envelope *envelope, int64_t now_ms);

/* The names of all schemes, NULL-terminated, and of all reasons any of them gives (for metrics). */
const char *const *verify_scheme_names(void);
const char *const *verify_reasons(void);

#endif
