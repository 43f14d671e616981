#include "events/events.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/mem.h"

struct events {
    pthread_mutex_t lock;
    struct event_copy *ring; /* EVENTS_KEPT; the event with id n is in slot n % EVENTS_KEPT */
    uint64_t before;         /* the id before the first of this process */
    uint64_t newest;
    bool armed;
    void (*wake)(void *ctx);
    void *ctx;
};

/* Ids of a later process are above all of an earlier one, unless it published more than this many a
 * millisecond over its whole life. */
enum { IDS_PER_MS = 1024 };

struct events *events_open(void)
{
    struct events *events = mem_zalloc(sizeof *events);
    pthread_mutex_init(&events->lock, NULL);
    events->ring = mem_zalloc(EVENTS_KEPT * sizeof events->ring[0]);
    events->before = (uint64_t)clock_unix_ms() * IDS_PER_MS;
    events->newest = events->before;
    return events;
}

void events_close(struct events *events)
{
    if (!events)
        return;
    pthread_mutex_destroy(&events->lock);
    free(events->ring);
    free(events);
}

static struct event_copy *slot_of(struct events *events, uint64_t id)
{
    return &events->ring[id % EVENTS_KEPT];
}

static struct bytes keep(struct event_copy *copy, size_t *used, struct bytes text)
{
    if (!text.at)
        return BYTES_NONE;
    size_t room = sizeof copy->text - *used, len = text.len < room ? text.len : room;
    char *at = copy->text + *used;
    memcpy(at, text.at, len);
    *used += len;
    return bytes_of(at, len);
}

/* Names and key first: the reason is what can do with less. */
static void copy_event(struct event_copy *copy, const struct event *event)
{
    size_t used = 0;
    copy->is = *event;
    copy->is.tenant = keep(copy, &used, event->tenant);
    copy->is.source = keep(copy, &used, event->source);
    copy->is.sink = keep(copy, &used, event->sink);
    copy->is.key = keep(copy, &used, event->key);
    copy->is.outcome = keep(copy, &used, event->outcome);
    copy->is.reason = keep(copy, &used, event->reason);
}

void events_publish(struct events *events, const struct event *event)
{
    if (!events)
        return;
    pthread_mutex_lock(&events->lock);
    struct event_copy *slot = slot_of(events, ++events->newest);
    copy_event(slot, event);
    slot->is.id = events->newest;
    if (events->armed && events->wake)
        events->wake(events->ctx);
    events->armed = false;
    pthread_mutex_unlock(&events->lock);
}

void events_on_news(struct events *events, void (*wake)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&events->lock);
    events->wake = wake;
    events->ctx = ctx;
    pthread_mutex_unlock(&events->lock);
}

static uint64_t oldest(const struct events *events)
{
    uint64_t count = events->newest - events->before;
    return events->newest - (count < EVENTS_KEPT ? count : EVENTS_KEPT) + 1;
}

size_t events_read(struct events *events, uint64_t after, struct event_copy *out, size_t max, bool *missed)
{
    size_t n = 0;
    pthread_mutex_lock(&events->lock);
    uint64_t first = oldest(events);
    *missed = after && after + 1 < first;
    if (after + 1 > first)
        first = after + 1;
    for (uint64_t id = first; id <= events->newest && n < max; id++)
        copy_event(&out[n++], &slot_of(events, id)->is);
    pthread_mutex_unlock(&events->lock);
    return n;
}

uint64_t events_newest(struct events *events)
{
    pthread_mutex_lock(&events->lock);
    uint64_t newest = events->newest;
    pthread_mutex_unlock(&events->lock);
    return newest;
}

bool events_arm(struct events *events, uint64_t after)
{
    pthread_mutex_lock(&events->lock);
    bool there = events->newest > after;
    events->armed = !there;
    pthread_mutex_unlock(&events->lock);
    return there;
}
