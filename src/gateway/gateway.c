/* Opens the rooms in the order of flow, waits for a signal, closes them in reverse. */
#include "gateway/gateway.h"

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
#include "util/check.h"
#include "util/clock.h"
#include "util/mem.h"

struct gateway {
    struct config *config;
    struct metrics *metrics;
    struct events *events;
    struct store *store;
    struct deliver *deliver;
    struct lanes *lanes;
    struct reviver *reviver;
    struct ingest *ingest;
    struct admin *admin;
    struct http_server *front, *back; /* ingest's and admin's */
    atomic_bool draining;
    bool lanes_run, store_runs;

    /* What the rooms borrow: the configuration in their words, with the store's ids. One entry a sink. */
    size_t sink_count;
    struct lanes_sink *lanes_sinks;
    struct admin_sink *admin_sinks;
    struct ingest_sink *ingest_sinks;
    struct ingest_source *ingest_sources;
    struct admin_token *tokens;
};

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

static void write_config(void *ctx, struct buf *out)
{
    struct gateway *g = ctx;
    config_write_json(g->config, out);
}

/* The same function as at ingest, with the plan that runs. */
static void resolve(void *ctx, const struct admin_sink *sink, const struct envelope *envelope,
                    struct arena *arena, struct order_lane *out)
{
    struct gateway *g = ctx;
    const struct config_source *source = config_source_find(g->config, bytes_str(sink->source));
    struct order_lane *lanes = arena_zalloc(arena, source->sink_count * sizeof *lanes);
    order_resolve(source->plan, envelope, arena, lanes, NULL);
    for (size_t i = 0; i < source->sink_count; i++)
        if (strcmp(source->sinks[i].name, sink->name) == 0)
            *out = lanes[i];
}

static void release(void *ctx, struct admin_release *asked, size_t count, bool dry_run)
{
    struct gateway *g = ctx;
    struct ingest_release releases[INGEST_RELEASE_MAX];
    for (size_t i = 0; i < count; i++)
        releases[i] = (struct ingest_release){.pen_id = asked[i].pen_id, .envelope = asked[i].envelope};
    ingest_release(g->ingest, releases, count, dry_run);
    for (size_t i = 0; i < count; i++) {
        static const __typeof__(asked->outcome) outcomes[] = {
            [RELEASE_VERIFIED] = ADMIN_RELEASE_VERIFIED, [RELEASE_DONE] = ADMIN_RELEASE_DONE,
            [RELEASE_DUPLICATE] = ADMIN_RELEASE_TWIN,    [RELEASE_FAILED_AGAIN] = ADMIN_RELEASE_FAILED,
            [RELEASE_NO_SOURCE] = ADMIN_RELEASE_FAILED,  [RELEASE_GONE] = ADMIN_RELEASE_GONE,
            [RELEASE_REFUSED] = ADMIN_RELEASE_STOPPED,
        };
        asked[i].outcome = outcomes[releases[i].outcome];
        asked[i].reason =
            releases[i].outcome == RELEASE_REFUSED ? status_text(releases[i].status) : releases[i].reason;
    }
}

/* ---- opening ---- */

static enum ingest_on_failure on_failure_of(enum on_verify_failure policy)
{
    switch (policy) {
    case VERIFY_REJECT:
        return INGEST_REJECT;
    case VERIFY_QUARANTINE:
        return INGEST_QUARANTINE;
    case VERIFY_ACCEPT_FLAG:
        return INGEST_ACCEPT_FLAG;
    }
    UNREACHABLE();
}

/* Opens every sink's transport and gives it its durable number; fills what lanes, admin and ingest borrow. */
static enum status open_sinks(struct gateway *g, struct error *err)
{
    const struct config *config = g->config;
    size_t total = 0;
    for (size_t i = 0; i < config->source_count; i++)
        total += config->sources[i].sink_count;
    g->lanes_sinks = mem_zalloc(total * sizeof *g->lanes_sinks);
    g->admin_sinks = mem_zalloc(total * sizeof *g->admin_sinks);
    g->ingest_sinks = mem_zalloc(total * sizeof *g->ingest_sinks);
    g->ingest_sources = mem_zalloc(config->source_count * sizeof *g->ingest_sources);

