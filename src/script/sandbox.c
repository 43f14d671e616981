/* What a script sees is built from empty tables:
 *
 *     globals   what the running call has set; wiped before the next call
 *       └─ kept   what modules set while they were loaded
 *            └─ base   the functions of lib_*.c, and the libraries behind locks
 *
 * Chunks have `globals` as their environment. Everything that may raise runs under one protected call:
 * runner() does a job, and between jobs nothing here touches Lua but to move and read values on the stack. */
#include "script/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lualib.h>

#include "script/lib.h"
#include "util/check.h"
#include "util/mem.h"

static struct sandbox *sandbox_of(lua_State *lua)
{
    return (struct sandbox *)guard_of(lua); /* the guard is its first member */
}

/* ---- globals ---- */

/* Moves all members of the table at `from` to the one at `to`, which may be 0: to nowhere. */
static size_t move_members(lua_State *lua, int from, int to)
{
    size_t count = 0;
    lua_pushnil(lua);
    while (lua_next(lua, from)) { /* name value */
        count++;
        lua_pushvalue(lua, -2); /* name value name */
        if (to) {
            lua_pushvalue(lua, -2);
            lua_rawset(lua, to);
            lua_pushvalue(lua, -2); /* name value name */
        }
        lua_pushnil(lua);
        lua_rawset(lua, from); /* name value */
        lua_pop(lua, 1);
    }
    return count;
}

static void wipe_globals(lua_State *lua, struct sandbox *sandbox)
{
    lua_rawgeti(lua, LUA_REGISTRYINDEX, sandbox->globals);
    if (move_members(lua, lua_gettop(lua), 0) > SANDBOX_GLOBALS_MAX)
        sandbox->spent = true; /* an emptied table keeps its size, and is walked each time */
    lua_pop(lua, 1);
}

/* ---- require ---- */

static char loading; /* the mark of a module whose chunk is running */

/* Remembers what the module at the top is, or, with nil there, that it is not loaded. */
static void remember(lua_State *lua, int name)
{
    lua_pushvalue(lua, name);
    lua_pushvalue(lua, -2);
    lua_rawset(lua, lua_upvalueindex(1));
}

/* The chunk sees no globals of the call that needs it, and what it sets is the module's, not the call's. An
 * error goes on when the mark of loading is gone. */
static void run_chunk(lua_State *lua, struct sandbox *sandbox, int name)
{
    lua_rawgeti(lua, LUA_REGISTRYINDEX, sandbox->globals); /* chunk globals */
    int globals = lua_gettop(lua);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, sandbox->kept);
    lua_newtable(lua); /* chunk globals kept aside */
    move_members(lua, globals, globals + 2);
    lua_pushvalue(lua, globals);
    lua_setfenv(lua, globals - 1);
    lua_pushcfunction(lua, guard_handler);
    lua_pushvalue(lua, globals - 1);
    lua_pushvalue(lua, name);
    if (lua_pcall(lua, 1, 1, -3) != 0) {
        lua_pushnil(lua);
        remember(lua, name);
        lua_pop(lua, 1);
        lua_error(lua);
    }
    lua_remove(lua, -2); /* chunk globals kept aside module */
    move_members(lua, globals, globals + 1);
    move_members(lua, globals + 2, globals);
    lua_replace(lua, globals - 1);
    lua_settop(lua, globals - 1); /* module */
}

