/* One call: from a function and a hook to a key, or the reason why there is none, counted and logged. */
#include "script/lib.h"
#include "script/scripts_priv.h"

#include <string.h>

#include "util/clock.h"
#include "util/log.h"

enum { LOG_EVERY_MS = 60 * 1000, EXPLAIN_MAX = 4096 /* bytes */ };

/* Once a function and minute: a script that fails, fails at every hook. */
static bool may_log(struct function *function)
{
    long long now = clock_mono_ms(),
              before = atomic_load_explicit(&function->logged_ms, memory_order_relaxed);
    return (before == INT64_MIN || now - before >= LOG_EVERY_MS) &&
           atomic_compare_exchange_strong(&function->logged_ms, &before, now);
}

static void log_failure(const struct scripts *scripts, const struct function *function, const char *reason,
                        enum script_breach breach, struct bytes error)
{
    const char *module = scripts->modules.at[function->module].name;
    log_event(LOG_WARN, "script_failed", LOG_STR("module", module), LOG_STR("function", function->name),
              LOG_STR("reason", reason), LOG_STR("budget", script_breach_name(breach)),
              LOG_STR("error", error.at));
}

void scripts_note(const struct scripts *scripts, const struct entry *entry, const struct sandbox *sandbox,
                  enum missing_reason missing, const struct error *not_open)
{
    struct function *function = entry->function;
    if (!function->duration)
        return;
    if (sandbox)
        histogram_observe(function->duration, (double)sandbox->guard.elapsed_ns / 1e9);
    if (missing != MISSING_SCRIPT_ERROR && missing != MISSING_SCRIPT_BREACH)
        return;
    enum script_breach breach = sandbox ? sandbox->guard.breach : SCRIPT_BREACH_NONE;
    if (breach)
        counter_add(function->breaches[breach], 1);
    if (!may_log(function))
        return;
    struct buf text = {.max = EXPLAIN_MAX};
    if (sandbox)
        sandbox_explain_safely(sandbox, &text);
    else
        buf_puts(&text, not_open->text);
    log_failure(scripts, function, missing_reason_name(missing), breach, buf_bytes(&text));
    buf_free(&text);
}

enum missing_reason scripts_run(struct scripts *scripts, struct sandbox **place,
                                const struct sandbox_call *call, size_t module, struct error *err)
{
    if (!scripts_ready(scripts, place, module, err))
        return MISSING_SCRIPT_ERROR;
    if (sandbox_run(*place, call))
        return MISSING_NOTHING;
    return (*place)->guard.breach ? MISSING_SCRIPT_BREACH : MISSING_SCRIPT_ERROR;
}

static void read_result(const struct scripts *scripts, struct sandbox *sandbox, struct arena *arena,
                        struct script_result *out)
{
    lua_State *lua = sandbox->guard.lua;
    size_t len;
    if (lua_type(lua, -1) == LUA_TLIGHTUSERDATA && lib_is_unordered(lua, -1)) {
        out->unordered = true;
        return;
    }
    if (lua_type(lua, -1) != LUA_TSTRING) {
        out->missing = MISSING_SCRIPT_TYPE;
        return;
    }
    const char *at = lua_tolstring(lua, -1, &len);
    if (len > scripts->options.limits.max_result_bytes) {
        sandbox_overflow(sandbox);
        out->missing = MISSING_SCRIPT_BREACH;
        return;
    }
    out->key = arena_copy(arena, bytes_of(at, len));
}

/* `err` says why when the state did not open: *place is NULL then. */
static void call_key(struct scripts *scripts, struct sandbox **place, const struct entry *entry,
                     const struct envelope *envelope, struct arena *arena, bool exact,
                     struct script_result *out, struct error *err)
{
    const struct sandbox_call call = {.spec = entry->spec,
                                      .slot = entry->function->slot,
                                      .envelope = envelope,
                                      .json_max_bytes = scripts->options.json_max_bytes,
                                      .results = 1,
                                      .exact = exact};
    *out = (struct script_result){.key = BYTES_NONE, .error = ""};
    out->missing = scripts_run(scripts, place, &call, entry->function->module, err);
    if (out->missing == MISSING_NOTHING)
        read_result(scripts, *place, arena, out);
    if (*place)
        out->breach = (*place)->guard.breach;
}

enum missing_reason scripts_resolve(void *ctx, const struct key_spec *spec, const struct envelope *envelope,
                                    struct arena *arena, struct bytes *key, bool *unordered)
{
    struct scripts *scripts = ctx;
    const struct entry *entry = scripts_entry(scripts, spec);
    struct sandbox **place = scripts_place(scripts, entry->function->module);
    struct script_result result;
    struct error err;
    call_key(scripts, place, entry, envelope, arena, false, &result, &err);
    scripts_note(scripts, entry, *place, result.missing, &err);
    *key = result.key;
    *unordered = result.unordered;
    return result.missing;
}

/* ---- for people ---- */

static void read_cost(const struct script_limits *limits, const struct guard *guard, struct script_cost *cost)
{
    *cost = (struct script_cost){.instructions = limits->max_instructions - guard->instructions,
                                 .pattern_steps = limits->max_pattern_steps - guard->steps,
                                 .memory_bytes = guard->memory_peak,
                                 .time_ns = guard->elapsed_ns};
}

static const char *explain(const struct sandbox *sandbox, enum missing_reason missing, struct arena *arena)
{
    struct buf text = {.max = EXPLAIN_MAX};
    lua_State *lua = sandbox->guard.lua;
    if (missing == MISSING_SCRIPT_TYPE)
        buf_putf(&text, "must return a string or lanegate.unordered, returned a %s", luaL_typename(lua, -1));
    else if (missing)
        sandbox_explain(sandbox, &text);
    const char *copy = arena_copy(arena, buf_bytes(&text)).at;
    buf_free(&text);
    return copy;
}

void scripts_inspect(struct scripts *scripts, struct sandbox **place, const struct entry *entry,
                     const struct envelope *envelope, struct arena *arena, struct script_result *out)
{
    struct error err;
    call_key(scripts, place, entry, envelope, arena, true, out, &err);
    if (!*place) {
        out->error = arena_strdup(arena, err.text);
        return;
    }
    read_cost(&scripts->options.limits, &(*place)->guard, &out->cost);
    out->error = explain(*place, out->missing, arena);
}

void scripts_try(struct scripts *scripts, const struct key_spec *spec, const struct envelope *envelope,
                 struct arena *arena, struct script_result *out)
{
    const struct entry *entry = scripts_entry(scripts, spec);
    scripts_inspect(scripts, scripts_place(scripts, entry->function->module), entry, envelope, arena, out);
}
