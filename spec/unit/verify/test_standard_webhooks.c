#include "verify_support.h"

#include "util/digest.h"

#define SECRET "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define OTHER_SECRET "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
#define ID "msg_p5jXN8AQM9LWM0D4loKWxJek"
#define AT "1614265330"
#define AT_MS INT64_C(1614265330000)
#define GOOD "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
#define BAD "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="
#define BODY BYTES("{\"test\": 2432232314}")

/* The hook of the published example with these three values, NULL for none. */
static void expect_of(const char *id, const char *timestamp, const char *signature, int64_t now_ms,
                      const char *reason)
{
    struct verifier *verifier = open_with("standard_webhooks", string_value(BYTES("whsec_" SECRET)));
    const char *headers[7] = {NULL};
    size_t n = 0;
    if (id)
        headers[n++] = "webhook-id", headers[n++] = id;
    if (timestamp)
        headers[n++] = "webhook-timestamp", headers[n++] = timestamp;
    if (signature)
        headers[n++] = "webhook-signature", headers[n++] = signature;
    struct envelope *e = hook(BODY, headers);
    expect_result(verifier, e, now_ms, reason);
    envelope_unref(e);
    verifier_free(verifier);
}

static void the_published_example_passes(void **state)
{
    (void)state;
    expect_of(ID, AT, GOOD, AT_MS, NULL);
}

static void each_part_is_signed(void **state)
{
    (void)state;
    expect_of("msg_other", AT, GOOD, AT_MS, "bad_signature");
    expect_of(ID, "1614265331", GOOD, AT_MS, "bad_signature");
    struct verifier *verifier = open_with("standard_webhooks", string_value(BYTES(SECRET)));
    const char *const headers[] = {"webhook-id", ID,  "webhook-timestamp", AT, "webhook-signature",
                                   GOOD,         NULL};
    struct envelope *e = hook(BYTES("{\"test\":2432232314}"), headers);
    expect_result(verifier, e, AT_MS, "bad_signature");
    envelope_unref(e);
    verifier_free(verifier);
}

static void a_missing_or_empty_header_is_told(void **state)
{
    (void)state;
    expect_of(NULL, AT, GOOD, AT_MS, "missing_header");
    expect_of(ID, NULL, GOOD, AT_MS, "missing_header");
    expect_of(ID, AT, NULL, AT_MS, "missing_header");
    expect_of("", AT, GOOD, AT_MS, "missing_header");
    expect_of(ID, "", GOOD, AT_MS, "missing_header");
    expect_of(ID, AT, "", AT_MS, "missing_header");
}

static void time_is_judged_on_both_sides(void **state)
{
    (void)state;
    expect_of(ID, AT, GOOD, AT_MS + 300000, NULL);
    expect_of(ID, AT, GOOD, AT_MS - 300000, NULL);
    expect_of(ID, AT, GOOD, AT_MS + 300001, "timestamp");
    expect_of(ID, AT, GOOD, AT_MS - 300001, "timestamp");
    expect_of(ID, AT, GOOD, 0, "timestamp");
    expect_of(ID, AT, GOOD, INT64_MAX, "timestamp");
    expect_of(ID, AT, GOOD, INT64_MIN, "timestamp");
    expect_of(ID, "0", GOOD, INT64_MIN, "timestamp");
}

static void a_timestamp_is_digits_only(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "+1614265330", "-1614265330", "1614265330.0", "1614265330s",         "1,614,265,330",       "0x6037",
        "1e9",         "now",         " 1614265330",  "9223372036854775807", "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_of(ID, wrong[i], GOOD, AT_MS, "malformed");
}

static void any_v1_of_the_list_is_enough(void **state)
{
    (void)state;
    expect_of(ID, AT, BAD " " GOOD, AT_MS, NULL);
    expect_of(ID, AT, GOOD " " BAD, AT_MS, NULL);
    expect_of(ID, AT, "  v1a,zzzz \t v2,x " BAD "   " GOOD "  ", AT_MS, NULL);
    expect_of(ID, AT, BAD " " BAD, AT_MS, "bad_signature");
}

