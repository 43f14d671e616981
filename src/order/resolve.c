/* One hook, all sinks: filters, lanes and the dedupe key. */
#include "order/order_priv.h"
#include "util/check.h"

const char *missing_reason_name(enum missing_reason reason)
{
    static const char *const names[] = {"",
#define MISSING_NAME(id, name) name,
                                        MISSING_REASONS(MISSING_NAME)
#undef MISSING_NAME
    };
    CHECK(reason < MISSING_REASON_COUNT);
    return names[reason];
}

static struct key_result resolve_script(const struct resolution *r, const struct key_spec *spec)
{
    const struct key_engine *engine = r->plan->options.engine;
    struct key_result result = {.key = BYTES_NONE};
    result.missing =
        engine->resolve(engine->ctx, spec, r->envelope, r->arena, &result.key, &result.unordered);
    if (result.missing == MISSING_NOTHING && !result.unordered && result.key.len == 0)
        result.missing = MISSING_EMPTY;
    return result;
}

static struct key_result resolve_key(struct resolution *r, const struct key *key)
{
    const struct key_spec *spec = key->spec;
    switch (spec->kind) {
    case KEY_HEADER:
        return key_from_header(r, spec->header);
    case KEY_HEADERS:
        return key_from_headers(r, spec);
    case KEY_JSON:
        return key_from_json(r, key->slot, spec->integers);
    case KEY_SCRIPT:
        return resolve_script(r, spec);
    case KEY_FIRST:
        break;
    }
    /* The first that yields one; a word of a script for no lane at all counts as an answer. */
    struct key_result result = {.missing = MISSING_NO_PATH};
    for (size_t i = 0; i < spec->item_count; i++) {
        result = resolve_key(r, &key->items[i]);
        if (result.missing == MISSING_NOTHING)
            break;
    }
    return result;
}

static struct order_lane resolve_lane(struct resolution *r, const struct sink *sink)
{
    const struct order_sink *options = sink->options;
    if (sink->filter && !filter_takes(sink->filter, r))
        return (struct order_lane){.filtered = true};
    if (!options->ordered)
        return (struct order_lane){.ordered = false};
    if (!sink->key)
        return (struct order_lane){.ordered = true, .lane = sink->keyless};

    struct key_result result = resolve_key(r, sink->key);
    if (result.missing == MISSING_NOTHING && result.unordered)
        return (struct order_lane){.unordered_by_word = true};
    if (result.missing == MISSING_NOTHING) {
        struct bytes key = order_key_stamp(result.key, r->arena);
        return (struct order_lane){
            .ordered = true, .key = key, .lane = lane_id_of(r->plan->options.source, options->name, key)};
    }
    struct order_lane lane = {.missing = result.missing, .found = result.found};
    if (options->missing_is_unordered) {
        lane.unordered_by_word = true;
    } else {
        lane.ordered = true;
        lane.lane = sink->keyless;
    }
    return lane;
}

void order_resolve(const struct order_plan *plan, const struct envelope *envelope, struct arena *arena,
                   struct order_lane *lanes, struct bytes *dedupe_key)
{
    struct resolution r = {.plan = plan, .envelope = envelope, .arena = arena, .body = BODY_UNREAD};
    for (size_t i = 0; i < plan->options.sink_count; i++)
        lanes[i] = resolve_lane(&r, &plan->sinks[i]);
    if (!dedupe_key)
        return;
    *dedupe_key = BYTES_NONE;
    if (plan->dedupe) {
        struct key_result result = resolve_key(&r, plan->dedupe);
        if (result.missing == MISSING_NOTHING)
            *dedupe_key = stamp(result.key, ORDER_DEDUPE_MAX, arena);
    }
}
