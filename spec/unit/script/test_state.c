/* A state can't hang, can't grow, and can't reach the machine. Every refusal has a control that passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "script/state.h"

enum { MEMORY_MAX = 16 << 20, BUDGET = 1000 * 1000 };

static int setup(void **ctx)
{
    static struct script_state state;
    *ctx = &state;
    return script_state_open(&state, MEMORY_MAX, NULL) == STATUS_OK ? 0 : -1;
}

static int teardown(void **ctx)
{
    script_state_close(*ctx);
    return 0;
}

/* Runs `code`; "" when it ended well, else the error's text. */
static const char *run(struct script_state *state, const char *code)
{
    static char text[256];
    lua_State *lua = state->lua;
    lua_settop(lua, 0);
    assert_int_equal(luaL_loadbufferx(lua, code, strlen(code), "=code", "t"), 0);
    int failed = script_state_call(state, lua, 0, 0, BUDGET);
    snprintf(text, sizeof text, "%s", failed ? lua_tostring(lua, -1) : "");
    assert_int_equal(lua_gettop(lua), failed ? 1 : 0);
    return text;
}

static void assert_error(struct script_state *state, const char *code, const char *part)
{
    const char *text = run(state, code);
    if (!strstr(text, part))
        fail_msg("%s\n    gave \"%s\", not \"%s\"", code, text, part);
    /* What came before leaves no trace. */
    assert_string_equal(run(state, "local n = 0 for i = 1, 1000 do n = n + i end assert(n == 500500)"), "");
}

static void endless_code_is_stopped(void **ctx)
{
    assert_error(*ctx, "while true do end", "code:1: ran too long");
    assert_error(*ctx, "local n = 0 repeat n = n + 1 until false", "ran too long");
    assert_error(*ctx, "for i = 1, math.huge do local _ = i % 7 end", "ran too long");
    assert_error(*ctx, "local function spin() return spin() end return spin()", "ran too long");
}

static void pcall_does_not_swallow_the_stop(void **ctx)
{
    assert_string_equal(run(*ctx, "assert(not pcall(error, 'x'))"), "");
    assert_error(*ctx, "while true do pcall(function() while true do end end) end", "ran too long");
    assert_error(*ctx, "pcall(function() while true do end end)", "ran too long");
}

static void memory_is_bounded(void **ctx)
{
    struct script_state *state = *ctx;
    assert_string_equal(run(state, "local s = ('x'):rep(1000000) assert(#s == 1000000)"), "");
    assert_error(state, "local s = ('x'):rep(1000000000)", "not enough memory");
    assert_error(state, "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(100000) .. i end",
                 "not enough memory");
    assert_true(state->memory <= MEMORY_MAX);
}

static void deep_recursion_is_an_error(void **ctx)
{
    assert_error(*ctx, "local function f(n) return 1 + f(n + 1) end f(1)", "stack overflow");
}

static void nothing_reaches_the_machine(void **ctx)
{
    static const char *const absent[] = {"io",        "os",     "ffi",      "jit",         "debug",
                                         "package",   "print",  "dofile",   "loadfile",    "loadstring",
                                         "coroutine", "module", "newproxy", "string.dump", "collectgarbage",
                                         "xpcall"};
    char code[128];
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        snprintf(code, sizeof code, "assert(%s == nil)", absent[i]);
        assert_string_equal(run(*ctx, code), "");
        snprintf(code, sizeof code, "return require '%s'", absent[i]);
        if (!strchr(absent[i], '.'))
            assert_error(*ctx, code, "there is no module");
    }
    assert_string_equal(run(*ctx, "assert(string.format and table.concat and math.floor and pairs)"), "");
}

static void embedded_modules_are_there_once(void **ctx)
{
    assert_string_equal(run(*ctx, "assert(require 'lanegate.tree' == require 'lanegate.tree')"), "");
    assert_string_equal(
        run(*ctx, "assert(require('lanegate.tree').is_list(require('lanegate.tree').list()))"), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(endless_code_is_stopped, setup, teardown),
        cmocka_unit_test_setup_teardown(pcall_does_not_swallow_the_stop, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(deep_recursion_is_an_error, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_reaches_the_machine, setup, teardown),
        cmocka_unit_test_setup_teardown(embedded_modules_are_there_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
