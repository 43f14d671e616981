/* Times as people and programs write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admin/moment.h"

static void reads(const char *text, int64_t expected)
{
    int64_t ms = 0;
    if (!moment_parse(bytes_str(text), &ms) || ms != expected)
        fail_msg("\"%s\" should be %lld, got %lld", text, (long long)expected, (long long)ms);
}

static void unix_milliseconds_and_rfc_3339(void **state)
{
    (void)state;
    reads("1782907200000", 1782907200000);
    reads("2026-07-01T12:00:00Z", 1782907200000);
    reads("2026-07-01t12:00:00z", 1782907200000);
    reads("2026-07-01 12:00:00Z", 1782907200000);
    reads("2026-07-01T14:00:00+02:00", 1782907200000);
    reads("2026-07-01T14:00:00 02:00", 1782907200000); /* a plus that was not escaped in the query */
    reads("2026-07-01T06:30:00-05:30", 1782907200000);
    reads("2026-07-01T12:00:00.5Z", 1782907200500);
    reads("2026-07-01T12:00:00.123456789Z", 1782907200123);
    reads("2028-02-29T00:00:00Z", 1835395200000);
    reads("2016-12-31T23:59:60Z", 1483228800000);
    reads("1970-01-01T00:00:00.001Z", 1);
}

static void nothing_else(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "0",
                                        "-1",
                                        "yesterday",
                                        "2026-07-01",
                                        "2026-07-01T12:00:00",
                                        "2026-07-01T12:00:00.Z",
                                        "2026-07-01T12:00:00.1234567890Z",
                                        "2026-7-1T12:00:00Z",
                                        "2026-13-01T12:00:00Z",
                                        "2026-04-31T12:00:00Z",
                                        "2026-02-29T12:00:00Z",
                                        "2026-07-01T24:00:00Z",
                                        "2026-07-01T12:60:00Z",
                                        "2026-07-01T12:00:61Z",
                                        "2026-07-01T12:00:00+2:00",
                                        "2026-07-01T12:00:00+0200",
                                        "2026-07-01T12:00:00+24:00",
                                        "2026-07-01T12:00:00Zx",
                                        "1969-12-31T23:59:59Z",
                                        "1970-01-01T00:00:00Z",
                                        "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int64_t ms;
        if (moment_parse(bytes_str(wrong[i]), &ms))
            fail_msg("\"%s\" should be refused", wrong[i]);
    }
    int64_t ms;
    assert_false(moment_parse(BYTES_NONE, &ms));
    assert_false(moment_parse(BYTES("2026-07-01T12:00:00\0"), &ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unix_milliseconds_and_rfc_3339),
        cmocka_unit_test(nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