    for (size_t i = 0; i < config->source_count; i++) {
        const struct config_source *source = &config->sources[i];
        g->ingest_sources[i] = (struct ingest_source){
            .name = source->name,
            .tenant = source->tenant,
            .shared = source->shared,
            .verifier = source->verifier,
            .on_failure = on_failure_of(source->on_verify_failure),
            .respond = source->respond,
            .dedupe_ttl_ms = source->dedupe_ttl_ms,
            .handshake = (enum ingest_handshake)source->handshake, /* the same list */
            .verify_tokens = source->verify_tokens,
            .verify_token_count = source->verify_token_count,
            .store_headers = source->store_headers,
            .store_header_count = source->store_header_count,
            .plan = source->plan,
            .sinks = &g->ingest_sinks[g->sink_count],
            .sink_count = source->sink_count,
        };
        for (size_t k = 0; k < source->sink_count; k++) {
            const struct config_sink *sink = &source->sinks[k];
            uint32_t id;
            struct sink *open = NULL;
            enum status status = store_sink_id(g->store, source->name, sink->name, &id, err);
            if (status == STATUS_OK)
                status = sink_open(g->deliver, &sink->transport, &open, err);
            if (status != STATUS_OK)
                return status;
            size_t at = g->sink_count++;
            g->lanes_sinks[at] = (struct lanes_sink){.id = id,
                                                     .source = source->name,
                                                     .name = sink->name,
                                                     .ordered = sink->order.ordered,
                                                     .sink = open,
                                                     .dead_retention_ms = source->dlq_retention_ms,
                                                     .policy = sink->policy};
            g->admin_sinks[at] = (struct admin_sink){.id = id,
                                                     .source = source->name,
                                                     .name = sink->name,
                                                     .type = sink->transport.type,
                                                     .ordered = sink->order.ordered,
                                                     .concurrency = sink->policy.concurrency};
            g->ingest_sinks[at] = (struct ingest_sink){.id = id, .name = sink->name, .key = sink->order.key};
        }
    }
    return STATUS_OK;
}

