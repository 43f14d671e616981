/* Certificates and keys: files become a `struct http_identity`, which becomes an SSL_CTX. A server holds one
 * of each, under a lock; every connection takes a reference of its own when it is accepted, so that a new
 * certificate is in force from the next connection on and touches none that is open.
 *
 * A context also holds the keys of its session tickets. It is made anew twice a day, so that no key is worth
 * much; a ticket of an older context just costs its client a whole handshake. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "http/http_priv.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

#define CERTIFICATES_MAX 1000 /* in one file */
#define TICKET_KEYS_MS (12 * 60 * 60 * 1000)

/* With forward secrecy and authenticated encryption; TLS 1.3 has nothing else. */
#define CIPHERS_TLS_1_2 "ECDHE+AESGCM:ECDHE+CHACHA20"
#define SECURITY_LEVEL 2 /* RSA keys of 2048 bits and more, no SHA-1 in certificates */

struct http_identity {
    X509 *leaf;
    STACK_OF(X509) * chain, *authorities; /* authorities: NULL unless clients are checked against some */
    EVP_PKEY *key;
    bool asks_client;
};

/* ---- files ---- */

static const char *openssl_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason ? reason : "unknown";
}

/* `option` is the name in the configuration: the message begins with it. */
static BIO *open_file(const char *option, const char *path, struct error *err)
{
    ERR_clear_error();
    errno = 0;
    BIO *file = BIO_new_file(path, "r");
    if (!file)
        error_set(err, STATUS_INVALID, "%s: can't read \"%s\": %s", option, path,
                  errno ? strerror(errno) : openssl_reason());
    return file;
}

/* All certificates of a PEM file, at least one; NULL with `err` otherwise. */
static STACK_OF(X509) * read_certificates(const char *option, const char *path, struct error *err)
{
    BIO *file = open_file(option, path, err);
    if (!file)
        return NULL;
    STACK_OF(X509) *list = sk_X509_new_null();
    X509 *one = NULL;
    ERR_clear_error();
    while (sk_X509_num(list) < CERTIFICATES_MAX && (one = PEM_read_bio_X509(file, NULL, NULL, NULL)))
        sk_X509_push(list, one);
    unsigned long why = ERR_peek_last_error();
    bool at_end = !one && ERR_GET_LIB(why) == ERR_LIB_PEM && ERR_GET_REASON(why) == PEM_R_NO_START_LINE;
    int count = sk_X509_num(list);
    BIO_free(file);
    if (at_end && count > 0) {
        ERR_clear_error();
        return list;
    }
    if (one)
        error_set(err, STATUS_INVALID, "%s: \"%s\" holds more than %d certificates", option, path,
                  CERTIFICATES_MAX);
    else if (at_end)
        error_set(err, STATUS_INVALID, "%s: \"%s\" holds no certificate in PEM (-----BEGIN CERTIFICATE-----)",
                  option, path);
    else
        error_set(err, STATUS_INVALID, "%s: certificate %d in \"%s\" is damaged: %s", option, count + 1, path,
                  openssl_reason());
    sk_X509_pop_free(list, X509_free);
    return NULL;
}

/* Nobody is there to type one. */
static int no_passphrase(char *to, int size, int writes, void *asked)
{
    (void)to, (void)size, (void)writes;
    *(bool *)asked = true;
    return -1;
}

static EVP_PKEY *read_key(const char *path, struct error *err)
{
    BIO *file = open_file("key", path, err);
    if (!file)
        return NULL;
    bool asked = false;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(file, NULL, no_passphrase, &asked);
    BIO_free(file);
    if (!key && asked)
        error_set(err, STATUS_INVALID,
                  "key: \"%s\" is locked with a passphrase; \"openssl pkey\" makes one without", path);
    else if (!key)
        error_set(err, STATUS_INVALID,
                  "key: \"%s\" holds no private key in PEM (-----BEGIN PRIVATE KEY-----)", path);
    ERR_clear_error();
    return key;
}

