/* The libraries that scripts see. Each function pushes one table of functions, for sandbox.c to put under a
 * name. Private to this room. What all of them keep:
 *   - no time that the caller has not paid for (guard.h), no memory outside the state
 *   - Lua is called from C only behind guard_stack
 *   - nothing that a script holds lets it change what another call sees */
#ifndef SCRIPT_LIB_H
#define SCRIPT_LIB_H

#include <stdbool.h>

#include <lauxlib.h>
#include <lua.h>

#include "util/bytes.h"

/* Base functions, straight into the table at the top. `native` is the index of LuaJIT's own globals. */
void lib_base_add(lua_State *lua, int native);
void lib_string_push(lua_State *lua, int native);
void lib_pattern_add(lua_State *lua); /* find match gmatch gsub, into the table at the top */
void lib_table_push(lua_State *lua, int native);
void lib_coroutine_push(lua_State *lua, int native);
void lib_lanegate_push(lua_State *lua);

/* ---- shared ---- */

/* Copies named functions of the table at `from` into the one at the top. `names` ends with NULL. */
void lib_take(lua_State *lua, int from, const char *const *names);
void lib_register(lua_State *lua, const luaL_Reg *functions);

/* Puts an empty, locked table in the place of the one at the top, which is read through it and can't be
 * changed. */
void lib_lock(lua_State *lua, const char *name);
/* Raises when the table at `index` is locked: for functions that write without metamethods. */
void lib_check_unlocked(lua_State *lua, int index);

/* What tostring gives, pushed; __tostring is called. Addresses are not shown: they would be randomness. */
void lib_tostring(lua_State *lua, int index);

/* Bytes of a string (or number) argument; raises for anything else. */
struct bytes lib_bytes(lua_State *lua, int index);

/* The marks: lanegate.null, lanegate.unordered. */
void lib_push_null(lua_State *lua);
bool lib_is_unordered(lua_State *lua, int index);

#endif
