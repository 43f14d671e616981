/* A tree of values: what is absent is nil, never NULL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/value.h"

static const struct bytes names[] = {{"port", 4}, {"on", 2}, {"host", 4}, {"nothing", 7}};
static const struct value items[] = {
    {.kind = VALUE_NUMBER, .number = 9007199254740992.0},
    {.kind = VALUE_BOOL, .boolean = true},
    {.kind = VALUE_STRING, .string = {"a\0b", 3}},
    {.kind = VALUE_NIL},
};
static const struct value map = {.kind = VALUE_MAP, .len = 4, .items = items, .names = names};

static void members_by_name(void **state)
{
    (void)state;
    assert_ptr_equal(value_get(&map, "on"), &items[1]);
    assert_int_equal(value_get(&map, "host")->string.len, 3);
    assert_int_equal(value_get(&map, "hos")->kind, VALUE_NIL);
    assert_int_equal(value_get(&map, "")->kind, VALUE_NIL);
}

static void anything_may_be_asked(void **state)
{
    (void)state;
    static const struct value list = {.kind = VALUE_LIST, .len = 4, .items = items};
    assert_int_equal(value_get(&items[0], "x")->kind, VALUE_NIL);
    assert_int_equal(value_get(&list, "port")->kind, VALUE_NIL);
    assert_int_equal(value_get(value_get(&map, "absent"), "x")->kind, VALUE_NIL);
}

static void a_default_stands_in_for_nil_only(void **state)
{
    (void)state;
    assert_true(value_int(&map, "port", 7) == 1LL << 53);
    assert_int_equal(value_int(&map, "absent", 7), 7);
    assert_int_equal(value_int(&map, "nothing", 7), 7);
    assert_true(value_bool(&map, "on", false));
    assert_true(value_bool(&map, "absent", true));
    assert_string_equal(value_str(&map, "host", "?"), "a");
    assert_string_equal(value_str(&map, "absent", "?"), "?");
    assert_null(value_str(&map, "absent", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_by_name),
        cmocka_unit_test(anything_may_be_asked),
        cmocka_unit_test(a_default_stands_in_for_nil_only),
    };
    return cmocka_run_group_tests_name("util: value", tests, NULL, NULL);
}
