/* The way of one hook, straight down: envelope, verification, lanes, commit, answer. Everything it needs
 * lives in the envelope's arena, so one free ends it. */
#include "ingest/handshake.h"
#include "ingest/ingest_priv.h"

#include <string.h>

#include "events/events.h"
#include "util/check.h"
#include "util/clock.h"

/* From the complete request to its answer. */
struct intake {
    struct store_hook hook;
    struct ingest *ingest;
    struct current_hold *hold; /* keeps `entry` */
    struct entry *entry;
    struct http_exchange *exchange;
    struct ingest_revival revival;
    int64_t started_us;
};

static void count_verify_failure(const struct entry *entry, const char *reason)
{
    const char *const *reasons = verify_reasons();
    for (size_t i = 0; reasons[i]; i++)
        if (strcmp(reasons[i], reason) == 0)
            counter_add(entry->verify_failures[i], 1);
}

/* {"id":"...","status":"accepted"}, and what else there is to say of a duplicate. */
static void answer_success(const struct intake *in, bool revived)
{
    static const char *const tails[] = {"\",\"status\":\"accepted\"}",
                                        "\",\"status\":\"accepted\",\"duplicate\":true}",
                                        "\",\"status\":\"accepted\",\"duplicate\":true,\"revived\":true}"};
    const struct store_twin *twin = &in->hook.twin;
    const char *tail = tails[twin->found + revived];
    int status = in->entry->source->respond;
    char body[128] = "{\"id\":\"";
    size_t len = strlen(body);
    if (status == 204) {
        len = 0;
    } else {
        uuid_format(twin->found ? &twin->id : &in->hook.envelope->id, body + len);
        len += UUID_TEXT - 1;
        memcpy(body + len, tail, strlen(tail));
        len += strlen(tail);
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

void publish_accepted(struct ingest *ingest, const struct envelope *envelope, int64_t at_ms)
{
    events_publish(ingest->options.events, &(struct event){.kind = EVENT_ACCEPTED,
                                                           .at_ms = at_ms,
                                                           .hook = envelope->id,
                                                           .has_hook = true,
                                                           .seq = (int64_t)envelope->seq,
                                                           .tenant = envelope->tenant,
                                                           .source = envelope->source});
}

static void finish(struct intake *in, enum status status, bool revived)
{
    histogram_observe(in->ingest->duration, (double)(clock_mono_us() - in->started_us) / 1e6);
    if (status == STATUS_OK && in->hook.pen_reason) {
        counter_add(in->entry->quarantined, 1);
        answer_quarantined(in->exchange, in->hook.pen_reason);
    } else if (status == STATUS_OK) {
        counter_add(revived               ? in->entry->revived
                    : in->hook.twin.found ? in->entry->duplicate
                                          : in->entry->accepted,
                    1);
        if (!in->hook.twin.found)
            publish_accepted(in->ingest, in->hook.envelope, in->hook.envelope->received_at_ms);
        answer_success(in, revived);
    } else if (status == STATUS_IO) {
        counter_add(in->entry->dropped, 1);
        http_drop(in->exchange); /* nobody knows whether it is stored: the provider asks again */
    } else {
        refuse_counted(in->entry, in->exchange, refusal_of(status), NULL);
    }
    current_drop(&in->ingest->tables, in->hold);
    envelope_unref(in->hook.envelope);
}

static void revived(struct ingest_revival *revival, enum status status, bool something)
{
    finish(LIST_OWNER(revival, struct intake, revival), status, something);
}

/* The store's writer thread. A duplicate of a dead letter is what a provider's "resend" is for. */
static void committed(struct store_hook *hook, enum status status)
{
    struct intake *in = hook->ctx;
    const struct ingest_options *options = &in->ingest->options;
    if (status != STATUS_OK || !hook->twin.dead || !options->revive) {
        finish(in, status, false);
        return;
    }
    in->revival = (struct ingest_revival){.seq = hook->twin.seq, .done = revived};
    if (!options->revive(options->ctx, &in->revival))
        finish(in, STATUS_FULL, false);
}

/* What failed verification; false when it was refused. */
static bool may_stay(const struct ingest_rules *rules, struct entry *entry, struct http_exchange *exchange,
                     const char *reason)
{
    switch (entry->source->on_failure) {
    case INGEST_REJECT:
        refuse_counted(entry, exchange, REFUSE_VERIFICATION_FAILED,
                       &(struct refusal_detail){.name = "reason", .value = bytes_str(reason)});
        return false;
    case INGEST_QUARANTINE:
        if (bucket_take(&entry->pen, rules->pen_rate, rules->pen_burst, clock_mono_us()))
            return true;
        refuse_counted(entry, exchange, REFUSE_QUARANTINE_RATE_LIMITED, NULL);
        return false;
    case INGEST_ACCEPT_FLAG:
        return true;
    }
    UNREACHABLE();
}

bool intake(struct ingest *ingest, const struct route *route, const struct http_request *request)
{
    const struct ingest_rules *rules = &((const struct table *)route->hold->value)->rules;
    struct entry *entry = route->entry;
    int64_t started_us = clock_mono_us();
    size_t per_sink = sizeof(struct store_row) + sizeof(struct order_lane) + 160;
    struct envelope *envelope =
        hook_envelope(route, request, sizeof(struct intake) + entry->source->sink_count * per_sink);

    struct verify_result verified = verify(entry->source->verifier, envelope, envelope->received_at_ms);
    envelope->verification = verified.verification;
    bool failed = verified.verification == VERIFICATION_FAILED;
    if (failed) {
        count_verify_failure(entry, verified.reason);
        if (!may_stay(rules, entry, request->exchange, verified.reason)) {
            envelope_unref(envelope);
            return false;
        }
    }

    if (!failed && handshake_signed(entry, envelope, request->exchange)) {
        envelope_unref(envelope);
        return false;
    }

    struct intake *in = arena_zalloc(envelope->arena, sizeof *in);
    *in = (struct intake){
        .hook = {.envelope = envelope, .done = committed, .ctx = in},
        .ingest = ingest,
        .hold = route->hold,
        .entry = entry,
        .exchange = request->exchange,
        .started_us = started_us,
    };
    if (failed && entry->source->on_failure == INGEST_QUARANTINE) {
        in->hook.pen_reason = verified.reason; /* as it came: what is verified again needs all of it */
        in->hook.pen_share_bytes = rules->pen_share_bytes;
    } else {
        hook_keep_stored(envelope, entry->source);
        hook_resolve(entry, &in->hook);
    }

    enum status status = store_commit(ingest->options.store, &in->hook);
    if (status != STATUS_OK) {
        refuse_counted(entry, request->exchange, refusal_of(status), NULL);
        envelope_unref(envelope);
    }
    return status == STATUS_OK;
}
