#include "script/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <luajit.h>

#include "util/check.h"

enum {
    INTERVAL_MAX = 1000, /* instructions */
    INTERVAL_BYTES =
        32 * 1024 * 1024,     /* instructions of an interval, times bytes held: what may be touched */
    SLOW_NS = 1000 * 1000,    /* a call that has taken so long has its processor time measured */
    NS_PER_INSTRUCTION = 200, /* an honest one takes 5 */
    TIME_MIN_NS = 20 * 1000 * 1000,
    EXACT_SLOWER = 20,
    TRACE_LEVELS = 12,
};

static char texts_key; /* registry: the list of breach texts */

struct guard *guard_of(lua_State *lua)
{
    void *ctx;
    lua_getallocf(lua, &ctx);
    return ctx;
}

const char *script_breach_name(enum script_breach breach)
{
    static const char *const names[] = {"",
#define BREACH_NAME(id, name) name,
                                        SCRIPT_BREACHES(BREACH_NAME)
#undef BREACH_NAME
    };
    return names[breach];
}

const char *guard_breach_text(enum script_breach breach)
{
    static const char *const texts[] = {
        "",
        "ran too many instructions (scripts.max_instructions)",
        "needed too much memory (scripts.max_memory_bytes)",
        "took too many pattern steps (scripts.max_pattern_steps)",
        "gave a result that is too long (scripts.max_result_bytes)",
        "took too much processor time for its instructions",
    };
    _Static_assert(sizeof texts / sizeof *texts == SCRIPT_BREACH_COUNT, "a text for every breach");
    return texts[breach];
}

/* ---- traceback: into the guard, since a state that is out of memory has no room for it ---- */

static void trace(lua_State *lua, struct guard *guard)
{
    size_t len = 0, size = sizeof guard->trace;
    lua_Debug at;
    guard->at[0] = 0;
    for (int level = 0; level < TRACE_LEVELS && lua_getstack(lua, level, &at); level++) {
        if (!lua_getinfo(lua, "Sln", &at))
            break;
        if (strcmp(at.what, "C") == 0 && !at.name)
            continue; /* ours */
        char line[16] = "";
        const char *file = at.source[0] == '@' ? at.source + 1 : at.short_src;
        if (at.currentline > 0)
            snprintf(line, sizeof line, ":%d", at.currentline);
        if (at.currentline > 0 && !guard->at[0])
            snprintf(guard->at, sizeof guard->at, "%.200s%s", file, line);
        int n = snprintf(guard->trace + len, size - len, "\n\t%s%s: in %s%s%s", file, line,
                         at.name                        ? "function '"
                         : strcmp(at.what, "main") == 0 ? "the module"
                                                        : "a function",
                         at.name ? at.name : "", at.name ? "'" : "");
        len += n < 0 ? 0 : (size_t)n;
        if (len >= size)
            break;
    }
}

int guard_handler(lua_State *lua)
{
    struct guard *guard = guard_of(lua);
    if (!guard->trace[0])
        trace(lua, guard);
    return 1;
}

/* ---- breaches ---- */

static void count(lua_State *lua, lua_Debug *debug);

/* Callable at any moment, also from inside the allocator: it only sets fields of the state. */
static void mark(struct guard *guard, enum script_breach breach)
{
    if (!guard->armed || guard->breach)
        return;
    guard->breach = breach;
    lua_sethook(guard->lua, count, LUA_MASKCOUNT, 1);
}

static int raise(lua_State *lua)
{
    struct guard *guard = guard_of(lua);
    if (!guard->trace[0])
        trace(lua, guard);
    lua_pushlightuserdata(lua, &texts_key);
    lua_rawget(lua, LUA_REGISTRYINDEX);
    lua_rawgeti(lua, -1, (int)guard->breach);
    return lua_error(lua);
}

void guard_check(lua_State *lua)
{
    if (guard_of(lua)->breach)
        raise(lua);
}

int guard_break(lua_State *lua, enum script_breach breach)
{
    mark(guard_of(lua), breach);
    return raise(lua);
}

void guard_charge(lua_State *lua, int64_t instructions)
{
    struct guard *guard = guard_of(lua);
    guard->instructions -= instructions;
    if (guard->armed && guard->instructions <= 0)
        mark(guard, SCRIPT_BREACH_INSTRUCTIONS);
    guard_check(lua);
}

void guard_charge_steps(lua_State *lua, int64_t left)
{
    struct guard *guard = guard_of(lua);
    guard->steps = left;
    if (left <= 0)
        mark(guard, SCRIPT_BREACH_PATTERN);
    guard_check(lua);
}

void guard_stack(lua_State *lua)
{
    struct guard *guard = guard_of(lua);
    guard_check(lua);
    if (guard->armed && (uintptr_t)__builtin_frame_address(0) < guard->stack_end)
        luaL_error(lua, "stack overflow (calls through C are nested too deep)");
}

void guard_room(lua_State *lua, size_t bytes)
{
    struct guard *guard = guard_of(lua);
    if (bytes < guard->memory_max - guard->memory)
        return;
    guard_charge(lua, (int64_t)(guard->memory / GUARD_BYTES_PER_INSTRUCTION));
    lua_gc(lua, LUA_GCCOLLECT, 0);
}

void guard_own_words(lua_State *lua)
{
    guard_of(lua)->own_words = true;
}

void guard_spare(lua_State *lua, size_t bytes)
{
    if (bytes >= GUARD_BIG_BYTES)
        guard_of(lua)->instructions += (int64_t)(bytes / GUARD_BYTES_PER_INSTRUCTION) + 1;
}

void guard_spared(lua_State *lua)
{
    guard_of(lua)->cpu_from_ns = 0;
}

/* ---- the hook ---- */

