/* TLS as its clients see it: who gets in, as whom, with which certificate, and what those hear who don't. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "certs.h"
#include "stage.h"
#include "util/clock.h"
#include "wire.h"

#define GET(target) "GET " target " HTTP/1.1\r\nHost: t\r\n\r\n"

static struct stage stage;
static char folder[64];
static struct http_tls_options tls;
static struct cert ca, server, other, client, stranger;

/* ---- files ---- */

/* The path of a file in the test's folder; good until the sixteenth call after this one. */
static const char *file(const char *name)
{
    static char paths[16][128];
    static unsigned next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static const char *written(const char *name, const char *text)
{
    const char *path = file(name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
    return path;
}

static void copy(const char *from, const char *to)
{
    char text[8192] = {0};
    FILE *in = fopen(file(from), "r");
    assert_non_null(in);
    assert_true(fread(text, 1, sizeof text - 1, in) > 0);
    fclose(in);
    written(to, text);
}

static struct cert made(const char *name, const char *host, const struct cert *by)
{
    return cert_make(
        folder, &(struct cert_spec){.name = name, .host = host, .valid_from_s = -60, .valid_until_s = 3600},
        by);
}

static int make_all(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/lanegate-spec-XXXXXX");
    assert_non_null(mkdtemp(folder));
    ca = made("ca", NULL, NULL);
    server = made("server", "127.0.0.1", NULL);
    other = made("other", "127.0.0.1", NULL);
    client = made("client", "partner.test", &ca);
    stranger = made("stranger", "stranger.test", NULL);
    return 0;
}

static int remove_all(void **state)
{
    (void)state;
    struct cert *certs[] = {&ca, &server, &other, &client, &stranger};
    for (size_t i = 0; i < sizeof certs / sizeof *certs; i++)
        cert_free(certs[i]);
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static int prepare(void **state)
{
    (void)state;
    static char cert[128], key[128];
    stage_prepare(&stage);
    snprintf(cert, sizeof cert, "%s", file("server.pem"));
    snprintf(key, sizeof key, "%s", file("server.pem"));
    tls = (struct http_tls_options){.cert = cert, .key = key};
    stage.options.tls = &tls;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    stage_close(&stage);
    return 0;
}

/* ---- a client ---- */

struct caller {
    int fd;
    SSL_CTX *ctx;
    SSL *ssl;
};

static struct caller dial(void)
{
    struct caller caller = {.fd = wire_connect(stage.server), .ctx = SSL_CTX_new(TLS_client_method())};
    struct timeval patience = {.tv_sec = WIRE_PATIENCE_MS / 1000};
    setsockopt(caller.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_non_null(caller.ctx);
    SSL_CTX_set_security_level(caller.ctx, 0); /* whatever is refused, the server does it */
    return caller;
}

static void hold(struct caller *caller, const struct cert *cert)
{
    assert_int_equal(SSL_CTX_use_certificate(caller->ctx, cert->x509), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(caller->ctx, cert->key), 1);
}

/* 0, or the reason of the failure. */
static int shake(struct caller *caller)
{
    ERR_clear_error();
    caller->ssl = SSL_new(caller->ctx);
    SSL_set_fd(caller->ssl, caller->fd);
    int done = SSL_connect(caller->ssl);
    return done == 1 ? 0 : ERR_GET_REASON(ERR_peek_error());
}

/* With TLS 1.3 a server's refusal of the client's certificate arrives behind the handshake. */
static int first_word(struct caller *caller)
{
    char word[1];
    ERR_clear_error();
    int n = SSL_read(caller->ssl, word, sizeof word);
    return n > 0 ? 0 : ERR_GET_REASON(ERR_peek_error());
}

static void hang_up(struct caller *caller)
{
    SSL_free(caller->ssl);
    SSL_CTX_free(caller->ctx);
    close(caller->fd);
}

/* One answer of at most a record, whole; good until the next call. */
static const char *ask(struct caller *caller, const char *request)
{
    static char answer[4096];
    assert_int_equal(SSL_write(caller->ssl, request, (int)strlen(request)), (int)strlen(request));
    size_t len = 0;
    do {
        int n = SSL_read(caller->ssl, answer + len, (int)(sizeof answer - 1 - len));
        assert_true(n > 0);
        len += (size_t)n;
        answer[len] = 0;
    } while (!strstr(answer, "\r\n\r\n") || strstr(answer, "\r\n\r\n")[4] == 0);
    assert_memory_equal(answer, "HTTP/1.1 20", 11);
    return strstr(answer, "\r\n\r\n") + 4;
}

static struct caller connected(void)
{
    struct caller caller = dial();
    assert_int_equal(shake(&caller), 0);
    return caller;
}

static bool shows(const struct caller *caller, const struct cert *cert)
{
    return X509_cmp(SSL_get0_peer_certificate(caller->ssl), cert->x509) == 0;
}

/* ---- versions, ciphers, protocols ---- */

static void a_request_is_served_by_either_version(void **state)
{
    (void)state;
    stage_open(&stage);
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        struct caller caller = dial();
        SSL_CTX_set_min_proto_version(caller.ctx, version);
        SSL_CTX_set_max_proto_version(caller.ctx, version);
        assert_int_equal(shake(&caller), 0);
        assert_int_equal(SSL_version(caller.ssl), version);
        assert_true(shows(&caller, &server));
        assert_string_equal(ask(&caller, GET("/who")), "127.0.0.1 new");
        assert_string_equal(ask(&caller, GET("/who")), "127.0.0.1 kept");
        hang_up(&caller);
    }
}

static void what_is_old_or_weak_hears_why(void **state)
{
    (void)state;
    stage_open(&stage);
    struct caller old = dial();
    SSL_CTX_set_min_proto_version(old.ctx, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(old.ctx, TLS1_1_VERSION);
    assert_int_equal(shake(&old), SSL_R_TLSV1_ALERT_PROTOCOL_VERSION);
    hang_up(&old);

    static const char *const weak[] = {"AES128-SHA", "AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA"};
    for (size_t i = 0; i < sizeof weak / sizeof *weak; i++) {
        struct caller caller = dial();
        SSL_CTX_set_max_proto_version(caller.ctx, TLS1_2_VERSION);
        assert_int_equal(SSL_CTX_set_cipher_list(caller.ctx, weak[i]), 1);
        assert_int_equal(shake(&caller), SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE);
        hang_up(&caller);
    }
    STAGE_WAIT(atomic_load(&stage.refused_handshake) == 4);
    assert_int_equal(atomic_load(&stage.handled), 0);
}

static void a_client_without_http_1_1_is_told(void **state)
{
    (void)state;
    stage_open(&stage);
    static const unsigned char both[] = "\2h2\10http/1.1", only_h2[] = "\2h2";
    struct caller caller = dial();
    assert_int_equal(SSL_CTX_set_alpn_protos(caller.ctx, both, sizeof both - 1), 0);
    assert_int_equal(shake(&caller), 0);
    const unsigned char *chosen;
    unsigned len;
    SSL_get0_alpn_selected(caller.ssl, &chosen, &len);
    assert_int_equal(len, 8);
    assert_memory_equal(chosen, "http/1.1", 8);
    assert_string_equal(ask(&caller, GET("/who")), "127.0.0.1 new");
    hang_up(&caller);

    caller = dial();
    assert_int_equal(SSL_CTX_set_alpn_protos(caller.ctx, only_h2, sizeof only_h2 - 1), 0);
    assert_int_equal(shake(&caller), SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
    hang_up(&caller);
}

/* Calls once, and again with what was learnt; gives whether that spared the second handshake. */
static bool resumes(int version, const struct cert *cert, void between(void), const char *expected)
{
    struct caller first = dial(), second = dial();
    SSL_CTX_set_max_proto_version(first.ctx, version);
    if (cert)
        hold(&first, cert);
    assert_int_equal(shake(&first), 0);
    /* With TLS 1.3 the tickets come behind the handshake: reading brings them. */
    const char *met_as = ask(&first, GET("/who"));
    if (!between)
        assert_string_equal(met_as, expected);
    SSL_SESSION *session = SSL_get1_session(first.ssl);
    SSL_shutdown(first.ssl);
    if (between)
        between();

    close(second.fd); /* accepted before whatever came between */
    second.fd = wire_connect(stage.server);
    SSL_CTX_set_max_proto_version(second.ctx, version);
    if (cert)
        hold(&second, cert);
    second.ssl = SSL_new(second.ctx);
    SSL_set_session(second.ssl, session);
    SSL_set_fd(second.ssl, second.fd);
    assert_int_equal(SSL_connect(second.ssl), 1);
    assert_string_equal(ask(&second, GET("/who")), expected);
    bool reused = SSL_session_reused(second.ssl);
    SSL_SESSION_free(session);
    hang_up(&first);
    hang_up(&second);
    return reused;
}

static void a_session_is_resumed(void **state)
{
    (void)state;
    stage_open(&stage);
    assert_true(resumes(TLS1_2_VERSION, NULL, NULL, "127.0.0.1 new"));
    assert_true(resumes(TLS1_3_VERSION, NULL, NULL, "127.0.0.1 new"));
}

/* ---- client certificates ---- */

static const char *seen_as(const struct cert *cert)
{
    static char text[128];
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len;
    assert_int_equal(X509_digest(cert->x509, EVP_sha256(), digest, &len), 1);
    int at = snprintf(text, sizeof text, "127.0.0.1 new ");
    for (unsigned i = 0; i < len; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%02x", digest[i]);
    return text;
}

static void only_clients_of_the_authority_get_in(void **state)
{
    (void)state;
    tls.client_ca = file("ca.pem");
    stage_open(&stage);
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        struct caller caller = dial();
        hold(&caller, &client);
        SSL_CTX_set_max_proto_version(caller.ctx, version);
        assert_int_equal(shake(&caller), 0);
        assert_string_equal(ask(&caller, GET("/who")), seen_as(&client));
        hang_up(&caller);
        assert_true(resumes(version, &client, NULL, seen_as(&client)));

        int handled = atomic_load(&stage.handled);
        struct caller nobody = dial(), unknown = dial();
        SSL_CTX_set_max_proto_version(nobody.ctx, version);
        SSL_CTX_set_max_proto_version(unknown.ctx, version);
        hold(&unknown, &stranger);
        if (version == TLS1_2_VERSION) {
            assert_int_equal(shake(&nobody), SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE);
            assert_int_equal(shake(&unknown), SSL_R_TLSV1_ALERT_UNKNOWN_CA);
        } else {
            assert_int_equal(shake(&nobody), 0);
            assert_int_equal(first_word(&nobody), SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED);
            assert_int_equal(shake(&unknown), 0);
            assert_int_equal(first_word(&unknown), SSL_R_TLSV1_ALERT_UNKNOWN_CA);
        }
        hang_up(&nobody);
        hang_up(&unknown);
        assert_int_equal(atomic_load(&stage.handled), handled);
    }
}

static void any_certificate_is_taken_where_sources_pin_them(void **state)
{
    (void)state;
    tls.asks_client = true;
    stage_open(&stage);
    struct caller nobody = connected();
    assert_string_equal(ask(&nobody, GET("/who")), "127.0.0.1 new");
    hang_up(&nobody);
    assert_true(resumes(TLS1_2_VERSION, &stranger, NULL, seen_as(&stranger)));
    assert_true(resumes(TLS1_3_VERSION, &stranger, NULL, seen_as(&stranger)));
}

static void nobody_is_asked_without_need(void **state)
{
    (void)state;
    stage_open(&stage);
    struct caller caller = dial();
    hold(&caller, &client);
    assert_int_equal(shake(&caller), 0);
    assert_string_equal(ask(&caller, GET("/who")), "127.0.0.1 new");
    hang_up(&caller);
}

/* ---- other certificates, while it runs ---- */

static void reload(const struct http_tls_options *options)
{
    struct error err;
    assert_int_equal(http_tls_reload(stage.server, options, &err), STATUS_OK);
}

static void a_new_certificate_touches_no_open_connection(void **state)
{
    (void)state;
    stage_open(&stage);
    struct caller kept = connected(), early = dial(); /* one is served, one is silent yet */
    assert_string_equal(ask(&kept, GET("/who")), "127.0.0.1 new");
    STAGE_WAIT(stage_gauge(&stage, "lanegate_http_connections") == 2);

    reload(&(struct http_tls_options){.cert = file("other.pem"), .key = file("other.pem")});
    struct caller late = connected();
    assert_true(shows(&late, &other));
    assert_string_equal(ask(&late, GET("/who")), "127.0.0.1 new");
    assert_string_equal(ask(&kept, GET("/who")), "127.0.0.1 kept");
    assert_int_equal(shake(&early), 0);
    assert_true(shows(&early, &server));
    assert_string_equal(ask(&early, GET("/who")), "127.0.0.1 new");
    hang_up(&kept);
    hang_up(&early);
    hang_up(&late);
}

static void a_changed_file_is_read_again(void **state)
{
    (void)state;
    copy("server.pem", "renewed.pem");
    const struct http_tls_options options = {.cert = file("renewed.pem"), .key = file("renewed.pem")};
    stage.options.tls = &options;
    stage_open(&stage);
    copy("other.pem", "renewed.pem");
    struct caller before = connected();
    assert_true(shows(&before, &server));
    reload(&options);
    struct caller after = connected();
    assert_true(shows(&after, &other));
    hang_up(&before);
    hang_up(&after);
}

static void nothing_changes_when_new_files_do_not_do(void **state)
{
    (void)state;
    stage_open(&stage);
    struct error err;
    const struct http_tls_options wrong = {.cert = file("other.pem"), .key = file("server.pem")};
    assert_int_equal(http_tls_reload(stage.server, &wrong, &err), STATUS_INVALID);
    struct caller caller = connected();
    assert_true(shows(&caller, &server));
    hang_up(&caller);
}

static void ask_for_the_authority(void)
{
    struct http_tls_options stricter = tls;
    stricter.client_ca = file("ca.pem");
    reload(&stricter);
}

/* What an older context let in must not get around a new one. */
static void a_session_does_not_outlive_a_reload(void **state)
{
    (void)state;
    stage_open(&stage);
    assert_false(resumes(TLS1_2_VERSION, &client, ask_for_the_authority, seen_as(&client)));
}

static void tls_may_come_and_go(void **state)
{
    (void)state;
    stage_open(&stage);
    reload(NULL);
    struct wire_reply reply;
    int fd = wire_connect(stage.server);
    WIRE_SEND(fd, GET("/who"));
    wire_read(fd, &reply, false);
    assert_int_equal(reply.status, 200);
    wire_reply_free(&reply);
    close(fd);
    reload(&tls);
    struct caller caller = connected();
    assert_string_equal(ask(&caller, GET("/who")), "127.0.0.1 new");
    hang_up(&caller);
}

/* ---- files that do not do ---- */

static void expect_refusal(struct http_tls_options options, const char *expected)
{
    struct error err = {{0}};
    assert_int_equal(http_tls_check(&options, &err), STATUS_INVALID);
    if (!strstr(err.text, expected))
        fail_msg("\"%s\" does not say \"%s\"", err.text, expected);
    struct http_server *none = NULL;
    stage.options.tls = &options;
    assert_int_equal(http_open(&stage.options, &none, &err), STATUS_INVALID);
    assert_null(none);
}

static void write_locked_key(void)
{
    FILE *out = fopen(file("locked.pem"), "w");
    assert_non_null(out);
    assert_int_equal(
        PEM_write_PrivateKey(out, server.key, EVP_aes_128_cbc(), NULL, 0, NULL, (void *)"geheim"), 1);
    fclose(out);
}

static void write_weak_pair(void)
{
    EVP_PKEY *key = EVP_RSA_gen(1024);
    X509 *x509 = X509_dup(server.x509);
    assert_int_equal(X509_set_pubkey(x509, key), 1);
    assert_true(X509_sign(x509, key, EVP_sha256()) > 0);
    FILE *out = fopen(file("weak.pem"), "w");
    assert_non_null(out);
    PEM_write_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL);
    PEM_write_X509(out, x509);
    fclose(out);
    X509_free(x509);
    EVP_PKEY_free(key);
}

static void files_that_do_not_do_are_named_with_the_reason(void **state)
{
    (void)state;
    const char *good = file("server.pem");
    struct error err;
    write_locked_key();
    write_weak_pair();
    written("empty.pem", "");
    written("broken.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    assert_int_equal(http_tls_check(&(struct http_tls_options){.cert = good, .key = good}, &err), STATUS_OK);

    expect_refusal((struct http_tls_options){.cert = file("none.pem"), .key = good}, "cert: can't read \"");
    expect_refusal((struct http_tls_options){.cert = file("none.pem"), .key = good},
                   "none.pem\": No such file or directory");
    expect_refusal((struct http_tls_options){.cert = file("empty.pem"), .key = good},
                   "empty.pem\" holds no certificate in PEM");
    expect_refusal((struct http_tls_options){.cert = file("broken.pem"), .key = good},
                   "cert: certificate 1 in \"");
    expect_refusal((struct http_tls_options){.cert = file("weak.pem"), .key = file("weak.pem")},
                   "cert: OpenSSL refuses it: ee key too small");
    expect_refusal((struct http_tls_options){.cert = good, .key = file("none.pem")}, "key: can't read \"");
    expect_refusal((struct http_tls_options){.cert = good, .key = file("empty.pem")},
                   "empty.pem\" holds no private key in PEM");
    expect_refusal((struct http_tls_options){.cert = good, .key = file("locked.pem")},
                   "locked.pem\" is locked with a passphrase");
    expect_refusal((struct http_tls_options){.cert = good, .key = file("other.pem")},
                   "other.pem\" is not the key of the first certificate in \"");
    expect_refusal((struct http_tls_options){.cert = good, .key = good, .client_ca = file("empty.pem")},
                   "client_ca: \"");
    expect_refusal((struct http_tls_options){.cert = good, .key = good, .client_ca = folder}, "client_ca: ");
    stage.options.tls = &tls;
}

static void a_chain_is_sent_whole(void **state)
{
    (void)state;
    struct cert signed_one = made("signed", "127.0.0.1", &ca);
    char command[512];
    snprintf(command, sizeof command, "cat %s %s > %s", file("signed.pem"), file("ca.pem"),
             file("chain.pem"));
    assert_int_equal(system(command), 0);
    const struct http_tls_options options = {.cert = file("chain.pem"), .key = file("signed.pem")};
    stage.options.tls = &options;
    stage_open(&stage);
    struct caller caller = connected();
    assert_true(shows(&caller, &signed_one));
    assert_int_equal(sk_X509_num(SSL_get_peer_cert_chain(caller.ssl)), 2);
    hang_up(&caller);
    cert_free(&signed_one);
}

/* ---- strangers ---- */

static void plain_http_gets_an_answer_and_a_clean_close(void **state)
{
    (void)state;
    stage_open(&stage);
    static const char *const requests[] = {
        GET("/who"), "POST /in/gh HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\n{\"half\":"};
    for (size_t i = 0; i < 2; i++) {
        struct wire_reply reply;
        char rest;
        int fd = wire_connect(stage.server);
        wire_send(fd, bytes_str(requests[i]));
        wire_read(fd, &reply, false);
        assert_int_equal(reply.status, 400);
        assert_string_equal(reply.body.at, "{\"error\":\"tls_required\"}");
        assert_true(reply.closes);
        assert_int_equal(read(fd, &rest, 1), 0); /* an end, not a reset */
        wire_reply_free(&reply);
        close(fd);
    }
    assert_int_equal(atomic_load(&stage.handled), 0);
    assert_int_equal(atomic_load(&stage.refused_handshake), 2);
}

static void noise_ends(void **state)
{
    (void)state;
    stage_open(&stage);
    static const struct bytes noise[] = {BYTES("\0\0\0\0\0\0\0\0"), BYTES("SSH-2.0-OpenSSH_9.2\r\n"),
                                         BYTES("\x16\x03\x01\x40\x01junk"), BYTES("\x80\x2e\x01\x00\x02\x00"),
                                         BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")};
    for (size_t i = 0; i < sizeof noise / sizeof *noise; i++) {
        char rest[64];
        int fd = wire_connect(stage.server);
        wire_send(fd, noise[i]);
        wire_no_more(fd);
        while (read(fd, rest, sizeof rest) > 0) /* an alert, perhaps */
            ;
        close(fd);
    }
    struct caller caller = connected();
    assert_string_equal(ask(&caller, GET("/who")), "127.0.0.1 new");
    hang_up(&caller);
}

static void a_handshake_has_the_time_of_a_head(void **state)
{
    (void)state;
    stage.options.header_timeout_ms = 100;
    stage_open(&stage);
    int silent = wire_connect(stage.server), slow = wire_connect(stage.server);
    WIRE_SEND(slow, "\x16\x03\x01\x02");
    STAGE_WAIT(wire_has_ended(slow) || !wire_try_send(slow, BYTES("\x01")));
    STAGE_WAIT(wire_has_ended(silent));
    assert_int_equal(atomic_load(&stage.refused_timeout), 2);
    close(silent);
    close(slow);
}

/* libh2o would go on reading behind a farewell, into a buffer that no bound sees. */
static void a_client_that_says_farewell_can_not_go_on(void **state)
{
    (void)state;
    stage_open(&stage);
    struct caller caller = connected();
    SSL_shutdown(caller.ssl);
    STAGE_WAIT(!wire_try_send(caller.fd, BYTES("and another thing")));
    hang_up(&caller);
}

static void a_farewell_behind_a_request_is_answered_first(void **state)
{
    (void)state;
    stage_open(&stage);
    stage.keep = true;
    struct caller caller = connected();
    struct http_exchange *exchange;
    char answer[512] = {0};
    assert_true(SSL_write(caller.ssl, GET("/"), sizeof GET("/") - 1) > 0);
    SSL_shutdown(caller.ssl);
    stage_take(&stage, 1, &exchange);
    http_answer(exchange, &(struct http_answer){.status = 201, .body = BYTES("{}")});
    size_t len = 0;
    int n;
    while ((n = SSL_read(caller.ssl, answer + len, (int)(sizeof answer - 1 - len))) > 0)
        len += (size_t)n;
    assert_non_null(strstr(answer, "201 Created"));
    assert_int_equal(SSL_get_error(caller.ssl, 0), SSL_ERROR_ZERO_RETURN); /* a farewell, not just an end */
    hang_up(&caller);
}

static void an_idle_client_hears_a_farewell(void **state)
{
    (void)state;
    stage.options.idle_timeout_ms = 50;
    stage_open(&stage);
    struct caller caller = connected();
    char rest[8];
    assert_int_equal(SSL_read(caller.ssl, rest, sizeof rest), 0);
    assert_int_equal(SSL_get_error(caller.ssl, 0), SSL_ERROR_ZERO_RETURN);
    hang_up(&caller);
}

static void a_drain_does_not_wait_for_a_silent_handshake(void **state)
{
    (void)state;
    stage_open(&stage);
    int silent = wire_connect(stage.server);
    struct caller served = connected();
    assert_string_equal(ask(&served, GET("/who")), "127.0.0.1 new");
    STAGE_WAIT(stage_gauge(&stage, "lanegate_http_connections") == 2);
    int64_t from_ms = clock_mono_ms();
    http_drain(stage.server);
    STAGE_WAIT(http_drained(stage.server));
    stage_shut(&stage);
    assert_true(clock_mono_ms() - from_ms < 8000); /* the grace, not the time of a head */
    hang_up(&served);
    close(silent);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, prepare, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_served_by_either_version),
        TEST(what_is_old_or_weak_hears_why),
        TEST(a_client_without_http_1_1_is_told),
        TEST(a_session_is_resumed),
        TEST(only_clients_of_the_authority_get_in),
        TEST(any_certificate_is_taken_where_sources_pin_them),
        TEST(nobody_is_asked_without_need),
        TEST(a_new_certificate_touches_no_open_connection),
        TEST(a_changed_file_is_read_again),
        TEST(nothing_changes_when_new_files_do_not_do),
        TEST(a_session_does_not_outlive_a_reload),
        TEST(tls_may_come_and_go),
        TEST(files_that_do_not_do_are_named_with_the_reason),
        TEST(a_chain_is_sent_whole),
        TEST(plain_http_gets_an_answer_and_a_clean_close),
        TEST(noise_ends),
        TEST(a_handshake_has_the_time_of_a_head),
        TEST(a_client_that_says_farewell_can_not_go_on),
        TEST(a_farewell_behind_a_request_is_answered_first),
        TEST(an_idle_client_hears_a_farewell),
        TEST(a_drain_does_not_wait_for_a_silent_handshake),
    };
    return cmocka_run_group_tests(tests, make_all, remove_all);
}
