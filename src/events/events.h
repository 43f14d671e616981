/* What happens, as it happens, for whoever watches: the last EVENTS_KEPT events in memory. Publishing never
 * waits for a watcher: one that is slow misses the oldest and is told so. Nothing here is durable; what
 * became of a hook is in the store. */
#ifndef EVENTS_EVENTS_H
#define EVENTS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/bytes.h"
#include "util/uuid.h"

enum { EVENTS_KEPT = 10000, EVENT_TEXT_MAX = 416 };

#define EVENT_KINDS(X)                                                                                       \
    X(ACCEPTED, "accepted")                                                                                  \
    X(ATTEMPT, "attempt")                                                                                    \
    X(DELIVERED, "delivered")                                                                                \
    X(DEAD, "dead")                                                                                          \
    X(LANE_BLOCKED, "lane_blocked")                                                                          \
    X(LANE_UNBLOCKED, "lane_unblocked")

enum event_kind {
#define EVENT_ENUM(id, name) EVENT_##id,
    EVENT_KINDS(EVENT_ENUM)
#undef EVENT_ENUM
        EVENT_KIND_COUNT
};
const char *event_kind_name(enum event_kind kind); /* static */
/* False when there is no such kind. */
bool event_kind_parse(struct bytes name, enum event_kind *kind);

/* One event. What a kind has no word for is zero or absent, and is not shown. */
struct event {
    uint64_t id; /* set by publishing: ascends, over restarts too; below 2^53 */
    enum event_kind kind;
    int64_t at_ms; /* unix */
    struct uuid hook;
    bool has_hook;
    int64_t seq;
    uint8_t lane[16];
    bool has_lane;
    uint32_t attempts;
    uint32_t http_status;
    int64_t duration_us;
    int64_t since_ms;                  /* unix: LANE_BLOCKED, since the first failure of its head */
    int64_t behind;                    /* LANE_BLOCKED: rows that wait behind the head */
    struct bytes tenant, source, sink; /* names of the configuration */
    struct bytes key, outcome, reason; /* a lane's key as it is stamped; an outcome's class; words */
};

struct events;

struct events *events_open(void);
void events_close(struct events *events); /* NULL is fine; no thread publishes or reads any more */

/* Any thread; copies what the event points to (texts beyond EVENT_TEXT_MAX together are cut, the reason
 * first) and does not wait for anybody. `events` may be NULL: then nothing is kept. */
void events_publish(struct events *events, const struct event *event);

/* A copy of an event, with its texts. Move it by pointer only. */
struct event_copy {
    struct event is;
    char text[EVENT_TEXT_MAX];
};

/* The oldest events after `after`, up to `max`, in order; gives how many. *missed is set when some after
 * `after` are gone. Zero for `after` begins at the oldest kept (nothing is missed then). Any thread. */
size_t events_read(struct events *events, uint64_t after, struct event_copy *out, size_t max, bool *missed);

/* The id of the newest, or of what would have come before the first: where somebody begins who wants only
 * what is to come. */
uint64_t events_newest(struct events *events);

/* `wake` is called, on a publishing thread, when something was published after events_arm said that there was
 * nothing: once each arming. It must not block, NULL: nobody
 * is to be woken. */
void events_on_news(struct events *events, void (*wake)(void *ctx), void *ctx);

/* Asks for one wake. True: something newer than `after` is there already, and no wake comes. */
bool events_arm(struct events *events, uint64_t after);

/* As one JSON object, without a line end. Keys are percent-encoded. */
void event_write(const struct event *event, struct buf *out);

#endif
