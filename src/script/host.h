/* What C lends to lua/lanegate/config.lua: its `host` table. Private to this room. */
#ifndef SCRIPT_HOST_H
#define SCRIPT_HOST_H

#include <lua.h>

#include "script/script.h"

struct script_host {
    const struct script_judges *judges;
    struct arena *arena; /* for what judges look at */
};

/* Pushes the table. `host` is borrowed for the life of the state. */
void script_host_push(lua_State *lua, const struct script_host *host);

#endif
