/* Lua tables to trees of values (util/value.h). Private to this room. */
#ifndef SCRIPT_TREE_H
#define SCRIPT_TREE_H

#include <lua.h>

#include "util/arena.h"
#include "util/value.h"

enum { SCRIPT_TREE_DEPTH = 64 };

/* The Lua value at `index` as a tree in `arena`. Lists are the tables that lua/lanegate/tree.lua has marked.
 * Raises a Lua error for what no tree can hold; the arena is the caller's, so nothing is lost then. */
void script_tree_read(lua_State *lua, int index, struct arena *arena, struct value *out);

#endif
