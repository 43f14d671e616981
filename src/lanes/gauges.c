/* What lookers and scrapes see of the sinks: a copy of the scheduler's running sums, made by the lanes thread
 * now and then. No looker touches the scheduler, and nobody scans a lane. */
#include <string.h>

#include "lanes/lanes_priv.h"
#include "util/clock.h"
#include "util/mem.h"

static void scrape(void *ctx)
{
    struct lanes *lanes = ctx;
    pthread_mutex_lock(&lanes->look_lock);
    double now_ms = (double)clock_unix_ms(), pending = 0, running = 0, dead = 0;
    for (size_t i = 0; i < lanes->sinks.len; i++) { /* those that are gone show nothing but zeros */
        const struct lanes_sink_meter *meter = &lanes->sinks.at[i].meter;
        const struct lanes_sink_view *view = &lanes->views[i];
        for (int state = 0; state < LANE_STATE_COUNT; state++)
            gauge_set(meter->states[state], (double)lanes->sums[i].lanes[state]);
        gauge_set(meter->depth_max, (double)view->lane_depth_max);
        gauge_set(meter->behind, (double)view->rows_behind_blocked);
        double oldest_ms = view->oldest_ms ? now_ms - (double)view->oldest_ms : 0;
        double blocked_ms = view->blocked_since_ms ? now_ms - (double)view->blocked_since_ms : 0;
        gauge_set(meter->oldest, oldest_ms > 0 ? oldest_ms / 1000 : 0);
        gauge_set(meter->blocked, blocked_ms > 0 ? blocked_ms / 1000 : 0);
        pending += (double)view->pending;
        running += (double)view->running;
        dead += (double)view->dead;
    }
    pending += (double)(atomic_load(&lanes->came) - lanes->shown);
    pthread_mutex_unlock(&lanes->look_lock);
    gauge_set(lanes->pending, pending);
    gauge_set(lanes->inflight_gauge, running);
    gauge_set(lanes->dead, dead);
}

/* What a reload took away and brings back counts on. */
static void meter_open(struct metrics *metrics, struct sink_entry *sink)
{
    static const char *const classes[] = {"refused", "exhausted"}, *const breakers[] = {"open", "half_open",
                                                                                        "closed"};
    const char *source = sink->is.source, *name = sink->is.name;
    struct lanes_sink_meter *meter = &sink->meter;
    for (int cls = 0; cls < OUTCOME_CLASS_COUNT; cls++)
        meter->results[cls] =
            metrics_series3(metrics, METRIC_DISPATCH_DELIVERIES, source, name, outcome_class_name(cls));
    for (int state = 0; state < LANE_STATE_COUNT; state++)
        meter->states[state] =
            metrics_series3(metrics, METRIC_DISPATCH_LANES, source, name, lane_state_name(state));
    for (size_t i = 0; i < 2; i++)
        metrics_series3(metrics, METRIC_DISPATCH_DEAD, source, name, classes[i]);
    for (size_t i = 0; i < 3; i++)
        metrics_series3(metrics, METRIC_DISPATCH_BREAKER, source, name, breakers[i]);
    meter->lag = metrics_series3(metrics, METRIC_DISPATCH_LAG, source, name, NULL);
    meter->depth_max = metrics_series3(metrics, METRIC_DISPATCH_LANE_DEPTH_MAX, source, name, NULL);
    meter->blocked = metrics_series3(metrics, METRIC_DISPATCH_BLOCKED_MAX, source, name, NULL);
    meter->oldest = metrics_series3(metrics, METRIC_DISPATCH_OLDEST, source, name, NULL);
    meter->behind = metrics_series3(metrics, METRIC_DISPATCH_BEHIND, source, name, NULL);
}

void gauges_sink_open(struct lanes *lanes, struct sink_entry *sink)
{
    size_t at = (size_t)(sink - lanes->sinks.at);
    lanes->views = mem_resize(lanes->views, (at + 1) * sizeof lanes->views[0]);
    lanes->sums = mem_resize(lanes->sums, (at + 1) * sizeof lanes->sums[0]);
    lanes->views[at] = (struct lanes_sink_view){.id = sink->is.id};
    lanes->sums[at] = (struct sched_sink_view){.pending = 0};
    if (lanes->options.metrics)
        meter_open(lanes->options.metrics, sink);
}

