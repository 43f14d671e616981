#include "script/state.h"

#include <stdlib.h>
#include <string.h>

#include <luajit.h>
#include <lualib.h>

#include "script/embedded.h"
#include "util/check.h"

enum { HOOK_EVERY = 1000 /* instructions */ };

static void *allocate(void *ctx, void *old, size_t old_size, size_t size)
{
    struct script_state *state = ctx;
    if (size == 0) {
        free(old);
        state->memory -= old_size;
        return NULL;
    }
    /* Shrinking must never fail: Lua relies on it. */
    if (size > old_size && size - old_size > state->memory_max - state->memory)
        return NULL;
    void *new = realloc(old, size);
    if (new)
        state->memory = state->memory - old_size + size;
    return new;
}

struct script_state *script_state_of(lua_State *lua)
{
    void *ctx;
    lua_getallocf(lua, &ctx);
    return ctx;
}

/* require(name) -> module. Upvalue 1: the modules loaded so far, by name. */
static int require_embedded(lua_State *lua)
{
    const char *name = luaL_checkstring(lua, 1);
    lua_settop(lua, 1);
    lua_pushvalue(lua, 1);
    lua_rawget(lua, lua_upvalueindex(1)); /* name module? */
    if (!lua_isnil(lua, -1))
        return 1;

    const struct script_embedded *found = script_embedded;
    while (found->module && strcmp(found->module, name) != 0)
        found++;
    if (!found->module)
        return luaL_error(lua, "there is no module %s", name);
    lua_pushfstring(lua, "=%s", name); /* name nil chunkname */
    if (luaL_loadbufferx(lua, found->text, found->len, lua_tostring(lua, -1), "t") != 0)
        return lua_error(lua);
    lua_pushvalue(lua, 1);
    lua_call(lua, 1, 1); /* name nil chunkname module */
    lua_pushvalue(lua, 1);
    lua_pushvalue(lua, -2);
    lua_rawset(lua, lua_upvalueindex(1));
    return 1;
}

/* Under lua_cpcall: libraries that compute, and nothing that reaches the machine. */
static int open_libraries(lua_State *lua)
{
    static const struct {
        const char *name;
        lua_CFunction open;
    } libraries[] = {
        {"", luaopen_base},
        {LUA_STRLIBNAME, luaopen_string},
        {LUA_TABLIBNAME, luaopen_table},
        {LUA_MATHLIBNAME, luaopen_math},
    };
    /* The handler of xpcall runs inside the hook, where no hook can stop it. */
    static const char *const unwanted[] = {"dofile",   "loadfile",  "loadstring", "print", "collectgarbage",
                                           "newproxy", "coroutine", "module",     "xpcall"};

    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        lua_pushcfunction(lua, libraries[i].open);
        lua_pushstring(lua, libraries[i].name);
        lua_call(lua, 1, 0);
    }
    for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++) {
        lua_pushnil(lua);
        lua_setglobal(lua, unwanted[i]);
    }
    lua_getglobal(lua, "string");
    lua_pushnil(lua);
    lua_setfield(lua, -2, "dump");
    lua_newtable(lua); /* string, modules */
    lua_pushcclosure(lua, require_embedded, 1);
    lua_setglobal(lua, "require");
    return 0;
}

enum status script_state_open(struct script_state *state, size_t memory_max, struct error *err)
{
    *state = (struct script_state){.memory_max = memory_max};
    state->lua = lua_newstate(allocate, state);
    if (!state->lua)
        return error_set(err, STATUS_FULL, "no memory for a Lua state");
    /* Compiled loops do not call the hook that holds the budget. */
    luaJIT_setmode(state->lua, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
    if (lua_cpcall(state->lua, open_libraries, NULL) != 0) {
        error_set(err, STATUS_FULL, "no memory for the Lua libraries");
        script_state_close(state);
        return STATUS_FULL;
    }
    return STATUS_OK;
}

void script_state_close(struct script_state *state)
{
    if (state->lua)
        lua_close(state->lua);
    state->lua = NULL;
    CHECK(state->memory == 0);
}

#define TOO_LONG "ran too long and was stopped; does a loop never end?"

static void count(lua_State *lua, lua_Debug *debug)
{
    (void)debug;
    struct script_state *state = script_state_of(lua);
    state->budget -= HOOK_EVERY;
    if (state->budget > 0)
        return;
    /* From here on at every instruction, so that no pcall of the script gets anywhere. */
    state->breached = true;
    lua_sethook(lua, count, LUA_MASKCOUNT, 1);
    luaL_where(lua, 0); /* the running function itself, not its caller */
    lua_pushliteral(lua, TOO_LONG);
    lua_concat(lua, 2);
    lua_error(lua);
}

int script_state_call(struct script_state *state, lua_State *lua, int arguments, int results, int64_t budget)
{
    CHECK(results >= 0);
    int bottom = lua_gettop(lua) - arguments - 1;
    state->budget = budget;
    state->breached = false;
    lua_sethook(lua, count, LUA_MASKCOUNT, HOOK_EVERY);
    int failed = lua_pcall(lua, arguments, results, 0);
    lua_sethook(lua, NULL, 0, 0);
    /* Code that caught the breach as its very last act has not succeeded. */
    if (!failed && state->breached) {
        lua_settop(lua, bottom);
        lua_pushliteral(lua, TOO_LONG);
        failed = LUA_ERRRUN;
    }
    return failed;
}
