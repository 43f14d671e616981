/* Another configuration while everything runs. The caller's thread asks, the lanes thread does it between two
 * turns, so that no start, no outcome and no row sees half of it. A sink that configuration no longer names
 * is not dropped at once: hooks may be on their way to it.
 *
 *     HERE ──not named──▶ LEAVING ──let go, and nothing is owed──▶ GONE
 *      ▲                     │                                       │
 *      └────── named ────────┴───────────────── named ───────────────┘
 */
#include <string.h>

#include "lanes/lanes_priv.h"
#include "util/clock.h"
#include "util/log.h"

enum {
    GIVE_UP_MOST = 2000, /* rows between two turns */
    GIVE_UP_WAIT_MS = 10,
    DEAD_LOOK_MOST = 20000, /* dead letters a read transaction */
};

/* ---- sinks that come, stay or leave ---- */

static bool restore_dead(void *ctx, const struct store_row_view *row)
{
    struct lanes *lanes = ctx;
    if (row->state != ROW_DEAD && row->state != ROW_HELD)
        return true;
    struct sched_place place = {.sink = row->sink, .tenant = row->tenant, .ordered = row->ordered};
    memcpy(place.lane, row->lane, sizeof place.lane);
    struct sched_owed owed = {.seq = row->seq,
                              .received_ms = row->received_at_ms,
                              .state = row->state == ROW_HELD ? OWED_HELD : OWED_DEAD,
                              .late = row->late,
                              .attempts = row->attempts,
                              .first_attempt_ms = row->first_attempt_ms,
                              .waived_ms = row->waived_ms,
                              .dead_at_ms = row->at_ms};
    sched_restore(lanes->sched, lanes_now(), &place, &owed);
    return true;
}

/* New to this process, maybe not to the store: its dead letters and its pauses are from another time. The
 * start guard saw to it that nothing is owed to it. Read with the turn held, since rows of it come behind
 * this: a thing of milliseconds, once in a while. */
static void restore_stranger(struct lanes *lanes, const struct lanes_sink *sink)
{
    struct store_dead_filter filter = {.source = sink->source, .sink = sink->name, .limit = DEAD_LOOK_MOST};
    marks_restore_stranger(lanes, sink->id);
    bool end = false;
    while (!end &&
           store_walk_dead(lanes->reader, &filter, DEAD_LOOK_MOST, restore_dead, lanes, &end) == STATUS_OK)
        ;
    marks_restore_stranger_lanes(lanes, sink->id);
}

static void set_state(struct lanes *lanes, struct sink_entry *sink, enum sink_state state)
{
    if (sink->state == state)
        return;
    lanes->leaving += state == SINK_LEAVING;
    lanes->leaving -= sink->state == SINK_LEAVING;
    pthread_mutex_lock(&lanes->look_lock);
    sink->state = state;
    pthread_mutex_unlock(&lanes->look_lock);
}

static void add(struct lanes *lanes, const struct lanes_sink *sink)
{
    pthread_mutex_lock(&lanes->look_lock);
    gauges_sink_open(lanes, lanes_sink_add(lanes, sink));
    pthread_mutex_unlock(&lanes->look_lock);
    restore_stranger(lanes, sink);
}

/* This side was wrong about it, and its configuration was read anew. */
static bool is_parked(struct lanes *lanes, uint32_t id)
{
    struct sched_sink_view view;
    sched_sink_look(lanes->sched, lanes_now(), id, &view);
    return view.breaker != BREAKER_CLOSED && view.record.cause == BREAKER_BY_CONFIG;
}

/* What is under way has a reference of its own to the old transport. */
static void renew(struct lanes *lanes, struct sink_entry *entry, const struct lanes_sink *sink)
{
    struct sink *before = entry->is.sink;
    sink_ref(sink->sink);
    entry->is = *sink;
    entry->may_go = false;
    entry->give_up = NULL;
    entry->cursor = 0;
    entry->gave_up = 0;
    set_state(lanes, entry, SINK_HERE);
    sched_sink_set(lanes->sched, lanes_now(), sink->id, &sink->policy);
    if (sink->moved || is_parked(lanes, sink->id))
        sched_sink_retry(lanes->sched, lanes_now(), sink->id);
    sink_close(before);
}

struct reload_command {
    struct command command;
    const struct lanes_options *options;
};

static void do_reload(struct lanes *lanes, struct command *command)
{
    const struct lanes_options *options = LIST_OWNER(command, struct reload_command, command)->options;
    lanes->reloads++;
    lanes->options.concurrency = options->concurrency;
    lanes->options.max_pending_bytes = options->max_pending_bytes;
    lanes->options.attempt_timeout_ms = options->attempt_timeout_ms;
    atomic_store(&lanes->max_bytes, options->max_inflight_bytes);
    atomic_store(&lanes->max_pending, options->max_pending_bytes);
    struct sched_options bounds = lanes_bounds(options);
    sched_set_bounds(lanes->sched, &bounds);

    for (size_t i = 0; i < options->sink_count; i++) {
        const struct lanes_sink *sink = &options->sinks[i];
        bool known = sink->id < lanes->sink_index.len && lanes->sink_index.at[sink->id] >= 0;
        struct sink_entry *entry = known ? &lanes->sinks.at[lanes->sink_index.at[sink->id]] : NULL;
        if (entry)
            renew(lanes, entry, sink);
        else
            add(lanes, sink);
        lanes->sinks.at[lanes->sink_index.at[sink->id]].reload = lanes->reloads;
    }
    VEC_EACH (sink, &lanes->sinks) {
        if (sink->state == SINK_HERE && sink->reload != lanes->reloads)
            set_state(lanes, sink, SINK_LEAVING);
    }
    expiry_open(lanes);
    gauges_publish(lanes); /* whoever has the answer sees it */
}

