/* What the tests of the room share: hooks from a few words, and one sink's answer to them. */
#ifndef ORDER_SUPPORT_H
#define ORDER_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "order/order.h"

/* Source "shop", sink "billing". */
#define SOURCE BYTES("shop")
#define SINK BYTES("billing")

/* A hook with a body and up to eight headers: name, value, ..., NULL. */
static inline struct envelope *hook(struct bytes body, const char *const *headers)
{
    struct envelope *e = envelope_new(256);
    e->tenant = BYTES("default");
    e->source = SOURCE;
    e->method = BYTES("POST");
    e->path = BYTES("/webhooks/shop");
    e->body = body;
    struct header *list = arena_zalloc(e->arena, 8 * sizeof *list);
    for (; headers && headers[2 * e->header_count]; e->header_count++)
        list[e->header_count] = (struct header){bytes_str(headers[2 * e->header_count]),
                                                bytes_str(headers[2 * e->header_count + 1])};
    e->headers = list;
    return e;
}

/* A JSON path as a spec holds it; lives in `arena`. */
static inline struct json_path path_of(const char *text, struct arena *arena)
{
    struct bytes *segments = arena_alloc(arena, JSON_PATH_SEGMENTS_MAX * sizeof *segments);
    struct json_path path = {.segments = segments};
    assert_int_equal(json_path_split(bytes_str(text), segments, &path.segment_count, NULL), STATUS_OK);
    return path;
}

static inline struct order_options one_sink(const struct order_sink *sink)
{
    return (struct order_options){
        .source = SOURCE, .sinks = sink, .sink_count = 1, .json_max_bytes = 1 << 20};
}

/* The lane that a source with these options gives to a hook; memory of the hook's own arena. */
static inline struct order_lane resolve_with(const struct order_options *options,
                                             const struct envelope *envelope)
{
    struct order_plan *plan;
    struct error err = {0};
    if (order_plan_new(options, &plan, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    struct order_lane lane;
    order_resolve(plan, envelope, envelope->arena, &lane, NULL);
    order_plan_free(plan);
    return lane;
}

static inline struct order_lane resolve_key_of(const struct key_spec *key, const struct envelope *envelope)
{
    struct order_sink sink = {.name = SINK, .ordered = true, .key = key};
    struct order_options options = one_sink(&sink);
    return resolve_with(&options, envelope);
}

static inline bool same_lane(struct lane_id a, struct lane_id b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static inline void is_key(const struct order_lane *lane, struct bytes key)
{
    assert_true(lane->ordered);
    assert_int_equal(lane->missing, MISSING_NOTHING);
    assert_true(bytes_eq(lane->key, key));
    assert_true(same_lane(lane->lane, lane_id_of(SOURCE, SINK, key)));
}

/* In the keyless lane, for this reason. */
static inline void is_keyless(const struct order_lane *lane, enum missing_reason reason)
{
    assert_true(lane->ordered);
    assert_string_equal(missing_reason_name(lane->missing), missing_reason_name(reason));
    assert_null(lane->key.at);
    assert_true(same_lane(lane->lane, lane_id_of(SOURCE, SINK, BYTES_NONE)));
}

#endif
