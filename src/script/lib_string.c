/* string: LuaJIT's own where one call is linear in what it allocates (the allocator is paid for that), ours
 * for format, which calls Lua, and for patterns (lib_pattern.c). */
#include "script/guard.h"
#include "script/lib.h"

#include <string.h>

/* A conversion such as "%-5.2f": its length with the '%', at most SPEC_MAX. Raises when it is none. */
enum { SPEC_MAX = 16 };

static size_t spec_length(lua_State *lua, struct bytes format, size_t at)
{
    size_t n = 1;
    while (at + n < format.len && format.at[at + n] && strchr("-+ #0123456789.", format.at[at + n]))
        n++;
    if (at + n >= format.len || n + 1 > SPEC_MAX || !format.at[at + n] ||
        !strchr("cdieEfgGaAouxXqs", format.at[at + n]))
        luaL_error(lua, "invalid conversion in the format");
    if (n > 8) /* LuaJIT quotes what it refuses */
        guard_own_words(lua);
    return n + 1;
}

/* format(text, ...). Upvalue 1: LuaJIT's format, which gets one conversion at a time and never an object. */
static int string_format(lua_State *lua)
{
    struct bytes format = lib_bytes(lua, 1);
    int argument = 1, top = lua_gettop(lua);
    luaL_Buffer out;
    guard_charge(lua, 1 + (int64_t)format.len / 16);
    luaL_buffinit(lua, &out);
    for (size_t i = 0; i < format.len;) {
        if (format.at[i] != '%') {
            const char *percent = memchr(format.at + i, '%', format.len - i);
            size_t end = percent ? (size_t)(percent - format.at) : format.len;
            luaL_addlstring(&out, format.at + i, end - i);
            i = end;
            continue;
        }
        if (i + 1 < format.len && format.at[i + 1] == '%') {
            luaL_addchar(&out, '%');
            i += 2;
            continue;
        }
        size_t len = spec_length(lua, format, i);
        if (++argument > top)
            luaL_argerror(lua, argument, "no value");
        lua_pushvalue(lua, lua_upvalueindex(1));
        lua_pushlstring(lua, format.at + i, len); /* format spec */
        if (format.at[i + len - 1] == 's')
            lib_tostring(lua, argument);
        else if (format.at[i + len - 1] == 'q')
            lua_pushlstring(lua, lib_bytes(lua, argument).at, lib_bytes(lua, argument).len);
        else
            lua_pushnumber(lua, luaL_checknumber(lua, argument));
        lua_call(lua, 2, 1);
        luaL_addvalue(&out);
        i += len;
    }
    luaL_pushresult(&out);
    return 1;
}

void lib_string_push(lua_State *lua, int native)
{
    static const char *const taken[] = {"byte",    "char", "len",   "lower", "rep",
                                        "reverse", "sub",  "upper", NULL};
    lua_newtable(lua);
    lua_getfield(lua, native, "string");
    lua_insert(lua, -2); /* theirs ours */
    lib_take(lua, lua_gettop(lua) - 1, taken);
    lua_getfield(lua, -2, "format");
    lua_pushcclosure(lua, string_format, 1);
    lua_setfield(lua, -2, "format");
    lib_pattern_add(lua);
    lua_remove(lua, -2); /* ours */

    /* What ("x"):upper() finds; nobody can reach or change it. */
    lua_pushliteral(lua, "");
    lua_getmetatable(lua, -1); /* ours "" meta */
    lua_pushvalue(lua, -3);
    lua_setfield(lua, -2, "__index");
    lua_pushboolean(lua, false);
    lua_setfield(lua, -2, "__metatable");
    lua_pop(lua, 2); /* ours */
}
