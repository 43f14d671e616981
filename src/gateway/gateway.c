/* Opens the rooms in the order of flow, waits for a signal, closes them in reverse. */
#include "gateway/gateway_priv.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/admin.h"
#include "events/events.h"
#include "gateway/guard.h"
#include "gateway/notify.h"
#include "gateway/process.h"
#include "gateway/revive.h"
#include "ingest/ingest.h"
#include "lanes/lanes.h"
#include "replay/replay.h"
#include "script/keys.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/mem.h"

/* ---- readiness ---- */

static size_t not_ready(void *ctx, const char **reasons, size_t max)
{
    struct gateway *g = ctx;
    struct store_stats stats;
    store_stats(g->store, &stats);
    size_t n = 0;
    if (!stats.available && n < max)
        reasons[n++] = "store";
    if (stats.disk_full && n < max)
        reasons[n++] = "disk";
    if (!lanes_progress(g->lanes) && n < max)
        reasons[n++] = "stalled";
    if (g->draining && n < max)
        reasons[n++] = "draining";
    return n;
}

/* For the watchdog: a restart would mend what is stuck, and nothing else that makes us not ready. */
static bool moves(void *ctx)
{
    struct gateway *g = ctx;
    return lanes_progress(g->lanes);
}

static bool is_ready(void *ctx)
{
    const char *reason;
    return not_ready(ctx, &reason, 1) == 0;
}

static void write_config(void *of, struct buf *out)
{
    const struct generation *generation = of;
    config_write_json(generation->config, out);
}

/* The same function as at ingest, with the plan of the configuration that runs. */
static void resolve(void *of, const struct admin_sink *sink, const struct envelope *envelope,
                    struct arena *arena, struct order_lane *out)
{
    const struct generation *generation = of;
    const struct config_source *source = config_source_find(generation->config, bytes_str(sink->source));
    struct order_lane *lanes = arena_zalloc(arena, source->sink_count * sizeof *lanes);
    order_resolve(source->plan, envelope, arena, lanes, NULL);
    for (size_t i = 0; i < source->sink_count; i++)
        if (strcmp(source->sinks[i].name, sink->name) == 0)
            *out = lanes[i];
}

static void key_test(void *of, const struct admin_sink *sink, struct envelope *envelope, struct jsonw *json)
{
    const struct generation *generation = of;
    const struct config_source *source = config_source_find(generation->config, bytes_str(sink->source));
    struct order_lane lane = {0};
    struct script_result script;
    if (source->store_headers)
        envelope_keep_headers(envelope, source->store_headers, source->store_header_count);
    resolve(of, sink, envelope, envelope->arena, &lane);
    size_t i = 0;
    while (strcmp(source->sinks[i].name, sink->name) != 0)
        i++;
    scripts_explain(generation->config->scripts, source->sinks[i].order.key, envelope, envelope->arena, true,
                    &script);
    jsonw_object(json, NULL);
    jsonw_str(json, "source", sink->source);
    jsonw_str(json, "sink", sink->name);
    scripts_write_found(&lane, &script, json);
    jsonw_end_object(json);
}

/* For replays and for people. */
static void release(void *ctx, struct replay_release *asked, size_t count, uint32_t number, bool dry_run)
{
    struct gateway *g = ctx;
    struct ingest_release releases[INGEST_RELEASE_MAX];
    for (size_t i = 0; i < count; i++)
        releases[i] = (struct ingest_release){.pen_id = asked[i].pen_id, .envelope = asked[i].envelope};
    ingest_release(g->ingest, releases, count, number, dry_run);
    for (size_t i = 0; i < count; i++) {
        static const __typeof__(asked->outcome) outcomes[] = {
            [RELEASE_VERIFIED] = REPLAY_RELEASE_VERIFIED, [RELEASE_DONE] = REPLAY_RELEASE_DONE,
            [RELEASE_DUPLICATE] = REPLAY_RELEASE_TWIN,    [RELEASE_FAILED_AGAIN] = REPLAY_RELEASE_FAILED,
            [RELEASE_NO_SOURCE] = REPLAY_RELEASE_FAILED,  [RELEASE_GONE] = REPLAY_RELEASE_GONE,
            [RELEASE_REFUSED] = REPLAY_RELEASE_STOPPED,
        };
        asked[i].outcome = outcomes[releases[i].outcome];
        asked[i].reason = releases[i].reason;
    }
}

/* For replays: the configuration that runs. */
static void *hold_generation(void *ctx, const struct lanes_sink **sinks, size_t *count)
{
    struct gateway *g = ctx;
    pthread_mutex_lock(&g->generation_lock);
    struct generation *generation = generation_ref(g->generation);
    pthread_mutex_unlock(&g->generation_lock);
    *sinks = generation->lanes_sinks;
    *count = generation->sink_count;
    return generation;
}

