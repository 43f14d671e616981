/* What is written is JSON whatever goes in: jansson, which is strict about UTF-8, reads everything back. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "util/jsonw.h"

static void commas_and_nesting(void **state)
{
    (void)state;
    struct buf out = {0};
    struct jsonw w = jsonw_on(&out);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "a", "x");
    jsonw_array(&w, "list");
    jsonw_int(&w, NULL, -1);
    jsonw_object(&w, NULL);
    jsonw_end_object(&w);
    jsonw_array(&w, NULL);
    jsonw_end_array(&w);
    jsonw_bool(&w, NULL, true);
    jsonw_null(&w, NULL);
    jsonw_end_array(&w);
    jsonw_uint(&w, "n", UINT64_MAX);
    jsonw_raw(&w, "raw", BYTES("{\"k\":[1]}"));
    jsonw_str(&w, "none", NULL);
    jsonw_bytes(&w, "absent", BYTES_NONE);
    jsonw_bytes(&w, "empty", BYTES(""));
    jsonw_bytes_percent(&w, "no key", BYTES_NONE);
    jsonw_end_object(&w);
    assert_string_equal(out.at, "{\"a\":\"x\",\"list\":[-1,{},[],true,null],\"n\":18446744073709551615,"
                                "\"raw\":{\"k\":[1]},\"none\":null,\"absent\":null,\"empty\":\"\","
                                "\"no key\":null}");
    buf_free(&out);
}

/* The text as it reads back; free() it. */
static char *read_back(struct bytes text, size_t *len)
{
    struct buf out = {0};
    struct jsonw w = jsonw_on(&out);
    jsonw_bytes(&w, NULL, text);
    json_error_t error;
    json_t *value = json_loadb(out.at, out.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!value)
        fail_msg("%s in %s", error.text, out.at);
    *len = json_string_length(value);
    char *copy = malloc(*len + 1);
    memcpy(copy, json_string_value(value), *len + 1);
    json_decref(value);
    buf_free(&out);
    return copy;
}

static void valid_text_reads_back_as_it_was(void **state)
{
    (void)state;
    struct bytes good[] = {BYTES(""),
                           BYTES("plain"),
                           BYTES("\"quoted\" \\ and /"),
                           BYTES("\x00\x01\x1f\x7f\b\f\n\r\t"),
                           BYTES("\xc2\x80\xdf\xbf"),
                           BYTES("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"),
                           BYTES("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"),
                           BYTES("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80")};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        size_t len;
        char *back = read_back(good[i], &len);
        assert_true(bytes_eq(bytes_of(back, len), good[i]));
        free(back);
    }
}

#define U "\xef\xbf\xbd"

static void invalid_utf8_becomes_the_replacement_character(void **state)
{
    (void)state;
    static const struct {
        struct bytes in;
        const char *out;
    } cases[] = {
        {{"\x80", 1}, U},                    /* a continuation alone */
        {{"a\xffz", 3}, "a" U "z"},          /* never in UTF-8 */
        {{"\xc0\xaf", 2}, U U},              /* '/' in two bytes */
        {{"\xc1\xbf", 2}, U U},              /* overlong */
        {{"\xe0\x9f\xbf", 3}, U U U},        /* overlong */
        {{"\xf0\x8f\xbf\xbf", 4}, U U U U},  /* overlong */
        {{"\xed\xa0\x80", 3}, U U U},        /* a surrogate */
        {{"\xf4\x90\x80\x80", 4}, U U U U},  /* beyond U+10FFFF */
        {{"\xf5\x80\x80\x80", 4}, U U U U},  /* beyond it */
        {{"\xe2\x82", 2}, U U},              /* cut off at the end */
        {{"\xe2\x82\"", 3}, U U "\""},       /* cut off by a quote, which must stay escaped */
        {{"\xc3\xc3\xa9", 3}, U "\xc3\xa9"}, /* the next one is whole */
        {{"\xf0\x9f\x98", 3}, U U U},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len;
        char *back = read_back(cases[i].in, &len);
        if (!bytes_eq(bytes_of(back, len), bytes_str(cases[i].out)))
            fail_msg("case %zu gave %s", i, back);
        free(back);
    }
}

static void all_pairs_and_many_triples_of_bytes_are_json(void **state)
{
    (void)state;
    size_t len;
    for (unsigned pair = 0; pair < 65536; pair++) {
        char text[3] = {(char)(pair >> 8), (char)pair, (char)(pair * 31)};
        free(read_back(bytes_of(text, 2 + pair % 2), &len));
    }
}

