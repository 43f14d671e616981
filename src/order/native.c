/* Keys that the core reads itself: a header, a value in a JSON body. */
#include "order/order_priv.h"
#include "util/check.h"

void resolution_read_body(struct resolution *r)
{
    if (r->body != BODY_UNREAD)
        return;
    const struct order_plan *plan = r->plan;
    CHECK(plan->paths);
    if (r->envelope->body.len > plan->options.json_max_bytes) {
        r->body = BODY_TOO_LARGE;
        return;
    }
    r->found = arena_alloc(r->arena, json_paths_count(plan->paths) * sizeof *r->found);
    r->body = json_walk(r->envelope->body, plan->paths, r->found) ? BODY_JSON : BODY_NOT_JSON;
}

struct bytes found_text(const struct json_found *found, struct arena *arena)
{
    CHECK(found->kind == JSON_KIND_STRING && !found->lone_surrogate);
    if (!found->escaped)
        return found->raw;
    char *text = arena_alloc(arena, found->raw.len);
    return bytes_of(text, json_string_decode(found, text));
}

static struct key_result missing(enum missing_reason reason)
{
    return (struct key_result){.missing = reason};
}

static struct key_result key_unless_empty(struct bytes key)
{
    return key.len ? (struct key_result){.key = key} : missing(MISSING_EMPTY);
}

struct key_result key_from_header(const struct resolution *r, struct bytes name)
{
    struct bytes value = envelope_header(r->envelope, name);
    return value.at ? key_unless_empty(value) : missing(MISSING_NO_HEADER);
}

/* A value in a joined key: what divides the values is written as its code inside one, so that no two lists
 * of values give the same key. */
static char *put_part(char *at, struct bytes value)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        if (c != ':' && c != '%') {
            *at++ = c;
            continue;
        }
        *at++ = '%';
        *at++ = hex[c >> 4];
        *at++ = hex[c & 15];
    }
    return at;
}

/* "a:b". One that is missing or empty leaves no key: the others alone would make different hooks the same. */
struct key_result key_from_headers(const struct resolution *r, const struct key_spec *spec)
{
    size_t most = spec->header_count;
    for (size_t i = 0; i < spec->header_count; i++) {
        struct key_result part = key_from_header(r, spec->headers[i]);
        if (part.missing != MISSING_NOTHING)
            return part;
        most += part.key.len * 3;
    }
    char *start = arena_alloc(r->arena, most), *at = start;
    for (size_t i = 0; i < spec->header_count; i++) {
        if (i > 0)
            *at++ = ':';
        at = put_part(at, envelope_header(r->envelope, spec->headers[i]));
    }
    return (struct key_result){.key = bytes_of(start, (size_t)(at - start))};
}

struct key_result key_from_json(struct resolution *r, size_t slot, bool integers)
{
    resolution_read_body(r);
    if (r->body == BODY_TOO_LARGE)
        return missing(MISSING_TOO_LARGE);
    if (r->body == BODY_NOT_JSON)
        return missing(MISSING_NOT_JSON);

    const struct json_found *found = &r->found[slot];
    if (found->kind == JSON_KIND_ABSENT)
        return missing(MISSING_NO_PATH);
    if (found->kind == JSON_KIND_STRING && !found->lone_surrogate)
        return key_unless_empty(found_text(found, r->arena));
    if (found->kind == JSON_KIND_NUMBER && found->integer && integers)
        return (struct key_result){.key = found->raw};
    return (struct key_result){.missing = MISSING_NOT_STRING, .found = found->kind};
}
