#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/form_fields.h"

static void fields_are_found_by_their_decoded_name(void **state)
{
    (void)state;
    static const struct {
        struct bytes text, name;
        const char *value; /* NULL: there is none */
    } cases[] = {
        {BYTES("a=1&b=2"), BYTES("b"), "2"}, {BYTES("hub%2Emode=x+y%26"), BYTES("hub.mode"), "x y&"},
        {BYTES("a&b=2"), BYTES("a"), ""},    {BYTES("&&a=1&&"), BYTES("a"), "1"},
        {BYTES("a=1&a=2"), BYTES("a"), "1"}, {BYTES("a=%zz%4"), BYTES("a"), "%zz%4"},
        {BYTES("a=b=c"), BYTES("a"), "b=c"}, {BYTES("A=1"), BYTES("a"), NULL},
        {BYTES(""), BYTES("a"), NULL},       {{NULL, 0}, BYTES("a"), NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf value = {0};
        assert_int_equal(form_field(cases[i].text, cases[i].name, &value), cases[i].value != NULL);
        if (cases[i].value)
            assert_true(bytes_eq(buf_bytes(&value), bytes_str(cases[i].value)));
        buf_free(&value);
    }
}

/* A form beyond any small buffer, whose end must not be lost. */
static void all_fields_are_sorted_and_written(void **state)
{
    (void)state;
    struct buf out = {0}, many = {0}, expected = {0};
    assert_true(form_fields_sorted(BYTES("b=2&a=%31&b=1&b=2&c="), &out));
    assert_string_equal(out.at, "a1b1b2c");
    buf_clear(&out);
    for (int i = 0; i < FORM_FIELDS_MAX; i++) {
        buf_putf(&many, "k%04d=v&", FORM_FIELDS_MAX - 1 - i);
        buf_putf(&expected, "k%04dv", i);
    }
    assert_true(form_fields_sorted(buf_bytes(&many), &out));
    assert_string_equal(out.at, expected.at);
    buf_puts(&many, "x=1");
    assert_false(form_fields_sorted(buf_bytes(&many), &out));
    buf_free(&out);
    buf_free(&many);
    buf_free(&expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fields_are_found_by_their_decoded_name),
                                       cmocka_unit_test(all_fields_are_sorted_and_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
