/* lanegate.testing_core, loaded by lua/lanegate/testing.lua into the LuaJIT that runs a user's specs: the
 * gateway's own configuration, resolver and sandbox behind five functions. Whatever may raise a Lua error is
 * read from the stack before anything is allocated that the error would leak; what is allocated hangs on
 * userdata. */
#include <lauxlib.h>
#include <lua.h>
#include <string.h>

#include "config/config.h"
#include "envelope/raw.h"
#include "script/keys.h"
#include "util/clock.h"

static const char CONFIG[] = "lanegate.testing.config", ENVELOPE[] = "lanegate.testing.hook";

int luaopen_lanegate_testing_core(lua_State *L);

/* ---- configurations ---- */

static int config_gc(lua_State *L)
{
    struct config **config = luaL_checkudata(L, 1, CONFIG);
    if (*config)
        config_unref(*config);
    *config = NULL;
    return 0;
}

static const struct config *config_at(lua_State *L, int index)
{
    return *(struct config **)luaL_checkudata(L, index, CONFIG);
}

/* load(path) -> config; or nil and the faults. */
static int load(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct config **config = lua_newuserdata(L, sizeof *config);
    *config = NULL;
    luaL_getmetatable(L, CONFIG);
    lua_setmetatable(L, -2);
    struct buf faults = {0};
    enum status status = config_load(path, CONFIG_OFFLINE, config, &faults);
    if (status == STATUS_OK) {
        buf_free(&faults);
        return 1;
    }
    lua_pushnil(L);
    lua_pushstring(L, faults.len ? faults.at : status_text(status));
    buf_free(&faults);
    return 2;
}

static const struct config_source *source_at(lua_State *L, const struct config *config, int index)
{
    size_t len;
    const char *name = luaL_checklstring(L, index, &len);
    const struct config_source *source = config_source_find(config, bytes_of(name, len));
    if (!source)
        luaL_error(L, "there is no source \"%s\" in the configuration", name);
    return source;
}

/* ---- hooks ---- */

static int envelope_gc(lua_State *L)
{
    struct envelope **envelope = luaL_checkudata(L, 1, ENVELOPE);
    envelope_unref(*envelope);
    *envelope = NULL;
    return 0;
}

static struct envelope *envelope_at(lua_State *L, int index)
{
    return *(struct envelope **)luaL_checkudata(L, index, ENVELOPE);
}

static struct envelope **push_envelope(lua_State *L, size_t size_hint)
{
    struct envelope **envelope = lua_newuserdata(L, sizeof *envelope);
    *envelope = NULL;
    luaL_getmetatable(L, ENVELOPE);
    lua_setmetatable(L, -2);
    if (size_hint)
        *envelope = envelope_new(size_hint);
    return envelope;
}

/* A member of the table at 1, copied; absent when it is nil. */
static struct bytes text_member(lua_State *L, struct arena *arena, const char *name)
{
    lua_getfield(L, 1, name);
    struct bytes text = BYTES_NONE;
    if (!lua_isnil(L, -1)) {
        if (lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "hook.%s must be a string, got a %s", name, luaL_typename(L, -1));
        size_t len;
        const char *at = lua_tolstring(L, -1, &len);
        text = arena_copy(arena, bytes_of(at, len));
    }
    lua_pop(L, 1);
    return text;
}

