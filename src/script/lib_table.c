/* table: ours where one call may take long over a large table, or writes without asking metamethods. */
#include "script/guard.h"
#include "script/lib.h"

static int check_list(lua_State *lua, int index)
{
    luaL_checktype(lua, index, LUA_TTABLE);
    return (int)lua_objlen(lua, index);
}

/* insert(list, [position,] value) */
static int table_insert(lua_State *lua)
{
    int size = check_list(lua, 1), position = size + 1;
    lib_check_unlocked(lua, 1);
    switch (lua_gettop(lua)) {
    case 2:
        break;
    case 3:
        position = luaL_checkint(lua, 2);
        if (position > size + 1)
            size = position - 1; /* as stock does: the list grows a hole */
        guard_charge(lua, 1 + (position < size ? ((int64_t)size - position) / 4 : 0));
        for (int i = size + 1; i > position; i--) {
            lua_rawgeti(lua, 1, i - 1);
            lua_rawseti(lua, 1, i);
        }
        break;
    default:
        return luaL_error(lua, "wrong number of arguments to 'insert'");
    }
    lua_rawseti(lua, 1, position);
    return 0;
}

/* remove(list, [position]) */
static int table_remove(lua_State *lua)
{
    int size = check_list(lua, 1);
    int position = luaL_optint(lua, 2, size);
    lib_check_unlocked(lua, 1);
    if (size == 0 || position < 1 || position > size)
        return 0;
    guard_charge(lua, 1 + ((int64_t)size - position) / 4);
    lua_rawgeti(lua, 1, position);
    for (int i = position; i < size; i++) {
        lua_rawgeti(lua, 1, i + 1);
        lua_rawseti(lua, 1, i);
    }
    lua_pushnil(lua);
    lua_rawseti(lua, 1, size);
    return 1;
}

/* concat(list, separator, first, last). Upvalue 1: LuaJIT's concat. */
static int table_concat(lua_State *lua)
{
    int size = check_list(lua, 1);
    int first = luaL_optint(lua, 3, 1), last = luaL_optint(lua, 4, size);
    if (last >= first)
        guard_charge(lua, 1 + ((int64_t)last - first) / 2);
    lua_settop(lua, 2);
    lua_pushinteger(lua, first);
    lua_pushinteger(lua, last);
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_insert(lua, 1);
    lua_call(lua, 4, 1); /* reads raw: no Lua runs */
    return 1;
}

/* ---- sort: a heap stays inside the list whatever the comparison says ---- */

enum { COMPARISON_COST = 4 };

/* Is element a (at the top) less than b (under it)? Both are popped. */
static bool pop_less(lua_State *lua)
{
    bool less;
    guard_charge(lua, COMPARISON_COST);
    guard_stack(lua);
    if (lua_isnoneornil(lua, 2)) {
        less = lua_lessthan(lua, -1, -2);
        lua_pop(lua, 2);
    } else {
        lua_pushvalue(lua, 2);
        lua_insert(lua, -3); /* less b a */
        lua_insert(lua, -2); /* less a b */
        lua_call(lua, 2, 1);
        less = lua_toboolean(lua, -1);
        lua_pop(lua, 1);
    }
    return less;
}

static bool less_at(lua_State *lua, int a, int b)
{
    lua_rawgeti(lua, 1, b);
    lua_rawgeti(lua, 1, a);
    return pop_less(lua);
}

/* The element at `root` goes down until no child is greater. */
static void sift(lua_State *lua, int root, int size)
{
    for (int child; (child = 2 * root) <= size; root = child) {
        if (child < size && less_at(lua, child, child + 1))
            child++;
        if (!less_at(lua, root, child))
            return;
        lua_rawgeti(lua, 1, root);
        lua_rawgeti(lua, 1, child);
        lua_rawseti(lua, 1, root);
        lua_rawseti(lua, 1, child);
    }
}

/* sort(list, [less]) */
static int table_sort(lua_State *lua)
{
    int size = check_list(lua, 1);
    if (!lua_isnoneornil(lua, 2))
        luaL_checktype(lua, 2, LUA_TFUNCTION);
    lib_check_unlocked(lua, 1);
    lua_settop(lua, 2);
    luaL_checkstack(lua, 8, "no room to sort");
    for (int root = size / 2; root >= 1; root--)
        sift(lua, root, size);
    for (int last = size; last > 1; last--) {
        lua_rawgeti(lua, 1, 1);
        lua_rawgeti(lua, 1, last);
        lua_rawseti(lua, 1, 1);
        lua_rawseti(lua, 1, last);
        sift(lua, 1, last - 1);
    }
    return 0;
}

void lib_table_push(lua_State *lua, int native)
{
    static const luaL_Reg ours[] = {
        {"insert", table_insert}, {"remove", table_remove}, {"sort", table_sort}, {NULL, NULL}};
    lua_newtable(lua);
    lib_register(lua, ours);
    lua_getfield(lua, native, "table"); /* ours theirs */
    lua_getfield(lua, -1, "concat");
    lua_pushcclosure(lua, table_concat, 1);
    lua_setfield(lua, -3, "concat");
    lua_getfield(lua, -1, "maxn");
    lua_setfield(lua, -3, "maxn");
    lua_pop(lua, 1); /* ours */
}
