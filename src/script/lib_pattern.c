/* find, match, gmatch, gsub on our matcher. */
#include "script/guard.h"
#include "script/lib.h"
#include "script/pattern.h"

#include <string.h>

/* Pays for the steps that were taken and raises what went wrong. */
static void settle(lua_State *lua, struct pattern *m)
{
    guard_charge_steps(lua, m->steps);
    if (m->error)
        luaL_error(lua, "%s", m->error);
}

static void push_position(lua_State *lua, const struct pattern *m, const char *at)
{
    lua_pushinteger(lua, at - m->subject + 1);
}

/* Capture i; the whole match, from `at` to `end`, when the pattern has no captures and i is 0. */
static void push_capture(lua_State *lua, const struct pattern *m, int i, const char *at, const char *end)
{
    if (i >= m->captures) {
        if (i > 0)
            luaL_error(lua, "invalid capture index");
        lua_pushlstring(lua, at, (size_t)(end - at));
    } else if (m->capture[i].len == PATTERN_POSITION) {
        push_position(lua, m, m->capture[i].at);
    } else if (m->capture[i].len == PATTERN_OPEN) {
        luaL_error(lua, "unfinished capture");
    } else {
        lua_pushlstring(lua, m->capture[i].at, (size_t)m->capture[i].len);
    }
}

/* All captures, or the whole match when there are none and `whole`. */
static int push_captures(lua_State *lua, const struct pattern *m, bool whole, const char *at, const char *end)
{
    int count = m->captures == 0 && whole ? 1 : m->captures;
    luaL_checkstack(lua, count, "too many captures");
    for (int i = 0; i < count; i++)
        push_capture(lua, m, i, at, end);
    return count;
}

static bool is_plain(struct bytes pattern)
{
    for (size_t i = 0; i < pattern.len; i++)
        if (memchr("^$*+?.([%-", pattern.at[i], 10))
            return false;
    return true;
}

/* The `init` argument as an offset, at most the length. */
static size_t start_offset(lua_State *lua, int index, size_t len)
{
    lua_Integer init = luaL_optinteger(lua, index, 1);
    if (init < 0)
        init += (lua_Integer)len;
    else
        init--;
    if (init < 0)
        init = 0;
    return (size_t)init > len ? len : (size_t)init;
}

static int find_plain(lua_State *lua, struct bytes subject, struct bytes wanted, size_t from)
{
    guard_charge(lua, 1 + (int64_t)((subject.len - from) / 64));
    const char *at =
        wanted.len ? memmem(subject.at + from, subject.len - from, wanted.at, wanted.len) : subject.at + from;
    if (!at) {
        lua_pushnil(lua);
        return 1;
    }
    lua_pushinteger(lua, at - subject.at + 1);
    lua_pushinteger(lua, at - subject.at + (ptrdiff_t)wanted.len);
    return 2;
}

static int find_or_match(lua_State *lua, bool find)
{
    struct bytes subject = lib_bytes(lua, 1), text = lib_bytes(lua, 2);
    size_t from = start_offset(lua, 3, subject.len);
    if (find && (lua_toboolean(lua, 4) || is_plain(text)))
        return find_plain(lua, subject, text, from);

    struct pattern m = pattern_of(subject, text, guard_of(lua)->steps);
    bool anchored = text.len > 0 && *text.at == '^';
    const char *start = subject.at + from, *end = NULL;
    for (;; start++) {
        end = pattern_match(&m, start, text.at + anchored);
        if (end || m.error || m.steps <= 0 || anchored || start == m.subject_end)
            break;
    }
    settle(lua, &m);
    if (!end) {
        lua_pushnil(lua);
        return 1;
    }
    if (!find)
        return push_captures(lua, &m, true, start, end);
    push_position(lua, &m, start);
    lua_pushinteger(lua, end - m.subject);
    return 2 + push_captures(lua, &m, false, start, end);
}

static int string_find(lua_State *lua)
{
    return find_or_match(lua, true);
}

static int string_match(lua_State *lua)
{
    return find_or_match(lua, false);
}