/* require(name) -> module. Upvalue 1: modules by name, the libraries among them. */
static int base_require(lua_State *lua)
{
    struct sandbox *sandbox = sandbox_of(lua);
    struct bytes name = lib_bytes(lua, 1);
    lua_settop(lua, 1);
    lua_pushvalue(lua, 1);
    lua_rawget(lua, lua_upvalueindex(1)); /* name module? */
    if (lua_touserdata(lua, -1) == &loading)
        return luaL_error(lua, "module %s needs itself", name.at);
    if (!lua_isnil(lua, -1))
        return 1;

    const struct source *source = sources_find(sandbox->sources, name);
    if (!source)
        guard_own_words(lua);
    if (!source)
        return luaL_error(lua, "there is no module %s under %s", name.at, sources_folder(sandbox->sources));
    guard_stack(lua);
    guard_charge(lua, 1 + (int64_t)source->text.len / 16);
    lua_pushlightuserdata(lua, &loading);
    remember(lua, 1);

    lua_pushfstring(lua, "@%s", source->path); /* name nil mark chunkname */
    if (luaL_loadbufferx(lua, source->text.at, source->text.len, lua_tostring(lua, -1), "t") != 0) {
        lua_pushnil(lua);
        remember(lua, 1);
        lua_pop(lua, 1);
        return lua_error(lua);
    }
    run_chunk(lua, sandbox, 1);
    if (lua_isnil(lua, -1)) {
        lua_pop(lua, 1);
        lua_pushboolean(lua, true);
    }
    remember(lua, 1);
    return 1;
}

/* ---- building ---- */

/* The library at the top goes into `base` under its name, behind a lock, and into `modules`. */
static void add_library(lua_State *lua, int base, int modules, const char *name)
{
    lib_lock(lua, name);
    lua_pushvalue(lua, -1);
    lua_setfield(lua, modules, name);
    lua_setfield(lua, base, name);
}

static void push_taken(lua_State *lua, int native, const char *name, const char *const *names)
{
    lua_getfield(lua, native, name);
    lua_newtable(lua);
    lib_take(lua, lua_gettop(lua) - 1, names);
    lua_remove(lua, -2);
}

static void open_native(lua_State *lua)
{
    static const struct {
        const char *name;
        lua_CFunction open;
    } libraries[] = {
        {"", luaopen_base},
        {LUA_STRLIBNAME, luaopen_string},
        {LUA_TABLIBNAME, luaopen_table},
        {LUA_MATHLIBNAME, luaopen_math},
        {LUA_BITLIBNAME, luaopen_bit},
    };
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        lua_pushcfunction(lua, libraries[i].open);
        lua_pushstring(lua, libraries[i].name);
        lua_call(lua, 1, 0);
    }
}

/* Fills the empty table at `base`; `native` holds LuaJIT's own globals, of which nothing else is taken. */
static void fill_base(lua_State *lua, int native, int base)
{
    static const char *const math[] = {"abs",   "acos", "asin",  "atan", "atan2", "ceil", "cos",   "cosh",
                                       "deg",   "exp",  "floor", "fmod", "frexp", "huge", "ldexp", "log",
                                       "log10", "max",  "min",   "modf", "pi",    "pow",  "rad",   "sin",
                                       "sinh",  "sqrt", "tan",   "tanh", NULL};
    static const char *const bit[] = {"arshift", "band", "bnot",   "bor",   "bswap", "bxor", "lshift",
                                      "rol",     "ror",  "rshift", "tobit", "tohex", NULL};
    lua_newtable(lua);
    int modules = lua_gettop(lua);
    lua_pushvalue(lua, base);
    lib_base_add(lua, native);
    lua_pop(lua, 1);
    push_taken(lua, native, "math", math);
    add_library(lua, base, modules, "math");
    push_taken(lua, native, "bit", bit);
    add_library(lua, base, modules, "bit");
    lib_string_push(lua, native);
    add_library(lua, base, modules, "string");
    lib_table_push(lua, native);
    add_library(lua, base, modules, "table");
    lib_coroutine_push(lua, native);
    add_library(lua, base, modules, "coroutine");
    lib_lanegate_push(lua);
    add_library(lua, base, modules, "lanegate");
    lua_pushcclosure(lua, base_require, 1); /* takes the modules */
    lua_setfield(lua, base, "require");
}

