/* GET /v1/events: what happens, as it happens, as server-sent events (WHATWG HTML, section 9.2). */
#include "admin/admin_priv.h"
#include "admin/feed.h"
#include "util/units.h"

/* Where to go on: the header that a browser's EventSource sends again, else the parameter. */
static bool read_after(struct ask *ask, uint64_t *after)
{
    struct bytes text = ask->query.after;
    for (size_t i = 0; i < ask->request->header_count; i++)
        if (bytes_eq_nocase(ask->request->headers[i].name, BYTES("last-event-id")))
            text = ask->request->headers[i].value;
    *after = UINT64_MAX;
    int64_t id;
    if (!text.at)
        return true;
    if (!units_parse_u63(text, &id)) {
        ask_refuse_with(ask, 400, "bad_filter", "expected", "the id of an event in Last-Event-ID or after");
        return false;
    }
    *after = (uint64_t)id;
    return true;
}

void get_events(struct ask *ask)
{
    const struct query *query = &ask->query;
    struct feed_filter filter = {.tenant = query->tenant,
                                 .source = query->source,
                                 .sink = query->sink,
                                 .key = query->key.len ? query->key : BYTES_NONE,
                                 .has_key = query->key.at != NULL,
                                 .has_lane = query->has_lane,
                                 .kinds = query->event_kinds};
    memcpy(filter.lane, query->lane, sizeof filter.lane);
    uint64_t after;
    if (!read_after(ask, &after))
        return;
    if (feed_watch(ask->admin->feed, ask->request->exchange, &filter, after) == STATUS_OK)
        ask->streams = true;
    else
        ask_refuse(ask, 503, "too_many_watchers");
}
