/* Which lane does a hook take? A plan is made per source when the configuration is loaded; resolving a hook
 * with it gives, in one pass over the body, what every sink needs: does its filter take the hook, and which
 * lane. The same function serves ingest and everything that makes rows later, from the stored envelope
 * (contract, section 4). */
#ifndef ORDER_ORDER_H
#define ORDER_ORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "envelope/envelope.h"
#include "util/arena.h"
#include "util/buf.h"
#include "util/status.h"
#include "util/value.h"
#include "json/json.h"

enum { LANE_ID_SIZE = 16, ORDER_KEY_MAX = 128, ORDER_DEDUPE_MAX = 200, KEY_FIRST_DEPTH_MAX = 8 };

struct lane_id {
    uint8_t bytes[LANE_ID_SIZE];
};

/* SHA-256 over length-prefixed source, sink name and key, or the mark of no key (an absent one); the first 16
 * bytes (rule 7). The key is the stamped one. */
struct lane_id lane_id_of(struct bytes source, struct bytes sink, struct bytes key);

/* A key as it is stamped: itself up to 128 bytes, else "sha256:" and lower-case hex (rule 5). From `arena`.
 */
struct bytes order_key_stamp(struct bytes key, struct arena *arena);

enum key_kind { KEY_HEADER, KEY_JSON, KEY_SCRIPT, KEY_FIRST, KEY_HEADERS };

/* One ordering key, as configuration gives it. Borrowed by the plan: lives as long as the configuration.
 * `first` may hold `first`, KEY_FIRST_DEPTH_MAX deep. */
struct key_spec {
    enum key_kind kind;
    struct bytes header;         /* KEY_HEADER */
    const struct bytes *headers; /* KEY_HEADERS, of a dedupe key: all of them together */
    size_t header_count;
    struct json_path path;         /* KEY_JSON */
    bool integers;                 /* KEY_JSON: an integer counts, as its exact digits */
    const char *module, *function; /* KEY_SCRIPT */
    const struct value *args;      /* KEY_SCRIPT: a list, or NULL */
    const struct key_spec *items;  /* KEY_FIRST */
    size_t item_count;
};

/* `only = { json | header, match = globs }`. A glob has '*' for any run of bytes and nothing else. What
 * stands at a path is compared as text: a string decoded, a number as its digits, true and false as words;
 * null, objects and arrays match nothing. A body over json_max_bytes is not read, so a JSON filter takes it:
 * a hook is not lost for its size. */
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
    const struct key_spec *key;     /* NULL: one lane for all hooks of the sink */
    bool missing_is_unordered;      /* on_missing_key = "unordered" */
    const struct filter_spec *only; /* NULL: everything */
};

/* How Lua keys reach this room without this room seeing Lua. `resolve` is called on the thread that resolves;
 * it gives MISSING_NOTHING and a key (any length; bytes that live as long as `arena`) or *unordered = true,
 * else a missing reason. */
struct key_engine {
    void *ctx;
    enum missing_reason (*resolve)(void *ctx, const struct key_spec *spec, const struct envelope *envelope,
                                   struct arena *arena, struct bytes *key, bool *unordered);
};

struct order_options {
    struct bytes source;
    const struct order_sink *sinks;
    size_t sink_count;
    const struct key_spec *dedupe;   /* header, headers or JSON, or the first of such; NULL: none */
    size_t json_max_bytes;           /* ordering.max_body_bytes: larger bodies have no JSON key */
    const struct key_engine *engine; /* NULL when no key is a script */
};

struct order_plan;

/* What the options point to is borrowed for the plan's life, the struct itself is copied. INVALID with
 * source, sink and reason when a spec is malformed (the schema should have caught it): the first fault found.
 * Immutable: any thread may resolve with it. */
enum status order_plan_new(const struct order_options *options, struct order_plan **out, struct error *err);
void order_plan_free(struct order_plan *plan); /* NULL is fine */

/* What one sink does with a hook. */
struct order_lane {
    bool filtered;          /* `only` leaves it out: no row */
    bool ordered;           /* it takes a lane; false on unordered sinks and for hooks outside the lanes */
    bool unordered_by_word; /* an ordered sink's hook that takes no lane: on_missing_key or lanegate.unordered
                             */
    enum missing_reason missing; /* why there is no key, where one was asked for */
    enum json_kind found; /* what stood at a JSON path when it was not_string, for the warning of rule 6 */
    struct bytes key;     /* as stamped; absent in the keyless lane and when not ordered */
    struct lane_id lane;  /* when ordered */
};

/* Fills `lanes` (one per sink, in order) and `dedupe_key` (absent when none; over ORDER_DEDUPE_MAX bytes
 * hashed as a long key is; may be NULL). Memory from `arena`. One walk over the body at most, none when
 * nothing asks or the body is over the limit. Any thread (script keys: their engine says). */
void order_resolve(const struct order_plan *plan, const struct envelope *envelope, struct arena *arena,
                   struct order_lane *lanes, struct bytes *dedupe_key);

/* The key a sink receives: the lane's key, or "tenant/source" for the keyless lane (rule 8). From `arena`. */
struct bytes order_sink_key(struct bytes key, struct bytes tenant, struct bytes source, struct arena *arena);

/* Rule 6's warning: a sink whose hooks mostly have no key is configured wrong, and says so once. One watch a
 * sink, zeroed by its owner, who keeps it over the sink's life. */
enum { ORDER_WATCH_HOOKS = 100 };
struct order_watch {
    atomic_uint seen, missing;
};

/* Counts one hook of the sink (one its filter took). True exactly once: when half of ORDER_WATCH_HOOKS had no
 * key, within the first ORDER_WATCH_HOOKS. Any thread. */
bool order_watch_hook(struct order_watch *watch, const struct order_lane *lane);

/* For that warning and other texts: 'json "data.object.customer"', 'header "x-shop"', 'lua
 * keys.shop.by_region', 'first of ...'; and what was there instead of a key: "an object", "nothing", "no such
 * header" (static). */
void key_spec_describe(const struct key_spec *spec, struct buf *out);
const char *order_lane_instead(const struct order_lane *lane);

#endif
