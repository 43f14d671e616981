/* Who sent this? One verifier a source, immutable, used by any number of threads. schemes.c is the table of
 * schemes. Knows nothing of HTTP: it sees an envelope. */
#ifndef VERIFY_VERIFY_H
#define VERIFY_VERIFY_H

#include <stdint.h>

#include "envelope/envelope.h"
#include "util/status.h"
#include "util/value.h"

struct verifier;

/* How a function in Lua decides, without this room seeing Lua (scheme `lua`). Called on the thread that
 * verifies, any number of them at once. */
enum verify_verdict {
    VERDICT_GENUINE,
    VERDICT_REFUSED, /* `reason` holds what the function said */
    VERDICT_FAILED,  /* it raised, broke its bounds, or gave something else: refused as well */
};
enum { VERIFY_REASON_MAX = 128 };
struct verify_engine {
    void *ctx; /* knows the function that the options name, and its arguments; outlives the verifier */
    enum verify_verdict (*call)(void *ctx, const struct envelope *envelope, char reason[VERIFY_REASON_MAX]);
};

/* From the `verify` table of a source, already checked in shape by the configuration's schema: { type =
 * "...", ... }; `options` is borrowed for the verifier's life. `engine` is copied, and may be NULL: then a
 * function in Lua refuses everything. INVALID with a sentence when an option is not usable; the sentence
 * begins with the option's name and never holds a secret. */
enum status verifier_new(const struct value *options, const struct verify_engine *engine,
                         struct verifier **out, struct error *err);
void verifier_free(struct verifier *verifier); /* wipes the secrets; NULL is fine */
/* As the configuration calls it: "svix" for the alias. Static. */
const char *verifier_type(const struct verifier *verifier);

struct verify_result {
    enum verification verification; /* skipped (type none), ok, failed */
    const char *reason;             /* static, when failed: one of verify_reasons() */
};

/* `now_ms`: unix time against which a signature's time stamp is judged. Constant time in the secret. Looks at
 * the headers and the body as they arrived; any thread. */
struct verify_result verify(const struct verifier *verifier, const struct envelope *envelope, int64_t now_ms);

/* The header in which the secret itself is sent along (bearer, basic, gitlab): not to be stored or shown once
 * the hook is judged. Absent where the provider signs, and for NULL. Lives as long as the
 * verifier. */
struct bytes verify_secret_header(const struct verifier *verifier);

/* HMAC-SHA256 of a text by the source's first secret that `envelope` was signed with, in lower-case hex, for
 * a provider that asks whether its receiver knows the secret. False when the hook is not genuine or the
 * scheme has no secret. */
bool verify_countersign(const struct verifier *verifier, const struct envelope *envelope, int64_t now_ms,
                        struct bytes text, char hex[65]);

/* The names of all schemes, NULL-terminated, and of all reasons any of them gives (for metrics). */
const char *const *verify_scheme_names(void);
const char *const *verify_reasons(void);

/* -- Why does my signature fail? ---------------------------------------------------------------------- */

/* What verification saw on its way. Texts live as long as the verifier. */
struct verify_trace {
    struct bytes header;       /* that carries the signature; absent where a scheme has none */
    size_t header_count;       /* how often it is there */
    struct bytes fault_header; /* the header that is missing, repeated or malformed */
    size_t signatures;         /* in the header, of the version that the scheme knows */
    size_t strangers;          /* other entries in it */
    bool has_timestamp;
    int64_t timestamp_ms, tolerance_ms;
    size_t secrets;               /* or public keys: tried */
    size_t secret;                /* the first that fitted, from 1; 0: none */
    char said[VERIFY_REASON_MAX]; /* by a function in Lua; printable ASCII */
};

/* As verify, step by step the same; `trace` is filled. */
struct verify_result verify_traced(const struct verifier *verifier, const struct envelope *envelope,
                                   int64_t now_ms, struct verify_trace *trace);

/* What would have passed instead. */
enum { VERIFY_CAUSES_MAX = 8 };
struct verify_cause {
    const char *code; /* static: "body_reserialised", "clock", ... */
    char text[256];   /* a sentence for people; holds no secret and no signature */
};

/* Tries what usually goes wrong, each against the same check, and lists what would have passed. For a hook
 * that `verify` refused; slow, for the command line. Gives the count. */
size_t verify_causes(const struct verifier *verifier, const struct envelope *envelope, int64_t now_ms,
                     struct verify_cause causes[VERIFY_CAUSES_MAX]);

#endif
