#include "certs.h"

#include <arpa/inet.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#include "util/check.h"

static void add_extension(X509 *x509, int nid, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    CHECK(extension && X509_add_ext(x509, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

struct cert cert_make(const char *folder, const struct cert_spec *spec, const struct cert *ca)
{
    static long serial = 1;
    struct cert cert = {X509_new(), EVP_EC_gen("P-256")};
    CHECK(cert.x509 && cert.key);
    X509_set_version(cert.x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert.x509), serial++);
    X509_gmtime_adj(X509_getm_notBefore(cert.x509), spec->valid_from_s);
    X509_gmtime_adj(X509_getm_notAfter(cert.x509), spec->valid_until_s);
    X509_NAME *subject = X509_get_subject_name(cert.x509);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)spec->name, -1, -1, 0);
    X509_set_issuer_name(cert.x509, ca ? X509_get_subject_name(ca->x509) : subject);
    X509_set_pubkey(cert.x509, cert.key);
    if (spec->host) {
        char names[128];
        struct in_addr address;
        snprintf(names, sizeof names, "%s:%s", inet_pton(AF_INET, spec->host, &address) == 1 ? "IP" : "DNS",
                 spec->host);
        add_extension(cert.x509, NID_subject_alt_name, names);
    } else {
        add_extension(cert.x509, NID_basic_constraints, "critical,CA:TRUE");
    }
    CHECK(X509_sign(cert.x509, ca ? ca->key : cert.key, EVP_sha256()) > 0);

    char path[256];
    snprintf(path, sizeof path, "%s/%s.pem", folder, spec->name);
    FILE *file = fopen(path, "w");
    CHECK(file && PEM_write_PrivateKey(file, cert.key, NULL, NULL, 0, NULL, NULL) == 1 &&
          PEM_write_X509(file, cert.x509) == 1);
    CHECK(fclose(file) == 0);
    return cert;
}

void cert_free(struct cert *cert)
{
    X509_free(cert->x509);
    EVP_PKEY_free(cert->key);
}

SSL_CTX *cert_server(const struct cert *cert, const struct cert *client_ca)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    CHECK(SSL_CTX_use_certificate(ctx, cert->x509) == 1 && SSL_CTX_use_PrivateKey(ctx, cert->key) == 1);
    if (client_ca) {
        CHECK(X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), client_ca->x509) == 1);
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    return ctx;
}