/* Pushes an empty table that reads through to the one at the top, and takes that away. */
static void push_over(lua_State *lua)
{
    lua_newtable(lua);
    lua_createtable(lua, 0, 2);
    lua_pushvalue(lua, -3);
    lua_setfield(lua, -2, "__index");
    lua_pushboolean(lua, false);
    lua_setfield(lua, -2, "__metatable");
    lua_setmetatable(lua, -2);
    lua_remove(lua, -2);
}

static int runner(lua_State *lua);

/* Under lua_cpcall. */
static int build(lua_State *lua)
{
    struct sandbox *sandbox = lua_touserdata(lua, 1);
    guard_prepare(lua);
    open_native(lua);
    lua_pushvalue(lua, LUA_GLOBALSINDEX);
    int native = lua_gettop(lua);
    lua_newtable(lua); /* native base */
    fill_base(lua, native, native + 1);
    push_over(lua); /* native kept */
    lua_pushvalue(lua, -1);
    sandbox->kept = luaL_ref(lua, LUA_REGISTRYINDEX);
    push_over(lua); /* native globals */
    sandbox->globals = luaL_ref(lua, LUA_REGISTRYINDEX);
    move_members(lua, native, 0); /* nothing of it is left to be found */
    hook_prepare(lua);
    lua_pushnil(lua);
    lua_setfield(lua, LUA_REGISTRYINDEX, "_LOADED");
    /* For between calls, when nothing may be allocated. */
    lua_pushcfunction(lua, guard_handler);
    sandbox->handler = luaL_ref(lua, LUA_REGISTRYINDEX);
    lua_pushcfunction(lua, runner);
    sandbox->runner = luaL_ref(lua, LUA_REGISTRYINDEX);
    return 0;
}

/* ---- jobs ---- */

static void load_module(lua_State *lua, struct sandbox *sandbox)
{
    lua_rawgeti(lua, LUA_REGISTRYINDEX, sandbox->globals);
    lua_getfield(lua, -1, "require");
    lua_pushstring(lua, sandbox->source->module);
    lua_call(lua, 1, 1);
    if (!lua_istable(lua, -1))
        luaL_error(lua, "%s: must return a table of functions, returned a %s", sandbox->source->path,
                   luaL_typename(lua, -1));
    sandbox->module = luaL_ref(lua, LUA_REGISTRYINDEX);
}

/* Pushes the function of the call. */
static void push_function(lua_State *lua, struct sandbox *sandbox)
{
    const struct sandbox_call *call = sandbox->call;
    int *known = &sandbox->functions[call->slot];
    if (*known) {
        lua_rawgeti(lua, LUA_REGISTRYINDEX, *known);
        return;
    }
    lua_rawgeti(lua, LUA_REGISTRYINDEX, sandbox->module);
    lua_getfield(lua, -1, call->spec->function);
    if (!lua_isfunction(lua, -1))
        luaL_error(lua, "%s: has no function %s", sandbox->source->path, call->spec->function);
    lua_pushvalue(lua, -1);
    *known = luaL_ref(lua, LUA_REGISTRYINDEX);
    lua_remove(lua, -2); /* function */
}

static void push_value(lua_State *lua, const struct value *value)
{
    luaL_checkstack(lua, 4, "arguments are nested too deep");
    switch (value->kind) {
    case VALUE_NIL:
        lua_pushnil(lua);
        break;
    case VALUE_BOOL:
        lua_pushboolean(lua, value->boolean);
        break;
    case VALUE_NUMBER:
        lua_pushnumber(lua, value->number);
        break;
    case VALUE_STRING:
        lua_pushlstring(lua, value->string.at, value->string.len);
        break;
    case VALUE_LIST:
        lua_createtable(lua, (int)value->len, 0);
        for (size_t i = 0; i < value->len; i++) {
            push_value(lua, &value->items[i]);
            lua_rawseti(lua, -2, (int)i + 1);
        }
        break;
    case VALUE_MAP:
        lua_createtable(lua, 0, (int)value->len);
        for (size_t i = 0; i < value->len; i++) {
            lua_pushlstring(lua, value->names[i].at, value->names[i].len);
            push_value(lua, &value->items[i]);
            lua_rawset(lua, -3);
        }
        break;
    }
}

