/* The hook as a script sees it: a userdata that borrows the envelope for one call. What is asked for is
 * looked up in C; nothing is copied before. Private to this room. */
#ifndef SCRIPT_HOOK_H
#define SCRIPT_HOOK_H

#include <stddef.h>

#include <lua.h>

#include "envelope/envelope.h"

enum { HOOK_PATHS_MAX = 64, HOOK_PATH_BYTES_MAX = 1024 };

/* In the userdata. */
struct hook {
    const struct envelope *envelope; /* NULL: its call is over */
    size_t json_max_bytes;
    bool has_body; /* the body's text lies in the userdata's environment */
};

/* Leaves what hooks are made of in the registry of the state. */
void hook_prepare(lua_State *lua);
/* Pushes a new one; it is dead from the moment its envelope is set to NULL, which the caller must do before
 * the envelope goes. */
struct hook *hook_push(lua_State *lua, const struct envelope *envelope, size_t json_max_bytes);

#endif
