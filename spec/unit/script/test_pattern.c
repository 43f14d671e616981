/* Our matcher and LuaJIT's own give the same, on patterns nobody would write; and ours ends. Patterns with a
 * NUL in them are left out: LuaJIT stops reading there, for us it is a byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "random.h"
#include "script/guard.h"
#include "script/lib.h"

enum { ROUNDS = 100000, STEPS = 20000, TEXT_MAX = 24 };

static struct guard guard;

/* One state with both: "ours" is a table of our functions, "string" LuaJIT's. */
static int build(lua_State *lua)
{
    guard_prepare(lua);
    luaL_openlibs(lua);
    lua_newtable(lua);
    lib_pattern_add(lua);
    lua_setglobal(lua, "ours");
    static const char code[] =
        /* Every result of a call in one text, or "error". */
        "local function all(good, ...)"
        "  if not good then return 'error' end"
        "  local out = {...}"
        "  for i = 1, select('#', ...) do out[i] = type(out[i]) .. ':' .. tostring(out[i]) end"
        "  return table.concat(out, '|')"
        "end "
        "local function walk(gmatch, s, p)"
        "  local out = {}"
        "  for a, b, c in gmatch(s, p) do"
        "    out[#out + 1] = tostring(a) .. ',' .. tostring(b) .. ',' .. tostring(c)"
        "    if #out > 60 then break end"
        "  end "
        "  return table.concat(out, ';')"
        "end "
        "function compare(s, p, r, init)"
        "  for _, name in ipairs { 'find', 'match' } do"
        "    local a, b = all(pcall(ours[name], s, p, init)), all(pcall(string[name], s, p, init))"
        "    if a ~= b then return name .. ': ' .. a .. ' not ' .. b end"
        "  end "
        "  local a, b = all(pcall(walk, ours.gmatch, s, p)), all(pcall(walk, string.gmatch, s, p))"
        "  if a ~= b then return 'gmatch: ' .. a .. ' not ' .. b end"
        "  for _, by in ipairs { r, { a = 'A', b = false, [''] = 'E' }, function(x, y) return y or x end } do"
        "    a, b = all(pcall(ours.gsub, s, p, by, init and init > 0 and init or nil)),"
        "           all(pcall(string.gsub, s, p, by, init and init > 0 and init or nil))"
        "    if a ~= b then return 'gsub: ' .. a .. ' not ' .. b end"
        "  end "
        "end ";
    if (luaL_loadstring(lua, code) != 0)
        return lua_error(lua);
    lua_call(lua, 0, 0);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    if (!guard_open(&guard, 64 << 20))
        return -1;
    if (lua_cpcall(guard.lua, build, NULL) == 0)
        return 0;
    print_error("%s\n", lua_tostring(guard.lua, -1));
    return -1;
}

static int teardown(void **state)
{
    (void)state;
    guard_close(&guard);
    return 0;
}

static size_t pick(struct random *random, const char *const *words, size_t count, char *out)
{
    size_t len = 0, parts = random_below(random, 7);
    for (size_t i = 0; i < parts; i++) {
        const char *word = words[random_below(random, count)];
        size_t n = *word ? strlen(word) : 1; /* "" stands for NUL */
        if (len + n > TEXT_MAX)
            break;
        memcpy(out + len, word, n);
        len += n;
    }
    return len;
}

/* "" when both give the same. */
static const char *compare(struct bytes s, struct bytes p, struct bytes r, int init)
{
    static const struct script_limits limits = {
        .max_instructions = 100000000, .max_pattern_steps = 100000000, .max_memory_bytes = 64 << 20};
    lua_State *lua = guard.lua;
    lua_settop(lua, 0);
    guard_begin(&guard, &limits, false);
    lua_getglobal(lua, "compare");
    lua_pushlstring(lua, s.at, s.len);
    lua_pushlstring(lua, p.at, p.len);
    lua_pushlstring(lua, r.at, r.len);
    if (init)
        lua_pushinteger(lua, init);
    else
        lua_pushnil(lua);
    int failed = lua_pcall(lua, 4, 1, 0);
    guard_end(&guard);
    if (failed || lua_type(lua, -1) == LUA_TSTRING)
        return lua_tostring(lua, -1);
    return "";
}

/* NUL is a byte like others: shown. */
static const char *shown(struct bytes text, char out[4 * TEXT_MAX + 1])
{
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++)
        len += (size_t)sprintf(out + len, text.at[i] ? "%c" : "\\0", text.at[i]);
    out[len] = 0;
    return out;
}

static void both_matchers_give_the_same(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "a",     "b",    ".",    "%a",   "%d",   "%s",   "%w",   "%W",    "%",      "%%", "[ab]", "[^a]",
        "[a-b]", "[%a]", "[]a]", "[",    "]",    "(",    ")",    "()",    "(a)",    "*",  "+",    "-",
        "?",     "^",    "$",    "%1",   "%2",   "%b()", "%bab", "%f[a]", "%f[%W]", "%b", "%f",   "x*",
        "a-",    "b?",   "[^]",  "[a-]", "[-a]", "[%",   "%z",   "%g",    "%0",
    };
    static const char *const subjects[] = {"a",  "b", "ab", "(", ")", "x", "1", " ",
                                           "aa", "",  "%",  "]", "-", "^", "A"};
    static const char *const replacements[] = {"", "%0", "%1", "%2", "%%", "%", "r", "a", "%9"};
    struct random random = {20261201};
    for (int i = 0; i < ROUNDS; i++) {
        char s[TEXT_MAX], p[TEXT_MAX], r[TEXT_MAX];
        struct bytes subject = bytes_of(s, pick(&random, subjects, sizeof subjects / sizeof *subjects, s));
        struct bytes pattern = bytes_of(p, pick(&random, pieces, sizeof pieces / sizeof *pieces, p));
        struct bytes by =
            bytes_of(r, pick(&random, replacements, sizeof replacements / sizeof *replacements, r));
        int init = random_below(&random, 4) ? 0 : (int)random_below(&random, 9) - 4;
        const char *difference = compare(subject, pattern, by, init);
        char a[4 * TEXT_MAX + 1], b[4 * TEXT_MAX + 1], c[4 * TEXT_MAX + 1];
        if (*difference)
            fail_msg("round %d, \"%s\" with \"%s\" by \"%s\" from %d: %s", i, shown(subject, a),
                     shown(pattern, b), shown(by, c), init, difference);
    }
}

static void every_class_takes_the_same_bytes(void **state)
{
    (void)state;
    char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    for (int class = 1; class < 256; class ++) {
        const char pattern[] = {'[', '%', (char)class, ']', '+'};
        const char *difference =
            compare(bytes_of(all, sizeof all), bytes_of(pattern, sizeof pattern), BYTES("<%0>"), 0);
        if (*difference)
            fail_msg("class %d: %s", class, difference);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_matchers_give_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(every_class_takes_the_same_bytes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
