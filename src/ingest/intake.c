/* The way of one hook, straight down: envelope, verification, lanes, commit, answer. Everything it needs
 * lives in the envelope's arena, so one free ends it. */
#include "ingest/ingest_priv.h"

#include <string.h>

#include "util/clock.h"
#include "util/log.h"

/* From the complete request to its answer. */
struct intake {
    struct store_hook hook;
    struct ingest *ingest;
    struct entry *entry;
    struct http_exchange *exchange;
    int64_t started_us;
};

static void count_verify_failure(const struct entry *entry, const char *reason)
{
    const char *const *reasons = verify_reasons();
    for (size_t i = 0; reasons[i]; i++)
        if (strcmp(reasons[i], reason) == 0)
            counter_add(entry->verify_failures[i], 1);
}

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

/* One row for every sink whose filter takes the hook. */
static void make_rows(const struct entry *entry, struct envelope *envelope, struct store_hook *hook)
{
    const struct ingest_source *source = entry->source;
    struct order_lane *lanes = arena_alloc(envelope->arena, source->sink_count * sizeof *lanes);
    struct store_row *rows = arena_alloc(envelope->arena, source->sink_count * sizeof *rows);
    order_resolve(source->plan, envelope, envelope->arena, lanes, NULL);

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

static void answer_accepted(const struct intake *in)
{
    int status = in->entry->source->respond;
    char body[96] = "{\"id\":\"";
    size_t len = strlen(body);
    if (status == 204) {
        len = 0;
    } else {
        uuid_format(&in->hook.envelope->id, body + len);
        len += UUID_TEXT - 1;
        static const char tail[] = "\",\"status\":\"accepted\"}";
        memcpy(body + len, tail, sizeof tail - 1);
        len += sizeof tail - 1;
    }
    http_answer(in->exchange, &(struct http_answer){.status = status, .body = bytes_of(body, len)});
}

/* Counted before it is answered, here and below: whoever has the answer finds it in the metrics. */
static void refuse_counted(const struct entry *entry, struct http_exchange *exchange, enum refusal refusal,
                           const struct refusal_detail *detail)
{
    counter_add(entry->refused[refusal], 1);
    refuse(exchange, refusal, detail);
}

/* The store's writer thread. */
static void committed(struct store_hook *hook, enum status status)
{
    struct intake *in = hook->ctx;
    histogram_observe(in->ingest->duration, (double)(clock_mono_us() - in->started_us) / 1e6);
    if (status == STATUS_OK) {
        counter_add(in->entry->accepted, 1);
        answer_accepted(in);
    } else if (status == STATUS_IO) {
        counter_add(in->entry->dropped, 1);
        http_drop(in->exchange); /* nobody knows whether it is stored: the provider asks again */
    } else {
        refuse_counted(in->entry, in->exchange, refusal_of(status), NULL);
    }
    envelope_unref(hook->envelope);
}

void intake(struct ingest *ingest, const struct route *route, const struct http_request *request)
{
    struct entry *entry = route->entry;
    int64_t started_us = clock_mono_us();
    size_t per_sink = sizeof(struct store_row) + sizeof(struct order_lane) + 160;
    struct envelope *envelope =
        hook_envelope(route, request, sizeof(struct intake) + entry->source->sink_count * per_sink);

    struct verify_result verified = verify(entry->source->verifier, envelope, envelope->received_at_ms);
    envelope->verification = verified.verification;
    if (verified.verification == VERIFICATION_FAILED) {
        count_verify_failure(entry, verified.reason);
        if (entry->source->on_failure == INGEST_REJECT) {
            refuse_counted(entry, request->exchange, REFUSE_VERIFICATION_FAILED,
                           &(struct refusal_detail){.name = "reason", .value = bytes_str(verified.reason)});
            envelope_unref(envelope);
            return;
        }
    }

    hook_keep_stored(envelope, entry->source);
    struct intake *in = arena_zalloc(envelope->arena, sizeof *in);
    *in = (struct intake){
        .hook = {.envelope = envelope, .done = committed, .ctx = in},
        .ingest = ingest,
        .entry = entry,
        .exchange = request->exchange,
        .started_us = started_us,
    };
    make_rows(entry, envelope, &in->hook);

    enum status status = store_commit(ingest->options.store, &in->hook);
    if (status != STATUS_OK) {
        refuse_counted(entry, request->exchange, refusal_of(status), NULL);
        envelope_unref(envelope);
    }
}
