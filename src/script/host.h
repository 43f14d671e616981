/* What C lends to lua/lanegate/config.lua: its `host` table. Private to this room. */
#ifndef SCRIPT_HOST_H
#define SCRIPT_HOST_H

#include <lua.h>

/* Pushes the table. */
void script_host_push(lua_State *lua);

#endif
