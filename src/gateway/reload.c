/* One reload, straight down. Everything that can be refused comes before anything changes:
 *
 *     load and check the file ─▶ does anything need a restart? ─▶ would rows be orphaned? ─▶ open the sinks
 *       ─▶ lanes ─▶ ingest, admin        from here on new hooks go by the new configuration
 *       ─▶ wait for the last answer under the old one ─▶ sinks that are gone go, what is retired is given up
 *
 * Lanes comes before ingest, so that no row is made for a sink it does not know; and a sink that is gone
 * stays with lanes until no hook can come for it. */
#include "gateway/reload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/gateway_priv.h"
#include "gateway/guard.h"
#include "gateway/notify.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/cond.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/thread.h"
#include "util/vec.h"

enum {
    ANSWERS_GRACE_MS = 5000, /* beside commit_timeout_ms, for the last answers under the old configuration */
    LOGGED_PATHS_BYTES = 2000,
};

struct reload {
    struct gateway *gateway;
    struct config *config;
    struct generation *next;
    struct arena *arena;
    const struct config_change *changes;
    size_t change_count;
    struct gone_sinks gone;
    struct buf faults;
    struct admin_reloaded result;
};

/* ---- what users hold ---- */

static void ingest_over(void *of)
{
    struct generation *generation = of;
    struct gateway *g = generation->ctx;
    pthread_mutex_lock(&g->reloader.lock);
    if (g->reloader.unanswered == generation) {
        g->reloader.unanswered = NULL;
        pthread_cond_broadcast(&g->reloader.wake);
    }
    pthread_mutex_unlock(&g->reloader.lock);
    generation_unref(generation);
}

struct ingest_rules gateway_ingest_rules(struct generation *generation)
{
    struct ingest_rules rules = generation_ingest(generation);
    rules.of = generation_ref(generation);
    rules.released = ingest_over;
    return rules;
}

struct admin_rules gateway_admin_rules(struct generation *generation)
{
    struct admin_rules rules = generation_admin(generation);
    rules.of = generation_ref(generation);
    rules.released = generation_unref;
    return rules;
}

void reload_over(void *gateway, struct generation *generation)
{
    struct gateway *g = gateway;
    pthread_mutex_lock(&g->reloader.lock);
    list_append(&g->reloader.over, &generation->node);
    pthread_cond_broadcast(&g->reloader.wake);
    pthread_mutex_unlock(&g->reloader.lock);
}

/* ---- may it be? ---- */

static bool is_changed(const struct reload *r, const char *path)
{
    size_t len = strlen(path);
    for (size_t i = 0; i < r->change_count; i++)
        if (strncmp(r->changes[i].path, path, len) == 0 && strchr(".", r->changes[i].path[len]))
            return true;
    return false;
}

static bool refuse(struct reload *r, int what)
{
    r->result.what = what;
    return false;
}

static bool load(struct reload *r)
{
    const struct config *running = r->gateway->generation->config;
    if (config_load(running->path, CONFIG_SERVE, &r->config, &r->faults) != STATUS_OK)
        return refuse(r, ADMIN_RELOAD_BAD_CONFIG);
    r->change_count = config_compare(running, r->config, r->arena, &r->changes);
    return true;
}

static const char **paths(struct reload *r, bool restart_only, size_t *count)
{
    const char **out = arena_zalloc(r->arena, (r->change_count + 1) * sizeof *out);
    *count = 0;
    for (size_t i = 0; i < r->change_count; i++)
        if (!restart_only || r->changes[i].needs_restart)
            out[(*count)++] = r->changes[i].path;
    return out;
}