static void resolve_for_replay(void *of, const struct lanes_sink *sink, const struct envelope *envelope,
                               struct arena *arena, struct order_lane *out)
{
    const struct admin_sink named = {.source = sink->source, .name = sink->name};
    resolve(of, &named, envelope, arena, out);
}

/* ---- opening ---- */

static enum status open_dispatch(struct gateway *g, struct error *err)
{
    struct generation *generation = g->generation;
    struct deliver_options deliver = {
        .threads = 1, .egress = generation->config->egress, .metrics = g->metrics};
    enum status status = deliver_open(&deliver, &g->deliver, err);
    if (status == STATUS_OK)
        status = generation_open_sinks(generation, g->deliver, err);
    if (status != STATUS_OK)
        return status;
    struct lanes_options lanes = {
        .store = g->store, .deliver = g->deliver, .metrics = g->metrics, .events = g->events};
    generation_lanes(generation, &lanes);
    status = lanes_open(&lanes, &g->lanes, err);
    generation_close_sinks(generation); /* lanes has them now */
    return status;
}

/* store_options.committed: lanes is opened after the store, so the way leads through here. */
static void committed(void *ctx, struct store_hook *const *hooks, size_t count)
{
    struct gateway *g = ctx;
    lanes_committed(g->lanes, hooks, count);
}

/* store_options.answering: a loop gets the answers of a batch as one. */
static void answering(void *ctx, bool begins)
{
    (void)ctx;
    if (begins)
        http_answers_hold();
    else
        http_answers_release();
}

static enum status open_store(struct gateway *g, const struct config *config, struct error *err)
{
    struct store_options options = config->store;
    struct store_dlq_bound *bounds = generation_dlq_bounds(config);
    options.dlq = bounds;
    options.dlq_count = config->source_count;
    options.committed = committed;
    options.answering = answering;
    options.ctx = g;
    options.metrics = g->metrics;
    enum status status = store_open(&options, &g->store, err);
    free(bounds);
    return status;
}

static bool revive(void *ctx, struct ingest_revival *revival)
{
    struct gateway *g = ctx;
    return reviver_ask(g->reviver, revival);
}

static enum status open_replays(struct gateway *g, struct error *err)
{
    const struct replays_options options = {.store = g->store,
                                            .lanes = g->lanes,
                                            .hold = hold_generation,
                                            .let_go = generation_unref,
                                            .resolve = resolve_for_replay,
                                            .release = release,
                                            .ctx = g};
    return replays_open(&options, &g->replays, err);
}

static enum status open_front(struct gateway *g, struct error *err)
{
    struct ingest_options ingest = {.store = g->store,
                                    .limits = g->limits,
                                    .metrics = g->metrics,
                                    .events = g->events,
                                    .rules = gateway_ingest_rules(g->generation),
                                    .ready = is_ready,
                                    .revive = revive,
                                    .ctx = g};
    enum status status = ingest_open(&ingest, &g->ingest, err);
    if (status != STATUS_OK)
        return status;
    struct http_options http = g->generation->config->http;
    http.name = "ingest";
    http.handler = ingest_handle;
    http.judges_headers = true;
    http.on_refused = ingest_refused;
    http.ctx = g->ingest;
    http.metrics = g->metrics;
    return http_bind(&http, &g->front, err);
}

static enum status open_back(struct gateway *g, struct error *err)
{
    const struct config *config = g->generation->config;
    struct admin_options admin = {
        .store = g->store,
        .lanes = g->lanes,
        .replays = g->replays,
        .limits = g->limits,
        .metrics = g->metrics,
        .events = g->events,
        .rules = gateway_admin_rules(g->generation),
        .listen = config->admin.listen,
        .listen_count = config->admin.listen_count,
        .config_json = write_config,
        .not_ready = not_ready,
        .resolve = resolve,
        .key_test = key_test,
        .release = release,
        .reload = reload_ask,
        .ctx = g,
    };
    enum status status = admin_open(&admin, &g->admin, err);
    if (status != STATUS_OK) {
        generation_unref(g->generation); /* the admin room's */
        return status;
    }
    struct http_options http = config->admin;
    http.name = "admin";
    http.handler = admin_handle;
    http.ctx = g->admin;
    return http_bind(&http, &g->back, err);
}

static enum status open_generation(struct gateway *g, struct config *config, struct error *err)
{
    enum status status = generation_new(config, 1, g->store, g->metrics, &g->generation, err);
    if (status != STATUS_OK)
        return status;
    g->generation->over = reload_over;
    g->generation->ctx = g;
    return STATUS_OK;
}

static void log_listening(const char *event, const struct http_server *server, size_t count)
{
    for (size_t i = 0; i < count; i++)
        log_event(LOG_INFO, event, LOG_STR("address", http_address(server, i)));
}

