/* Reading a query, or a body that says the same in JSON. */
#include "admin/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "admin/params.h"
#include "util/buf.h"
#include "util/jsonw.h"
#include "json/tree.h"

bool query_is_name(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
              c == '-'))
            return false;
    }
    return text.len >= 1 && text.len <= 64;
}

/* Form decoding: '+' is a blank, %XX a byte. False when a % is not followed by two hex digits. */
static bool decode(struct bytes text, struct arena *arena, struct bytes *out)
{
    struct buf plain = {0};
    struct bytes copy = arena_copy(arena, text);
    for (size_t i = 0; i < copy.len; i++)
        if (copy.at[i] == '+')
            ((char *)copy.at)[i] = ' ';
    bool good = percent_decode(&plain, copy) && !plain.overflow;
    *out = arena_copy(arena, good ? buf_bytes(&plain) : text);
    buf_free(&plain);
    return good;
}

static bool refuse(struct query_fault *fault, const char *code, struct bytes filter, const char *expected)
{
    *fault = (struct query_fault){code, filter, expected};
    return false;
}

/* One "name=value". */
static bool take(struct bytes pair, uint64_t allowed, struct arena *arena, struct query *out,
                 struct query_fault *fault)
{
    const char *equals = memchr(pair.at, '=', pair.len);
    size_t name_len = equals ? (size_t)(equals - pair.at) : pair.len;
    struct bytes name, value = bytes_of("", 0);
    bool good_name = decode(bytes_of(pair.at, name_len), arena, &name);
    const struct param *param = good_name ? param_find(name, allowed) : NULL;
    if (!param)
        return refuse(fault, "unknown_filter", name, param_names(allowed, arena));
    if (out->given & param->bit)
        return refuse(fault, "bad_filter", name, "it once only");
    out->given |= param->bit;

    size_t value_at = name_len + (equals != NULL);
    bool good_value = decode(bytes_of(pair.at + value_at, pair.len - value_at), arena, &value);
    if (!good_value || !param->parse(out, value))
        return refuse(fault, "bad_filter", name, param_expected(param, arena));
    return true;
}

bool query_parse(struct bytes text, uint64_t allowed, struct arena *arena, struct query *out,
                 struct query_fault *fault)
{
    *out =
        (struct query){.lane_state = -1, .row_state = -1, .replay_state = -1, .limit = QUERY_LIMIT_DEFAULT};
    while (text.len) {
        const char *amp = memchr(text.at, '&', text.len);
        size_t len = amp ? (size_t)(amp - text.at) : text.len;
        if (len && !take(bytes_of(text.at, len), allowed, arena, out, fault))
            return false;
        text = bytes_of(text.at + len + (amp != NULL), text.len - len - (amp != NULL));
    }
    return true;
}

/* ---- a body ---- */

/* Its text; false for null, arrays and objects. */
static bool text_of(const json_t *value, struct arena *arena, struct bytes *text)
{
    char digits[32];
    switch (json_typeof(value)) {
    case JSON_STRING:
        *text = arena_copy(arena, bytes_of(json_string_value(value), json_string_length(value)));
        return true;
    case JSON_INTEGER:
        snprintf(digits, sizeof digits, "%" PRId64, (int64_t)json_integer_value(value));
        *text = arena_copy(arena, bytes_str(digits));
        return true;
    case JSON_REAL:
        snprintf(digits, sizeof digits, "%.12g", json_real_value(value));
        *text = arena_copy(arena, bytes_str(digits));
        return true;
    case JSON_TRUE:
    case JSON_FALSE:
        *text = json_is_true(value) ? BYTES("true") : BYTES("false");
        return true;
    default:
        return false;
    }
}

static bool take_member(const char *name, const json_t *value, uint64_t allowed, struct arena *arena,
                        struct query *query, struct query_fault *fault)
{
    struct bytes member = arena_copy(arena, bytes_str(name)), text;
    const struct param *param = param_find(member, allowed);
    if (!param)
        return refuse(fault, "unknown_member", member, param_names(allowed, arena));
    if (query->given & param->bit)
        return refuse(fault, "bad_member", member, "either in the query or in the body");
    query->given |= param->bit;
    if (!text_of(value, arena, &text) || !param->parse(query, text))
        return refuse(fault, "bad_member", member, param_expected(param, arena));
    return true;
}

bool query_parse_body(struct bytes body, uint64_t allowed, struct arena *arena, struct query *query,
                      struct query_fault *fault)
{
    if (bytes_trim(body).len == 0)
        return true;
    if (body.len > QUERY_BODY_MAX)
        return refuse(fault, "bad_body", BYTES(""), "at most 16 KiB");
    json_t *object = json_loadb(body.at, body.len, JSON_REJECT_DUPLICATES, NULL);
    bool good = json_is_object(object);
    if (!good)
        refuse(fault, "bad_body", BYTES(""), "a JSON object");
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        good = good && take_member(name, value, allowed, arena, query, fault);
    }
    json_decref(object);
    return good;
}
