/* What the tests of the room share: a walk for one dotted path over a body that ends exactly where its memory
 * ends, so that a sanitizer sees a byte read too far. */
#ifndef JSON_SUPPORT_H
#define JSON_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/mem.h"
#include "json/json.h"

struct lookup {
    bool valid;
    struct json_found found;
    char *body; /* found.raw points into it */
};

static inline struct lookup look_up(struct bytes body, const char *path)
{
    struct lookup result = {.body = mem_alloc(body.len)};
    memcpy(result.body, body.at, body.len);
    struct bytes segments[JSON_PATH_SEGMENTS_MAX];
    struct json_path one = {.segments = segments};
    assert_int_equal(json_path_split(bytes_str(path), segments, &one.segment_count, NULL), STATUS_OK);
    struct json_paths *paths = json_paths_new(&one, 1);
    result.valid = json_walk(bytes_of(result.body, body.len), paths, &result.found);
    json_paths_free(paths);
    return result;
}

static inline bool is_json(struct bytes body)
{
    char *copy = mem_alloc(body.len);
    memcpy(copy, body.at, body.len);
    bool valid = json_walk(bytes_of(copy, body.len), NULL, NULL);
    free(copy);
    return valid;
}

/* The string at `path`, decoded, is `expected`. */
static inline void finds_string(struct bytes body, const char *path, struct bytes expected)
{
    struct lookup result = look_up(body, path);
    assert_true(result.valid);
    assert_int_equal(result.found.kind, JSON_KIND_STRING);
    assert_false(result.found.lone_surrogate);
    char *text = mem_alloc(result.found.raw.len);
    size_t len = json_string_decode(&result.found, text);
    assert_int_equal(len, expected.len);
    assert_memory_equal(text, expected.at, len);
    free(text);
    free(result.body);
}

/* The body is JSON, and this kind of value stands at `path`. */
static inline void finds_kind(struct bytes body, const char *path, enum json_kind kind)
{
    struct lookup result = look_up(body, path);
    assert_true(result.valid);
    assert_int_equal(result.found.kind, kind);
    free(result.body);
}

#endif
