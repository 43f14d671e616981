/* Cursors come back as they went out, and nothing else is taken for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admin/cursor.h"

static void comes_back_as_it_went_out(void **state)
{
    (void)state;
    const struct cursor cursors[] = {{0, 0}, {1, 0}, {INT64_MAX, 0}, {77, UINT32_MAX}};
    for (size_t i = 0; i < 4; i++) {
        char text[CURSOR_TEXT];
        struct cursor back;
        cursor_format(CURSOR_DEAD, cursors[i], text);
        assert_true(cursor_parse(CURSOR_DEAD, bytes_str(text), &back));
        assert_true(back.seq == cursors[i].seq && back.sink == cursors[i].sink);
    }
}

static void belongs_to_one_list(void **state)
{
    (void)state;
    char text[CURSOR_TEXT];
    struct cursor back;
    cursor_format(CURSOR_HOOKS, (struct cursor){.seq = 5}, text);
    assert_true(cursor_parse(CURSOR_HOOKS, bytes_str(text), &back));
    assert_false(cursor_parse(CURSOR_LANES, bytes_str(text), &back));
    assert_false(cursor_parse(CURSOR_DEAD, bytes_str(text), &back));
}

static void anything_else_is_refused(void **state)
{
    (void)state;
    char text[CURSOR_TEXT];
    struct cursor back;
    cursor_format(CURSOR_HOOKS, (struct cursor){.seq = 5}, text);
    assert_false(cursor_parse(CURSOR_HOOKS, BYTES(""), &back));
    assert_false(cursor_parse(CURSOR_HOOKS, BYTES("5"), &back));
    assert_false(cursor_parse(CURSOR_HOOKS, bytes_of(text, CURSOR_TEXT - 2), &back));
    text[4] = 'x';
    assert_false(cursor_parse(CURSOR_HOOKS, bytes_str(text), &back));
    /* Over 63 bits, and a sink where the list has none. */
    cursor_format(CURSOR_HOOKS, (struct cursor){.seq = UINT64_MAX}, text);
    assert_false(cursor_parse(CURSOR_HOOKS, bytes_str(text), &back));
    cursor_format(CURSOR_HOOKS, (struct cursor){.seq = 5, .sink = 1}, text);
    assert_false(cursor_parse(CURSOR_HOOKS, bytes_str(text), &back));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back_as_it_went_out),
        cmocka_unit_test(belongs_to_one_list),
        cmocka_unit_test(anything_else_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
