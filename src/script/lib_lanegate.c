/* lanegate: what scripts need of us. */
#include "script/decode.h"
#include "script/guard.h"
#include "script/lib.h"

#include "util/digest.h"

enum { BYTES_PER_INSTRUCTION = 32, DIGEST_COST = 20 };

static char null_mark, unordered_mark;

void lib_push_null(lua_State *lua)
{
    lua_pushlightuserdata(lua, &null_mark);
}

bool lib_is_unordered(lua_State *lua, int index)
{
    return lua_touserdata(lua, index) == &unordered_mark;
}

static void pay(lua_State *lua, struct bytes text, int64_t fixed)
{
    guard_charge(lua, fixed + (int64_t)text.len / BYTES_PER_INSTRUCTION);
}

/* sha256(text) -> 32 bytes */
static int lanegate_sha256(lua_State *lua)
{
    struct bytes text = lib_bytes(lua, 1);
    uint8_t digest[SHA256_SIZE];
    pay(lua, text, DIGEST_COST);
    sha256(&text, 1, digest);
    lua_pushlstring(lua, (const char *)digest, sizeof digest);
    return 1;
}

/* hmac_sha256(secret, text) -> 32 bytes */
static int lanegate_hmac_sha256(lua_State *lua)
{
    struct bytes secret = lib_bytes(lua, 1), text = lib_bytes(lua, 2);
    uint8_t digest[SHA256_SIZE];
    pay(lua, secret, DIGEST_COST);
    pay(lua, text, DIGEST_COST);
    hmac_sha256(secret, &text, 1, digest);
    lua_pushlstring(lua, (const char *)digest, sizeof digest);
    return 1;
}

/* hex(text) -> lower-case digits */
static int lanegate_hex(lua_State *lua)
{
    struct bytes text = lib_bytes(lua, 1);
    pay(lua, text, 1);
    guard_room(lua, text.len * 4 + 1024);
    char *out = lua_newuserdata(lua, text.len * 2 + 1);
    hex_encode(text.at, text.len, out);
    lua_pushlstring(lua, out, text.len * 2);
    return 1;
}

/* base64(text) -> standard alphabet, padded */
static int lanegate_base64(lua_State *lua)
{
    struct bytes text = lib_bytes(lua, 1);
    pay(lua, text, 1);
    guard_room(lua, 2 * BASE64_SIZE(text.len) + 1024);
    char *out = lua_newuserdata(lua, BASE64_SIZE(text.len) + 1); /* of the collector, should the push raise */
    lua_pushlstring(lua, out, base64_write(text, out));
    return 1;
}

/* json_decode(text) -> value, or nil and a reason */
static int lanegate_json_decode(lua_State *lua)
{
    struct bytes text = lib_bytes(lua, 1);
    return decode_push(lua, text);
}

void lib_lanegate_push(lua_State *lua)
{
    static const luaL_Reg functions[] = {
        {"sha256", lanegate_sha256}, {"hmac_sha256", lanegate_hmac_sha256}, {"hex", lanegate_hex},
        {"base64", lanegate_base64}, {"json_decode", lanegate_json_decode}, {NULL, NULL}};
    lua_newtable(lua);
    lib_register(lua, functions);
    lua_pushlightuserdata(lua, &null_mark);
    lua_setfield(lua, -2, "null");
    lua_pushlightuserdata(lua, &unordered_mark);
    lua_setfield(lua, -2, "unordered");
}
