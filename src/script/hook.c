#include "script/hook.h"

#include "script/decode.h"
#include "script/form.h"
#include "script/guard.h"
#include "script/lib.h"
#include "json/json.h"

enum { BODY_BYTES_PER_INSTRUCTION = 128 };

static char meta_key; /* registry: the metatable */

enum field {
    FIELD_ID = 1,
    FIELD_TENANT,
    FIELD_SOURCE,
    FIELD_METHOD,
    FIELD_PATH,
    FIELD_CONTENT_TYPE,
    FIELD_RECEIVED_AT,
    FIELD_REMOTE_IP,
    FIELD_VERIFIED,
    FIELD_BODY,
};

/* Upvalue 1 of every method: the metatable. A look-up by name in the registry would cost more than the
 * method. */
static struct hook *check_hook(lua_State *lua)
{
    struct hook *hook = lua_touserdata(lua, 1);
    if (!hook || !lua_getmetatable(lua, 1) || !lua_rawequal(lua, -1, lua_upvalueindex(1))) {
        luaL_error(lua, "a hook is expected: call its functions with a colon, as in hook:header(\"name\")");
        return NULL;
    }
    lua_pop(lua, 1);
    if (!hook->envelope)
        luaL_error(lua, "this hook is over: it must not be kept from one call to the next");
    return hook;
}

/* An absent value is nil. */
static int push_bytes(lua_State *lua, struct bytes text)
{
    if (text.at)
        lua_pushlstring(lua, text.at, text.len);
    else
        lua_pushnil(lua);
    return 1;
}

/* Once a call: the text is kept beside the hook. */
static int push_body(lua_State *lua, struct hook *hook)
{
    if (hook->has_body) {
        lua_getfenv(lua, 1);
        lua_rawgeti(lua, -1, 1);
        return 1;
    }
    guard_room(lua, hook->envelope->body.len + 1024);
    guard_spare(lua, hook->envelope->body.len);
    push_bytes(lua, hook->envelope->body);
    guard_spared(lua);
    lua_createtable(lua, 1, 0); /* body environment */
    lua_pushvalue(lua, -2);
    lua_rawseti(lua, -2, 1);
    lua_setfenv(lua, 1);
    hook->has_body = true;
    return 1;
}

static int push_field(lua_State *lua, struct hook *hook, enum field field)
{
    const struct envelope *envelope = hook->envelope;
    switch (field) {
    case FIELD_ID: {
        char text[UUID_TEXT];
        uuid_format(&envelope->id, text);
        lua_pushlstring(lua, text, UUID_TEXT - 1);
        return 1;
    }
    case FIELD_TENANT:
        return push_bytes(lua, envelope->tenant);
    case FIELD_SOURCE:
        return push_bytes(lua, envelope->source);
    case FIELD_METHOD:
        return push_bytes(lua, envelope->method);
    case FIELD_PATH:
        return push_bytes(lua, envelope->path);
    case FIELD_CONTENT_TYPE:
        return push_bytes(lua, envelope->content_type);
    case FIELD_RECEIVED_AT:
        lua_pushnumber(lua, (lua_Number)envelope->received_at_ms);
        return 1;
    case FIELD_REMOTE_IP:
        return push_bytes(lua, envelope->remote_ip);
    case FIELD_VERIFIED:
        lua_pushboolean(lua, envelope->verification == VERIFICATION_OK);
        return 1;
    case FIELD_BODY:
        return push_body(lua, hook);
    }
    return 0;
}

/* hook.name. Upvalues: the metatable, the members: methods, and fields by number. */
static int hook_index(lua_State *lua)
{
    lua_pushvalue(lua, 2);
    lua_rawget(lua, lua_upvalueindex(2));
    if (lua_type(lua, -1) != LUA_TNUMBER)
        return 1;
    return push_field(lua, check_hook(lua), (enum field)lua_tointeger(lua, -1));
}

static int hook_newindex(lua_State *lua)
{
    return luaL_error(lua, "a hook is read-only");
}

static int hook_tostring(lua_State *lua)
{
    lua_pushliteral(lua, "hook");
    return 1;
}

/* Looking through the list of headers is work: a hundred of them, and scripts that ask a hundred times. */
static void pay_headers(lua_State *lua, const struct hook *hook)
{
    guard_charge(lua, 1 + (int64_t)hook->envelope->header_count / 8);
}

/* hook:header(name) -> value or nil */
static int hook_header(lua_State *lua)
{
    struct hook *hook = check_hook(lua);
    struct bytes name = lib_bytes(lua, 2);
    pay_headers(lua, hook);
    return push_bytes(lua, envelope_header(hook->envelope, name));
}

/* hook:headers(name) -> list */
static int hook_headers(lua_State *lua)
{
    struct hook *hook = check_hook(lua);
    struct bytes name = lib_bytes(lua, 2);
    pay_headers(lua, hook);
    lua_newtable(lua);
    int count = 0;
    for (size_t i = 0; i < hook->envelope->header_count; i++) {
        const struct header *header = &hook->envelope->headers[i];
        if (!bytes_eq_nocase(header->name, name))
            continue;
        push_bytes(lua, header->value);
        lua_rawseti(lua, -2, ++count);
    }
    return 1;
}

