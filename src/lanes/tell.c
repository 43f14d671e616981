/* What the scheduler said becomes changes for the store, log lines and counts. */
#include <stdio.h>
#include <string.h>

#include "events/events.h"
#include "lanes/lanes_priv.h"
#include "util/clock.h"
#include "util/log.h"

static const enum row_state states[] = {[SCHED_ROW_PENDING] = ROW_PENDING,
                                        [SCHED_ROW_DONE] = ROW_DONE,
                                        [SCHED_ROW_DEAD] = ROW_DEAD,
                                        [SCHED_ROW_HELD] = ROW_HELD,
                                        [SCHED_ROW_DISCARDED] = ROW_DISCARDED};

/* Takes the response of a failed attempt over. */
static struct store_change *change_of(const struct sched_action *action, struct outcome *outcome)
{
    struct store_change *change = store_change_new();
    change->seq = action->seq;
    change->sink = action->place.sink;
    change->state = states[action->state];
    change->late = action->late;
    change->replay = action->job;
    change->attempts = action->attempts;
    change->first_attempt_ms = action->first_attempt_ms;
    change->due_ms = action->due_ms;
    change->at_ms = action->at_ms;
    change->waived_ms = action->waived_ms;
    change->cls = action->cls;
    if (action->by_outcome && outcome) {
        change->http_status = outcome->http_status;
        change->duration_us = outcome->duration_us;
        snprintf(change->reason, sizeof change->reason, "%s", outcome->reason);
        change->failed = outcome->cls != OUTCOME_OK;
        change->response = outcome->response;
        outcome->response = BYTES_NONE;
    }
    return change;
}

static bool died(const struct sched_action *action)
{
    return (action->state == SCHED_ROW_DEAD || action->state == SCHED_ROW_HELD) && action->cls;
}

static void count(struct lanes *lanes, struct sink_entry *sink, const struct sched_action *action,
                  const struct flight *flight)
{
    if (action->by_outcome && flight) {
        const struct outcome *outcome = &flight->attempt.outcome;
        if (lanes->options.metrics)
            counter_add(sink->meter.results[outcome->cls], 1);
        if (action->state == SCHED_ROW_DONE && !action->job && lanes->options.metrics)
            histogram_observe(sink->meter.lag, (double)(action->at_ms - flight->received_ms) / 1000);
        if (outcome->cls != OUTCOME_OK)
            snprintf(sink->last_error, sizeof sink->last_error, "%s", outcome->reason);
    }
    if (died(action) && lanes->options.metrics)
        counter_add(metrics_series3(lanes->options.metrics, METRIC_DISPATCH_DEAD, sink->is.source,
                                    sink->is.name, action->cls),
                    1);
}

/* ---- for whoever watches ---- */

/* What a row's event says in any case. */
static struct event event_of(struct lanes *lanes, const struct sink_entry *sink,
                             const struct sched_action *action)
{
    struct event event = {.at_ms = action->at_ms ? action->at_ms : clock_unix_ms(),
                          .seq = (int64_t)action->seq,
                          .has_lane = action->place.ordered,
                          .attempts = action->attempts,
                          .tenant = bytes_str(store_tenant_name(lanes->options.store, action->place.tenant)),
                          .source = bytes_str(sink->is.source),
                          .sink = bytes_str(sink->is.name)};
    memcpy(event.lane, action->place.lane, sizeof event.lane);
    return event;
}

static void publish_row(struct lanes *lanes, const struct sink_entry *sink, const struct sched_action *action,
                        const struct flight *flight)
{
    if (!lanes->options.events || !(action->by_outcome || died(action)))
        return;
    struct event event = event_of(lanes, sink, action);
    if (action->by_outcome && flight) {
        const struct outcome *outcome = &flight->attempt.outcome;
        event.kind = EVENT_ATTEMPT;
        event.hook = flight->attempt.envelope->id;
        event.has_hook = true;
        event.key = flight->keyless ? BYTES_NONE : flight->attempt.key;
        event.outcome = bytes_str(outcome_class_name(outcome->cls));
        event.http_status = (uint32_t)outcome->http_status;
        event.duration_us = outcome->duration_us;
        event.reason = outcome->cls == OUTCOME_OK ? BYTES_NONE : bytes_str(outcome->reason);
        events_publish(lanes->options.events, &event);
    }
    if (action->state == SCHED_ROW_DONE) {
        event.kind = EVENT_DELIVERED;
        events_publish(lanes->options.events, &event);
    } else if (died(action)) {
        event.kind = EVENT_DEAD;
        event.outcome = bytes_str(action->cls);
        events_publish(lanes->options.events, &event);
    }
}

static void publish_lane(struct lanes *lanes, const struct sched_action *action, struct bytes key,
                         const char *reason)
{
    struct event event = event_of(lanes, lanes_sink_entry(lanes, action->place.sink), action);
    event.kind = action->kind == ACTION_LANE_BLOCKED ? EVENT_LANE_BLOCKED : EVENT_LANE_UNBLOCKED;
    event.key = key.len ? key : BYTES_NONE;
    event.since_ms = action->since_ms;
    event.behind = action->behind;
    event.reason = bytes_str(reason);
    events_publish(lanes->options.events, &event);
}

