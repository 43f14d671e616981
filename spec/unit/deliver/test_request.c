/* What a receiver gets: the body byte for byte, the gateway's headers, the provider's, a signature it can
 * check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "deliver/sinks/http_priv.h"
#include "receiver.h"
#include "trial.h"
#include "util/clock.h"

static bool answer_ok(struct exchange *x, const char *text)
{
    (void)text;
    return say(x, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

struct scene {
    struct deliver *deliver;
    struct receiver *receiver;
    struct sink_options options;
    struct sink *sink;
    struct trial trial;
};

static void scene_open(struct scene *scene)
{
    memset(scene, 0, sizeof *scene);
    scene->deliver = trial_room();
    scene->receiver = receiver_open(answer_ok, NULL, NULL);
    scene->options = trial_options(receiver_port(scene->receiver));
}

static void scene_prepare(struct scene *scene, const struct header *headers, size_t count, struct bytes body)
{
    struct error err = {""};
    if (sink_open(scene->deliver, &scene->options, &scene->sink, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    trial_init(&scene->trial, scene->sink, trial_envelope(headers, count, body));
}

static const struct received *scene_deliver(struct scene *scene)
{
    trial_start(&scene->trial, scene->deliver);
    const struct outcome *outcome = trial_wait(&scene->trial);
    if (outcome->cls != OUTCOME_OK)
        fail_msg("%s", outcome->reason);
    return receiver_request(scene->receiver, receiver_requests(scene->receiver));
}

static void scene_close(struct scene *scene)
{
    trial_end(&scene->trial);
    sink_close(scene->sink);
    deliver_close(scene->deliver);
    receiver_close(scene->receiver);
}

#define ASSERT_HEADER(request, name, value) assert_string_equal(received_header(request, name), value)
#define ASSERT_ABSENT(request, name) assert_null(received_header(request, name))

static void an_unordered_hook(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene);
    const struct header headers[] = {{BYTES("Content-Type"), BYTES("application/json; charset=\"x\"")},
                                     {BYTES("X-Shop"), BYTES("a%20b")}};
    scene_prepare(&scene, headers, 2, BYTES("{\"a\": \0 1}"));
    const struct received *r = scene_deliver(&scene);

    assert_true(strncmp(r->head, "POST /hook HTTP/1.1\n", 20) == 0);
    assert_int_equal(r->body_len, 10);
    assert_memory_equal(r->body, "{\"a\": \0 1}", 10);
    ASSERT_HEADER(r, "content-length", "10");
    ASSERT_HEADER(r, "content-type", "application/json; charset=\"x\"");
    ASSERT_HEADER(r, "x-shop", "a%20b");
    ASSERT_HEADER(r, "user-agent", "lanegate/" LANEGATE_VERSION);
    ASSERT_HEADER(r, "x-lanegate-id", "01890a5d-ac96-774b-bcce-b302099a8057");
    ASSERT_HEADER(r, "x-lanegate-source", "stripe");
    ASSERT_HEADER(r, "x-lanegate-tenant", "acme");
    ASSERT_HEADER(r, "x-lanegate-idempotency-key", "01890a5d-ac96-774b-bcce-b302099a8057");
    ASSERT_HEADER(r, "x-lanegate-received-at", "1700000000123");
    ASSERT_HEADER(r, "x-lanegate-attempt", "1");
    ASSERT_HEADER(r, "x-lanegate-verification", "ok");
    ASSERT_HEADER(r, "x-lanegate-body-sha256",
                  "7771ca369621c65cb14b9a9228df66531b4695f7f8cd02b45fb3aca6df2a61ed");
    static const char *const absent[] = {"expect",
                                         "accept",
                                         "x-lanegate-dedupe-key",
                                         "x-lanegate-replay-id",
                                         "x-lanegate-ordering-key",
                                         "x-lanegate-lane",
                                         "x-lanegate-epoch",
                                         "x-lanegate-seq",
                                         "x-lanegate-previous-seq",
                                         "x-lanegate-skipped",
                                         "x-lanegate-late",
                                         "webhook-id",
                                         "webhook-timestamp",
                                         "webhook-signature"};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
        ASSERT_ABSENT(r, absent[i]);
    scene_close(&scene);
}

static void an_ordered_hook(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene);
    scene.options.header_prefix = "ankusa";
    scene_prepare(&scene, NULL, 0, BYTES(""));
    struct attempt *a = &scene.trial.attempt;
    a->number = 7;
    a->ordered = true;
    memset(a->lane, 0xab, sizeof a->lane);
    a->key = BYTES("cus 1");
    uuid_parse(BYTES("01890a5d-ac96-774b-bcce-b30209000001"), &a->epoch);
    a->previous_seq = 41;
    a->skipped = 2;
    a->late = a->replayed = true;
    uuid_parse(BYTES("01890a5d-ac96-774b-bcce-b30209000002"), &a->replay_id);
    a->envelope->dedupe_key = BYTES("evt 1");
    const struct received *r = scene_deliver(&scene);

    ASSERT_HEADER(r, "content-length", "0");
    ASSERT_ABSENT(r, "content-type");
    ASSERT_HEADER(r, "x-ankusa-attempt", "7");
    ASSERT_HEADER(r, "x-ankusa-ordering-key", "cus 1");
    ASSERT_HEADER(r, "x-ankusa-lane", "abababababababababababababababab");
    ASSERT_HEADER(r, "x-ankusa-epoch", "01890a5d-ac96-774b-bcce-b30209000001");
    ASSERT_HEADER(r, "x-ankusa-seq", "42");
    ASSERT_HEADER(r, "x-ankusa-previous-seq", "41");
    ASSERT_HEADER(r, "x-ankusa-skipped", "2");
    ASSERT_HEADER(r, "x-ankusa-late", "true");
    ASSERT_HEADER(r, "x-ankusa-replay-id", "01890a5d-ac96-774b-bcce-b30209000002");
    ASSERT_HEADER(r, "x-ankusa-dedupe-key", "evt 1");
    ASSERT_HEADER(r, "x-ankusa-idempotency-key", "acme:stripe:evt 1");
    assert_null(strstr(r->head, "lanegate-"));
    /* The digest of nothing, as everybody knows it. */
    ASSERT_HEADER(r, "x-ankusa-body-sha256",
                  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    scene_close(&scene);
}