/* Names everything at once: what needs a restart, and what rows stand in the way. */
static bool judge(struct reload *r)
{
    struct gateway *g = r->gateway;
    size_t count;
    const char *const *restart = paths(r, true, &count);
    for (size_t i = 0; i < count; i++)
        buf_putf(&r->faults, "%s: %s: has changed, and that needs a restart\n", r->config->path, restart[i]);

    enum lanes_answer answer = lanes_refresh(g->lanes);
    if (answer != LANES_DONE)
        return refuse(r, answer == LANES_BUSY ? ADMIN_RELOAD_BUSY : ADMIN_RELOAD_DRAINING);
    enum guard_answer owed = guard_reload(r->config, g->store, g->lanes, &r->gone, &r->faults);
    if (count == 0 && owed == GUARD_FINE)
        return true;
    r->result.changed = restart;
    r->result.changed_count = count;
    return refuse(r, count > 0 || owed == GUARD_NEEDS_RESTART ? ADMIN_RELOAD_NEEDS_RESTART
                                                              : ADMIN_RELOAD_HOOKS_OWED);
}

/* ---- doing it ---- */

/* How a sink is reached; `timeout_ms`, headers and what counts as refused are no other way. */
static bool is_moved(const struct reload *r, const struct lanes_sink *sink)
{
    static const char *const way[] = {"type", "url", "method", "proxy", "tls", "secret"};
    char path[256];
    bool moved = false;
    for (size_t i = 0; i < sizeof way / sizeof *way && !moved; i++) {
        snprintf(path, sizeof path, "sources.%s.sinks.%s.%s", sink->source, sink->name, way[i]);
        moved = is_changed(r, path);
    }
    return moved;
}

static bool prepare(struct reload *r)
{
    struct gateway *g = r->gateway;
    struct error err = {{0}};
    enum status status =
        generation_new(r->config, g->generation->number + 1, g->store, g->metrics, &r->next, &err);
    if (status == STATUS_OK) {
        r->next->over = reload_over;
        r->next->ctx = g;
        if (is_changed(r, "egress"))
            deliver_set_egress(g->deliver, &r->config->egress);
        status = generation_open_sinks(r->next, g->deliver, &err);
    }
    if (status == STATUS_OK) /* the files too may be others now, under the same names */
        status = http_tls_reload(g->front, r->config->http.tls, &err);
    if (status == STATUS_OK) {
        for (size_t i = 0; i < r->next->sink_count; i++)
            r->next->lanes_sinks[i].moved = is_moved(r, &r->next->lanes_sinks[i]);
        return true;
    }
    buf_putf(&r->faults, "%s: %s\n", r->config->path, err.text);
    return refuse(r, ADMIN_RELOAD_FAILED);
}

/* The first step that is seen; before it all can be taken back. */
static bool change_lanes(struct reload *r)
{
    struct lanes_options options = {.store = r->gateway->store};
    generation_lanes(r->next, &options);
    enum lanes_answer answer = lanes_reload(r->gateway->lanes, &options);
    if (answer == LANES_DONE)
        return true;
    return refuse(r, answer == LANES_BUSY ? ADMIN_RELOAD_BUSY : ADMIN_RELOAD_DRAINING);
}

static void take_back(struct reload *r)
{
    struct gateway *g = r->gateway;
    if (r->config && is_changed(r, "egress"))
        deliver_set_egress(g->deliver, &g->generation->config->egress);
    if (r->next) {
        http_tls_reload(g->front, g->generation->config->http.tls, NULL);
        generation_close_sinks(r->next);
    }
    generation_unref(r->next);
}

/* False when requests of the old configuration are still not answered after all that time, or the process
 * goes down. */
static bool wait_answered(struct gateway *g, int64_t until_ms)
{
    struct reloader *reloader = &g->reloader;
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    pthread_mutex_lock(&reloader->lock);
    bool in_time = true;
    while (reloader->unanswered && in_time && !reloader->stopping)
        in_time = pthread_cond_timedwait(&reloader->wake, &reloader->lock, &until) == 0;
    bool answered = !reloader->unanswered;
    reloader->unanswered = NULL;
    pthread_mutex_unlock(&reloader->lock);
    return answered;
}

