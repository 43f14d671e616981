/* POST /v1/keys/test: which lane would one hook take at a sink, and what did its key cost? A stored hook by
 * its id, or a raw request in the body. Nothing is changed. */
#include "admin/admin_priv.h"
#include "envelope/raw.h"
#include "util/clock.h"

static struct envelope *stored(struct ask *ask)
{
    uint64_t seq;
    struct envelope *envelope = NULL;
    enum status status = store_find_hook(ask->reader, &ask->query.hook, &seq);
    if (status == STATUS_OK)
        status = store_read_hook(ask->reader, seq, &envelope);
    if (status == STATUS_NOT_FOUND)
        ask_not_found(ask, "hook");
    else if (status != STATUS_OK)
        ask_store_failed(ask, status);
    return envelope;
}

static struct envelope *written(struct ask *ask)
{
    struct envelope *envelope = NULL;
    struct error err;
    if (envelope_from_raw(ask->query.raw, &envelope, &err) != STATUS_OK) {
        ask_refuse_with(ask, 400, "bad_member", "expected", err.text);
        return NULL;
    }
    envelope->received_at_ms = clock_unix_ms();
    envelope->id = uuid_new(envelope->received_at_ms);
    envelope->tenant = BYTES("default");
    envelope->source = arena_copy(envelope->arena, ask->query.source);
    envelope->remote_ip = BYTES("127.0.0.1");
    return envelope;
}

void post_key_test(struct ask *ask)
{
    const struct admin_sink *sink = ask_sink_named(ask, ask->query.source, ask->query.sink);
    if (!sink)
        return;
    if (ask->query.has_hook == (ask->query.raw.at != NULL)) {
        ask_refuse_with(ask, 400, "bad_member", "expected",
                        "either hook (an id) or raw (a raw HTTP request)");
        return;
    }
    struct envelope *envelope = ask->query.has_hook ? stored(ask) : written(ask);
    if (envelope)
        ask->admin->options.key_test(ask->rules->of, sink, envelope, &ask->json);
    envelope_unref(envelope);
}