/* Only under the prefix "ankusa", whose consumers read both so. */
static void a_default_tenant_has_no_header_and_a_failure_has_a_flag(void **state)
{
    (void)state;
    static const struct {
        const char *prefix, *tenant, *flagged;
    } cases[] = {{"ankusa", NULL, "true"}, {"lanegate", "default", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scene scene;
        scene_open(&scene);
        scene.options.header_prefix = cases[i].prefix;
        scene_prepare(&scene, NULL, 0, BYTES("x"));
        scene.trial.attempt.envelope->tenant = BYTES("default");
        scene.trial.attempt.envelope->verification = VERIFICATION_FAILED;
        const struct received *r = scene_deliver(&scene);
        char name[64];
        snprintf(name, sizeof name, "x-%s-verification", cases[i].prefix);
        ASSERT_HEADER(r, name, "failed");
        snprintf(name, sizeof name, "x-%s-verification-flagged", cases[i].prefix);
        cases[i].flagged ? ASSERT_HEADER(r, name, cases[i].flagged) : ASSERT_ABSENT(r, name);
        snprintf(name, sizeof name, "x-%s-tenant", cases[i].prefix);
        cases[i].tenant ? ASSERT_HEADER(r, name, cases[i].tenant) : ASSERT_ABSENT(r, name);
        scene_close(&scene);
    }
}

static void a_key_can_not_add_a_header(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene);
    const struct header headers[] = {{BYTES("X-Evil\r\nX-Added"), BYTES("1")},
                                     {BYTES("X-Bytes"), BYTES("a\r\nX-Added: 2")},
                                     {BYTES("X-Nul"), BYTES("a\0b")},
                                     {BYTES("X-Empty"), BYTES("")},
                                     {BYTES("Content-Type"), BYTES("text/x\r\nX-Added: 3")}};
    scene_prepare(&scene, headers, 5, BYTES("x"));
    struct attempt *a = &scene.trial.attempt;
    a->ordered = true;
    a->key = BYTES(" \r\nX-Added: 4\0%\xff ");
    a->envelope->dedupe_key = BYTES("\nX-Added: 5");
    const struct received *r = scene_deliver(&scene);
    ASSERT_ABSENT(r, "x-added");
    ASSERT_HEADER(r, "x-lanegate-ordering-key", "%20%0D%0AX-Added: 4%00%25%FF%20");
    ASSERT_HEADER(r, "x-lanegate-dedupe-key", "%0AX-Added: 5");
    ASSERT_HEADER(r, "x-lanegate-idempotency-key", "acme:stripe:%0AX-Added: 5");
    ASSERT_HEADER(r, "x-bytes", "a%0D%0AX-Added: 2");
    ASSERT_HEADER(r, "x-nul", "a%00b");
    ASSERT_HEADER(r, "x-empty", "");
    ASSERT_HEADER(r, "content-type", "text/x%0D%0AX-Added: 3");
    scene_close(&scene);
}