static void publish(struct reload *r)
{
    struct gateway *g = r->gateway;
    struct generation *old = g->generation;
    struct store_dlq_bound *bounds = generation_dlq_bounds(r->config);
    store_set_dlq(g->store, bounds, r->config->source_count);
    free(bounds);

    pthread_mutex_lock(&g->reloader.lock);
    g->reloader.unanswered = old;
    pthread_mutex_unlock(&g->reloader.lock);
    generation_limits(r->next, g->limits);
    struct ingest_rules ingest = gateway_ingest_rules(r->next);
    ingest_set(g->ingest, &ingest);
    struct admin_rules admin = gateway_admin_rules(r->next);
    admin_set(g->admin, &admin);
    log_setup(r->config->log_level, r->config->log_json);
    pthread_mutex_lock(&g->generation_lock);
    g->generation = r->next;
    pthread_mutex_unlock(&g->generation_lock);
    generation_close_sinks(r->next); /* lanes has them now */

    int64_t until_ms = clock_mono_ms() + r->config->store.commit_timeout_ms + ANSWERS_GRACE_MS;
    bool other_lanes = is_changed(r, "sources") || is_changed(r, "scripts") || is_changed(r, "ordering");
    if (wait_answered(g, until_ms) && replays_reloaded(g->replays, other_lanes, until_ms))
        lanes_let_go(g->lanes, r->gone.at, r->gone.len);
    else
        log_event(LOG_WARN, "reload_unanswered", LOG_INT("generation", old->number),
                  LOG_STR("do", "sinks that are gone stay until the next reload or restart"));
    generation_unref(old);
}

/* ---- telling ---- */

static struct bytes listed(struct reload *r, const char *const *list, size_t count)
{
    struct buf text = {.max = LOGGED_PATHS_BYTES};
    for (size_t i = 0; i < count && !text.overflow; i++)
        buf_putf(&text, "%s%s", i ? ", " : "", list[i]);
    struct bytes copy = arena_copy(r->arena, buf_bytes(&text));
    buf_free(&text);
    return copy;
}

static void count_reload(struct gateway *g, const char *result)
{
    counter_add(metrics_series3(g->metrics, METRIC_CONFIG_RELOADS, result, NULL, NULL), 1);
    gauge_set(metrics_series3(g->metrics, METRIC_CONFIG_GENERATION, NULL, NULL, NULL),
              (double)g->generation->number);
}

static void tell(struct reload *r)
{
    static const char *const why[] = {[ADMIN_RELOAD_BAD_CONFIG] = "bad_config",
                                      [ADMIN_RELOAD_HOOKS_OWED] = "hooks_owed",
                                      [ADMIN_RELOAD_NEEDS_RESTART] = "needs_restart",
                                      [ADMIN_RELOAD_FAILED] = "failed",
                                      [ADMIN_RELOAD_BUSY] = "busy",
                                      [ADMIN_RELOAD_DRAINING] = "draining"};
    struct gateway *g = r->gateway;
    struct admin_reloaded *result = &r->result;
    result->generation = g->generation->number;
    result->faults = buf_bytes(&r->faults);
    if (result->what == ADMIN_RELOADED) {
        result->changed = paths(r, false, &result->changed_count);
        struct bytes changed = listed(r, result->changed, result->changed_count);
        log_event(LOG_INFO, "reloaded", LOG_INT("generation", result->generation),
                  LOG_INT("changes", result->changed_count), LOG_STR("changed", changed.at));
    } else {
        log_event(LOG_ERROR, "reload_refused", LOG_STR("error", why[result->what]),
                  LOG_STR("faults", r->faults.len ? r->faults.at : ""),
                  LOG_INT("generation", result->generation));
    }
    count_reload(g, result->what == ADMIN_RELOADED ? "ok" : "refused");
}

static void notify_reloading(void)
{
    char text[80];
    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)clock_mono_us());
    notify_supervisor(text);
}

/* `asked` NULL: a SIGHUP did. */
static void reload(struct gateway *g, struct admin_reload *asked)
{
    struct reload r = {.gateway = g, .arena = arena_new(4096)};
    notify_reloading();
    if (load(&r) && judge(&r) && prepare(&r) && change_lanes(&r))
        publish(&r);
    else
        take_back(&r);
    tell(&r);
    notify_supervisor("READY=1");
    if (asked)
        asked->done(asked, &r.result);
    config_unref(r.config);
    VEC_FREE(&r.gone);
    buf_free(&r.faults);
    arena_free(r.arena);
}