/* Tables are made anew each time: a script that changed one would change its next call. */
static void call_function(lua_State *lua, struct sandbox *sandbox)
{
    const struct sandbox_call *call = sandbox->call;
    const struct value *args = call->spec->args;
    size_t count = args ? args->len : 0;
    luaL_checkstack(lua, (int)count + 8, "too many arguments");
    sandbox->hook = hook_push(lua, call->envelope, call->json_max_bytes); /* stays here: run() writes to it */
    push_function(lua, sandbox);
    lua_pushvalue(lua, -2); /* hook function hook */
    for (size_t i = 0; i < count; i++)
        push_value(lua, &args->items[i]);
    lua_call(lua, 1 + (int)count, call->results);
}

/* The one function that is called from outside, protected. */
static int runner(lua_State *lua)
{
    struct sandbox *sandbox = sandbox_of(lua);
    if (sandbox->guard.memory > sandbox->collect_above) {
        lua_gc(lua, LUA_GCCOLLECT, 0);
        size_t quarter = sandbox->limits.max_memory_bytes / 4, twice = 2 * sandbox->guard.memory;
        sandbox->collect_above = twice > quarter ? twice : quarter;
    }
    wipe_globals(lua, sandbox);
    switch (sandbox->job) {
    case SANDBOX_LOADS:
        load_module(lua, sandbox);
        return 0;
    case SANDBOX_FINDS:
        push_function(lua, sandbox);
        return 0;
    case SANDBOX_CALLS:
        call_function(lua, sandbox);
        return sandbox->call->results;
    }
    return 0;
}

static bool run(struct sandbox *sandbox, int job, const struct script_limits *limits, bool exact, int results)
{
    lua_State *lua = sandbox->guard.lua;
    sandbox->job = job;
    sandbox->hook = NULL;
    lua_settop(lua, 2); /* handler runner */
    lua_pushvalue(lua, 2);
    guard_begin(&sandbox->guard, limits, exact);
    int failed = lua_pcall(lua, 0, results, 1);
    guard_end(&sandbox->guard);
    if (sandbox->hook)
        sandbox->hook->envelope = NULL;
    if (sandbox->guard.breach)
        sandbox->spent = true;
    return !failed &&
           !sandbox->guard.breach; /* code that caught a breach as its last act has not succeeded */
}

bool sandbox_run(struct sandbox *sandbox, const struct sandbox_call *call)
{
    CHECK(!sandbox->spent && call->slot < sandbox->function_count);
    sandbox->call = call;
    return run(sandbox, SANDBOX_CALLS, &sandbox->limits, call->exact, call->results);
}

void sandbox_overflow(struct sandbox *sandbox)
{
    sandbox->guard.breach = SCRIPT_BREACH_RESULT;
    sandbox->spent = true;
}

/* ---- words ---- */

/* Nothing is allocated in the state: a number stays one. */
static const char *message_of(const struct sandbox *sandbox)
{
    lua_State *lua = sandbox->guard.lua;
    if (sandbox->guard.breach)
        return guard_breach_text(sandbox->guard.breach);
    if (lua_type(lua, -1) == LUA_TSTRING)
        return lua_tostring(lua, -1);
    return NULL;
}

void sandbox_explain(const struct sandbox *sandbox, struct buf *out)
{
    const struct guard *guard = &sandbox->guard;
    const char *message = message_of(sandbox);
    if (guard->breach && guard->at[0])
        buf_putf(out, "%s: ", guard->at);
    if (message)
        buf_puts(out, message);
    else
        buf_putf(out, "an error that is no text but a %s",
                 lua_typename(guard->lua, lua_type(guard->lua, -1)));
    buf_puts(out, guard->trace);
}