static void provider_headers_are_forwarded_but_for_some(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene);
    const struct header headers[] = {
        {BYTES("Authorization"), BYTES("Basic x")},
        {BYTES("Proxy-Authorization"), BYTES("x")},
        {BYTES("Cookie"), BYTES("x")},
        {BYTES("X-Api-Key"), BYTES("x")},
        {BYTES("X-Gitlab-Token"), BYTES("x")},
        {BYTES("Host"), BYTES("evil.example")},
        {BYTES("Content-Length"), BYTES("999")},
        {BYTES("Connection"), BYTES("close, X-Hop ,x-hop2")},
        {BYTES("Keep-Alive"), BYTES("x")},
        {BYTES("TE"), BYTES("trailers")},
        {BYTES("Trailer"), BYTES("x")},
        {BYTES("Transfer-Encoding"), BYTES("chunked")},
        {BYTES("Upgrade"), BYTES("h2c")},
        {BYTES("Expect"), BYTES("100-continue")},
        {BYTES("X-Hop"), BYTES("x")},
        {BYTES("X-HOP2"), BYTES("x")},
        {BYTES("X-Lanegate-Seq"), BYTES("1")},
        {BYTES("X_Lanegate_Seq"), BYTES("evil")},
        {BYTES("x-ankusa_Late"), BYTES("evil")},
        {BYTES("Webhook_Id"), BYTES("evil")},
        {BYTES("x-ankusa-seq"), BYTES("1")},
        {BYTES("Webhook-Id"), BYTES("theirs")},
        {BYTES("X-Shared"), BYTES("theirs")},
        {BYTES("User-Agent"), BYTES("Stripe/1.0")},
        {BYTES("Accept"), BYTES("text/x")},
        {BYTES("Stripe-Signature"), BYTES("t=1,v1=ab")},
        {BYTES("X-Twice"), BYTES("1")},
        {BYTES("X-Twice"), BYTES("2")},
        {BYTES("X-Tab"), BYTES("a\tb")},
    };
    const struct sink_header ours[] = {{"x-shared", "ours"}, {"Authorization", "Bearer tok"}};
    const struct bytes secret = BYTES("k");
    scene.options.headers = ours;
    scene.options.header_count = 2;
    scene.options.secrets = &secret;
    scene.options.secret_count = 1;
    scene_prepare(&scene, headers, sizeof headers / sizeof headers[0], BYTES("x"));
    const struct received *r = scene_deliver(&scene);

    static const char *const absent[] = {"proxy-authorization",
                                         "cookie",
                                         "x-api-key",
                                         "x-gitlab-token",
                                         "connection",
                                         "keep-alive",
                                         "te",
                                         "trailer",
                                         "transfer-encoding",
                                         "upgrade",
                                         "expect",
                                         "x-hop",
                                         "x-hop2",
                                         "x-lanegate-seq",
                                         "x-ankusa-seq",
                                         "x_lanegate_seq",
                                         "x-ankusa_late",
                                         "webhook_id"};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
        if (received_header(r, absent[i]))
            fail_msg("%s was forwarded", absent[i]);
    ASSERT_HEADER(r, "authorization", "Bearer tok");
    ASSERT_HEADER(r, "x-shared", "ours");
    ASSERT_HEADER(r, "content-length", "1");
    ASSERT_HEADER(r, "webhook-id", "01890a5d-ac96-774b-bcce-b302099a8057");
    assert_null(strstr(r->head, "evil"));
    ASSERT_HEADER(r, "user-agent", "Stripe/1.0");
    ASSERT_HEADER(r, "accept", "text/x");
    ASSERT_HEADER(r, "stripe-signature", "t=1,v1=ab");
    ASSERT_HEADER(r, "x-twice", "1|2");
    ASSERT_HEADER(r, "x-tab", "a\tb");
    scene_close(&scene);
}

