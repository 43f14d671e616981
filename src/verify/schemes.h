/* The schemes that schemes.c puts into its table, one file each. */
#ifndef VERIFY_SCHEMES_H
#define VERIFY_SCHEMES_H

struct scheme;

extern const struct scheme scheme_none;
extern const struct scheme scheme_standard_webhooks;

#endif