/* ---- notices of lanes ---- */

enum { NOTICES_MAX = 1024 }; /* waiting to be told; what comes beyond is told without what the store knows */

/* The key and the last answer are in the store; whoever is paged wants both. */
struct blocked {
    char reason[128];
    struct buf key;
};

static bool read_blocked(void *ctx, const struct store_row_view *row)
{
    struct blocked *blocked = ctx;
    snprintf(blocked->reason, sizeof blocked->reason, "%.*s", BYTES_ARG(row->reason));
    buf_putb(&blocked->key, row->key);
    return false;
}

static void tell_lane(struct lanes *lanes, const struct sched_action *action, const struct blocked *what)
{
    char lane[33];
    hex_encode(action->place.lane, sizeof action->place.lane, lane);
    const char *source = "", *name = "";
    store_sink_name(lanes->options.store, action->place.sink, &source, &name); /* it may be gone by now */
    const char *tenant = store_tenant_name(lanes->options.store, action->place.tenant);
    bool blocked = action->kind == ACTION_LANE_BLOCKED;
    log_event(blocked ? LOG_WARN : LOG_INFO, blocked ? "lane_blocked" : "lane_unblocked",
              LOG_STR("tenant", tenant), LOG_STR("source", source), LOG_STR("sink", name),
              LOG_BYTES("key", buf_bytes(&what->key)), LOG_STR("lane", lane),
              LOG_INT("head_seq", action->seq), LOG_INT("since_ms", action->since_ms),
              LOG_INT("attempts", action->attempts), LOG_INT("behind", action->behind),
              LOG_STR("last_error", what->reason));
    publish_lane(lanes, action, buf_bytes(&what->key), what->reason);
}

static void notice(struct lanes *lanes, const struct sched_action *action)
{
    if (lanes->notices.len < NOTICES_MAX)
        VEC_PUSH(&lanes->notices, *action);
    else
        tell_lane(lanes, action, &(struct blocked){0});
}

void notices_tell(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->turn);
    struct notices notices = lanes->notices;
    lanes->notices = (struct notices){0};
    pthread_mutex_unlock(&lanes->turn);
    VEC_EACH (action, &notices) {
        struct blocked what = {0};
        if (action->seq)
            store_row_of(lanes->reader, action->seq, action->place.sink, read_blocked, &what);
        tell_lane(lanes, action, &what);
        buf_free(&what.key);
    }
    VEC_FREE(&notices);
}

/* ---- everything that was said ---- */

static void tell_breaker(struct lanes *lanes, const struct sink_entry *sink,
                         const struct sched_action *action)
{
    static const char *const breakers[] = {
        [BREAKER_CLOSED] = "closed", [BREAKER_OPEN] = "open", [BREAKER_HALF_OPEN] = "half_open"};
    const char *state = breakers[action->breaker];
    if (lanes->options.metrics)
        counter_add(metrics_series3(lanes->options.metrics, METRIC_DISPATCH_BREAKER, sink->is.source,
                                    sink->is.name, state),
                    1);
    if (action->breaker == BREAKER_HALF_OPEN)
        return;
    bool open = action->breaker == BREAKER_OPEN;
    log_event(open ? LOG_WARN : LOG_INFO, "sink_breaker", LOG_STR("source", sink->is.source),
              LOG_STR("sink", sink->is.name), LOG_STR("state", state),
              LOG_STR("cause", breaker_cause_name(action->record.cause)),
              LOG_INT("probe_at_ms", action->record.probe_at_ms),
              LOG_STR("last_error", open ? sink->last_error : ""));
}

void tell_actions(struct lanes *lanes, struct flight *flight, struct list *changes)
{
    size_t count_of;
    const struct sched_action *actions = sched_actions(lanes->sched, &count_of);
    for (size_t i = 0; i < count_of; i++) {
        const struct sched_action *action = &actions[i];
        struct sink_entry *sink = lanes_sink_entry(lanes, action->place.sink);
        if (action->kind == ACTION_ROW) {
            struct store_change *change = change_of(action, flight ? &flight->attempt.outcome : NULL);
            list_append(changes, &change->node);
            count(lanes, sink, action, flight);
            publish_row(lanes, sink, action, flight);
        } else if (action->kind == ACTION_BREAKER) {
            marks_set_breaker(lanes, action);
            if (sink)
                tell_breaker(lanes, sink, action);
        } else if (action->kind == ACTION_SINK_PAUSE || action->kind == ACTION_LANE_PAUSE) {
            marks_set_pause(lanes, action);
        } else {
            notice(lanes, action);
        }
    }
    if (count_of > 0)
        lanes->dirty = true;
    sched_actions_done(lanes->sched);
}

void lanes_tell(struct lanes *lanes, struct list *changes)
{
    tell_actions(lanes, NULL, changes);
    if (!list_empty(changes))
        store_changes(lanes->options.store, changes);
}
