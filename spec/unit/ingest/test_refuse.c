/* Every answer that is not a success has a code of its own, and says at most one thing more. */
#include "house.h"

#include <string.h>

static void every_refusal_has_a_code_of_its_own(void **state)
{
    (void)state;
    for (int a = 0; a < REFUSAL_COUNT; a++) {
        const char *code = refusal_code((enum refusal)a);
        assert_true(strlen(code) > 0 && strspn(code, "abcdefghijklmnopqrstuvwxyz_") == strlen(code));
        for (int b = 0; b < a; b++)
            assert_string_not_equal(code, refusal_code((enum refusal)b));
    }
}

static void what_the_store_says_is_capacity_never_a_bad_hook(void **state)
{
    (void)state;
    static const struct {
        enum status status;
        const char *code;
    } rows[] = {
        {STATUS_FULL, "overload"},
        {STATUS_SHARE_FULL, "tenant_overload"},
        {STATUS_BACKLOG_FULL, "backlog_full"},
        {STATUS_DISK_FULL, "disk_full"},
        {STATUS_UNAVAILABLE, "store_unavailable"},
        {STATUS_DRAINING, "draining"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(refusal_code(refusal_of(rows[i].status)), rows[i].code);
}

static void assert_body(enum refusal refusal, const struct refusal_detail *detail, const char *expected)
{
    struct buf body = {0};
    refusal_body(refusal, detail, &body);
    assert_string_equal(body.at, expected);
    buf_free(&body);
}

static void a_body_names_the_refusal_and_its_detail(void **state)
{
    (void)state;
    assert_body(REFUSE_UNKNOWN_SOURCE, NULL, "{\"error\":\"unknown_source\"}");
    assert_body(REFUSE_PAYLOAD_TOO_LARGE, &(struct refusal_detail){.name = "limit", .number = 1048576},
                "{\"error\":\"payload_too_large\",\"limit\":1048576}");
    assert_body(REFUSE_VERIFICATION_FAILED,
                &(struct refusal_detail){.name = "reason", .value = BYTES("missing_signature")},
                "{\"error\":\"verification_failed\",\"reason\":\"missing_signature\"}");
    assert_body(REFUSE_RATE_LIMITED, &(struct refusal_detail){.retry_after_s = 7},
                "{\"error\":\"rate_limited\"}");
}

static void request_data_is_shown_as_plain_text(void **state)
{
    (void)state;
    assert_body(REFUSE_INVALID_HEADER,
                &(struct refusal_detail){.name = "header", .value = BYTES("x\xff\"\r\n%")},
                "{\"error\":\"invalid_header\",\"header\":\"x%FF\\\"%0D%0A%25\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_refusal_has_a_code_of_its_own),
        cmocka_unit_test(what_the_store_says_is_capacity_never_a_bad_hook),
        cmocka_unit_test(a_body_names_the_refusal_and_its_detail),
        cmocka_unit_test(request_data_is_shown_as_plain_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