/* Upvalues: subject, pattern, the offset to go on from. */
static int gmatch_next(lua_State *lua)
{
    size_t subject_len, text_len;
    const char *subject = lua_tolstring(lua, lua_upvalueindex(1), &subject_len);
    const char *text = lua_tolstring(lua, lua_upvalueindex(2), &text_len);
    struct pattern m =
        pattern_of(bytes_of(subject, subject_len), bytes_of(text, text_len), guard_of(lua)->steps);
    const char *end = NULL, *start = subject + lua_tointeger(lua, lua_upvalueindex(3));
    for (; start <= m.subject_end; start++) {
        end = pattern_match(&m, start, text);
        if (end || m.error || m.steps <= 0)
            break;
    }
    settle(lua, &m);
    if (!end)
        return 0;
    lua_pushinteger(lua, end - subject + (end == start)); /* an empty match: from the next byte on */
    lua_replace(lua, lua_upvalueindex(3));
    return push_captures(lua, &m, true, start, end);
}

static int string_gmatch(lua_State *lua)
{
    lib_bytes(lua, 1);
    lib_bytes(lua, 2);
    lua_settop(lua, 2);
    lua_pushinteger(lua, 0);
    lua_pushcclosure(lua, gmatch_next, 3);
    return 1;
}

/* ---- gsub ---- */

/* A replacement text: %0 to %9, and % before anything else stands for that. */
static void add_text(lua_State *lua, luaL_Buffer *out, struct bytes text, const struct pattern *m,
                     const char *at, const char *end)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] != '%') {
            luaL_addchar(out, text.at[i]);
            continue;
        }
        char c = ++i < text.len ? text.at[i] : 0;
        if (c == '0') {
            luaL_addlstring(out, at, (size_t)(end - at));
        } else if (c > '0' && c <= '9') {
            push_capture(lua, m, c - '1', at, end);
            lua_tolstring(lua, -1, NULL); /* a position */
            luaL_addvalue(out);
        } else {
            luaL_addchar(out, c);
        }
    }
}

/* What stands in place of one match. Argument 3 is the replacement. The matcher's steps are settled: what is
 * called here may use some itself. */
static void add_replacement(lua_State *lua, luaL_Buffer *out, const struct pattern *m, const char *at,
                            const char *end)
{
    switch (lua_type(lua, 3)) {
    case LUA_TFUNCTION:
        guard_stack(lua);
        luaL_checkstack(lua, 4, "too many captures");
        lua_pushvalue(lua, 3);
        lua_call(lua, push_captures(lua, m, true, at, end), 1);
        break;
    case LUA_TTABLE:
        guard_stack(lua); /* an __index may be a function */
        push_capture(lua, m, 0, at, end);
        lua_gettable(lua, 3);
        break;
    default: {
        struct bytes text = lib_bytes(lua, 3);
        guard_charge(lua, 1 + (int64_t)text.len / 8);
        add_text(lua, out, text, m, at, end);
        return;
    }
    }
    if (!lua_toboolean(lua, -1)) {
        lua_pop(lua, 1);
        luaL_addlstring(out, at, (size_t)(end - at));
        return;
    }
    if (!lua_isstring(lua, -1))
        luaL_error(lua, "invalid replacement value (a %s)", luaL_typename(lua, -1));
    luaL_addvalue(out);
}

static int string_gsub(lua_State *lua)
{
    struct bytes subject = lib_bytes(lua, 1), text = lib_bytes(lua, 2);
    int type = lua_type(lua, 3);
    if (type != LUA_TNUMBER && type != LUA_TSTRING && type != LUA_TTABLE && type != LUA_TFUNCTION)
        return luaL_argerror(lua, 3, "string/function/table expected");
    lua_Integer most = luaL_optinteger(lua, 4, (lua_Integer)subject.len + 1);
    bool anchored = text.len > 0 && *text.at == '^';

    struct pattern m = pattern_of(subject, text, 0);
    const char *src = subject.at;
    lua_Integer count = 0;
    luaL_Buffer out;
    luaL_buffinit(lua, &out);
    while (count < most) {
        m.steps = guard_of(lua)->steps;
        const char *end = pattern_match(&m, src, text.at + anchored);
        settle(lua, &m);
        if (end) {
            count++;
            add_replacement(lua, &out, &m, src, end);
        }
        if (end && end > src)
            src = end;
        else if (src < m.subject_end)
            luaL_addchar(&out, *src++);
        else
            break;
        if (anchored)
            break;
    }
    luaL_addlstring(&out, src, (size_t)(m.subject_end - src));
    luaL_pushresult(&out);
    lua_pushinteger(lua, count);
    return 2;
}

void lib_pattern_add(lua_State *lua)
{
    static const luaL_Reg functions[] = {{"find", string_find},
                                         {"gmatch", string_gmatch},
                                         {"gsub", string_gsub},
                                         {"match", string_match},
                                         {NULL, NULL}};
    lib_register(lua, functions);
}