/* ---- the thread ---- */

static void free_over(struct list *over)
{
    for (struct list *node; (node = list_pop(over));)
        generation_free(LIST_OWNER(node, struct generation, node));
}

static void *run(void *ctx)
{
    struct gateway *g = ctx;
    struct reloader *reloader = &g->reloader;
    pthread_mutex_lock(&reloader->lock);
    while (!reloader->stopping) {
        struct list over = LIST_INIT(over), *node = list_pop(&reloader->asked);
        bool hangup = !node && reloader->hangup;
        list_splice(&over, &reloader->over);
        if (hangup)
            reloader->hangup = false;
        if (!node && !hangup && list_empty(&over)) {
            pthread_cond_wait(&reloader->wake, &reloader->lock);
            continue;
        }
        pthread_mutex_unlock(&reloader->lock);
        free_over(&over);
        if (node || hangup)
            reload(g, node ? LIST_OWNER(node, struct admin_reload, node) : NULL);
        pthread_mutex_lock(&reloader->lock);
    }
    pthread_mutex_unlock(&reloader->lock);
    return NULL;
}

void reload_open(struct gateway *g)
{
    struct reloader *reloader = &g->reloader;
    CHECK(pthread_mutex_init(&reloader->lock, NULL) == 0);
    cond_init_monotonic(&reloader->wake);
    list_init(&reloader->asked);
    list_init(&reloader->over);
    static const char *const results[] = {"ok", "refused"};
    for (size_t i = 0; i < 2; i++)
        metrics_series3(g->metrics, METRIC_CONFIG_RELOADS, results[i], NULL, NULL);
}

enum status reload_start(struct gateway *g, struct error *err)
{
    gauge_set(metrics_series3(g->metrics, METRIC_CONFIG_GENERATION, NULL, NULL, NULL),
              (double)g->generation->number);
    if (thread_start(&g->reloader.thread, "reload", run, g) != 0)
        return error_set(err, STATUS_IO, "no thread to reload on");
    g->reloader.started = true;
    return STATUS_OK;
}

void reload_hangup(void *gateway)
{
    struct reloader *reloader = &((struct gateway *)gateway)->reloader;
    pthread_mutex_lock(&reloader->lock);
    reloader->hangup = true;
    pthread_cond_broadcast(&reloader->wake);
    pthread_mutex_unlock(&reloader->lock);
}

static void turn_away(struct gateway *g, struct admin_reload *asked)
{
    asked->done(asked,
                &(struct admin_reloaded){.what = ADMIN_RELOAD_DRAINING, .generation = g->generation->number});
}

void reload_ask(void *gateway, struct admin_reload *asked)
{
    struct gateway *g = gateway;
    struct reloader *reloader = &g->reloader;
    pthread_mutex_lock(&reloader->lock);
    bool stopping = reloader->stopping;
    if (!stopping)
        list_append(&reloader->asked, &asked->node);
    pthread_cond_broadcast(&reloader->wake);
    pthread_mutex_unlock(&reloader->lock);
    if (stopping)
        turn_away(g, asked);
}

void reload_stop(struct gateway *g)
{
    struct reloader *reloader = &g->reloader;
    pthread_mutex_lock(&reloader->lock);
    reloader->stopping = true;
    pthread_cond_broadcast(&reloader->wake);
    pthread_mutex_unlock(&reloader->lock);
    if (reloader->started)
        pthread_join(reloader->thread, NULL);
    reloader->started = false;
    for (struct list *node; (node = list_pop(&reloader->asked));)
        turn_away(g, LIST_OWNER(node, struct admin_reload, node));
}

void reload_close(struct gateway *g)
{
    free_over(&g->reloader.over);
    pthread_cond_destroy(&g->reloader.wake);
    pthread_mutex_destroy(&g->reloader.lock);
}
