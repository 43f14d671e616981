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
    struct limits_charge charge; /* comes back when the hook is not taken */
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
void refuse_counted(const struct entry *entry, struct http_exchange *exchange, enum refusal refusal,
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

/* Only hooks that are taken count in their limits. */
static void refuse_by_store(const struct intake *in, enum status status)
{
    limits_give_back(in->ingest->options.limits, &in->charge);
    if (status == STATUS_SHARE_FULL)
        limit_tell_overload(in->ingest, in->hook.envelope);
    refuse_counted(in->entry, in->exchange, refusal_of(status), NULL);
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
        refuse_by_store(in, status);
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
static bool may_stay(struct ingest *ingest, const struct route *route, const struct http_request *request,
                     const char *reason, struct limits_charge *charge)
{
    const struct entry *entry = route->entry;
    switch (entry->source->on_failure) {
    case INGEST_REJECT:
        refuse_counted(entry, request->exchange, REFUSE_VERIFICATION_FAILED,
                       &(struct refusal_detail){.name = "reason", .value = bytes_str(reason)});
        return false;
    case INGEST_QUARANTINE:
        return limit_pen(ingest, route, request, charge);
    case INGEST_ACCEPT_FLAG:
        return true;
    }
    UNREACHABLE();
}

/* Verification, and what its result means; false when the request was answered. `reason` is why it failed,
 * `charge` what was taken for its place in the quarantine. */
static bool verified(struct ingest *ingest, const struct route *route, const struct http_request *request,
                     const struct limits_sender *sender, struct envelope *envelope, const char **reason,
                     struct limits_charge *charge)
{
    const struct entry *entry = route->entry;
    struct verify_result result = verify(entry->source->verifier, envelope, envelope->received_at_ms);
    envelope->verification = result.verification;
    limit_verified(ingest, sender, result.verification);
    *reason = result.reason;
    if (result.verification != VERIFICATION_FAILED)
        return !handshake_signed(entry, envelope, request->exchange);
    count_verify_failure(entry, result.reason);
    return may_stay(ingest, route, request, result.reason, charge);
}

bool intake(struct ingest *ingest, const struct route *route, const struct http_request *request,
            const struct caller *caller)
{
    const struct ingest_rules *rules = &((const struct table *)route->hold->value)->rules;
    struct entry *entry = route->entry;
    int64_t started_us = clock_mono_us();
    struct limits_sender sender = limit_sender(route, caller);
    if (!limit_may_verify(ingest, route, request, &sender))
        return false;
    size_t per_sink = sizeof(struct store_row) + sizeof(struct order_lane) + 160;
    struct envelope *envelope =
        hook_envelope(route, request, sizeof(struct intake) + entry->source->sink_count * per_sink);

    const char *reason;
    struct limits_charge charge = {0};
    if (!verified(ingest, route, request, &sender, envelope, &reason, &charge))
        goto answered;
    bool into_pen =
        envelope->verification == VERIFICATION_FAILED && entry->source->on_failure == INGEST_QUARANTINE;
    if (!into_pen && !limit_charge(ingest, route, request, caller, &charge))
        goto answered;

    struct intake *in = arena_zalloc(envelope->arena, sizeof *in);
    *in = (struct intake){
        .hook = {.envelope = envelope, .done = committed, .ctx = in, .shares_queue = rules->many_tenants},
        .ingest = ingest,
        .hold = route->hold,
        .entry = entry,
        .exchange = request->exchange,
        .charge = charge,
        .started_us = started_us,
    };
    if (into_pen) {
        in->hook.pen_reason = reason; /* as it came: what is verified again needs all of it */
        in->hook.pen_share_bytes = rules->pen_share_bytes;
    } else {
        hook_keep_stored(envelope, entry->source);
        hook_resolve(entry, &in->hook);
    }

    enum status status = store_commit(ingest->options.store, &in->hook);
    if (status == STATUS_OK)
        return true;
    refuse_by_store(in, status);
answered:
    envelope_unref(envelope);
    return false;
}
