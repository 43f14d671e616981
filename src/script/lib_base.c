/* Base functions and coroutines. */
#include "script/guard.h"
#include "script/lib.h"

#include <string.h>

void lib_take(lua_State *lua, int from, const char *const *names)
{
    for (; *names; names++) {
        lua_getfield(lua, from, *names);
        lua_setfield(lua, -2, *names);
    }
}

void lib_register(lua_State *lua, const luaL_Reg *functions)
{
    for (; functions->name; functions++) {
        lua_pushcfunction(lua, functions->func);
        lua_setfield(lua, -2, functions->name);
    }
}

struct bytes lib_bytes(lua_State *lua, int index)
{
    size_t len;
    const char *at = luaL_checklstring(lua, index, &len);
    return bytes_of(at, len);
}

/* ---- locked tables ---- */

static char locked; /* in the metatable of a locked table */

static int refuse_write(lua_State *lua)
{
    return luaL_error(lua, "%s can't be changed", lua_tostring(lua, lua_upvalueindex(1)));
}

void lib_lock(lua_State *lua, const char *name)
{
    lua_newtable(lua);          /* library proxy */
    lua_createtable(lua, 0, 4); /* library proxy meta */
    lua_pushvalue(lua, -3);
    lua_setfield(lua, -2, "__index");
    lua_pushstring(lua, name);
    lua_pushcclosure(lua, refuse_write, 1);
    lua_setfield(lua, -2, "__newindex");
    lua_pushboolean(lua, false);
    lua_setfield(lua, -2, "__metatable");
    lua_pushlightuserdata(lua, &locked);
    lua_pushboolean(lua, true);
    lua_rawset(lua, -3);
    lua_setmetatable(lua, -2); /* library proxy */
    lua_remove(lua, -2);       /* proxy */
}

void lib_check_unlocked(lua_State *lua, int index)
{
    if (!lua_getmetatable(lua, index))
        return;
    lua_pushlightuserdata(lua, &locked);
    lua_rawget(lua, -2);
    if (lua_toboolean(lua, -1))
        luaL_error(lua, "a library can't be changed");
    lua_pop(lua, 2);
}

/* ---- tostring ---- */

void lib_tostring(lua_State *lua, int index)
{
    int type = lua_type(lua, index);
    if (type == LUA_TSTRING || type == LUA_TNUMBER) {
        lua_pushvalue(lua, index);
        lua_tolstring(lua, -1, NULL);
        return;
    }
    if (type == LUA_TNIL || type == LUA_TBOOLEAN) {
        lua_pushstring(lua, type == LUA_TNIL ? "nil" : lua_toboolean(lua, index) ? "true" : "false");
        return;
    }
    if (luaL_getmetafield(lua, index, "__tostring")) {
        guard_stack(lua);
        luaL_checkstack(lua, 4, "too many values");
        lua_pushvalue(lua, index);
        lua_call(lua, 1, 1);
        if (!lua_isstring(lua, -1))
            luaL_error(lua, "'__tostring' must return a string");
        return;
    }
    if (type == LUA_TLIGHTUSERDATA)
        lua_pushstring(lua, lib_is_unordered(lua, index) ? "unordered" : "null");
    else
        lua_pushstring(lua, lua_typename(lua, type));
}

static int base_tostring(lua_State *lua)
{
    luaL_checkany(lua, 1);
    lua_settop(lua, 1);
    lib_tostring(lua, 1);
    return 1;
}

/* ---- errors ---- */

/* error(value, [level]) */
static int base_error(lua_State *lua)
{
    int level = luaL_optint(lua, 2, 1);
    lua_settop(lua, 1);
    guard_own_words(lua);
    if (lua_isstring(lua, 1) && level > 0) {
        luaL_where(lua, level);
        lua_pushvalue(lua, 1);
        lua_concat(lua, 2);
    }
    return lua_error(lua);
}

/* assert(value, [message], ...) -> all of them */
static int base_assert(lua_State *lua)
{
    luaL_checkany(lua, 1);
    if (lua_toboolean(lua, 1))
        return lua_gettop(lua);
    if (lua_gettop(lua) == 1)
        return luaL_error(lua, "assertion failed!");
    lua_settop(lua, 2);
    guard_own_words(lua);
    return lua_error(lua);
}

/* Upvalue 1: the script's handler. Raised by a breach, an error does not reach it: it would run inside the
 * hook, where no hook can stop it. */
static int call_handler(lua_State *lua)
{
    if (guard_of(lua)->breach)
        return 1;
    guard_stack(lua);
    lua_settop(lua, 1);
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_insert(lua, 1);
    lua_call(lua, 1, 1);
    return 1;
}