/* Upvalues: the metatable, the hook, how many were given. */
static int next_header(lua_State *lua)
{
    lua_settop(lua, 0);
    lua_pushvalue(lua, lua_upvalueindex(2));
    struct hook *hook = check_hook(lua);
    size_t i = (size_t)lua_tointeger(lua, lua_upvalueindex(3));
    if (i >= hook->envelope->header_count)
        return 0;
    lua_pushinteger(lua, (lua_Integer)i + 1);
    lua_replace(lua, lua_upvalueindex(3));
    push_bytes(lua, hook->envelope->headers[i].name);
    push_bytes(lua, hook->envelope->headers[i].value);
    return 2;
}

/* for name, value in hook:each_header() do */
static int hook_each_header(lua_State *lua)
{
    check_hook(lua);
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_pushvalue(lua, 1);
    lua_pushinteger(lua, 0);
    lua_pushcclosure(lua, next_header, 3);
    return 1;
}

static int push_form_value(lua_State *lua, struct bytes text, struct bytes name)
{
    guard_charge(lua, 1 + (int64_t)text.len / BODY_BYTES_PER_INSTRUCTION);
    struct bytes raw = form_find(text, name);
    if (!raw.at || !raw.len)
        return push_bytes(lua, raw);
    guard_room(lua, 2 * raw.len + 1024);
    char *out = lua_newuserdata(lua, raw.len);
    lua_pushlstring(lua, out, form_decode(raw, out));
    return 1;
}

/* hook:query(name) -> the first value of that name, decoded, or nil */
static int hook_query(lua_State *lua)
{
    struct hook *hook = check_hook(lua);
    return push_form_value(lua, hook->envelope->query, lib_bytes(lua, 2));
}

/* hook:form(name) -> the same out of a form in the body; nil when the body is none */
static int hook_form(lua_State *lua)
{
    struct hook *hook = check_hook(lua);
    struct bytes name = lib_bytes(lua, 2);
    if (!form_is_type(hook->envelope->content_type))
        return push_bytes(lua, BYTES_NONE);
    return push_form_value(lua, hook->envelope->body, name);
}

/* ---- JSON ---- */

/* A prepared path, of the collector. */
struct path {
    struct json_paths *paths;
};

static int path_gc(lua_State *lua)
{
    struct path *path = lua_touserdata(lua, 1);
    json_paths_free(path->paths);
    path->paths = NULL;
    return 0;
}

/* Pushes a path made of the text at the top. Upvalue 2: a table with the metatable of paths in [1] and how
 * many paths are known in [2]; upvalue 3: the known paths by their text. Both belong to hook:get alone. */
static struct json_paths *make_path(lua_State *lua)
{
    enum { COST = 100 };
    struct bytes segments[JSON_PATH_SEGMENTS_MAX];
    struct json_path spec = {.segments = segments};
    struct error err;
    struct bytes text = lib_bytes(lua, 2);
    guard_charge(lua, COST);
    if (text.len > HOOK_PATH_BYTES_MAX)
        luaL_error(lua, "a JSON path has at most %d bytes", HOOK_PATH_BYTES_MAX);
    if (json_path_split(text, segments, &spec.segment_count, &err) != STATUS_OK)
        luaL_error(lua, "%s", err.text);

    lua_rawgeti(lua, lua_upvalueindex(2), 2);
    int count = (int)lua_tointeger(lua, -1);
    lua_pop(lua, 1);
    if (count == HOOK_PATHS_MAX) { /* paths made at run time: forget them all */
        lua_newtable(lua);
        lua_replace(lua, lua_upvalueindex(3));
        count = 0;
    }
    struct path *path = lua_newuserdata(lua, sizeof *path);
    path->paths = NULL;
    lua_rawgeti(lua, lua_upvalueindex(2), 1);
    lua_setmetatable(lua, -2); /* from here on the collector frees it */
    path->paths = json_paths_new(&spec, 1);
    lua_pushvalue(lua, 2);
    lua_pushvalue(lua, -2);
    lua_rawset(lua, lua_upvalueindex(3));
    lua_pushinteger(lua, count + 1);
    lua_rawseti(lua, lua_upvalueindex(2), 2);
    return path->paths;
}

static struct json_paths *known_path(lua_State *lua)
{
    luaL_checktype(lua, 2, LUA_TSTRING);
    lua_settop(lua, 2);
    lua_pushvalue(lua, 2);
    lua_rawget(lua, lua_upvalueindex(3));
    struct path *path = lua_touserdata(lua, -1);
    return path ? path->paths : make_path(lua);
}