static void forward_headers_narrows(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene);
    const struct header headers[] = {{BYTES("X-A"), BYTES("1")},
                                     {BYTES("X-B"), BYTES("2")},
                                     {BYTES("Cookie"), BYTES("3")},
                                     {BYTES("Webhook-Id"), BYTES("theirs")},
                                     {BYTES("Content-Type"), BYTES("text/plain")}};
    static const char *const names[] = {"x-a", "cookie", "webhook-id"};
    scene.options.forward_headers = names;
    scene.options.forward_count = 3;
    scene_prepare(&scene, headers, 5, BYTES("x"));
    const struct received *r = scene_deliver(&scene);
    ASSERT_HEADER(r, "x-a", "1");
    ASSERT_ABSENT(r, "x-b");
    ASSERT_ABSENT(r, "cookie");
    ASSERT_HEADER(r, "webhook-id", "theirs"); /* this sink does not sign */
    ASSERT_HEADER(r, "content-type", "text/plain");
    scene_close(&scene);
}

/* As a receiver would: the MAC over id.timestamp.body with its own copy of the secret. */
static void expected_signature(const char *key, int key_len, const struct received *r, char out[64])
{
    char *message = NULL;
    char *id = strdup(received_header(r, "webhook-id"));
    int head = asprintf(&message, "%s.%s.", id, received_header(r, "webhook-timestamp"));
    message = realloc(message, (size_t)head + r->body_len);
    memcpy(message + head, r->body, r->body_len);
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    HMAC(EVP_sha256(), key, key_len, (unsigned char *)message, (size_t)head + r->body_len, mac, &len);
    strcpy(out, "v1,");
    EVP_EncodeBlock((unsigned char *)out + 3, mac, (int)len);
    free(message);
    free(id);
}

static void a_signature_that_receivers_can_check(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene);
    const struct bytes secrets[] = {BYTES("new\0key"), BYTES("the old key")};
    scene.options.secrets = secrets;
    scene.options.secret_count = 2;
    scene_prepare(&scene, NULL, 0, BYTES("{\"x\":\"\xff\"}"));
    int64_t before_s = clock_unix_ms() / 1000;
    const struct received *r = scene_deliver(&scene);
    int64_t stamp = strtoll(received_header(r, "webhook-timestamp"), NULL, 10);
    assert_true(stamp >= before_s && stamp <= clock_unix_ms() / 1000);
    char first[64], second[64], both[160];
    expected_signature("new\0key", 7, r, first);
    expected_signature("the old key", 11, r, second);
    snprintf(both, sizeof both, "%s %s", first, second);
    ASSERT_HEADER(r, "webhook-signature", both);
    scene_close(&scene);
}

static const char *line_of(const struct curl_slist *list, const char *name)
{
    for (; list; list = list->next)
        if (strncasecmp(list->data, name, strlen(name)) == 0)
            return list->data;
    return NULL;
}

