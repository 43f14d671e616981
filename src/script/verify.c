/* Verifiers written in Lua. */
#include "script/scripts_priv.h"

#include <string.h>

/* A reason becomes part of an answer and a log line: words only. */
static const char *reason_of(lua_State *lua, struct arena *arena)
{
    enum { REASON_MAX = 64 };
    size_t len;
    if (lua_type(lua, -1) != LUA_TSTRING)
        return "failed";
    const char *at = lua_tolstring(lua, -1, &len);
    if (len == 0 || len > REASON_MAX || strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_") != len)
        return "failed";
    return arena_copy(arena, bytes_of(at, len)).at;
}

bool scripts_verify(struct scripts *scripts, const struct key_spec *spec, const struct envelope *envelope,
                    struct arena *arena, const char **reason)
{
    const struct entry *entry = scripts_entry(scripts, spec);
    const struct sandbox_call call = {.spec = spec,
                                      .slot = entry->function->slot,
                                      .envelope = envelope,
                                      .json_max_bytes = scripts->options.json_max_bytes,
                                      .results = 2};
    size_t module = entry->function->module;
    struct sandbox **place = scripts_place(scripts, module);
    struct error err;
    bool good = false;
    enum missing_reason missing = scripts_run(scripts, place, &call, module, &err);
    *reason = missing_reason_name(missing);
    if (missing == MISSING_NOTHING) {
        lua_State *lua = (*place)->guard.lua;
        good = lua_type(lua, -2) == LUA_TBOOLEAN && lua_toboolean(lua, -2);
        *reason = good ? "" : lua_type(lua, -2) == LUA_TBOOLEAN ? reason_of(lua, arena) : "script_type";
    }
    scripts_note(scripts, entry, *place, missing, &err);
    return good;
}