static int push_found(lua_State *lua, const struct json_found *found)
{
    switch (found->kind) {
    case JSON_KIND_STRING:
        if (found->lone_surrogate)
            return push_bytes(lua, BYTES_NONE);
        if (!found->escaped)
            return push_bytes(lua, found->raw);
        guard_room(lua, 2 * found->raw.len + 1024);
        char *out = lua_newuserdata(lua, found->raw.len);
        lua_pushlstring(lua, out, json_string_decode(found, out));
        return 1;
    case JSON_KIND_NUMBER:
        return push_bytes(lua, found->raw);
    case JSON_KIND_TRUE:
    case JSON_KIND_FALSE:
        lua_pushboolean(lua, found->kind == JSON_KIND_TRUE);
        return 1;
    default:
        return push_bytes(lua, BYTES_NONE);
    }
}

/* hook:get("a.b.c") -> a string, a number as its text, a boolean, or nil */
static int hook_get(lua_State *lua)
{
    struct hook *hook = check_hook(lua);
    struct json_paths *paths = known_path(lua);
    struct bytes body = hook->envelope->body;
    struct json_found found = {.kind = JSON_KIND_ABSENT};
    if (body.len <= hook->json_max_bytes) {
        guard_charge(lua, 1 + (int64_t)body.len / BODY_BYTES_PER_INSTRUCTION);
        json_walk(body, paths, &found);
    }
    return push_found(lua, &found);
}

/* hook:json() -> the body decoded, or nil and a reason */
static int hook_json(lua_State *lua)
{
    struct hook *hook = check_hook(lua);
    if (hook->envelope->body.len <= hook->json_max_bytes)
        return decode_push(lua, hook->envelope->body);
    lua_pushnil(lua);
    lua_pushliteral(lua, "the body is over ordering.max_body_bytes");
    return 2;
}

/* ---- life ---- */

static void add_method(lua_State *lua, int meta, const char *name, lua_CFunction function)
{
    lua_pushvalue(lua, meta);
    lua_pushcclosure(lua, function, 1);
    lua_setfield(lua, -2, name);
}

/* Its upvalues: the metatable, what belongs to paths, the known paths. */
static void add_get(lua_State *lua, int meta)
{
    lua_pushvalue(lua, meta);
    lua_createtable(lua, 2, 0); /* ... meta paths */
    lua_createtable(lua, 0, 1);
    lua_pushcfunction(lua, path_gc);
    lua_setfield(lua, -2, "__gc");
    lua_rawseti(lua, -2, 1);
    lua_newtable(lua); /* ... meta paths known */
    lua_pushcclosure(lua, hook_get, 3);
    lua_setfield(lua, -2, "get");
}

static void push_members(lua_State *lua, int meta)
{
    static const luaL_Reg methods[] = {
        {"header", hook_header},
        {"headers", hook_headers},
        {"each_header", hook_each_header},
        {"query", hook_query},
        {"form", hook_form},
        {"json", hook_json},
        {NULL, NULL},
    };
    static const char *const fields[] = {
        [FIELD_ID] = "id",
        [FIELD_TENANT] = "tenant",
        [FIELD_SOURCE] = "source",
        [FIELD_METHOD] = "method",
        [FIELD_PATH] = "path",
        [FIELD_CONTENT_TYPE] = "content_type",
        [FIELD_RECEIVED_AT] = "received_at",
        [FIELD_REMOTE_IP] = "remote_ip",
        [FIELD_VERIFIED] = "verified",
        [FIELD_BODY] = "body",
    };
    lua_newtable(lua); /* members */
    for (const luaL_Reg *method = methods; method->name; method++)
        add_method(lua, meta, method->name, method->func);
    add_get(lua, meta);
    for (int field = FIELD_ID; field <= FIELD_BODY; field++) {
        lua_pushinteger(lua, field);
        lua_setfield(lua, -2, fields[field]);
    }
}

void hook_prepare(lua_State *lua)
{
    lua_pushlightuserdata(lua, &meta_key);
    lua_newtable(lua); /* key meta */
    int meta = lua_gettop(lua);
    lua_pushvalue(lua, meta);
    push_members(lua, meta); /* key meta meta members */
    lua_pushcclosure(lua, hook_index, 2);
    lua_setfield(lua, meta, "__index");
    lua_pushcfunction(lua, hook_newindex);
    lua_setfield(lua, meta, "__newindex");
    lua_pushcfunction(lua, hook_tostring);
    lua_setfield(lua, meta, "__tostring");
    lua_pushboolean(lua, false);
    lua_setfield(lua, meta, "__metatable");
    lua_rawset(lua, LUA_REGISTRYINDEX);
}

struct hook *hook_push(lua_State *lua, const struct envelope *envelope, size_t json_max_bytes)
{
    struct hook *hook = lua_newuserdata(lua, sizeof *hook);
    *hook = (struct hook){.envelope = envelope, .json_max_bytes = json_max_bytes};
    lua_pushlightuserdata(lua, &meta_key);
    lua_rawget(lua, LUA_REGISTRYINDEX);
    lua_setmetatable(lua, -2);
    return hook;
}