/* Everything that can fail on its own account comes before lanes_start, which begins to deliver. */
static enum status open_all(struct gateway *g, struct config *config, struct buf *faults, struct error *err)
{
    enum status status = open_store(g, config, err);
    if (status == STATUS_OK)
        status = guard_rows(config, g->store, faults, err);
    if (status == STATUS_OK)
        status = open_generation(g, config, err);
    if (status == STATUS_OK)
        status = gateway_open_limits(g, err);
    if (status == STATUS_OK)
        status = open_dispatch(g, err);
    if (status == STATUS_OK)
        status = reviver_open(g->store, g->lanes, &g->reviver, err);
    if (status == STATUS_OK)
        status = open_replays(g, err);
    if (status == STATUS_OK)
        status = open_back(g, err);
    if (status == STATUS_OK)
        status = open_front(g, err);
    return status;
}

static enum status start_all(struct gateway *g, struct error *err)
{
    /* A reload may come before the last line here. */
    struct generation *first = generation_ref(g->generation);
    enum status status = lanes_start(g->lanes, err);
    g->lanes_run = status == STATUS_OK;
    if (status == STATUS_OK)
        status = store_start(g->store, err);
    g->store_runs = g->lanes_run && status == STATUS_OK;
    if (status == STATUS_OK)
        status = replays_start(g->replays, err);
    if (status == STATUS_OK)
        status = reload_start(g, err);
    if (status == STATUS_OK)
        status = http_start(g->back, err);
    if (status == STATUS_OK)
        status = http_start(g->front, err);
    if (status == STATUS_OK) {
        const struct config *config = first->config;
        log_listening("admin_listening", g->back, config->admin.listen_count);
        log_listening("ingest_listening", g->front, config->http.listen_count);
        log_event(LOG_INFO, "started", LOG_STR("version", LANEGATE_VERSION), LOG_INT("pid", getpid()),
                  LOG_STR("config", config->path), LOG_STR("data_dir", config->data_dir));
    }
    generation_unref(first);
    return status;
}

/* ---- closing ---- */

static void wait_drained(struct gateway *g, int64_t deadline_ms)
{
    while (!http_drained(g->front) && clock_mono_ms() < deadline_ms)
        usleep(2000);
}

/* What runs between the rooms: attempts end by the deadline, their outcomes are written, the log is
 * checkpointed. */
static void stop_threads(struct gateway *g, int64_t deadline_ms)
{
    replays_stop(g->replays);
    if (g->deliver)
        deliver_stop(g->deliver, deadline_ms);
    if (g->lanes_run)
        lanes_stop(g->lanes);
    if (g->store_runs)
        store_stop(g->store);
}

/* Contract, section 8: close the listeners, commit and answer what is queued, finish running attempts,
 * checkpoint. */
static void drain(struct gateway *g)
{
    int64_t deadline_ms = clock_mono_ms() + g->generation->config->drain_timeout_ms;
    enum { LAST_ANSWERS_MS = 1000 };
    log_event(LOG_INFO, "draining", LOG_INT("running", lanes_inflight(g->lanes)));
    g->draining = true;
    admin_drain(g->admin);
    replays_stop(g->replays);
    lanes_quiesce(g->lanes);
    ingest_drain(g->ingest);
    http_drain(g->front);
    wait_drained(g, deadline_ms);
    stop_threads(g, deadline_ms);
    wait_drained(g, clock_mono_ms() + LAST_ANSWERS_MS); /* what store_stop has just answered goes out */
}

static void close_all(struct gateway *g)
{
    if (g->front)
        http_close(g->front);
    if (g->back)
        http_close(g->back);
    admin_close(g->admin);
    reviver_close(g->reviver);
    ingest_close(g->ingest);
    if (g->lanes)
        lanes_close(g->lanes);
    if (g->deliver)
        deliver_close(g->deliver);
    if (g->store)
        store_close(g->store);
    replays_close(g->replays);
    generation_unref(g->generation);
    reload_close(g);
    limits_close(g->limits);
    events_close(g->events);
    metrics_free(g->metrics);
}

/* A sync that hangs can't be interrupted; what was answered is synced, so ending is safe. */
enum { DISK_GRACE_MS = 30000 };

enum status gateway_run(struct config *config, struct buf *faults, struct error *err)
{
    struct gateway g = {
        .generation_lock = PTHREAD_MUTEX_INITIALIZER, .metrics = metrics_new(), .events = events_open()};
    process_settle(config);
    reload_open(&g);

    enum status status = open_all(&g, config, faults, err);
    if (status == STATUS_OK)
        status = start_all(&g, err);
    if (status == STATUS_OK) {
        notify_supervisor("READY=1");
        process_wait_for_end(&(struct process_watch){.moves = moves, .hangup = reload_hangup, .ctx = &g});
        notify_supervisor("STOPPING=1");
        reload_stop(&g);
        process_end_by(g.generation->config->drain_timeout_ms + DISK_GRACE_MS);
        drain(&g);
        log_event(LOG_INFO, "stopped", LOG_INT("pid", getpid()));
    } else {
        reload_stop(&g);
        stop_threads(&g, clock_mono_ms());
    }
    close_all(&g);
    return status;
}