/* hook.headers: a list of { name, value }, which testing.lua made of whatever it was given. */
static void read_headers(lua_State *L, struct envelope *envelope)
{
    lua_getfield(L, 1, "headers");
    size_t count = lua_istable(L, -1) ? lua_objlen(L, -1) : 0;
    struct header *headers = arena_zalloc(envelope->arena, (count + 1) * sizeof *headers);
    for (size_t i = 0; i < count; i++) {
        struct bytes parts[2];
        lua_rawgeti(L, -1, (int)i + 1);
        for (int part = 0; part < 2; part++) {
            size_t len;
            lua_rawgeti(L, -1, part + 1);
            const char *at = luaL_checklstring(L, -1, &len);
            parts[part] = arena_copy(envelope->arena, bytes_trim(bytes_of(at, len)));
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
        headers[i] = (struct header){parts[0], parts[1]};
    }
    lua_pop(L, 1);
    envelope->headers = headers;
    envelope->header_count = count;
}

static enum verification verification_at(lua_State *L)
{
    static const char *const names[] = {"skipped", "ok", "failed", NULL};
    lua_getfield(L, 1, "verification");
    int verification = luaL_checkoption(L, -1, "skipped", names);
    lua_pop(L, 1);
    return (enum verification)verification;
}

static void set_identity(lua_State *L, struct envelope *envelope)
{
    struct bytes id = text_member(L, envelope->arena, "id");
    lua_getfield(L, 1, "received_at");
    envelope->received_at_ms = lua_isnil(L, -1) ? clock_unix_ms() : (int64_t)luaL_checknumber(L, -1);
    lua_pop(L, 1);
    if (!id.at)
        envelope->id = uuid_new(envelope->received_at_ms);
    else if (!uuid_parse(id, &envelope->id))
        luaL_error(L, "hook.id must be a UUID, got \"%s\"", id.at);
}

/* hook(table) -> hook */
static int hook(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    struct envelope *envelope = *push_envelope(L, 4096);
    struct arena *arena = envelope->arena;
    set_identity(L, envelope);
    envelope->tenant = text_member(L, arena, "tenant");
    envelope->source = text_member(L, arena, "source");
    envelope->method = text_member(L, arena, "method");
    envelope->path = text_member(L, arena, "path");
    envelope->query = text_member(L, arena, "query");
    envelope->remote_ip = text_member(L, arena, "remote_ip");
    envelope->body = text_member(L, arena, "body");
    envelope->verification = verification_at(L);
    read_headers(L, envelope);
    envelope->content_type = envelope_header(envelope, BYTES("content-type"));
    return 1;
}

static void push_bytes(lua_State *L, const char *name, struct bytes text)
{
    if (!text.at)
        return;
    lua_pushlstring(L, text.at, text.len);
    lua_setfield(L, -2, name);
}

/* raw(text) -> a table as hook() takes it; or nil and what is wrong with the request. */
static int raw(lua_State *L)
{
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    struct envelope **box = push_envelope(L, 0);
    struct error err = {{0}};
    if (envelope_from_raw(bytes_of(text, len), box, &err) != STATUS_OK) {
        lua_pushnil(L);
        lua_pushstring(L, err.text);
        return 2;
    }
    const struct envelope *envelope = *box;
    lua_newtable(L);
    push_bytes(L, "method", envelope->method);
    push_bytes(L, "path", envelope->path);
    push_bytes(L, "query", envelope->query);
    push_bytes(L, "body", envelope->body);
    lua_createtable(L, (int)envelope->header_count, 0);
    for (size_t i = 0; i < envelope->header_count; i++) {
        const struct header *header = &envelope->headers[i];
        lua_createtable(L, 2, 0);
        lua_pushlstring(L, header->name.at, header->name.len);
        lua_rawseti(L, -2, 1);
        lua_pushlstring(L, header->value.at, header->value.len);
        lua_rawseti(L, -2, 2);
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_setfield(L, -2, "headers");
    return 1;
}

/* ---- what becomes of a hook ---- */

static void push_lane(lua_State *L, const struct config_sink *sink, const struct order_lane *lane)
{
    char hex[2 * LANE_ID_SIZE + 1];
    lua_newtable(L);
    lua_pushstring(L, sink->name);
    lua_setfield(L, -2, "sink");
    lua_pushboolean(L, sink->order.ordered);
    lua_setfield(L, -2, "ordered");
    lua_pushboolean(L, lane->filtered);
    lua_setfield(L, -2, "filtered");
    if (lane->missing != MISSING_NOTHING)
        push_bytes(L, "reason", bytes_str(missing_reason_name(lane->missing)));
    if (!lane->ordered)
        return;
    push_bytes(L, "key", lane->key);
    hex_encode(lane->lane.bytes, sizeof lane->lane.bytes, hex);
    push_bytes(L, "lane", bytes_str(hex));
}

/* Keys see the headers that the source stores (contract, section 4, rule 3). */
static struct envelope stored_form(const struct config_source *source, const struct envelope *envelope)
{
    struct envelope seen = *envelope;
    if (source->store_headers)
        envelope_keep_headers(&seen, source->store_headers, source->store_header_count);
    return seen;
}

/* resolve(config, source, hook) -> a list with one table a sink: sink, ordered, filtered, key, lane, reason,
 * error, nondeterministic. */
static int resolve(lua_State *L)
{
    const struct config *config = config_at(L, 1);
    const struct config_source *source = source_at(L, config, 2);
    struct envelope *envelope = envelope_at(L, 3);
    struct arena *arena = envelope->arena;
    struct envelope seen = stored_form(source, envelope);
    struct order_lane *lanes = arena_zalloc(arena, source->sink_count * sizeof *lanes);
    order_resolve(source->plan, &seen, arena, lanes, NULL);
    lua_createtable(L, (int)source->sink_count, 0);
    for (size_t i = 0; i < source->sink_count; i++) {
        struct script_result script;
        scripts_explain(config->scripts, source->sinks[i].order.key, &seen, arena, true, &script);
        push_lane(L, &source->sinks[i], &lanes[i]);
        if (*script.error)
            push_bytes(L, "error", bytes_str(script.error));
        lua_pushboolean(L, script.nondeterministic);
        lua_setfield(L, -2, "nondeterministic");
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

static void set_number(lua_State *L, const char *name, double number)
{
    lua_pushnumber(L, number);
    lua_setfield(L, -2, name);
}

/* budget(config, source, hook) -> what the scripts of the source's first sink used, in all. */
static int budget(lua_State *L)
{
    const struct config *config = config_at(L, 1);
    const struct config_source *source = source_at(L, config, 2);
    struct envelope *envelope = envelope_at(L, 3);
    struct envelope seen = stored_form(source, envelope);
    struct script_result script;
    scripts_explain(config->scripts, source->sinks[0].order.key, &seen, envelope->arena, false, &script);
    lua_newtable(L);
    set_number(L, "instructions", (double)script.cost.instructions);
    set_number(L, "pattern_steps", (double)script.cost.pattern_steps);
    set_number(L, "memory_bytes", (double)script.cost.memory_bytes);
    set_number(L, "time_ns", (double)script.cost.time_ns);
    if (script.breach != SCRIPT_BREACH_NONE)
        push_bytes(L, "breach", bytes_str(script_breach_name(script.breach)));
    return 1;
}

static void make_type(lua_State *L, const char *name, lua_CFunction gc)
{
    luaL_newmetatable(L, name);
    lua_pushcfunction(L, gc);
    lua_setfield(L, -2, "__gc");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}

__attribute__((visibility("default"))) int luaopen_lanegate_testing_core(lua_State *L)
{
    static const luaL_Reg functions[] = {{"load", load},       {"hook", hook},     {"raw", raw},
                                         {"resolve", resolve}, {"budget", budget}, {NULL, NULL}};
    make_type(L, CONFIG, config_gc);
    make_type(L, ENVELOPE, envelope_gc);
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}