static enum status open_dispatch(struct gateway *g, struct error *err)
{
    const struct config *config = g->config;
    struct deliver_options deliver = {.threads = 1, .egress = config->egress, .metrics = g->metrics};
    enum status status = deliver_open(&deliver, &g->deliver, err);
    if (status == STATUS_OK)
        status = open_sinks(g, err);
    if (status != STATUS_OK)
        return status;
    struct lanes_options lanes = {
        .store = g->store,
        .deliver = g->deliver,
        .sinks = g->lanes_sinks,
        .sink_count = g->sink_count,
        .concurrency = config->dispatch_concurrency,
        .max_inflight_bytes = config->max_inflight_bytes,
        .max_pending_bytes = config->max_pending_bytes,
        .attempt_timeout_ms = config->attempt_timeout_ms,
        .metrics = g->metrics,
        .events = g->events,
    };
    return lanes_open(&lanes, &g->lanes, err);
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

static enum status open_store(struct gateway *g, struct error *err)
{
    const struct config *config = g->config;
    struct store_options options = config->store;
    struct store_dlq_bound *bounds = mem_zalloc((config->source_count + 1) * sizeof *bounds);
    for (size_t i = 0; i < config->source_count; i++)
        bounds[i] = (struct store_dlq_bound){.source = config->sources[i].name,
                                             .max_rows = config->sources[i].dlq_max_rows,
                                             .max_bytes = config->sources[i].dlq_max_bytes};
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

static enum status open_front(struct gateway *g, struct error *err)
{
    const struct config *config = g->config;
    struct ingest_options ingest = {
        .store = g->store,
        .metrics = g->metrics,
        .events = g->events,
        .prefix = config->prefix,
        .tenant_in_path = config->routing == ROUTING_TENANT_PATH,
        .sources = g->ingest_sources,
        .source_count = config->source_count,
        .max_body_bytes = config->http.max_body_bytes,
        .ready = is_ready,
        .revive = revive,
        .pen_rate = config->pen_rate,
        .pen_burst = config->pen_burst,
        .pen_share_bytes = config->pen_share_bytes,
        .ctx = g,
    };
    enum status status = ingest_open(&ingest, &g->ingest, err);
    if (status != STATUS_OK)
        return status;
    struct http_options http = config->http;
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
    const struct config *config = g->config;
    g->tokens = mem_zalloc(config->token_count * sizeof *g->tokens);
    for (size_t i = 0; i < config->token_count; i++)
        g->tokens[i] = (struct admin_token){.hash = config->tokens[i].hash,
                                            .name = config->tokens[i].name,
                                            .scopes = config->tokens[i].scopes};
    struct admin_options admin = {
        .store = g->store,
        .lanes = g->lanes,
        .metrics = g->metrics,
        .events = g->events,
        .tokens = g->tokens,
        .token_count = config->token_count,
        .listen = config->admin.listen,
        .listen_count = config->admin.listen_count,
        .sinks = g->admin_sinks,
        .sink_count = g->sink_count,
        .config_json = write_config,
        .not_ready = not_ready,
        .resolve = resolve,
        .release = release,
        .ctx = g,
    };
    enum status status = admin_open(&admin, &g->admin, err);
    if (status != STATUS_OK)
        return status;
    struct http_options http = config->admin;
    http.name = "admin";
    http.handler = admin_handle;
    http.ctx = g->admin;
    return http_bind(&http, &g->back, err);
}

static void log_listening(const char *event, const struct http_server *server, size_t count)
{
    for (size_t i = 0; i < count; i++)
        log_event(LOG_INFO, event, LOG_STR("address", http_address(server, i)));
}

/* Everything that can fail on its own account comes before lanes_start, which begins to deliver. */
static enum status open_all(struct gateway *g, struct buf *faults, struct error *err)
{
    if (g->config->scripts)
        scripts_meter(g->config->scripts, g->metrics);
    enum status status = open_store(g, err);
    if (status == STATUS_OK)
        status = guard_rows(g->config, g->store, faults, err);
    if (status == STATUS_OK)
        status = open_dispatch(g, err);
    if (status == STATUS_OK)
        status = reviver_open(g->store, g->lanes, &g->reviver, err);
    if (status == STATUS_OK)
        status = open_back(g, err);
    if (status == STATUS_OK)
        status = open_front(g, err);
    return status;
}

static enum status start_all(struct gateway *g, struct error *err)
{
    enum status status = lanes_start(g->lanes, err);
    g->lanes_run = status == STATUS_OK;
    if (status == STATUS_OK)
        status = store_start(g->store, err);
    g->store_runs = g->lanes_run && status == STATUS_OK;
    if (status == STATUS_OK)
        status = http_start(g->back, err);
    if (status == STATUS_OK)
        status = http_start(g->front, err);
    if (status == STATUS_OK) {
        log_listening("admin_listening", g->back, g->config->admin.listen_count);
        log_listening("ingest_listening", g->front, g->config->http.listen_count);
        log_event(LOG_INFO, "started", LOG_STR("version", LANEGATE_VERSION), LOG_INT("pid", getpid()),
                  LOG_STR("config", g->config->path), LOG_STR("data_dir", g->config->data_dir));
    }
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
    int64_t deadline_ms = clock_mono_ms() + g->config->drain_timeout_ms;
    enum { LAST_ANSWERS_MS = 1000 };
    log_event(LOG_INFO, "draining", LOG_INT("running", lanes_inflight(g->lanes)));
    g->draining = true;
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
    for (size_t i = 0; i < g->sink_count; i++)
        sink_close(g->lanes_sinks[i].sink);
    if (g->deliver)
        deliver_close(g->deliver);
    if (g->store)
        store_close(g->store);
    free(g->lanes_sinks);
    free(g->admin_sinks);
    free(g->ingest_sinks);
    free(g->ingest_sources);
    free(g->tokens);
    events_close(g->events);
    metrics_free(g->metrics);
    config_unref(g->config);
}

/* A sync that hangs can't be interrupted; what was answered is synced, so ending is safe. */
enum { DISK_GRACE_MS = 30000 };

enum status gateway_run(struct config *config, struct buf *faults, struct error *err)
{
    struct gateway g = {.config = config_ref(config), .metrics = metrics_new(), .events = events_open()};
    process_settle(config);

    enum status status = open_all(&g, faults, err);
    if (status == STATUS_OK)
        status = start_all(&g, err);
    if (status == STATUS_OK) {
        notify_supervisor("READY=1");
        process_wait_for_end(&(struct process_watch){.moves = moves, .ctx = &g});
        notify_supervisor("STOPPING=1");
        process_end_by(config->drain_timeout_ms + DISK_GRACE_MS);
        drain(&g);
        log_event(LOG_INFO, "stopped", LOG_INT("pid", getpid()));
    } else {
        stop_threads(&g, clock_mono_ms());
    }
    close_all(&g);
    return status;
}
