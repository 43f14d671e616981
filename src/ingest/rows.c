/* What a verified hook turns into, at ingest and when it leaves the pen: its dedupe key and its rows. */
#include "ingest/ingest_priv.h"

#include "util/log.h"

/* Rule 6: an ordered sink whose hooks mostly have no key is configured wrong, and all of them share one lane.
 */
static void warn_mostly_keyless(const struct ingest_source *source, const struct ingest_sink *sink,
                                const struct order_lane *lane)
{
    struct buf wanted = {0};
    if (sink->key)
        key_spec_describe(sink->key, &wanted);
    log_event(LOG_WARN, "ordering_key_mostly_missing", LOG_STR("source", source->name),
              LOG_STR("sink", sink->name), LOG_BYTES("wanted", buf_bytes(&wanted)),
              LOG_STR("reason", missing_reason_name(lane->missing)),
              LOG_STR("found", order_lane_instead(lane)));
    buf_free(&wanted);
}

void hook_resolve(const struct entry *entry, struct store_hook *hook)
{
    const struct ingest_source *source = entry->source;
    struct envelope *envelope = hook->envelope;
    struct bytes dedupe_key;
    struct order_lane *lanes = arena_alloc(envelope->arena, source->sink_count * sizeof *lanes);
    struct store_row *rows = arena_alloc(envelope->arena, source->sink_count * sizeof *rows);
    order_resolve(source->plan, envelope, envelope->arena, lanes, &dedupe_key);
    /* Whoever posts what nobody signed must not take the place of the true one. */
    if (envelope->verification != VERIFICATION_FAILED) {
        envelope->dedupe_key = dedupe_key;
        hook->dedupe_ttl_ms = source->dedupe_ttl_ms;
    }

    size_t count = 0;
    for (size_t i = 0; i < source->sink_count; i++) {
        const struct order_lane *lane = &lanes[i];
        struct sink_entry *sink = &entry->sinks[i];
        if (lane->filtered) {
            counter_add(sink->filtered, 1);
            continue;
        }
        if (lane->missing != MISSING_NOTHING)
            counter_add(sink->missing[lane->missing], 1);
        if (lane->unordered_by_word)
            counter_add(sink->unordered, 1);
        if (order_watch_hook(&sink->watch, lane))
            warn_mostly_keyless(source, &source->sinks[i], lane);
        struct store_row *row = &rows[count++];
        *row = (struct store_row){.sink = source->sinks[i].id, .ordered = lane->ordered, .key = lane->key};
        if (lane->ordered)
            memcpy(row->lane, lane->lane.bytes, sizeof row->lane);
    }
    hook->rows = rows;
    hook->row_count = count;
}
