/* Borrowed bytes: absent is not empty, comparing is by bytes, case is ASCII's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/bytes.h"

static void absent_and_empty_differ_but_compare_equal(void **state)
{
    (void)state;
    assert_null(BYTES_NONE.at);
    assert_null(bytes_str(NULL).at);
    assert_non_null(BYTES("").at);
    assert_true(bytes_eq(BYTES_NONE, BYTES("")));
    assert_int_equal(bytes_cmp(BYTES_NONE, BYTES("")), 0);
    assert_true(bytes_eq_constant_time(BYTES_NONE, BYTES_NONE));
}

static void a_nul_is_an_ordinary_byte(void **state)
{
    (void)state;
    assert_int_equal(BYTES("a\0b").len, 3);
    assert_false(bytes_eq(BYTES("a\0b"), BYTES("a\0c")));
    assert_true(bytes_cmp(BYTES("a\0b"), BYTES("a\0c")) < 0);
}

static void case_is_folded_for_ascii_letters_only(void **state)
{
    (void)state;
    assert_true(bytes_eq_nocase(BYTES("Content-Type"), BYTES("cONTENT-tYPE")));
    assert_false(bytes_eq_nocase(BYTES("a"), BYTES("ab")));
    assert_false(bytes_eq_nocase(BYTES("@"), BYTES("`"))); /* 0x40 and 0x60: not letters */
    assert_false(bytes_eq_nocase(BYTES("["), BYTES("{")));
    assert_false(bytes_eq_nocase(BYTES("\xc4"), BYTES("\xe4")));
}

static void prefixes(void **state)
{
    (void)state;
    assert_true(bytes_starts(BYTES("x-lanegate-id"), BYTES("x-lanegate-")));
    assert_true(bytes_starts(BYTES("x"), BYTES("")));
    assert_false(bytes_starts(BYTES("x"), BYTES("xy")));
    assert_false(bytes_starts(BYTES("X-Lanegate-Id"), BYTES("x-lanegate-")));
    assert_true(bytes_starts_nocase(BYTES("X-Lanegate-Id"), BYTES("x-lanegate-")));
}

static void order_is_by_bytes_then_by_length(void **state)
{
    (void)state;
    assert_true(bytes_cmp(BYTES("a"), BYTES("b")) < 0);
    assert_true(bytes_cmp(BYTES("b"), BYTES("a")) > 0);
    assert_true(bytes_cmp(BYTES("a"), BYTES("ab")) < 0);
    assert_true(bytes_cmp(BYTES("ab"), BYTES("a")) > 0);
    assert_true(bytes_cmp(BYTES("\x7f"), BYTES("\x80")) < 0); /* unsigned */
}

static void trim_takes_blanks_and_tabs_at_both_ends(void **state)
{
    (void)state;
    assert_true(bytes_eq(bytes_trim(BYTES(" \t a b\t ")), BYTES("a b")));
    assert_true(bytes_eq(bytes_trim(BYTES("\r\na")), BYTES("\r\na")));
    struct bytes nothing = bytes_trim(BYTES(" \t "));
    assert_int_equal(nothing.len, 0);
    assert_non_null(nothing.at);
}

static void a_list_gives_its_items_one_by_one(void **state)
{
    (void)state;
    struct bytes list = BYTES("a, b,,c "), item;
    static const char *const items[] = {"a", " b", "", "c "};
    for (size_t i = 0; i < 4; i++) {
        assert_true(bytes_next_item(&list, &item));
        assert_true(bytes_eq(item, bytes_str(items[i])));
    }
    assert_false(bytes_next_item(&list, &item));
    list = BYTES("");
    assert_true(bytes_next_item(&list, &item) && item.len == 0);
    assert_false(bytes_next_item(&list, &item));
    list = BYTES(",");
    assert_true(bytes_next_item(&list, &item) && bytes_next_item(&list, &item) && item.len == 0);
    assert_false(bytes_next_item(&list, &item));

    assert_true(bytes_list_has(BYTES("x,\tClose "), BYTES("close")));
    assert_false(bytes_list_has(BYTES("closed, close x"), BYTES("close")));
    assert_false(bytes_list_has(BYTES_NONE, BYTES("close")));
}

static void constant_time_equality_is_equality(void **state)
{
    (void)state;
    assert_true(bytes_eq_constant_time(BYTES("secret"), BYTES("secret")));
    assert_false(bytes_eq_constant_time(BYTES("secret"), BYTES("secreT")));
    assert_false(bytes_eq_constant_time(BYTES("Secret"), BYTES("secret")));
    assert_false(bytes_eq_constant_time(BYTES("secret"), BYTES("secre")));
}

static void hex_reads_back(void **state)
{
    (void)state;
    uint8_t all[256], back[256];
    char text[513];
    for (int i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    hex_encode(all, sizeof all, text);
    assert_int_equal(strlen(text), 512);
    assert_memory_equal(text, "000102", 6);
    assert_memory_equal(text + 506, "fdfeff", 6);
    assert_true(hex_decode(bytes_str(text), back, sizeof back));
    assert_memory_equal(all, back, sizeof all);
}

static void hex_takes_exactly_two_digits_a_byte(void **state)
{
    (void)state;
    uint8_t out[2];
    assert_true(hex_decode(BYTES("aBcD"), out, 2));
    assert_int_equal(out[0], 0xab);
    assert_int_equal(out[1], 0xcd);
    static const char *const bad[] = {"", "abc", "abcde", "abcg", "ab d", "+bcd", "0xab", "ab:d", "abc/"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(hex_decode(bytes_str(bad[i]), out, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_and_empty_differ_but_compare_equal),
        cmocka_unit_test(a_nul_is_an_ordinary_byte),
        cmocka_unit_test(case_is_folded_for_ascii_letters_only),
        cmocka_unit_test(prefixes),
        cmocka_unit_test(order_is_by_bytes_then_by_length),
        cmocka_unit_test(trim_takes_blanks_and_tabs_at_both_ends),
        cmocka_unit_test(a_list_gives_its_items_one_by_one),
        cmocka_unit_test(constant_time_equality_is_equality),
        cmocka_unit_test(hex_reads_back),
        cmocka_unit_test(hex_takes_exactly_two_digits_a_byte),
    };
    return cmocka_run_group_tests_name("util: bytes", tests, NULL, NULL);
}
