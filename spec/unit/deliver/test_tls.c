/* TLS to a receiver: what is trusted, and how a failure is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "certs.h"
#include "receiver.h"
#include "trial.h"

enum { HOUR_S = 3600 };

static struct deliver *deliver;
static char folder[] = "/tmp/lanegate-tls-XXXXXX";
static char ca_path[64], client_path[64], broken_path[64];
static struct cert ca, good, expired, future, other_host, stranger, client;

static bool answer_ok(struct exchange *x, const char *text)
{
    (void)text;
    return say(x, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

static bool never_called(struct exchange *x, const char *text)
{
    (void)x, (void)text;
    return false;
}

/* One attempt against a server with this certificate. */
static struct outcome outcome_with(const struct cert *cert, const struct cert *client_ca,
                                   struct sink_options wanted)
{
    SSL_CTX *ctx = cert_server(cert, client_ca);
    struct receiver *receiver = receiver_open(answer_ok, NULL, ctx);
    struct sink_options options = trial_options(receiver_port(receiver));
    char url[64];
    snprintf(url, sizeof url, "https://127.0.0.1:%u/hook", receiver_port(receiver));
    options.url = url;
    options.tls_ca = wanted.tls_ca;
    options.tls_cert = wanted.tls_cert;
    options.tls_key = wanted.tls_key;
    struct outcome outcome = trial_once(deliver, &options);
    receiver_close(receiver);
    SSL_CTX_free(ctx);
    return outcome;
}

static void assert_failed(struct outcome outcome, enum outcome_class cls, const char *reason)
{
    if (outcome.cls != cls || strncmp(outcome.reason, reason, strlen(reason)) != 0)
        fail_msg("expected \"%s\", got %s \"%s\"", reason, outcome_class_name(outcome.cls), outcome.reason);
    assert_int_equal(outcome.unreachable, cls == OUTCOME_TRANSIENT);
}

static void a_private_ca_is_trusted_where_it_is_named(void **state)
{
    (void)state;
    struct outcome outcome = outcome_with(&good, NULL, (struct sink_options){.tls_ca = ca_path});
    if (outcome.cls != OUTCOME_OK)
        fail_msg("%s", outcome.reason);
    assert_failed(outcome_with(&good, NULL, (struct sink_options){0}), OUTCOME_TRANSIENT,
                  "TLS: the receiver's certificate is from an unknown CA");
    assert_failed(outcome_with(&stranger, NULL, (struct sink_options){.tls_ca = ca_path}), OUTCOME_TRANSIENT,
                  "TLS: the receiver's certificate is from an unknown CA");
}

static void failures_are_named(void **state)
{
    (void)state;
    struct sink_options trusting = {.tls_ca = ca_path};
    assert_failed(outcome_with(&expired, NULL, trusting), OUTCOME_TRANSIENT,
                  "TLS: the receiver's certificate has expired");
    assert_failed(outcome_with(&future, NULL, trusting), OUTCOME_TRANSIENT,
                  "TLS: the receiver's certificate is not valid yet");
    assert_failed(outcome_with(&other_host, NULL, trusting), OUTCOME_TRANSIENT,
                  "TLS: the receiver's certificate is for another host");
}

static void a_client_certificate_is_shown(void **state)
{
    (void)state;
    struct sink_options with = {.tls_ca = ca_path, .tls_cert = client_path, .tls_key = client_path};
    struct outcome outcome = outcome_with(&good, &ca, with);
    if (outcome.cls != OUTCOME_OK)
        fail_msg("%s", outcome.reason);
    outcome = outcome_with(&good, &ca, (struct sink_options){.tls_ca = ca_path});
    assert_int_equal(outcome.cls, OUTCOME_TRANSIENT);
    assert_true(outcome.reason[0] != 0);
}

static void broken_files_are_our_own_fault(void **state)
{
    (void)state;
    assert_failed(outcome_with(&good, NULL, (struct sink_options){.tls_ca = broken_path}), OUTCOME_CONFIG,
                  "TLS files: ");
    assert_failed(
        outcome_with(&good, NULL, (struct sink_options){.tls_ca = ca_path, .tls_cert = broken_path}),
        OUTCOME_CONFIG, "TLS files: ");
}

static void what_is_not_tls(void **state)
{
    (void)state;
    struct receiver *receiver = receiver_open(never_called, NULL, NULL);
    struct sink_options options = trial_options(receiver_port(receiver));
    char url[64];
    snprintf(url, sizeof url, "https://127.0.0.1:%u/hook", receiver_port(receiver));
    options.url = url;
    options.timeout_ms = 150;
    struct outcome outcome =
        trial_once(deliver, &options); /* it waits for the end of a head that never ends */
    assert_failed(outcome, OUTCOME_TRANSIENT, "timed out in the TLS handshake with 127.0.0.1:");
    assert_true(outcome.timed_out);
    receiver_close(receiver);
}

static int make_all(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN); /* OpenSSL writes without MSG_NOSIGNAL */
    if (!mkdtemp(folder))
        return -1;
    ca = cert_make(folder, &(struct cert_spec){"ca", NULL, -HOUR_S, HOUR_S}, NULL);
    good = cert_make(folder, &(struct cert_spec){"good", "127.0.0.1", -HOUR_S, HOUR_S}, &ca);
    expired = cert_make(folder, &(struct cert_spec){"expired", "127.0.0.1", -2 * HOUR_S, -HOUR_S}, &ca);
    future = cert_make(folder, &(struct cert_spec){"future", "127.0.0.1", HOUR_S, 2 * HOUR_S}, &ca);
    other_host = cert_make(folder, &(struct cert_spec){"other", "other.example", -HOUR_S, HOUR_S}, &ca);
    stranger = cert_make(folder, &(struct cert_spec){"stranger", "127.0.0.1", -HOUR_S, HOUR_S}, NULL);
    client = cert_make(folder, &(struct cert_spec){"client", "client.example", -HOUR_S, HOUR_S}, &ca);
    snprintf(ca_path, sizeof ca_path, "%s/ca.pem", folder);
    snprintf(client_path, sizeof client_path, "%s/client.pem", folder);
    snprintf(broken_path, sizeof broken_path, "%s/broken.pem", folder);
    FILE *file = fopen(broken_path, "w");
    fputs("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n", file);
    fclose(file);
    deliver = trial_room();
    return 0;
}

static int remove_all(void **state)
{
    (void)state;
    static const char *const names[] = {"ca",    "good",     "expired", "future",
                                        "other", "stranger", "client",  "broken"};
    struct cert *certs[] = {&ca, &good, &expired, &future, &other_host, &stranger, &client};
    deliver_close(deliver);
    for (size_t i = 0; i < sizeof certs / sizeof certs[0]; i++)
        cert_free(certs[i]);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[80];
        snprintf(path, sizeof path, "%s/%s.pem", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_private_ca_is_trusted_where_it_is_named),
        cmocka_unit_test(failures_are_named),
        cmocka_unit_test(a_client_certificate_is_shown),
        cmocka_unit_test(broken_files_are_our_own_fault),
        cmocka_unit_test(what_is_not_tls),
    };
    return cmocka_run_group_tests(tests, make_all, remove_all);
}