void sandbox_explain_safely(const struct sandbox *sandbox, struct buf *out)
{
    const struct guard *guard = &sandbox->guard;
    const char *message = message_of(sandbox);
    if (guard->breach || (message && !guard->own_words)) {
        if (guard->breach && guard->at[0])
            buf_putf(out, "%s: ", guard->at);
        buf_puts(out, message);
    } else {
        buf_puts(out, "the script raised an error of its own (lanegate key shows it)");
    }
    buf_puts(out, guard->trace);
}

/* One line. */
static enum status explain_load(const struct sandbox *sandbox, struct error *err)
{
    const struct guard *guard = &sandbox->guard;
    const char *message = message_of(sandbox);
    const char *at = guard->at[0] ? guard->at : sandbox->source->path;
    if (guard->breach)
        return error_set(err, STATUS_INVALID, "%s: loading it %s", at, message);
    if (!message)
        return error_set(err, STATUS_INVALID, "%s: loading it raised a %s", at,
                         lua_typename(guard->lua, lua_type(guard->lua, -1)));
    error_set(err, STATUS_INVALID, "%s", message);
    for (char *p = err ? err->text : NULL; p && *p; p++)
        if (*p == '\n' || *p == '\t')
            *p = ' ';
    return STATUS_INVALID;
}

/* ---- life ---- */

static bool start(struct sandbox *sandbox)
{
    if (!guard_open(&sandbox->guard, sandbox->limits.max_memory_bytes))
        return false;
    lua_State *lua = sandbox->guard.lua;
    if (lua_cpcall(lua, build, sandbox) != 0)
        return false;
    lua_settop(lua, 0);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, sandbox->handler);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, sandbox->runner); /* handler runner */
    return true;
}

struct sandbox *sandbox_open(const struct sources *sources, const char *module,
                             const struct script_limits *limits, size_t slots, struct error *err)
{
    const struct source *source = sources_find(sources, bytes_str(module));
    if (!source) {
        char path[256];
        snprintf(path, sizeof path, "%s", module);
        for (char *dot = path; (dot = strchr(dot, '.'));)
            *dot = '/';
        error_set(err, STATUS_INVALID, "there is no module %s: expected a file %s/%s.lua", module,
                  sources_folder(sources), path);
        return NULL;
    }
    struct sandbox *sandbox = mem_zalloc(sizeof *sandbox);
    sandbox->sources = sources;
    sandbox->source = source;
    sandbox->limits = sandbox->load_limits = *limits;
    if (sandbox->load_limits.max_instructions < SANDBOX_LOAD_INSTRUCTIONS)
        sandbox->load_limits.max_instructions = SANDBOX_LOAD_INSTRUCTIONS;
    sandbox->collect_above = limits->max_memory_bytes / 4;
    sandbox->functions = mem_zalloc((slots + 1) * sizeof *sandbox->functions);
    sandbox->function_count = slots;
    if (!start(sandbox))
        error_set(err, STATUS_INVALID, "%s: an empty state needs more than scripts.max_memory_bytes",
                  source->path);
    else if (!run(sandbox, SANDBOX_LOADS, &sandbox->load_limits, false, 0))
        explain_load(sandbox, err);
    else
        return sandbox;
    sandbox_close(sandbox);
    return NULL;
}

void sandbox_close(struct sandbox *sandbox)
{
    if (!sandbox)
        return;
    guard_close(&sandbox->guard);
    free(sandbox->functions);
    free(sandbox);
}

enum status sandbox_find(struct sandbox *sandbox, const struct sandbox_call *call, struct error *err)
{
    sandbox->call = call;
    return run(sandbox, SANDBOX_FINDS, &sandbox->limits, false, 0) ? STATUS_OK : explain_load(sandbox, err);
}
