/* Certificates made for a test, in a folder of its own. */
#ifndef SPEC_SUPPORT_CERTS_H
#define SPEC_SUPPORT_CERTS_H

#include <openssl/ssl.h>

struct cert_spec {
    const char *name;                 /* files NAME.pem (key and certificate) */
    const char *host;                 /* DNS name or address; NULL: a CA */
    long valid_from_s, valid_until_s; /* from now */
};

/* Signed by the CA that `ca` holds; self-signed when `ca` is NULL. Writes folder/name.pem. */
struct cert {
    X509 *x509;
    EVP_PKEY *key;
};
struct cert cert_make(const char *folder, const struct cert_spec *spec, const struct cert *ca);
void cert_free(struct cert *cert);

/* A server's context with this certificate; asks for a client's one signed by `client_ca` unless NULL. */
SSL_CTX *cert_server(const struct cert *cert, const struct cert *client_ca);

#endif
