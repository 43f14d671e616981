/* A Lua table arrives as a tree: lists as lists, numbers whole, strings with every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "script/state.h"
#include "script/tree.h"

struct reading {
    const char *code;
    struct arena *arena;
    struct value out;
};

static int read_protected(lua_State *lua)
{
    struct reading *reading = lua_touserdata(lua, 1);
    if (luaL_loadstring(lua, reading->code) != 0)
        return lua_error(lua);
    lua_call(lua, 0, 1);
    script_tree_read(lua, -1, reading->arena, &reading->out);
    return 0;
}

/* "" or the error. */
static const char *read_tree(struct reading *reading)
{
    static char text[256];
    struct script_state state;
    assert_int_equal(script_state_open(&state, 16 << 20, NULL), STATUS_OK);
    int failed = lua_cpcall(state.lua, read_protected, reading);
    snprintf(text, sizeof text, "%s", failed ? lua_tostring(state.lua, -1) : "");
    script_state_close(&state);
    return text;
}

static void values_keep_their_kind(void **ctx)
{
    (void)ctx;
    struct reading reading = {
        .arena = arena_new(1024),
        .code =
            "local tree = require 'lanegate.tree'\n"
            "return { yes = true, no = false, big = 2^53, text = 'a\\0b', empty = {}, none = tree.list(),\n"
            "         list = tree.list { 'x', { y = 1 } } }",
    };
    assert_string_equal(read_tree(&reading), "");
    const struct value *v = &reading.out;
    assert_int_equal(v->kind, VALUE_MAP);
    assert_int_equal(v->len, 7);
    assert_true(value_bool(v, "yes", false));
    assert_false(value_bool(v, "no", true));
    assert_true(value_int(v, "big", 0) == 1LL << 53);
    assert_true(bytes_eq(value_get(v, "text")->string, bytes_of("a\0b", 3)));
    assert_int_equal(value_get(v, "empty")->kind, VALUE_MAP);
    assert_int_equal(value_get(v, "empty")->len, 0);
    assert_int_equal(value_get(v, "none")->kind, VALUE_LIST);
    assert_int_equal(value_get(v, "list")->len, 2);
    assert_int_equal(value_int(&value_get(v, "list")->items[1], "y", 0), 1);
    assert_int_equal(value_get(v, "absent")->kind, VALUE_NIL);
    arena_free(reading.arena);
}

static void what_no_tree_holds_is_an_error(void **ctx)
{
    (void)ctx;
    static const struct {
        const char *code, *part;
    } cases[] = {
        {"return { f = function() end }", "a function has no place"},
        {"return { [1.5] = 1 }", "a key that is not a text"},
        {"return { 'unmarked' }", "a key that is not a text"},
        {"local t = {} t.t = t return t", "nested too deep"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reading reading = {.arena = arena_new(1024), .code = cases[i].code};
        assert_non_null(strstr(read_tree(&reading), cases[i].part));
        arena_free(reading.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_keep_their_kind),
        cmocka_unit_test(what_no_tree_holds_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
