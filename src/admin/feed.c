#include "admin/feed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/check.h"
#include "util/cond.h"
#include "util/list.h"
#include "util/mem.h"
#include "util/thread.h"

enum {
    READ_AT_ONCE = 64,
    BUFFERED_MAX =
        256 * 1024, /* what waits for a slow watcher; beyond it events stay in the ring, and may be missed */
    HEARTBEAT_MS = 10 * 1000, /* so that a client that is gone is noticed, and proxies do not close */
    SLOW_MS = 50,
};

struct watcher {
    struct list node;
    struct feed *feed;
    struct http_stream *stream;
    atomic_bool closed; /* by the client; set on the loop's thread */
    struct feed_filter filter;
    char names[4][192]; /* tenant, source, sink, key */
    uint64_t after;
    bool slow; /* its buffer is full */
};

struct feed {
    struct events *events;
    pthread_t thread;

    pthread_mutex_t lock; /* over the list */
    struct list watchers;
    size_t count;

    /* Apart from the list, since whoever wakes holds locks of others; never held across a call. */
    pthread_mutex_t wake_lock;
    pthread_cond_t wake_cond; /* monotonic */
    bool woken, stopping;

    struct event_copy read[READ_AT_ONCE]; /* the thread's */
};

/* ---- waking ---- */

static void wake(void *ctx)
{
    struct feed *feed = ctx;
    pthread_mutex_lock(&feed->wake_lock);
    feed->woken = true;
    pthread_cond_signal(&feed->wake_cond);
    pthread_mutex_unlock(&feed->wake_lock);
}

/* Until somebody wakes it, or `ms` have passed. False: it is to stop. */
static bool wait_for_wake(struct feed *feed, int64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&feed->wake_lock);
    int waited = 0;
    while (!feed->woken && !feed->stopping && waited == 0)
        waited = pthread_cond_timedwait(&feed->wake_cond, &feed->wake_lock, &until);
    feed->woken = false;
    bool go_on = !feed->stopping;
    pthread_mutex_unlock(&feed->wake_lock);
    return go_on;
}

static void client_closed(void *ctx)
{
    struct watcher *watcher = ctx;
    atomic_store(&watcher->closed, true);
    wake(watcher->feed);
}

/* ---- one watcher ---- */

static bool wants(const struct feed_filter *filter, const struct event *event)
{
    return (!filter->kinds || filter->kinds & 1U << event->kind) &&
           (!filter->tenant.at || bytes_eq(filter->tenant, event->tenant)) &&
           (!filter->source.at || bytes_eq(filter->source, event->source)) &&
           (!filter->sink.at || bytes_eq(filter->sink, event->sink)) &&
           (!filter->has_key || (event->has_lane && bytes_eq(filter->key, event->key))) &&
           (!filter->has_lane ||
            (event->has_lane && memcmp(filter->lane, event->lane, sizeof event->lane) == 0));
}

static void put_event(const struct event *event, struct buf *out)
{
    buf_putf(out, "id: %llu\nevent: %s\ndata: ", (unsigned long long)event->id, event_kind_name(event->kind));
    event_write(event, out);
    buf_puts(out, "\n\n");
}

/* The next events for it: false when there is nothing more for now. */
static bool send_some(struct feed *feed, struct watcher *watcher)
{
    bool missed;
    size_t n = events_read(feed->events, watcher->after, feed->read, READ_AT_ONCE, &missed);
    struct buf text = {0};
    if (missed)
        buf_puts(&text, "event: missed\ndata: {\"event\":\"missed\"}\n\n");
    for (size_t i = 0; i < n; i++)
        if (wants(&watcher->filter, &feed->read[i].is))
            put_event(&feed->read[i].is, &text);
    watcher->slow = text.len && http_stream_write(watcher->stream, buf_bytes(&text)) == STATUS_FULL;
    buf_free(&text);
    if (n && !watcher->slow)
        watcher->after = feed->read[n - 1].is.id;
    return n && !watcher->slow;
}

static void end_watcher(struct feed *feed, struct watcher *watcher)
{
    list_remove(&watcher->node);
    feed->count--;
    http_stream_end(watcher->stream);
    free(watcher);
}

/* ---- the thread ---- */

static void serve_all(struct feed *feed, bool heartbeat, bool *slow)
{
    *slow = false;
    pthread_mutex_lock(&feed->lock);
    LIST_EACH_SAFE (node, &feed->watchers) {
        struct watcher *watcher = LIST_OWNER(node, struct watcher, node);
        if (!atomic_load(&watcher->closed)) {
            if (heartbeat)
                http_stream_write(watcher->stream, BYTES(":\n\n"));
            while (send_some(feed, watcher))
                ;
            *slow |= watcher->slow;
        }
        if (atomic_load(&watcher->closed))
            end_watcher(feed, watcher);
    }
    pthread_mutex_unlock(&feed->lock);
}

