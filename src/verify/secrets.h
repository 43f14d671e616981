/* The option `secret`: one, or a list while a secret is being changed. A wrong one is refused when the
 * configuration is loaded, never when a hook comes. */
#ifndef VERIFY_SECRETS_H
#define VERIFY_SECRETS_H

#include "util/buf.h"
#include "util/status.h"
#include "util/value.h"

enum { SECRETS_MAX = 16 };

struct secrets {
    size_t count;
    struct buf at[SECRETS_MAX]; /* decoded; never empty */
};

/* How a scheme reads a secret. */
struct secret_form {
    const char *format; /* what it should be: goes on from "must be" */
    /* The text of one (not empty, not blank) to its bytes. NULL when that worked, else what is wrong with it:
     * goes on from "must be FORMAT; ". Never repeats the text. */
    const char *(*decode)(struct bytes text, struct buf *out);
};

extern const struct secret_form secret_form_text;   /* its own bytes, whatever it looks like */
extern const struct secret_form secret_form_hex;    /* digits of its bytes */
extern const struct secret_form secret_form_base64; /* the same in base64, padded or not */

/* Calls `take` for the option `name`, or for each element of it when it is a list. INVALID when there is
 * none, when one is blank, or when `take` has a fault to tell: the sentence names the element and what it
 * must be. */
enum status secrets_each(const struct value *options, const char *name, const char *format,
                         const char *(*take)(void *ctx, struct bytes text), void *ctx, struct error *err);

/* `out` is zeroed by the caller, and to be closed in either case. */
enum status secrets_open(struct secrets *out, const struct value *options, const struct secret_form *form,
                         struct error *err);
void secrets_close(struct secrets *secrets); /* wipes them */

#endif