/* xpcall(function, handler, arguments...) */
static int base_xpcall(lua_State *lua)
{
    luaL_checkany(lua, 2);
    guard_stack(lua);
    int arguments = lua_gettop(lua) - 2;
    lua_pushvalue(lua, 2);
    lua_pushcclosure(lua, call_handler, 1); /* function handler arguments... caught */
    lua_insert(lua, 1);
    lua_remove(lua, 3); /* caught function arguments... */
    int failed = lua_pcall(lua, arguments, LUA_MULTRET, 1);
    guard_check(lua);
    lua_pushboolean(lua, !failed);
    lua_replace(lua, 1); /* success results... */
    return lua_gettop(lua);
}

static int base_rawset(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TTABLE);
    luaL_checkany(lua, 3);
    lib_check_unlocked(lua, 1);
    lua_settop(lua, 3);
    if (lua_isnil(lua, 2))
        return luaL_error(lua, "a key can't be nil");
    lua_rawset(lua, 1);
    return 1;
}

void lib_base_add(lua_State *lua, int native)
{
    static const char *const taken[] = {"getmetatable", "ipairs", "next",   "pairs", "pcall",
                                        "rawequal",     "rawget", "select", "type",  "tonumber",
                                        "setmetatable", "unpack", NULL};
    static const luaL_Reg ours[] = {{"assert", base_assert}, {"error", base_error},
                                    {"rawset", base_rawset}, {"tostring", base_tostring},
                                    {"xpcall", base_xpcall}, {NULL, NULL}};
    lib_take(lua, native, taken);
    lib_register(lua, ours);
}

/* ---- coroutines: LuaJIT's resume and wrap take C stack at every level and bound it nowhere ---- */

static lua_State *check_thread(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TTHREAD);
    return lua_tothread(lua, 1);
}

/* NULL when it can be resumed, else what it is. */
static const char *not_resumable(lua_State *lua, lua_State *co)
{
    lua_Debug at;
    if (co == lua)
        return "running";
    switch (lua_status(co)) {
    case LUA_YIELD:
        return NULL;
    case 0:
        if (lua_getstack(co, 0, &at) > 0)
            return "normal";
        return lua_gettop(co) == 0 ? "dead" : NULL;
    default:
        return "dead";
    }
}

/* The arguments at the top of `lua` go to the coroutine. Gives how many results are at the top of `lua`, or
 * -1 with an error value there. */
static int resume(lua_State *lua, lua_State *co, int arguments)
{
    guard_stack(lua);
    const char *state = not_resumable(lua, co);
    if (state) {
        lua_pushfstring(lua, "cannot resume %s coroutine",
                        strcmp(state, "dead") == 0 ? state : "non-suspended");
        return -1;
    }
    luaL_checkstack(lua, 2, "too many results to resume");
    if (!lua_checkstack(co, arguments))
        luaL_error(lua, "too many arguments to resume");
    lua_xmove(lua, co, arguments);
    int status = lua_resume(co, arguments);
    guard_check(lua);
    if (status != 0 && status != LUA_YIELD) {
        lua_xmove(co, lua, 1);
        return -1;
    }
    int results = lua_gettop(co);
    luaL_checkstack(lua, results + 1, "too many results to resume");
    lua_xmove(co, lua, results);
    return results;
}

static int co_resume(lua_State *lua)
{
    lua_State *co = check_thread(lua);
    int results = resume(lua, co, lua_gettop(lua) - 1);
    bool good = results >= 0;
    if (!good)
        results = 1;
    lua_pushboolean(lua, good);
    lua_insert(lua, -(results + 1));
    return results + 1;
}

/* Upvalue 1: the coroutine. */
static int wrapped(lua_State *lua)
{
    int results = resume(lua, lua_tothread(lua, lua_upvalueindex(1)), lua_gettop(lua));
    if (results >= 0)
        return results;
    if (lua_type(lua, -1) == LUA_TSTRING) {
        luaL_where(lua, 1);
        lua_insert(lua, -2);
        lua_concat(lua, 2);
    }
    return lua_error(lua);
}

/* Upvalue 1: LuaJIT's create. */
static int co_wrap(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TFUNCTION);
    lua_settop(lua, 1);
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_insert(lua, 1);
    lua_call(lua, 1, 1); /* a C function: no Lua runs */
    lua_pushcclosure(lua, wrapped, 1);
    return 1;
}

void lib_coroutine_push(lua_State *lua, int native)
{
    static const char *const taken[] = {"create", "running", "status", "yield", NULL};
    lua_newtable(lua);
    lua_getfield(lua, native, "coroutine"); /* ours theirs */
    lua_insert(lua, -2);
    lib_take(lua, lua_gettop(lua) - 1, taken); /* theirs ours */
    lua_pushcfunction(lua, co_resume);
    lua_setfield(lua, -2, "resume");
    lua_getfield(lua, -2, "create");
    lua_pushcclosure(lua, co_wrap, 1);
    lua_setfield(lua, -2, "wrap");
    lua_remove(lua, -2); /* ours */
}
