/* Small texts with many wrong forms: Retry-After, signing secrets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "deliver/sinks/http_priv.h"

static const int64_t now_ms = 1700000000500; /* Tue, 14 Nov 2023 22:13:20.5 GMT */

static void retry_after_is_seconds_or_a_date(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"0", 0},
        {"1", 1000},
        {"120", 120000},
        {"007", 7000},
        {"3600", 3600000},
        {"3601", 3600000},
        {"86400", 3600000},
        {"Tue, 14 Nov 2023 22:13:30 GMT", 9500},
        {"Tuesday, 14-Nov-23 22:13:30 GMT", 9500},
        {"Tue Nov 14 22:13:30 2023", 9500},
        {"Wed, 15 Nov 2023 22:13:30 GMT", 3600000},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t ms = -1;
        if (!http_retry_after_parse(bytes_str(good[i].text), now_ms, &ms) || ms != good[i].ms)
            fail_msg("\"%s\": %lld ms", good[i].text, (long long)ms);
    }
    static const char *const bad[] = {
        "",
        " ",
        "-1",
        "+1",
        "1.5",
        "1,5",
        "1s",
        "1e3",
        "0x10",
        "soon",
        "tomorrow",
        "99999999999",
        "31622401",
        "9223372036854775807",
        "9223372036854775808",
        "999999999999999999999999999999",
        "1 2",
        "Tue, 14 Nov 2023 22:13:10 GMT", /* past */
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "Tue, 14 Nov 2023",
        "Tue, 14 Nov 2023 22:13:30 CET",
        "Tue, 14 Nov 2023 22:13:30 GMT and more",
        "2023-11-14T22:13:30Z",
        "Tue, 14 Nov 2023 22:13:30 GMT                                                        ",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t ms;
        if (http_retry_after_parse(bytes_str(bad[i]), now_ms, &ms))
            fail_msg("\"%s\" is taken", bad[i]);
    }
}

static void secrets_are_base64_or_themselves(void **state)
{
    (void)state;
    struct arena *arena = arena_new(256);
    struct bytes key;
    assert_int_equal(sink_secret_decode(BYTES("whsec_AAEC/w=="), arena, &key, NULL), STATUS_OK);
    assert_true(bytes_eq(key, BYTES("\x00\x01\x02\xff")));
    assert_int_equal(sink_secret_decode(BYTES("plain words, with a blank inside"), arena, &key, NULL),
                     STATUS_OK);
    assert_true(bytes_eq(key, BYTES("plain words, with a blank inside")));
    assert_int_equal(sink_secret_decode(BYTES("AAEC/w=="), arena, &key, NULL), STATUS_OK);
    assert_true(bytes_eq(key, BYTES("AAEC/w==")));
    arena_free(arena);
}

static void secrets_that_can_not_be_meant_are_refused_without_showing_them(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hidden;
    } bad[] = {
        {"", NULL},
        {"   ", NULL},
        {"\t\n", NULL},
        {"hunter22\n", "hunter22"},
        {" hunter22", "hunter22"},
        {"hunter22\r", "hunter22"},
        {"whsec_", NULL},
        {"whsec_not base64", "not base64"},
        {"whsec_AAEC/w", "AAEC"},
        {"whsec_AAEC_w==", "AAEC"},
        {"v1,whsec_AAEC/w==", "AAEC"},
    };
    struct arena *arena = arena_new(256);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct bytes key;
        struct error err;
        if (sink_secret_decode(bytes_str(bad[i].text), arena, &key, &err) != STATUS_INVALID)
            fail_msg("\"%s\" is taken", bad[i].text);
        assert_non_null(strstr(err.text, "must be \"whsec_\" and base64"));
        assert_true(!bad[i].hidden || !strstr(err.text, bad[i].hidden) ||
                    strcmp(bad[i].hidden, "not base64") == 0);
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retry_after_is_seconds_or_a_date),
        cmocka_unit_test(secrets_are_base64_or_themselves),
        cmocka_unit_test(secrets_that_can_not_be_meant_are_refused_without_showing_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
