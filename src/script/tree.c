#include "script/tree.h"

#include <lauxlib.h>

static void read_value(lua_State *lua, int index, struct arena *arena, struct value *out, int depth);

static bool is_list(lua_State *lua, int table)
{
    if (!lua_getmetatable(lua, table))
        return false;
    lua_getfield(lua, -1, "list");
    bool list = lua_toboolean(lua, -1);
    lua_pop(lua, 2);
    return list;
}

static void read_list(lua_State *lua, int table, struct arena *arena, struct value *out, int depth)
{
    size_t len = lua_objlen(lua, table);
    struct value *items = arena_zalloc(arena, (len + 1) * sizeof *items);
    for (size_t i = 0; i < len; i++) {
        lua_rawgeti(lua, table, (int)i + 1);
        read_value(lua, lua_gettop(lua), arena, &items[i], depth + 1);
        lua_pop(lua, 1);
    }
    *out = (struct value){.kind = VALUE_LIST, .len = len, .items = items};
}

static void read_map(lua_State *lua, int table, struct arena *arena, struct value *out, int depth)
{
    size_t len = 0;
    for (lua_pushnil(lua); lua_next(lua, table); lua_pop(lua, 1))
        len++;
    struct value *items = arena_zalloc(arena, (len + 1) * sizeof *items);
    struct bytes *names = arena_zalloc(arena, (len + 1) * sizeof *names);
    size_t i = 0;
    for (lua_pushnil(lua); lua_next(lua, table); lua_pop(lua, 1), i++) {
        /* key value; lua_tolstring on a number key would confuse lua_next */
        if (lua_type(lua, -2) != LUA_TSTRING)
            luaL_error(lua, "a table has a key that is not a text");
        size_t size;
        const char *name = lua_tolstring(lua, -2, &size);
        names[i] = arena_copy(arena, bytes_of(name, size));
        read_value(lua, lua_gettop(lua), arena, &items[i], depth + 1);
    }
    *out = (struct value){.kind = VALUE_MAP, .len = len, .items = items, .names = names};
}

static void read_value(lua_State *lua, int index, struct arena *arena, struct value *out, int depth)
{
    size_t size;
    const char *text;
    if (depth > SCRIPT_TREE_DEPTH)
        luaL_error(lua, "tables are nested too deep");
    luaL_checkstack(lua, 8, "tables are nested too deep");

    switch (lua_type(lua, index)) {
    case LUA_TNIL:
        *out = (struct value){.kind = VALUE_NIL};
        break;
    case LUA_TBOOLEAN:
        *out = (struct value){.kind = VALUE_BOOL, .boolean = lua_toboolean(lua, index)};
        break;
    case LUA_TNUMBER:
        *out = (struct value){.kind = VALUE_NUMBER, .number = lua_tonumber(lua, index)};
        break;
    case LUA_TSTRING:
        text = lua_tolstring(lua, index, &size);
        *out = (struct value){.kind = VALUE_STRING, .string = arena_copy(arena, bytes_of(text, size))};
        break;
    case LUA_TTABLE:
        if (is_list(lua, index))
            read_list(lua, index, arena, out, depth);
        else
            read_map(lua, index, arena, out, depth);
        break;
    default:
        luaL_error(lua, "a %s has no place in a configuration", luaL_typename(lua, index));
    }
}

void script_tree_read(lua_State *lua, int index, struct arena *arena, struct value *out)
{
    read_value(lua, index < 0 ? lua_gettop(lua) + index + 1 : index, arena, out, 0);
}