enum lanes_answer lanes_reload(struct lanes *lanes, const struct lanes_options *options)
{
    struct reload_command ask = {.command = {.run = do_reload}, .options = options};
    enum lanes_answer why_not;
    return command_do(lanes, &ask.command, &why_not) ? LANES_DONE : why_not;
}

static void do_refresh(struct lanes *lanes, struct command *command)
{
    (void)command;
    gauges_publish(lanes);
}

enum lanes_answer lanes_refresh(struct lanes *lanes)
{
    struct command ask = {.run = do_refresh};
    enum lanes_answer why_not;
    return command_do(lanes, &ask, &why_not) ? LANES_DONE : why_not;
}

/* ---- sinks that go ---- */

struct let_go_command {
    struct command command;
    const struct lanes_gone *gone;
    size_t count;
};

static void do_let_go(struct lanes *lanes, struct command *command)
{
    const struct let_go_command *ask = LIST_OWNER(command, struct let_go_command, command);
    VEC_EACH (sink, &lanes->sinks) {
        if (sink->state != SINK_LEAVING)
            continue;
        sink->may_go = true;
        for (size_t i = 0; i < ask->count; i++)
            if (ask->gone[i].sink == sink->is.id)
                sink->give_up = ask->gone[i].cls;
    }
}

enum lanes_answer lanes_let_go(struct lanes *lanes, const struct lanes_gone *gone, size_t count)
{
    struct let_go_command ask = {.command = {.run = do_let_go}, .gone = gone, .count = count};
    enum lanes_answer why_not;
    return command_do(lanes, &ask.command, &why_not) ? LANES_DONE : why_not;
}

static uint64_t owed(struct lanes *lanes, const struct sink_entry *sink)
{
    struct sched_sink_view view;
    sched_sink_look(lanes->sched, lanes_now(), sink->is.id, &view);
    return view.pending + view.lanes[LANE_STATE_HELD];
}

static void give_up(struct lanes *lanes, struct sink_entry *sink)
{
    if (!store_is_written(lanes->options.store, lanes->given_up))
        return;
    struct list changes = LIST_INIT(changes);
    uint64_t before = owed(lanes, sink);
    sched_sink_retire(lanes->sched, lanes_now(), sink->is.id, sink->give_up, &sink->cursor, GIVE_UP_MOST);
    sink->gave_up += before - owed(lanes, sink);
    lanes_tell(lanes, &changes);
    lanes->given_up = store_given(lanes->options.store);
}

/* The scheduler keeps what it knows of its dead letters, should it come back. */
static void go(struct lanes *lanes, struct sink_entry *sink)
{
    if (sink->give_up && sink->gave_up > 0)
        log_event(LOG_WARN, "sink_retired", LOG_STR("source", sink->is.source),
                  LOG_STR("sink", sink->is.name), LOG_STR("class", sink->give_up),
                  LOG_INT("hooks", sink->gave_up));
    log_event(LOG_INFO, "sink_gone", LOG_STR("source", sink->is.source), LOG_STR("sink", sink->is.name));
    struct sched_policy idle = sink->is.policy;
    idle.retry.schedule_ms = NULL; /* goes with the transport */
    idle.retry.schedule_count = 0;
    sched_sink_set(lanes->sched, lanes_now(), sink->is.id, &idle);
    sched_sink_retire(lanes->sched, lanes_now(), sink->is.id, "sink_gone", &sink->cursor, 1); /* no share */
    size_t at = (size_t)(sink - lanes->sinks.at);
    set_state(lanes, sink, SINK_GONE);
    pthread_mutex_lock(&lanes->look_lock);
    lanes->views[at] = (struct lanes_sink_view){.id = sink->is.id};
    lanes->sums[at] = (struct sched_sink_view){.pending = 0};
    pthread_mutex_unlock(&lanes->look_lock);
    sink_close(sink->is.sink);
    sink->is.sink = NULL;
}

void leaving_turn(struct lanes *lanes)
{
    if (lanes->leaving == 0)
        return;
    VEC_EACH (sink, &lanes->sinks) {
        if (sink->state != SINK_LEAVING || !sink->may_go)
            continue;
        if (sink->give_up)
            give_up(lanes, sink);
        if (owed(lanes, sink) == 0) /* what runs is owed */
            go(lanes, sink);
    }
}

int64_t leaving_due_ms(const struct lanes *lanes)
{
    for (size_t i = 0; lanes->leaving > 0 && i < lanes->sinks.len; i++) {
        const struct sink_entry *sink = &lanes->sinks.at[i];
        if (sink->state == SINK_LEAVING && sink->may_go && sink->give_up)
            return clock_mono_ms() + GIVE_UP_WAIT_MS;
    }
    return INT64_MAX;
}