static void names_are_escaped_too(void **state)
{
    (void)state;
    struct buf out = {0};
    struct jsonw w = jsonw_on(&out);
    jsonw_object(&w, NULL);
    jsonw_int(&w, "a\"b\n", 1);
    jsonw_end_object(&w);
    assert_string_equal(out.at, "{\"a\\\"b\\u000a\":1}");
    buf_free(&out);
}

static void numbers_read_back_exactly(void **state)
{
    (void)state;
    static const double numbers[] = {
        0, -1, 0.1, 1e300, -2.5e-300, 1733047330.123, 9007199254740991, DBL_MAX, DBL_MIN, 1.0 / 3};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct buf out = {0};
        struct jsonw w = jsonw_on(&out);
        jsonw_double(&w, NULL, numbers[i]);
        assert_true(strtod(out.at, NULL) == numbers[i]);
        buf_free(&out);
    }
    struct buf out = {0};
    struct jsonw w = jsonw_on(&out);
    jsonw_array(&w, NULL);
    jsonw_double(&w, NULL, NAN);
    jsonw_double(&w, NULL, INFINITY);
    jsonw_double(&w, NULL, 0.1);
    jsonw_int(&w, NULL, INT64_MIN);
    jsonw_end_array(&w);
    assert_string_equal(out.at, "[null,null,0.1,-9223372036854775808]");
    buf_free(&out);
}

static void a_key_is_shown_percent_encoded(void **state)
{
    (void)state;
    static const struct {
        struct bytes key;
        const char *shown;
    } cases[] = {
        {{"customer-7", 10}, "customer-7"},
        {{"a b", 3}, "a b"},
        {{" a ", 3}, "%20a%20"},
        {{"  a", 3}, "%20 a"},
        {{" ", 1}, "%20"},
        {{"\ta", 2}, "%09a"},
        {{"50%", 3}, "50%25"},
        {{"caf\xc3\xa9", 5}, "caf%C3%A9"},
        {{"a\0\r\n*\x7f~", 7}, "a%00%0D%0A*%7F~"},
        {{"", 0}, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out = {0}, back = {0};
        percent_encode(&out, cases[i].key);
        assert_true(bytes_eq(buf_bytes(&out), bytes_str(cases[i].shown)));
        assert_true(percent_decode(&back, buf_bytes(&out)));
        assert_true(bytes_eq(buf_bytes(&back), cases[i].key));
        buf_free(&out);
        buf_free(&back);
    }
}

static void every_pair_of_bytes_survives_the_round_trip(void **state)
{
    (void)state;
    struct buf shown = {0}, back = {0};
    for (unsigned pair = 0; pair < 65536; pair++) {
        char text[2] = {(char)(pair >> 8), (char)pair};
        buf_clear(&shown);
        buf_clear(&back);
        percent_encode(&shown, bytes_of(text, 2));
        for (size_t i = 0; i < shown.len; i++)
            assert_in_range((unsigned char)shown.at[i], 0x20, 0x7e);
        assert_true(bytes_eq(bytes_trim(buf_bytes(&shown)), buf_bytes(&shown)));
        assert_true(percent_decode(&back, buf_bytes(&shown)));
        assert_true(bytes_eq(buf_bytes(&back), bytes_of(text, 2)));
    }
    buf_free(&shown);
    buf_free(&back);
}

static void a_broken_percent_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"%", "%4", "a%", "%zz", "%4g", "%%41", "%+1", "% 1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct buf out = {0};
        assert_false(percent_decode(&out, bytes_str(bad[i])));
        buf_free(&out);
    }
    struct buf out = {0};
    assert_true(percent_decode(&out, BYTES("%4a%4A")));
    assert_string_equal(out.at, "JJ");
    buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_and_nesting),
        cmocka_unit_test(valid_text_reads_back_as_it_was),
        cmocka_unit_test(invalid_utf8_becomes_the_replacement_character),
        cmocka_unit_test(all_pairs_and_many_triples_of_bytes_are_json),
        cmocka_unit_test(names_are_escaped_too),
        cmocka_unit_test(numbers_read_back_exactly),
        cmocka_unit_test(a_key_is_shown_percent_encoded),
        cmocka_unit_test(every_pair_of_bytes_survives_the_round_trip),
        cmocka_unit_test(a_broken_percent_is_refused),
    };
    return cmocka_run_group_tests_name("util: jsonw", tests, NULL, NULL);
}
