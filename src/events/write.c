/* An event as JSON: names of kinds, and only what an event has. */
#include "events/events.h"
#include "util/jsonw.h"

static const char *const names[] = {
#define EVENT_NAME(id, name) [EVENT_##id] = name,
    EVENT_KINDS(EVENT_NAME)
#undef EVENT_NAME
};

const char *event_kind_name(enum event_kind kind)
{
    return names[kind];
}

bool event_kind_parse(struct bytes name, enum event_kind *kind)
{
    for (size_t i = 0; i < EVENT_KIND_COUNT; i++) {
        if (bytes_eq(name, bytes_str(names[i]))) {
            *kind = (enum event_kind)i;
            return true;
        }
    }
    return false;
}

static void write_text(struct jsonw *json, const char *name, struct bytes text)
{
    if (text.len)
        jsonw_bytes(json, name, text);
}

static void write_int(struct jsonw *json, const char *name, int64_t n)
{
    if (n)
        jsonw_int(json, name, n);
}

void event_write(const struct event *event, struct buf *out)
{
    struct jsonw json = jsonw_on(out);
    char uuid[UUID_TEXT], lane[33];
    jsonw_object(&json, NULL);
    jsonw_uint(&json, "event_id", event->id);
    jsonw_str(&json, "event", event_kind_name(event->kind));
    jsonw_int(&json, "at", event->at_ms);
    write_text(&json, "tenant", event->tenant);
    write_text(&json, "source", event->source);
    write_text(&json, "sink", event->sink);
    if (event->has_hook) {
        uuid_format(&event->hook, uuid);
        jsonw_str(&json, "id", uuid);
    }
    write_int(&json, "seq", event->seq);
    if (event->has_lane) {
        hex_encode(event->lane, sizeof event->lane, lane);
        jsonw_str(&json, "lane", lane);
        jsonw_bytes_percent(&json, "key", event->key); /* null: the keyless lane */
    }
    write_int(&json, "attempts", event->attempts);
    write_text(&json, "outcome", event->outcome);
    write_int(&json, "status", event->http_status);
    write_int(&json, "duration_us", event->duration_us);
    write_int(&json, "since", event->since_ms);
    write_int(&json, "behind", event->behind);
    write_text(&json, "reason", event->reason);
    jsonw_end_object(&json);
}
