/* Every way a source can be verified. A scheme is a file in schemes/; a provider that uses another's scheme
 * is a row of its own here. */
#include "verify/schemes.h"

#include "verify/verify_priv.h"

#define SCHEMES(X)                                                                                           \
    X("none", scheme_none)                           /* takes everything; says so in each envelope */        \
    X("standard_webhooks", scheme_standard_webhooks) /* standardwebhooks.com: HMAC over id.timestamp.body */ \
    X("svix", scheme_standard_webhooks)              /* the same; both take both header brands */

const struct scheme_row scheme_rows[] = {
#define SCHEME_ROW(name, scheme) {name, &scheme},
    SCHEMES(SCHEME_ROW)
#undef SCHEME_ROW
};
const size_t scheme_row_count = sizeof scheme_rows / sizeof *scheme_rows;

const char *const *verify_scheme_names(void)
{
    static const char *const names[] = {
#define SCHEME_NAME(name, scheme) name,
        SCHEMES(SCHEME_NAME)
#undef SCHEME_NAME
            NULL};
    return names;
}