/* A lane that waited for an hour must pass a window of five minutes: nothing of the last attempt is kept. */
static void every_attempt_is_signed_anew(void **state)
{
    (void)state;
    const struct bytes secret = BYTES("k");
    struct sink_options options = trial_options(80);
    options.secrets = &secret;
    options.secret_count = 1;
    struct http_shape shape;
    http_shape_init(&shape, &options);
    struct http_request request = {0};
    struct attempt attempt = {.envelope = trial_envelope(NULL, 0, BYTES("x")), .number = 1};

    struct curl_slist *list = http_request_list(&request, &shape, &attempt, 1700000000);
    assert_string_equal(line_of(list, "webhook-timestamp"), "webhook-timestamp: 1700000000");
    char *first = strdup(line_of(list, "webhook-signature"));
    list = http_request_list(&request, &shape, &attempt, 1700003600);
    assert_string_equal(line_of(list, "webhook-timestamp"), "webhook-timestamp: 1700003600");
    assert_string_not_equal(line_of(list, "webhook-signature"), first);
    list = http_request_list(&request, &shape, &attempt, 1700000000);
    assert_string_equal(line_of(list, "webhook-signature"), first);

    free(first);
    envelope_unref(attempt.envelope);
    http_request_free(&request);
    http_shape_free(&shape);
}

static void options_that_can_be_seen_to_be_wrong(void **state)
{
    (void)state;
    struct deliver *deliver = trial_room();
    static const struct sink_header bad_headers[] = {
        {"X-Lanegate-Seq", "1"}, {"content-length", "1"}, {"Transfer-Encoding", "x"}, {"a b", "1"}, {"", "1"},
        {"X-A", "a\r\nb: c"},    {"X-A", "\xc3\xa9"},     {"x-mine-id", "1"}};
    struct sink *sink;
    struct error err;
    for (size_t i = 0; i < sizeof bad_headers / sizeof bad_headers[0]; i++) {
        struct sink_options options = trial_options(80);
        options.header_prefix = "mine";
        options.headers = &bad_headers[i];
        options.header_count = 1;
        if (sink_open(deliver, &options, &sink, &err) != STATUS_INVALID ||
            strncmp(err.text, "headers: ", 9) != 0)
            fail_msg("%s", bad_headers[i].name);
    }
    struct sink_options options = trial_options(80);
    options.method = "GET";
    assert_int_equal(sink_open(deliver, &options, &sink, &err), STATUS_INVALID);
    options = trial_options(80);
    options.tls_ca = "/nonexistent/ca.pem";
    assert_int_equal(sink_open(deliver, &options, &sink, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "tls.ca: can't read /nonexistent/ca.pem"));
    options = trial_options(80);
    options.url = "http://10.0.0.1/h";
    assert_int_equal(sink_open(deliver, &options, &sink, &err), STATUS_REFUSED);
    assert_true(strncmp(err.text, "url: leads to 10.0.0.1", 22) == 0);
    options.url = NULL;
    assert_int_equal(sink_open(deliver, &options, &sink, &err), STATUS_INVALID);
    options = trial_options(80);
    options.type = "smtp";
    assert_int_equal(sink_open(deliver, &options, &sink, &err), STATUS_INVALID);
    assert_string_equal(sink_type_names()[0], "http");
    assert_string_equal(sink_type_names()[1], "log");
    assert_null(sink_type_names()[2]);
    deliver_close(deliver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unordered_hook),
        cmocka_unit_test(an_ordered_hook),
        cmocka_unit_test(a_default_tenant_has_no_header_and_a_failure_has_a_flag),
        cmocka_unit_test(a_key_can_not_add_a_header),
        cmocka_unit_test(provider_headers_are_forwarded_but_for_some),
        cmocka_unit_test(forward_headers_narrows),
        cmocka_unit_test(a_signature_that_receivers_can_check),
        cmocka_unit_test(every_attempt_is_signed_anew),
        cmocka_unit_test(options_that_can_be_seen_to_be_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