static void identity_free(struct http_identity *identity)
{
    if (!identity)
        return;
    X509_free(identity->leaf);
    sk_X509_pop_free(identity->chain, X509_free);
    sk_X509_pop_free(identity->authorities, X509_free);
    EVP_PKEY_free(identity->key);
    free(identity);
}

static enum status identity_load(const struct http_tls_options *options, struct http_identity **out,
                                 struct error *err)
{
    struct http_identity *identity = mem_zalloc(sizeof *identity);
    identity->asks_client = options->asks_client || options->client_ca;
    identity->chain = read_certificates("cert", options->cert, err);
    if (!identity->chain)
        goto refused;
    identity->leaf = sk_X509_shift(identity->chain);
    identity->key = read_key(options->key, err);
    if (!identity->key)
        goto refused;
    if (X509_check_private_key(identity->leaf, identity->key) != 1) {
        error_set(err, STATUS_INVALID, "key: \"%s\" is not the key of the first certificate in \"%s\"",
                  options->key, options->cert);
        goto refused;
    }
    if (options->client_ca) {
        identity->authorities = read_certificates("client_ca", options->client_ca, err);
        if (!identity->authorities)
            goto refused;
    }
    *out = identity;
    return STATUS_OK;

refused:
    ERR_clear_error();
    identity_free(identity);
    return STATUS_INVALID;
}

/* ---- contexts ---- */

/* A client that offers protocols and not ours would talk past us: it gets an alert instead. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *offered, unsigned offered_len, void *unused)
{
    (void)ssl, (void)unused;
    for (unsigned at = 0; at < offered_len && at + 1 + offered[at] <= offered_len; at += 1u + offered[at]) {
        struct bytes name = bytes_of((const char *)offered + at + 1, offered[at]);
        if (bytes_eq(name, BYTES("http/1.1")) || bytes_eq(name, BYTES("http/1.0"))) {
            *out = offered + at + 1;
            *out_len = offered[at];
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Whoever pins a certificate by its fingerprint does not ask who signed it, or until when. */
static int any_certificate(int good, X509_STORE_CTX *store)
{
    (void)good, (void)store;
    return 1;
}

static bool ask_clients(SSL_CTX *ctx, const struct http_identity *identity)
{
    if (!identity->asks_client)
        return true;
    if (!identity->authorities) {
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, any_certificate);
        return true;
    }
    for (int i = 0; i < sk_X509_num(identity->authorities); i++) {
        X509 *authority = sk_X509_value(identity->authorities, i);
        if (X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), authority) != 1 ||
            SSL_CTX_add_client_CA(ctx, authority) != 1)
            return false;
    }
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return true;
}

static bool use_identity(SSL_CTX *ctx, const struct http_identity *identity)
{
    bool good =
        SSL_CTX_use_certificate(ctx, identity->leaf) == 1 && SSL_CTX_use_PrivateKey(ctx, identity->key) == 1;
    for (int i = 0; good && i < sk_X509_num(identity->chain); i++)
        good = SSL_CTX_add1_chain_cert(ctx, sk_X509_value(identity->chain, i)) == 1;
    return good;
}

static enum status context_new(const struct http_identity *identity, SSL_CTX **out, struct error *err)
{
    static const unsigned char session_context[] = "lanegate";
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx)
        return error_set(err, STATUS_IO, "OpenSSL makes no context: %s", openssl_reason());
    SSL_CTX_set_security_level(ctx, SECURITY_LEVEL);
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);         /* 34 KiB less for an idle connection */
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* tickets keep sessions at the client */
    SSL_CTX_set_session_id_context(ctx, session_context, sizeof session_context - 1);
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    http_secure_watch(ctx);
    bool good = SSL_CTX_set_cipher_list(ctx, CIPHERS_TLS_1_2) == 1;
    if (good && !use_identity(ctx, identity)) {
        error_set(err, STATUS_INVALID, "cert: OpenSSL refuses it: %s", openssl_reason());
        good = false;
    } else if (good && !ask_clients(ctx, identity)) {
        error_set(err, STATUS_INVALID, "client_ca: OpenSSL refuses it: %s", openssl_reason());
        good = false;
    }
    ERR_clear_error();
    if (!good) {
        SSL_CTX_free(ctx);
        return STATUS_INVALID;
    }
    *out = ctx;
    return STATUS_OK;
}

