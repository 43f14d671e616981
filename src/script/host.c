#include "script/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "script/machine.h"
#include "script/state.h"
#include "script/tree.h"
#include "util/units.h"

enum {
    SECRET_FILE_MAX = 64 * 1024,            /* bytes: what `file` reads */
    CONFIG_INSTRUCTIONS = 50 * 1000 * 1000, /* under a second */
};

/* nil, reason */
static int fail(lua_State *lua, const char *reason)
{
    lua_pushnil(lua);
    lua_pushstring(lua, reason);
    return 2;
}

/* getenv(name) -> text or nil */
static int host_getenv(lua_State *lua)
{
    lua_pushstring(lua, getenv(luaL_checkstring(lua, 1)));
    return 1;
}

/* Fills `at` (of `size` bytes) from the file; its length, or -errno. */
static ssize_t read_whole(const char *path, char *at, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    size_t len = 0;
    ssize_t n = 0;
    while (len < size && (n = read(fd, at + len, size - len)) > 0)
        len += (size_t)n;
    ssize_t result = n < 0 ? -errno : (ssize_t)len;
    close(fd);
    return result;
}

/* read_file(path) -> text, or nil and a reason */
static int host_read_file(lua_State *lua)
{
    const char *path = luaL_checkstring(lua, 1);
    char *at = lua_newuserdata(lua, SECRET_FILE_MAX + 1); /* of the collector, should a push below raise */
    ssize_t len = read_whole(path, at, SECRET_FILE_MAX + 1);
    if (len < 0)
        return fail(lua, strerror((int)-len));
    if (len > SECRET_FILE_MAX)
        return fail(lua, "it has more than 64 KiB");
    lua_pushlstring(lua, at, (size_t)len);
    return 1;
}

/* readable(path) -> true, or nil and a reason */
static int host_readable(lua_State *lua)
{
    const char *path = luaL_checkstring(lua, 1);
    struct stat facts;
    if (stat(path, &facts) != 0 || access(path, R_OK) != 0)
        return fail(lua, strerror(errno));
    if (S_ISDIR(facts.st_mode))
        return fail(lua, "it is a directory");
    lua_pushboolean(lua, true);
    return 1;
}

static int parse(lua_State *lua, bool (*units)(struct bytes text, int64_t *n))
{
    size_t len;
    const char *text = luaL_checklstring(lua, 1, &len);
    int64_t n;
    if (units(bytes_of(text, len), &n))
        lua_pushnumber(lua, (lua_Number)n);
    else
        lua_pushnil(lua);
    return 1;
}

/* parse_ms(text) -> number or nil */
static int host_parse_ms(lua_State *lua)
{
    return parse(lua, units_parse_ms);
}

/* parse_bytes(text) -> number or nil */
static int host_parse_bytes(lua_State *lua)
{
    return parse(lua, units_parse_bytes);
}

/* within_budget(func) -> true and its result, or false and its error */
static int host_within_budget(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TFUNCTION);
    lua_settop(lua, 1);
    int failed =
        script_state_call(script_state_of(lua), lua, 0, 1, CONFIG_INSTRUCTIONS); /* result or error */
    lua_pushboolean(lua, !failed);
    lua_insert(lua, -2);
    return 2;
}

static const struct script_host *host_of(lua_State *lua)
{
    return lua_touserdata(lua, lua_upvalueindex(1));
}

/* nil, or what is wrong */
static int verdict(lua_State *lua, enum status status, const struct error *err)
{
    if (status == STATUS_OK)
        lua_pushnil(lua);
    else
        lua_pushstring(lua, err->text);
    return 1;
}

/* judge_url(url, is_proxy, ranges, allow_http) */
static int host_judge_url(lua_State *lua)
{
    const char *url = luaL_checkstring(lua, 1);
    luaL_checktype(lua, 3, LUA_TTABLE);
    size_t count = lua_objlen(lua, 3);
    const char **ranges = lua_newuserdata(lua, (count + 1) * sizeof *ranges);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(lua, 3, (int)i + 1);
        ranges[i] = luaL_checkstring(lua, -1); /* held by the list */
        lua_pop(lua, 1);
    }
    ranges[count] = NULL;
    struct error err = {0};
    return verdict(lua,
                   host_of(lua)->judges->url(url, lua_toboolean(lua, 2), ranges, lua_toboolean(lua, 4), &err),
                   &err);
}

/* judge_range(text) */
static int host_judge_range(lua_State *lua)
{
    struct error err = {0};
    return verdict(lua, host_of(lua)->judges->range(luaL_checkstring(lua, 1), &err), &err);
}

/* judge_secret(text) */
static int host_judge_secret(lua_State *lua)
{
    size_t len;
    const char *text = luaL_checklstring(lua, 1, &len);
    struct error err = {0};
    return verdict(lua, host_of(lua)->judges->secret(bytes_of(text, len), &err), &err);
}

/* judge_verify(options) */
static int host_judge_verify(lua_State *lua)
{
    struct value options;
    luaL_checktype(lua, 1, LUA_TTABLE);
    script_tree_read(lua, 1, host_of(lua)->arena, &options);
    struct error err = {0};
    return verdict(lua, host_of(lua)->judges->verify(&options, &err), &err);
}

/* judge_tls(cert, key, client_ca or nil) */
static int host_judge_tls(lua_State *lua)
{
    struct error err = {0};
    return verdict(lua,
                   host_of(lua)->judges->tls(luaL_checkstring(lua, 1), luaL_checkstring(lua, 2),
                                             luaL_optstring(lua, 3, NULL), &err),
                   &err);
}

void script_host_push(lua_State *lua, const struct script_host *host)
{
    static const luaL_Reg functions[] = {
        {"getenv", host_getenv},
        {"read_file", host_read_file},
        {"readable", host_readable},
        {"parse_ms", host_parse_ms},
        {"parse_bytes", host_parse_bytes},
        {"within_budget", host_within_budget},
        {"judge_url", host_judge_url},
        {"judge_range", host_judge_range},
        {"judge_secret", host_judge_secret},
        {"judge_verify", host_judge_verify},
        {"judge_tls", host_judge_tls},
        {NULL, NULL},
    };
    lua_createtable(lua, 0, 14); /* host */
    for (const luaL_Reg *f = functions; f->name; f++) {
        lua_pushlightuserdata(lua, (void *)host);
        lua_pushcclosure(lua, f->func, 1);
        lua_setfield(lua, -2, f->name);
    }
    lua_pushnumber(lua, machine_cores());
    lua_setfield(lua, -2, "cores");
    lua_pushnumber(lua, (lua_Number)machine_memory());
    lua_setfield(lua, -2, "memory");
    lua_pushboolean(lua, isatty(STDERR_FILENO));
    lua_setfield(lua, -2, "terminal");
}