/* The least that a watcher has seen. True: something newer is there already, though nobody is slow. */
static bool arm(struct feed *feed, bool slow)
{
    pthread_mutex_lock(&feed->lock);
    uint64_t seen = UINT64_MAX;
    LIST_EACH (node, &feed->watchers) {
        struct watcher *watcher = LIST_OWNER(node, struct watcher, node);
        if (!watcher->slow && watcher->after < seen)
            seen = watcher->after;
    }
    pthread_mutex_unlock(&feed->lock);
    return seen != UINT64_MAX && events_arm(feed->events, seen) && !slow;
}

static void *run(void *ctx)
{
    struct feed *feed = ctx;
    bool slow = false, there = false;
    int64_t quiet_ms = 0;
    for (;;) {
        int64_t wait_ms = there ? 0 : slow ? SLOW_MS : HEARTBEAT_MS;
        if (wait_ms && !wait_for_wake(feed, wait_ms))
            break;
        quiet_ms += wait_ms;
        serve_all(feed, quiet_ms >= HEARTBEAT_MS, &slow);
        if (quiet_ms >= HEARTBEAT_MS)
            quiet_ms = 0;
        there = arm(feed, slow);
    }
    return NULL;
}

/* ---- the room's side ---- */

struct feed *feed_open(struct events *events)
{
    struct feed *feed = mem_zalloc(sizeof *feed);
    feed->events = events;
    list_init(&feed->watchers);
    pthread_mutex_init(&feed->lock, NULL);
    pthread_mutex_init(&feed->wake_lock, NULL);
    cond_init_monotonic(&feed->wake_cond);
    events_on_news(events, wake, feed);
    CHECK(thread_start(&feed->thread, "events", run, feed) == 0);
    return feed;
}

void feed_close(struct feed *feed)
{
    if (!feed)
        return;
    events_on_news(feed->events, NULL, NULL);
    pthread_mutex_lock(&feed->wake_lock);
    feed->stopping = true;
    pthread_cond_signal(&feed->wake_cond);
    pthread_mutex_unlock(&feed->wake_lock);
    pthread_join(feed->thread, NULL);
    LIST_EACH_SAFE (node, &feed->watchers)
        end_watcher(feed, LIST_OWNER(node, struct watcher, node));
    pthread_cond_destroy(&feed->wake_cond);
    pthread_mutex_destroy(&feed->wake_lock);
    pthread_mutex_destroy(&feed->lock);
    free(feed);
}

static struct bytes keep(char place[192], struct bytes text)
{
    if (!text.at)
        return BYTES_NONE;
    size_t len =
        text.len < 192 ? text.len : 191; /* names and keys are shorter: a longer one matches nothing */
    memcpy(place, text.at, len);
    return bytes_of(place, len);
}

static struct watcher *watcher_new(struct feed *feed, const struct feed_filter *filter, uint64_t after)
{
    struct watcher *watcher = mem_zalloc(sizeof *watcher);
    watcher->feed = feed;
    watcher->filter = *filter;
    watcher->filter.tenant = keep(watcher->names[0], filter->tenant);
    watcher->filter.source = keep(watcher->names[1], filter->source);
    watcher->filter.sink = keep(watcher->names[2], filter->sink);
    watcher->filter.key = keep(watcher->names[3], filter->key);
    watcher->after = after == UINT64_MAX ? events_newest(feed->events) : after;
    return watcher;
}

enum status feed_watch(struct feed *feed, struct http_exchange *exchange, const struct feed_filter *filter,
                       uint64_t after)
{
    pthread_mutex_lock(&feed->lock);
    bool full = feed->count == FEED_WATCHERS_MAX;
    feed->count += !full;
    pthread_mutex_unlock(&feed->lock);
    if (full)
        return STATUS_FULL;
    struct watcher *watcher = watcher_new(feed, filter, after);
    watcher->stream =
        http_stream_open(exchange, &(struct http_stream_options){.type = "text/event-stream",
                                                                 .greeting = BYTES(":\n\n"),
                                                                 .max_buffered_bytes = BUFFERED_MAX,
                                                                 .closed = client_closed,
                                                                 .ctx = watcher});
    pthread_mutex_lock(&feed->lock);
    list_append(&feed->watchers, &watcher->node);
    pthread_mutex_unlock(&feed->lock);
    wake(feed);
    return STATUS_OK;
}