static void nothing_else_is_a_signature(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "v1a,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "v1=g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "V1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE",
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE==",
        "v1,g0hM9",
        "v1,",
        "v1",
        ",",
        " ",
        "v1,,",
        "v1,G0HM9SSE+OTPJTGT/TMIKTSYZLE3UFJELVLNIOLJ1OE=",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_of(ID, AT, wrong[i], AT_MS, "bad_signature");
}

static void a_header_sent_twice_is_refused(void **state)
{
    (void)state;
    struct verifier *verifier = open_with("standard_webhooks", string_value(BYTES(SECRET)));
    static const char *const twice[][3] = {
        {"Webhook-Signature", GOOD}, {"WEBHOOK-ID", ID}, {"webhook-timestamp", AT}};
    for (size_t i = 0; i < 3; i++) {
        const char *const headers[] = {
            "webhook-id", ID,          "webhook-timestamp", AT,  "webhook-signature",
            GOOD,         twice[i][0], twice[i][1],         NULL};
        struct envelope *e = hook(BODY, headers);
        expect_result(verifier, e, AT_MS, "repeated_header");
        envelope_unref(e);
    }
    verifier_free(verifier);
}

static void both_brands_of_headers_are_read_under_both_names(void **state)
{
    (void)state;
    static const char *const types[] = {"standard_webhooks", "svix"};
    const char *const webhook[] = {"Webhook-Id", ID,  "WEBHOOK-TIMESTAMP", AT, "webHook-Signature",
                                   GOOD,         NULL};
    const char *const svix[] = {"svix-id", ID, "Svix-Timestamp", AT, "svix-signature", GOOD, NULL};
    const char *const mixed[] = {"svix-id", ID, "svix-timestamp", AT, "webhook-signature", GOOD, NULL};
    for (size_t i = 0; i < 2; i++) {
        struct verifier *verifier = open_with(types[i], string_value(BYTES(SECRET)));
        struct envelope *e = hook(BODY, webhook);
        expect_result(verifier, e, AT_MS, NULL);
        envelope_unref(e);
        e = hook(BODY, svix);
        expect_result(verifier, e, AT_MS, NULL);
        envelope_unref(e);
        e = hook(BODY, mixed); /* one set of three, not the best of two */
        expect_result(verifier, e, AT_MS, "missing_header");
        envelope_unref(e);
        verifier_free(verifier);
    }
}

static void a_list_of_secrets_serves_a_rotation(void **state)
{
    (void)state;
    struct value items[2] = {string_value(BYTES("whsec_" OTHER_SECRET)), string_value(BYTES(SECRET))};
    struct value list = {.kind = VALUE_LIST, .len = 2, .items = items};
    const char *const headers[] = {"webhook-id", ID,  "webhook-timestamp", AT, "webhook-signature",
                                   GOOD,         NULL};
    struct envelope *e = hook(BODY, headers);
    struct verifier *verifier = open_with("standard_webhooks", list);
    expect_result(verifier, e, AT_MS, NULL);
    verifier_free(verifier);
    list.len = 1;
    verifier = open_with("standard_webhooks", list);
    expect_result(verifier, e, AT_MS, "bad_signature");
    verifier_free(verifier);
    envelope_unref(e);
}

/* Over the bytes as they came, NUL and all, and any size of body. */
static void bodies_are_signed_byte_for_byte(void **state)
{
    (void)state;
    static const struct bytes bodies[] = {BYTES(""), BYTES("\0\xff\n"),
                                          BYTES("{\"text\":\"\\u001B[0m\",\"u\":\"https:\\/\\/x\"}")};
    struct verifier *verifier = open_with("standard_webhooks", string_value(BYTES(SECRET)));
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct buf secret = {0}, signature = {0};
        uint8_t digest[SHA256_SIZE];
        const struct bytes content[] = {BYTES(ID "." AT "."), bodies[i]};
        assert_true(base64_decode(&secret, BYTES(SECRET)));
        hmac_sha256(buf_bytes(&secret), content, 2, digest);
        buf_puts(&signature, "v1,");
        base64_encode(&signature, bytes_of(digest, sizeof digest));
        const char *const headers[] = {"webhook-id", ID,  "webhook-timestamp", AT, "webhook-signature",
                                       signature.at, NULL};
        struct envelope *e = hook(bodies[i], headers);
        expect_result(verifier, e, AT_MS, NULL);
        envelope_unref(e);
        buf_free(&secret);
        buf_free(&signature);
    }
    verifier_free(verifier);
}

