/* Which lane does a hook take? A plan is made per source when the configuration is loaded; resolving a hook with it
 * gives, in one pass over the body, what every sink needs: does its filter take the hook, and which lane. The same
 * function serves ingest and everything that makes rows later, from the stored envelope (contract, section 4). */
#ifndef ORDER_ORDER_H
#define ORDER_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "envelope/envelope.h"
#include "json/json.h"
#include "util/arena.h"
#include "util/status.h"
#include "util/value.h"

enum { LANE_ID_SIZE = 16, ORDER_KEY_MAX = 128 };

struct lane_id {
    uint8_t bytes[LANE_ID_SIZE];
};

/* SHA-256 over length-prefixed source, sink name and key, or the mark of no key; the first 16 bytes (rule 7). */
struct lane_id lane_id_of(struct bytes source, struct bytes sink, struct bytes key);

/* A key as it is stamped: itself up to 128 bytes, else "sha256:" and lower-case hex (rule 5). From `arena`. */
struct bytes order_key_stamp(struct bytes key, struct arena *arena);

enum key_kind { KEY_HEADER, KEY_JSON, KEY_SCRIPT, KEY_FIRST };

/* One ordering key, as configuration gives it. Borrowed by the plan: lives as long as the configuration. */
struct key_spec {
    enum key_kind kind;
    struct bytes header; /* KEY_HEADER */
    struct json_path path; /* KEY_JSON */
    bool integers; /* KEY_JSON: an integer counts, as its exact digits */
    const char *module, *function; /* KEY_SCRIPT */
    const struct value *args; /* KEY_SCRIPT: a list, or NULL */
    const struct key_spec *items; /* KEY_FIRST */
    size_t item_count;
};

/* `only = { json | header, match = globs }`. A glob has '*' for any run of bytes and nothing else. */
struct filter_spec {
    bool by_header;
    struct bytes header;
    struct json_path path;
    const struct bytes *globs;
    size_t glob_count;
};

#define MISSING_REASONS(X)                                                                                   \
    X(NO_HEADER, "no_header")                                                                                \
    X(EMPTY, "empty")                                                                                        \
    X(NOT_JSON, "not_json")                                                                                  \
    X(TOO_LARGE, "too_large")                                                                                \
    X(NO_PATH, "no_path")                                                                                    \
    X(NOT_STRING, "not_string")                                                                              \
    X(SCRIPT_ERROR, "script_error")                                                                          \
    X(SCRIPT_BREACH, "script_breach")                                                                        \
    X(SCRIPT_TYPE, "script_type")

enum missing_reason {
    MISSING_NOTHING, /* there is a key, or none was asked for */
#define MISSING_ENUM(id, name) MISSING_##id,
    MISSING_REASONS(MISSING_ENUM)
#undef MISSING_ENUM
        MISSING_REASON_COUNT
};
const char *missing_reason_name(enum missing_reason reason); /* "" for MISSING_NOTHING */

struct order_sink {
    struct bytes name;
    bool ordered;
    const struct key_spec *key; /* NULL: one lane for all hooks of the sink */
    bool missing_is_unordered; /* on_missing_key = "unordered" */
    const struct filter_spec *only; /* NULL: everything */
};

/* How Lua keys reach this room without this room seeing Lua. `resolve` is called on the thread that resolves; it
 * gives a key (bytes from `arena`), or a missing reason, or *unordered = true. */
struct key_engine {
    void *ctx;
    enum missing_reason (*resolve)(void *ctx, const struct key_spec *spec, const struct envelope *envelope,
                                   struct arena *arena, struct bytes *key, bool *unordered);
};

struct order_options {
    struct bytes source;
    const struct order_sink *sinks;
    size_t sink_count;
    const struct key_spec *dedupe; /* header or JSON; NULL: none */
    size_t json_max_bytes; /* ordering.max_body_bytes: larger bodies have no JSON key */
    const struct key_engine *engine; /* NULL when no key is a script */
};

struct order_plan;

/* Options and what they point to are borrowed for the plan's life. INVALID with source, sink and reason when a spec
 * is malformed (the schema should have caught it). */
enum status order_plan_new(const struct order_options *options, struct order_plan **out, struct error *err);
void order_plan_free(struct order_plan *plan);

/* What one sink does with a hook. */
struct order_lane {
    bool filtered; /* `only` leaves it out: no row */
    bool ordered; /* it takes a lane; false on unordered sinks and for hooks outside the lanes */
    bool unordered_by_word; /* an ordered sink's hook that takes no lane: on_missing_key or lanegate.unordered */
    enum missing_reason missing; /* why there is no key, where one was asked for */
    enum json_kind found; /* what stood at a JSON path when it was not_string, for the warning of rule 6 */
    struct bytes key; /* as stamped; absent in the keyless lane and when not ordered */
    struct lane_id lane; /* when ordered */
};

/* Fills `lanes` (one per sink, in order) and `dedupe_key` (absent when none; may be NULL). Memory from `arena`. One
 * walk over the body at most, none when nothing asks. Any thread (script keys: their engine says). */
void order_resolve(const struct order_plan *plan, const struct envelope *envelope, struct arena *arena,
                   struct order_lane *lanes, struct bytes *dedupe_key);

/* The key a sink receives: the lane's key, or "tenant/source" for the keyless lane (rule 8). From `arena`. */
struct bytes order_sink_key(struct bytes key, struct bytes tenant, struct bytes source, struct arena *arena);

#endif
