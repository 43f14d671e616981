/* What the scheduler said becomes changes for the store, log lines and counts. */
#include <stdio.h>
#include <string.h>

#include "lanes/lanes_priv.h"
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

static void count(struct lanes *lanes, struct sink_entry *sink, const struct sched_action *action,
                  const struct flight *flight)
{
    if (action->by_outcome && flight) {
        const struct outcome *outcome = &flight->attempt.outcome;
        if (lanes->options.metrics)
            counter_add(sink->meter.results[outcome->cls], 1);
        if (action->state == SCHED_ROW_DONE && lanes->options.metrics)
            histogram_observe(sink->meter.lag, (double)(action->at_ms - flight->received_ms) / 1000);
        if (outcome->cls != OUTCOME_OK)
            snprintf(sink->last_error, sizeof sink->last_error, "%s", outcome->reason);
    }
    bool died = (action->state == SCHED_ROW_DEAD || action->state == SCHED_ROW_HELD) && action->cls;
    if (died && lanes->options.metrics)
        counter_add(metrics_series3(lanes->options.metrics, METRIC_DISPATCH_DEAD, sink->is.source,
                                    sink->is.name, action->cls),
                    1);
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
    const struct lanes_sink *sink = &lanes_sink_entry(lanes, action->place.sink)->is;
    const char *tenant = store_tenant_name(lanes->options.store, action->place.tenant);
    bool blocked = action->kind == ACTION_LANE_BLOCKED;
    log_event(blocked ? LOG_WARN : LOG_INFO, blocked ? "lane_blocked" : "lane_unblocked",
              LOG_STR("tenant", tenant), LOG_STR("source", sink->source), LOG_STR("sink", sink->name),
              LOG_BYTES("key", buf_bytes(&what->key)), LOG_STR("lane", lane),
              LOG_INT("head_seq", action->seq), LOG_INT("since_ms", action->since_ms),
              LOG_INT("attempts", action->attempts), LOG_INT("behind", action->behind),
              LOG_STR("last_error", what->reason));
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
        } else if (action->kind == ACTION_BREAKER) {
            marks_set_breaker(lanes, action);
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
