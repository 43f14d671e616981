/* The text is walked once to validate it; then this reads what is known to be well formed. Containers that
 * are open lie on the Lua stack, objects with the name of the member that is being read. */
#include "script/decode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "script/guard.h"
#include "script/lib.h"
#include "json/json.h"

enum {
    BYTES_PER_INSTRUCTION = 16,
    SAFE_DIGITS = 14,    /* Lua prints so many exactly */
    NUMBER_TEXT_MAX = 64 /* longer ones stay text */
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *skip_space(const char *p)
{
    while (is_space(*p))
        p++;
    return p;
}

static unsigned hex4(const char *p)
{
    unsigned n = 0;
    for (int i = 0; i < 4; i++) {
        unsigned char c = (unsigned char)p[i];
        n = n << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return n;
}

static void add_utf8(luaL_Buffer *out, unsigned n)
{
    if (n < 0x80) {
        luaL_addchar(out, (char)n);
    } else if (n < 0x800) {
        luaL_addchar(out, (char)(0xc0 | n >> 6));
        luaL_addchar(out, (char)(0x80 | (n & 0x3f)));
    } else if (n < 0x10000) {
        luaL_addchar(out, (char)(0xe0 | n >> 12));
        luaL_addchar(out, (char)(0x80 | (n >> 6 & 0x3f)));
        luaL_addchar(out, (char)(0x80 | (n & 0x3f)));
    } else {
        luaL_addchar(out, (char)(0xf0 | n >> 18));
        luaL_addchar(out, (char)(0x80 | (n >> 12 & 0x3f)));
        luaL_addchar(out, (char)(0x80 | (n >> 6 & 0x3f)));
        luaL_addchar(out, (char)(0x80 | (n & 0x3f)));
    }
}

/* `p` at a backslash; gives what is behind the escape. */
static const char *add_escape(luaL_Buffer *out, const char *p)
{
    static const char plain[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    if (p[1] != 'u') {
        luaL_addchar(out, means[strchr(plain, p[1]) - plain]);
        return p + 2;
    }
    unsigned n = hex4(p + 2);
    p += 6;
    if (n >= 0xd800 && n < 0xdc00 && p[0] == '\\' && p[1] == 'u') {
        unsigned low = hex4(p + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            add_utf8(out, 0x10000 + ((n & 0x3ff) << 10 | (low & 0x3ff)));
            return p + 6;
        }
    }
    add_utf8(out, n >= 0xd800 && n < 0xe000 ? 0xfffd : n);
    return p;
}

/* `p` behind the opening quote; pushes the text, gives what is behind the closing one. */
static const char *push_string(lua_State *lua, const char *p)
{
    const char *end = p;
    while (*end != '"' && *end != '\\')
        end++;
    if (*end == '"') {
        lua_pushlstring(lua, p, (size_t)(end - p));
        return end + 1;
    }
    luaL_Buffer out;
    luaL_buffinit(lua, &out);
    for (;;) {
        luaL_addlstring(&out, p, (size_t)(end - p));
        p = end;
        if (*p == '"')
            break;
        p = end = add_escape(&out, p);
        while (*end != '"' && *end != '\\')
            end++;
    }
    luaL_pushresult(&out);
    return p + 1;
}

static const char *push_number(lua_State *lua, const char *p, const char *text_end)
{
    const char *end = p;
    size_t digits = 0;
    bool integer = true;
    for (; end < text_end && strchr("+-0123456789.eE", *end) && *end; end++) {
        digits += *end >= '0' && *end <= '9';
        integer = integer && *end != '.' && *end != 'e' && *end != 'E';
    }
    char copy[NUMBER_TEXT_MAX];
    size_t len = (size_t)(end - p);
    double value = HUGE_VAL;
    if (len < sizeof copy && !(integer && digits > SAFE_DIGITS)) {
        memcpy(copy, p, len);
        copy[len] = 0;
        value = strtod(copy, NULL);
    }
    if (isfinite(value))
        lua_pushnumber(lua, value);
    else
        lua_pushlstring(lua, p, len);
    return end;
}

/* A value that holds no others. */
static const char *push_scalar(lua_State *lua, const char *p, const char *end)
{
    switch (*p) {
    case '"':
        return push_string(lua, p + 1);
    case 't':
        lua_pushboolean(lua, true);
        return p + 4;
    case 'f':
        lua_pushboolean(lua, false);
        return p + 5;
    case 'n':
        lib_push_null(lua);
        return p + 4;
    default:
        return push_number(lua, p, end);
    }
}

/* Puts the value at the top where it belongs: in the container under it. */
static void put(lua_State *lua, bool in_object, int *count)
{
    if (in_object)
        lua_rawset(lua, -3); /* table name value */
    else
        lua_rawseti(lua, -2, ++*count);
}

/* Reads the name of a member and its colon. */
static const char *push_name(lua_State *lua, const char *p)
{
    p = skip_space(push_string(lua, p + 1));
    return skip_space(p + 1);
}

static void push_document(lua_State *lua, const char *p, const char *end)
{
    int counts[JSON_DEPTH_MAX + 1]; /* elements so far, of arrays */
    bool objects[JSON_DEPTH_MAX + 1];
    int depth = 0;
    for (;;) {
        if (*p == '{' || *p == '[') {
            luaL_checkstack(lua, 8, "JSON is nested too deep");
            lua_newtable(lua);
            depth++;
            objects[depth] = *p == '{';
            counts[depth] = 0;
            p = skip_space(p + 1);
            if (*p != '}' && *p != ']') {
                if (objects[depth])
                    p = push_name(lua, p);
                continue;
            }
        } else {
            p = push_scalar(lua, p, end);
            if (depth == 0)
                return;
            put(lua, objects[depth], &counts[depth]);
            p = skip_space(p);
        }
        while (*p == '}' || *p == ']') {
            if (--depth == 0)
                return;
            put(lua, objects[depth], &counts[depth]);
            p = skip_space(p + 1);
        }
        p = skip_space(p + 1); /* behind a comma */
        if (objects[depth])
            p = push_name(lua, p);
    }
}

int decode_push(lua_State *lua, struct bytes text)
{
    guard_charge(lua, 1 + (int64_t)text.len / BYTES_PER_INSTRUCTION);
    if (!json_walk(text, NULL, NULL)) {
        lua_pushnil(lua);
        lua_pushliteral(lua, "not JSON");
        return 2;
    }
    const char *end = text.at + text.len;
    if (bytes_starts(text, BYTES("\xef\xbb\xbf")))
        text.at += 3;
    push_document(lua, skip_space(text.at), end);
    return 1;
}