static void tolerance_can_be_set(void **state)
{
    (void)state;
    const struct value secret = string_value(BYTES(SECRET));
    const char *const headers[] = {"webhook-id", ID,  "webhook-timestamp", AT, "webhook-signature",
                                   GOOD,         NULL};
    struct envelope *e = hook(BODY, headers);
    const struct value good[] = {{.kind = VALUE_NUMBER, .number = 10000}, string_value(BYTES("10s"))};
    const struct value wrong[] = {{.kind = VALUE_NUMBER, .number = 0},
                                  {.kind = VALUE_NUMBER, .number = -1},
                                  string_value(BYTES("soon")),
                                  {.kind = VALUE_BOOL}};
    struct verifier *verifier;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(verifier_new(options_of("svix", secret, good[i]), NULL, &verifier, NULL), STATUS_OK);
        expect_result(verifier, e, AT_MS + 10000, NULL);
        expect_result(verifier, e, AT_MS + 10001, "timestamp");
        verifier_free(verifier);
    }
    for (size_t i = 0; i < 4; i++) {
        struct error err;
        assert_int_equal(verifier_new(options_of("svix", secret, wrong[i]), NULL, &verifier, &err),
                         STATUS_INVALID);
        assert_non_null(strstr(err.text, "tolerance_ms: must be a duration above 0"));
    }
    envelope_unref(e);
}

static void unusable_secrets_are_refused_at_load(void **state)
{
    (void)state;
    static const char format[] = "must be base64, with or without \"whsec_\" in front";
    static const struct {
        struct bytes secret;
        const char *expected;
    } cases[] = {
        {BYTES(""), "this is empty"},
        {BYTES("   "), "this is blank"},
        {BYTES("\r\n"), "this is blank"},
        {BYTES("whsec_"), "nothing behind"},
        {BYTES("whsec_" SECRET "\n"), "not base64"},
        {BYTES(" " SECRET), "not base64"},
        {BYTES("not-base64!"), "not base64"},
        {BYTES("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwB"), "not base64"}, /* a digit too many */
        {BYTES("MfKQ9=8GKYqr"), "not base64"},
        {BYTES("===="), "not base64"},
        {BYTES("v1,whsec_" SECRET), "take away the \"v1,\""},
        {BYTES("whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="), "a public key"},
        {BYTES(
             "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="),
         "a private signing key"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        is_refused("standard_webhooks", string_value(cases[i].secret), cases[i].expected);
        is_refused("standard_webhooks", string_value(cases[i].secret), format);
        is_refused("svix", string_value(cases[i].secret), "secret: ");

        struct value items[2] = {string_value(BYTES(SECRET)), string_value(cases[i].secret)};
        is_refused("standard_webhooks", (struct value){.kind = VALUE_LIST, .len = 2, .items = items},
                   "secret[2]: ");
    }
    is_refused("standard_webhooks", (struct value){0}, "there is none");
    is_refused("standard_webhooks", (struct value){.kind = VALUE_NUMBER, .number = 5}, "not a string");
    is_refused("standard_webhooks", (struct value){.kind = VALUE_LIST}, "the list is empty");
    struct value many[17];
    for (size_t i = 0; i < 17; i++)
        many[i] = string_value(BYTES(SECRET));
    is_refused("standard_webhooks", (struct value){.kind = VALUE_LIST, .len = 17, .items = many},
               "at most 16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_example_passes),
        cmocka_unit_test(each_part_is_signed),
        cmocka_unit_test(a_missing_or_empty_header_is_told),
        cmocka_unit_test(time_is_judged_on_both_sides),
        cmocka_unit_test(a_timestamp_is_digits_only),
        cmocka_unit_test(any_v1_of_the_list_is_enough),
        cmocka_unit_test(nothing_else_is_a_signature),
        cmocka_unit_test(a_header_sent_twice_is_refused),
        cmocka_unit_test(both_brands_of_headers_are_read_under_both_names),
        cmocka_unit_test(a_list_of_secrets_serves_a_rotation),
        cmocka_unit_test(bodies_are_signed_byte_for_byte),
        cmocka_unit_test(tolerance_can_be_set),
        cmocka_unit_test(unusable_secrets_are_refused_at_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
