/* The buffer grows to its bound and not a byte further, and says so once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/buf.h"

static void an_empty_one_is_readable(void **state)
{
    (void)state;
    struct buf buf = {0};
    struct bytes nothing = buf_bytes(&buf);
    assert_non_null(nothing.at);
    assert_int_equal(nothing.len, 0);
    buf_clear(&buf);
    buf_free(&buf);
}

static void it_always_ends_with_a_nul(void **state)
{
    (void)state;
    struct buf buf = {0};
    for (int i = 0; i < 5000; i++) {
        buf_putc(&buf, (char)('a' + i % 26));
        assert_int_equal(buf.at[buf.len], 0);
    }
    assert_int_equal(buf.len, 5000);
    for (int i = 0; i < 5000; i++)
        assert_int_equal(buf.at[i], 'a' + i % 26);
    buf_free(&buf);
}

static void the_bound_is_exact(void **state)
{
    (void)state;
    struct buf buf = {.max = 10};
    buf_puts(&buf, "0123456789");
    assert_false(buf.overflow);
    assert_int_equal(buf.len, 10);
    buf_putc(&buf, 'x');
    assert_true(buf.overflow);
    assert_string_equal(buf.at, "0123456789");
    buf_free(&buf);
}

static void after_an_overflow_nothing_more_fits(void **state)
{
    (void)state;
    struct buf buf = {.max = 10};
    buf_puts(&buf, "0123");
    buf_puts(&buf, "too long for it");
    buf_putc(&buf, 'x'); /* would have fitted */
    assert_null(buf_extend(&buf, 1));
    assert_true(buf.overflow);
    assert_string_equal(buf.at, "0123");

    buf_clear(&buf);
    assert_false(buf.overflow);
    buf_puts(&buf, "again");
    assert_string_equal(buf.at, "again");

    buf_free(&buf);
    assert_int_equal(buf.max, 10); /* the bound stays the owner's */
}

static void the_default_bound_holds(void **state)
{
    (void)state;
    struct buf buf = {0};
    assert_null(buf_extend(&buf, (64 << 20) + 1));
    assert_true(buf.overflow);
    buf_clear(&buf);
    assert_null(buf_extend(&buf, SIZE_MAX));
    buf_free(&buf);
}

static void formatted_text_may_be_long(void **state)
{
    (void)state;
    struct buf buf = {0};
    buf_putf(&buf, "%s-%d", "short", 7);
    assert_string_equal(buf.at, "short-7");
    for (int width = 250; width < 262; width++) { /* around the size of its inner buffer */
        buf_clear(&buf);
        buf_putf(&buf, "%*d|", width, 42);
        assert_int_equal(buf.len, width + 1);
        assert_int_equal(buf.at[width], '|');
    }
    buf_clear(&buf);
    buf_putf(&buf, "%100000d", 1);
    assert_int_equal(buf.len, 100000);
    buf_free(&buf);

    struct buf tight = {.max = 300};
    buf_putf(&tight, "%400d", 1);
    assert_true(tight.overflow);
    assert_int_equal(tight.len, 0);
    buf_free(&tight);
}

static void extend_gives_room_that_counts(void **state)
{
    (void)state;
    struct buf buf = {0};
    buf_puts(&buf, "ab");
    memcpy(buf_extend(&buf, 3), "cde", 3);
    buf_putb(&buf, BYTES("\0f"));
    buf_putb(&buf, BYTES_NONE);
    assert_true(bytes_eq(buf_bytes(&buf), BYTES("abcde\0f")));
    buf_free(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_is_readable),
        cmocka_unit_test(it_always_ends_with_a_nul),
        cmocka_unit_test(the_bound_is_exact),
        cmocka_unit_test(after_an_overflow_nothing_more_fits),
        cmocka_unit_test(the_default_bound_holds),
        cmocka_unit_test(formatted_text_may_be_long),
        cmocka_unit_test(extend_gives_room_that_counts),
    };
    return cmocka_run_group_tests_name("util: buf", tests, NULL, NULL);
}
