/* Those who watch events as they happen: one thread that reads the ring for all of them. */
#ifndef ADMIN_FEED_H
#define ADMIN_FEED_H

#include "events/events.h"
#include "http/http.h"
#include "util/status.h"

enum { FEED_WATCHERS_MAX = 64 };

/* What a watcher wants to see; absent or unset: anything. Texts are copied. */
struct feed_filter {
    struct bytes tenant, source, sink, key;
    bool has_lane, has_key;
    uint8_t lane[16];
    unsigned kinds; /* a bit (1 << enum event_kind) each; 0: all */
};

struct feed;

/* `events` outlives the feed. Starts the thread. */
struct feed *feed_open(struct events *events);
/* Ends every stream and joins. No request may be on its way in any more. NULL is fine. */
void feed_close(struct feed *feed);

/* Inside the handler of `exchange`: answers it with server-sent events after the id `after` (0: the oldest
 * kept; UINT64_MAX: only what is to come), until the client goes or the feed is closed. FULL when as many
 * watch as may: then nothing was answered. */
enum status feed_watch(struct feed *feed, struct http_exchange *exchange, const struct feed_filter *filter,
                       uint64_t after);

#endif