enum status http_tls_check(const struct http_tls_options *options, struct error *err)
{
    struct http_identity *identity = NULL;
    SSL_CTX *ctx = NULL;
    enum status status = identity_load(options, &identity, err);
    if (status == STATUS_OK)
        status = context_new(identity, &ctx, err);
    SSL_CTX_free(ctx);
    identity_free(identity);
    return status;
}

/* ---- a server's ---- */

/* An expired certificate is served all the same: some clients don't mind, and no gateway is worse. */
static void log_identity(const struct http_server *server, const struct http_identity *identity)
{
    int days = 0, seconds = 0;
    ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(identity->leaf));
    bool expired = days < 0 || seconds < 0;
    log_event(expired ? LOG_WARN : LOG_INFO, expired ? "tls_certificate_expired" : "tls_certificate_loaded",
              LOG_STR("server", server->name), LOG_INT("days_left", days),
              LOG_INT("chain", sk_X509_num(identity->chain) + 1),
              LOG_STR("clients", identity->authorities   ? "required"
                                 : identity->asks_client ? "asked"
                                                         : "not asked"));
}

enum status http_tls_reload(struct http_server *server, const struct http_tls_options *options,
                            struct error *err)
{
    struct http_tls *tls = &server->tls;
    struct http_identity *identity = NULL;
    SSL_CTX *ctx = NULL;
    enum status status = STATUS_OK;
    if (options)
        status = identity_load(options, &identity, err);
    if (status == STATUS_OK && options)
        status = context_new(identity, &ctx, err);
    if (status != STATUS_OK) {
        identity_free(identity);
        return status;
    }
    if (identity)
        log_identity(server, identity);

    pthread_mutex_lock(&tls->lock);
    struct http_identity *old_identity = tls->identity;
    SSL_CTX *old_ctx = tls->ctx;
    tls->identity = identity;
    tls->ctx = ctx;
    tls->made_ms = clock_mono_ms();
    atomic_store_explicit(&tls->on, ctx != NULL, memory_order_release);
    pthread_mutex_unlock(&tls->lock);
    SSL_CTX_free(old_ctx); /* connections have references of their own */
    identity_free(old_identity);
    return STATUS_OK;
}

/* Under the lock. The identity has made a context before, so that a failure is a lack of memory: the old one
 * goes on. */
static void renew_ticket_keys(struct http_tls *tls)
{
    SSL_CTX *ctx;
    tls->made_ms = clock_mono_ms();
    if (context_new(tls->identity, &ctx, NULL) != STATUS_OK)
        return;
    SSL_CTX_free(tls->ctx);
    tls->ctx = ctx;
}

SSL_CTX *http_tls_take(struct http_server *server)
{
    struct http_tls *tls = &server->tls;
    if (!atomic_load_explicit(&tls->on, memory_order_acquire))
        return NULL;
    pthread_mutex_lock(&tls->lock);
    if (tls->ctx && clock_mono_ms() - tls->made_ms >= TICKET_KEYS_MS)
        renew_ticket_keys(tls);
    SSL_CTX *ctx = tls->ctx;
    if (ctx)
        SSL_CTX_up_ref(ctx);
    pthread_mutex_unlock(&tls->lock);
    return ctx;
}

void http_tls_open(struct http_server *server)
{
    pthread_mutex_init(&server->tls.lock, NULL);
}

void http_tls_close(struct http_server *server)
{
    SSL_CTX_free(server->tls.ctx);
    identity_free(server->tls.identity);
    pthread_mutex_destroy(&server->tls.lock);
}