void gauges_open(struct lanes *lanes)
{
    VEC_EACH (sink, &lanes->sinks)
        gauges_sink_open(lanes, sink);
    struct metrics *metrics = lanes->options.metrics;
    if (!metrics)
        return;
    lanes->pending = metrics_series3(metrics, METRIC_QUEUE_PENDING, NULL, NULL, NULL);
    lanes->inflight_gauge = metrics_series3(metrics, METRIC_QUEUE_INFLIGHT, NULL, NULL, NULL);
    lanes->dead = metrics_series3(metrics, METRIC_QUEUE_DEAD, NULL, NULL, NULL);
    metrics_on_scrape(metrics, scrape, lanes);
}

void gauges_publish(struct lanes *lanes)
{
    struct sched_time now = lanes_now();
    bool stuck = false, slot_free = sched_running(lanes->sched) < lanes->options.concurrency;
    pthread_mutex_lock(&lanes->look_lock);
    for (size_t i = 0; i < lanes->sinks.len; i++) {
        struct sched_sink_view *sum = &lanes->sums[i];
        struct lanes_sink_view *view = &lanes->views[i];
        if (lanes->sinks.at[i].state == SINK_GONE)
            continue;
        sched_sink_look(lanes->sched, now, view->id, sum);
        stuck |= sum->waiting_with_free_slot && slot_free && !atomic_load(&lanes->quiesced);
        view->pending = sum->pending;
        view->running = sum->running;
        view->dead = sum->dead;
        view->retrying = sum->retrying_rows;
        view->held = sum->lanes[LANE_STATE_HELD];
        view->lanes = 0;
        for (int state = 0; state < LANE_STATE_COUNT; state++)
            view->lanes += sum->lanes[state];
        view->breaker = sum->breaker;
        view->record = sum->record;
        view->pause = sum->pause;
        view->parked = sum->breaker != BREAKER_CLOSED && sum->record.cause == BREAKER_BY_CONFIG;
        view->oldest_ms = sum->oldest_ms;
        view->blocked_since_ms = sum->blocked_since_ms;
        view->rows_behind_blocked = sum->rows_behind_blocked;
        view->lane_depth_max = sum->lane_depth_max;
        memcpy(view->last_error, lanes->sinks.at[i].last_error, sizeof view->last_error);
    }
    lanes->shown = lanes->taken;
    if (!stuck)
        lanes->stalled_since_ms = 0;
    else if (lanes->stalled_since_ms < lanes->started_ms || lanes->stalled_since_ms == 0)
        lanes->stalled_since_ms = lanes->started_ms ? lanes->started_ms : now.mono_ms;
    pthread_mutex_unlock(&lanes->look_lock);
    lanes->published_ms = now.mono_ms;
    lanes->dirty = false;
}

size_t lanes_sinks(struct lanes *lanes, struct lanes_sink_view *out, size_t max)
{
    size_t n = 0;
    pthread_mutex_lock(&lanes->look_lock);
    for (size_t i = 0; i < lanes->sinks.len; i++) {
        if (lanes->sinks.at[i].state == SINK_GONE)
            continue;
        if (n < max)
            out[n] = lanes->views[i];
        n++;
    }
    pthread_mutex_unlock(&lanes->look_lock);
    return n;
}

bool lanes_sink_look(struct lanes *lanes, uint32_t sink, struct lanes_sink_view *out)
{
    bool found = false;
    pthread_mutex_lock(&lanes->look_lock);
    for (size_t i = 0; i < lanes->sinks.len && !found; i++) {
        found = lanes->views[i].id == sink && lanes->sinks.at[i].state != SINK_GONE;
        if (found)
            *out = lanes->views[i];
    }
    pthread_mutex_unlock(&lanes->look_lock);
    return found;
}

bool lanes_progress(struct lanes *lanes)
{
    enum { PATIENCE_MS = 30 * 1000 };
    int64_t now_ms = clock_mono_ms();
    pthread_mutex_lock(&lanes->look_lock);
    bool stalled = lanes->stalled_since_ms && now_ms - lanes->stalled_since_ms > PATIENCE_MS;
    pthread_mutex_unlock(&lanes->look_lock);
    return !stalled && now_ms - atomic_load(&lanes->beat_ms) < PATIENCE_MS;
}
