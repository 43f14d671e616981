/* The schemes that schemes.c puts into its table: schemes/ has one file for each kind. */
#ifndef VERIFY_SCHEMES_H
#define VERIFY_SCHEMES_H

struct scheme;

extern const struct scheme scheme_none;
extern const struct scheme scheme_provider_hmac; /* with facts of schemes.c */
extern const struct scheme scheme_hmac, scheme_github;
extern const struct scheme scheme_standard_webhooks;
extern const struct scheme scheme_twilio;
extern const struct scheme scheme_gitlab, scheme_bearer, scheme_basic;
extern const struct scheme scheme_provider_ed25519, scheme_provider_ecdsa; /* with facts of schemes.c */
extern const struct scheme scheme_ed25519, scheme_rsa, scheme_ecdsa;
extern const struct scheme scheme_mtls;
extern const struct scheme scheme_lua;

#endif
