/* Text becomes a number here and nowhere else: exact, or refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/units.h"

static void durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"0ms", 0},         {"250ms", 250},    {"30s", 30000}, {"5m", 300000},
                {"72h", 259200000}, {"7d", 604800000}, {"007s", 7000}, {"9007199254740992ms", 1LL << 53}};
    static const char *const bad[] = {"",
                                      "5",
                                      "s",
                                      "-5s",
                                      "+5s",
                                      "1.5s",
                                      " 5s",
                                      "5s ",
                                      "5 s",
                                      "5S",
                                      "5sec",
                                      "5m5s",
                                      "0x5s",
                                      "5\xc2\xb5s",
                                      "1e3ms",
                                      "9007199254740993ms",
                                      "104249991375d",
                                      "99999999999999999999ms"};
    int64_t ms;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(units_parse_ms(bytes_str(good[i].text), &ms));
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (units_parse_ms(bytes_str(bad[i]), &ms))
            fail_msg("took \"%s\"", bad[i]);
    assert_false(units_parse_ms(BYTES("5s\0"), &ms));
    assert_false(units_parse_ms(BYTES_NONE, &ms));
}

static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {
        {"0B", 0},           {"100B", 100},         {"64KiB", 65536}, {"8MiB", 8388608}, {"1GiB", 1073741824},
        {"2TiB", 2LL << 40}, {"8192TiB", 1LL << 53}};
    static const char *const bad[] = {"",      "1",   "1KB",   "1K",      "1kib",
                                      "1 MiB", "MiB", "1MiB1", "8193TiB", "1PiB"};
    int64_t bytes;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(units_parse_bytes(bytes_str(good[i].text), &bytes));
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (units_parse_bytes(bytes_str(bad[i]), &bytes))
            fail_msg("took \"%s\"", bad[i]);
}

static void whole_numbers(void **state)
{
    (void)state;
    int64_t n;
    assert_true(units_parse_u63(BYTES("0"), &n));
    assert_int_equal(n, 0);
    assert_true(units_parse_u63(BYTES("9223372036854775807"), &n));
    assert_true(n == INT64_MAX);
    static const char *const bad[] = {
        "",        "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x1", "9223372036854775808", "18446744073709551617",
        "\xd9\xa1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (units_parse_u63(bytes_str(bad[i]), &n))
            fail_msg("took \"%s\"", bad[i]);
    assert_false(units_parse_u63(BYTES("1\0"), &n));
}

static void decimals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double n;
    } good[] = {{"0", 0},  {"50", 50}, {"0.5", 0.5}, {"12.250", 12.25}, {"1000000.001", 1000000.001},
                {"007", 7}};
    static const char *const bad[] = {"",    ".",  "5.", ".5",  "1.2.3", "-1",  "+1",
                                      "1e3", " 1", "1 ", "nan", "inf",   "0x1", "12345678901234567"};
    double n;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(units_parse_decimal(bytes_str(good[i].text), &n));
        assert_true(n == good[i].n);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (units_parse_decimal(bytes_str(bad[i]), &n))
            fail_msg("took \"%s\"", bad[i]);
}

static void for_people(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } times[] = {{0, "0 ms"},       {340, "340 ms"},   {1999, "1999 ms"}, {2000, "2 s"},      {12345, "12 s"},
                 {119999, "119 s"}, {240000, "4 min"}, {10800000, "3 h"}, {172800000, "2 d"}, {-5, "-5 ms"}};
    static const struct {
        int64_t bytes;
        const char *text;
    } sizes_shown[] = {
        {0, "0 B"}, {1023, "1023 B"}, {1024, "1 KiB"}, {12 << 10, "12 KiB"}, {3LL << 40, "3 TiB"}};
    char out[32];
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        units_format_ms(times[i].ms, out);
        assert_string_equal(out, times[i].text);
    }
    for (size_t i = 0; i < sizeof sizes_shown / sizeof *sizes_shown; i++) {
        units_format_bytes(sizes_shown[i].bytes, out);
        assert_string_equal(out, sizes_shown[i].text);
    }
    units_format_ms(INT64_MAX, out);
    units_format_bytes(INT64_MAX, out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations), cmocka_unit_test(sizes),      cmocka_unit_test(whole_numbers),
        cmocka_unit_test(decimals),  cmocka_unit_test(for_people),
    };
    return cmocka_run_group_tests_name("util: units", tests, NULL, NULL);
}