static int64_t now_ns(clockid_t clock)
{
    struct timespec now;
    CHECK(clock_gettime(clock, &now) == 0);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The wall clock is quick to read and says when to ask; only time of our own thread counts, or a busy machine
 * would break honest scripts. */
static bool too_slow(struct guard *guard)
{
    int64_t elapsed_ns = now_ns(CLOCK_MONOTONIC) - guard->started_ns;
    if (elapsed_ns < SLOW_NS)
        return false;
    if (!guard->cpu_from_ns) {
        guard->cpu_from_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
        return false;
    }
    return elapsed_ns > guard->time_max_ns &&
           now_ns(CLOCK_THREAD_CPUTIME_ID) - guard->cpu_from_ns > guard->time_max_ns;
}

static int interval_for(const struct guard *guard)
{
    if (guard->exact)
        return 1;
    int64_t interval = INTERVAL_BYTES / (int64_t)(guard->memory + 1);
    if (interval > INTERVAL_MAX)
        interval = INTERVAL_MAX;
    if (interval > guard->instructions)
        interval = guard->instructions;
    return interval < 1 ? 1 : (int)interval;
}

/* Within a call the interval only shrinks: what was not counted when it did is little. */
static void shrink_interval(struct guard *guard)
{
    int interval = interval_for(guard);
    if (interval >= guard->interval)
        return;
    guard->interval = interval;
    lua_sethook(guard->lua, count, LUA_MASKCOUNT, interval);
}

static void count(lua_State *lua, lua_Debug *debug)
{
    (void)debug;
    struct guard *guard = guard_of(lua);
    if (!guard->armed)
        return;
    if (!guard->breach) {
        guard->instructions -= guard->interval;
        if (guard->instructions <= 0)
            mark(guard, SCRIPT_BREACH_INSTRUCTIONS);
        else if (too_slow(guard))
            mark(guard, SCRIPT_BREACH_TIME);
        else
            shrink_interval(guard);
    }
    if (guard->breach)
        raise(lua);
}

/* ---- memory ---- */

static void *allocate(void *ctx, void *old, size_t old_size, size_t size)
{
    struct guard *guard = ctx;
    if (size == 0) {
        free(old);
        guard->memory -= old_size;
        return NULL;
    }
    /* Shrinking must never fail: Lua relies on it. */
    if (size > old_size && size - old_size > guard->memory_max - guard->memory) {
        mark(guard, SCRIPT_BREACH_MEMORY);
        return NULL;
    }
    void *new = realloc(old, size);
    if (!new)
        return NULL;
    guard->memory = guard->memory - old_size + size;
    if (guard->memory > guard->memory_peak)
        guard->memory_peak = guard->memory;
    if (size >= GUARD_BIG_BYTES && size > old_size && guard->armed && !guard->breach) {
        guard->instructions -= (int64_t)(size / GUARD_BYTES_PER_INSTRUCTION);
        if (guard->instructions <= 0)
            mark(guard, SCRIPT_BREACH_INSTRUCTIONS);
        else
            shrink_interval(guard);
    }
    return new;
}

/* ---- life ---- */

bool guard_open(struct guard *guard, size_t memory_max)
{
    *guard = (struct guard){.memory_max = memory_max};
    guard->lua = lua_newstate(allocate, guard);
    if (!guard->lua)
        return false;
    /* Compiled loops do not call the hook that holds the budget. */
    luaJIT_setmode(guard->lua, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
    return true;
}

void guard_close(struct guard *guard)
{
    if (!guard->lua)
        return;
    lua_sethook(guard->lua, NULL, 0, 0);
    lua_close(guard->lua);
    guard->lua = NULL;
    CHECK(guard->memory == 0);
}

void guard_prepare(lua_State *lua)
{
    lua_pushlightuserdata(lua, &texts_key);
    lua_createtable(lua, SCRIPT_BREACH_COUNT, 0); /* key texts */
    for (int breach = SCRIPT_BREACH_NONE + 1; breach < SCRIPT_BREACH_COUNT; breach++) {
        lua_pushstring(lua, guard_breach_text((enum script_breach)breach));
        lua_rawseti(lua, -2, breach);
    }
    lua_rawset(lua, LUA_REGISTRYINDEX);
    /* Garbage counts against the cap: collect it early. */
    lua_gc(lua, LUA_GCSETPAUSE, 120);
    lua_gc(lua, LUA_GCSETSTEPMUL, 400);
}

void guard_begin(struct guard *guard, const struct script_limits *limits, bool exact)
{
    guard->instructions = limits->max_instructions;
    guard->steps = limits->max_pattern_steps;
    guard->exact = exact;
    guard->breach = SCRIPT_BREACH_NONE;
    guard->memory_peak = guard->memory;
    guard->trace[0] = guard->at[0] = 0;
    guard->own_words = false;
    guard->cpu_from_ns = 0;
    guard->stack_end = (uintptr_t)__builtin_frame_address(0) - GUARD_C_STACK_MAX;
    guard->started_ns = now_ns(CLOCK_MONOTONIC);
    guard->time_max_ns = limits->max_instructions * NS_PER_INSTRUCTION;
    if (guard->time_max_ns < TIME_MIN_NS)
        guard->time_max_ns = TIME_MIN_NS;
    if (exact)
        guard->time_max_ns *= EXACT_SLOWER;
    guard->interval = interval_for(guard);
    guard->armed = true;
    lua_sethook(guard->lua, count, LUA_MASKCOUNT, guard->interval);
}

/* The hook stays: taking it away costs more than leaving it. */
void guard_end(struct guard *guard)
{
    guard->armed = false;
    guard->elapsed_ns = now_ns(CLOCK_MONOTONIC) - guard->started_ns;
}
