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

/* Turns the text of one secret (not empty, not blank) into its bytes. NULL when that worked, else what is
 * wrong with it: a sentence that goes on from "must be FORMAT; ". Never repeats the text. */
typedef const char *secret_decoder(struct bytes text, struct buf *out);

/* INVALID names the element and `format`, which goes on from "must be". `out` is zeroed by the caller, and to
 * be closed in either case. */
enum status secrets_open(struct secrets *out, const struct value *options, const char *format,
                         secret_decoder *decode, struct error *err);
void secrets_close(struct secrets *secrets); /* wipes them */

#endif
