/* JSON without a tree: one forward walk over the bytes that validates them and picks out every path asked
 * for. What counts as JSON is the contract's section 4, rule 6: RFC 8259 in UTF-8, numbers of any size, a
 * byte order mark in front, \u0000 anywhere, lone surrogate escapes anywhere, the last of duplicate names;
 * nesting to JSON_DEPTH_MAX. Trailing bytes, trailing commas, raw invalid UTF-8 are not JSON. Nothing is
 * allocated by a walk.
 *
 * tree.h beside this is the other door: jansson, for rooms that need a whole tree. */
#ifndef JSON_JSON_H
#define JSON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/bytes.h"
#include "util/status.h"

/* Objects and arrays inside each other; and the length of a path. */
enum { JSON_DEPTH_MAX = 2048, JSON_PATH_SEGMENTS_MAX = 64 };

/* A path: names of members, or numbers of array elements. "items.0.id" is three segments; segment "0" matches
 * both a member named 0 and element 0 of an array (numbers have no leading zero and no sign). Compared byte
 * for byte after decoding escapes. No segments at all is the whole body. */
struct json_path {
    const struct bytes *segments;
    size_t segment_count;
};

/* Splits a dotted text. The segments borrow `text`. INVALID (with a reason) when it is empty or has an empty
 * segment, or more than JSON_PATH_SEGMENTS_MAX. `segments` has room for that many. */
enum status json_path_split(struct bytes text, struct bytes segments[JSON_PATH_SEGMENTS_MAX], size_t *count,
                            struct error *err);

/* Several paths prepared for one walk. Immutable once prepared; any number of threads may walk with it. */
struct json_paths;
/* Copies the paths. Index i of `found` below belongs to paths[i]; the same path may be there twice. */
struct json_paths *json_paths_new(const struct json_path *paths, size_t count);
void json_paths_free(struct json_paths *paths); /* NULL is fine */
size_t json_paths_count(const struct json_paths *paths);

/* Named JSON_KIND_ because jansson owns JSON_STRING and its sisters. */
enum json_kind {
    JSON_KIND_ABSENT,
    JSON_KIND_STRING,
    JSON_KIND_NUMBER,
    JSON_KIND_TRUE,
    JSON_KIND_FALSE,
    JSON_KIND_NULL,
    JSON_KIND_OBJECT,
    JSON_KIND_ARRAY,
};

/* For people: "nothing", "a string", "a number", "true", "false", "null", "an object", "an array". */
const char *json_kind_name(enum json_kind kind);

struct json_found {
    enum json_kind kind;
    bool integer;        /* of a number: no fraction, no exponent; "-0" is one */
    bool escaped;        /* of a string: it has backslashes and must be decoded */
    bool lone_surrogate; /* of a string: it has an escape that no UTF-8 can hold */
    struct bytes raw;    /* borrowed from the body: a string without its quotes, anything else as it stands */
};

/* True when `body` is JSON, and `found` (json_paths_count entries) is filled; false otherwise, with `found`
 * all absent. `paths` may be NULL: validation only. Time is linear in the body; the stack it
 * takes is bounded by JSON_PATH_SEGMENTS_MAX, not by the body. Any thread. */
bool json_walk(struct bytes body, const struct json_paths *paths, struct json_found *found);

/* The decoded bytes of a JSON_KIND_STRING found by a walk (at most raw.len of them; never longer). `out` has
 * room for raw.len bytes. Gives the length. Must not be called on a lone surrogate. */
size_t json_string_decode(const struct json_found *found, char *out);

#endif
