#include "gateway/generation.h"

#include <stdlib.h>

#include "util/check.h"
#include "util/mem.h"

static size_t count_sinks(const struct config *config)
{
    size_t count = 0;
    for (size_t i = 0; i < config->source_count; i++)
        count += config->sources[i].sink_count;
    return count;
}

/* The names that lanes keeps are the store's, which stay. */
static enum status fill_sink(struct generation *g, size_t at, const struct config_source *source,
                             const struct config_sink *sink, struct store *store, struct error *err)
{
    uint32_t id;
    enum status status = store_sink_id(store, source->name, sink->name, &id, err);
    if (status != STATUS_OK)
        return status;
    struct lanes_sink *lanes = &g->lanes_sinks[at];
    *lanes = (struct lanes_sink){.id = id,
                                 .ordered = sink->order.ordered,
                                 .dead_retention_ms = source->dlq_retention_ms,
                                 .policy = sink->policy};
    CHECK(store_sink_name(store, id, &lanes->source, &lanes->name));
    g->admin_sinks[at] = (struct admin_sink){.id = id,
                                             .source = source->name,
                                             .name = sink->name,
                                             .type = sink->transport.type,
                                             .ordered = sink->order.ordered,
                                             .concurrency = sink->policy.concurrency};
    g->ingest_sinks[at] = (struct ingest_sink){.id = id, .name = sink->name, .key = sink->order.key};
    return STATUS_OK;
}

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

static void fill_source(struct generation *g, size_t i, size_t first_sink)
{
    const struct config_source *source = &g->config->sources[i];
    g->ingest_sources[i] = (struct ingest_source){
        .name = source->name,
        .tenant = source->tenant,
        .shared = source->shared,
        .gate = source->gate,
        .verifier = source->verifier,
        .on_failure = on_failure_of(source->on_verify_failure),
        .respond = source->respond,
        .limit = source->limit,
        .dedupe_ttl_ms = source->dedupe_ttl_ms,
        .handshake = (enum ingest_handshake)source->handshake, /* the same list */
        .verify_tokens = source->verify_tokens,
        .verify_token_count = source->verify_token_count,
        .store_headers = source->store_headers,
        .store_header_count = source->store_header_count,
        .plan = source->plan,
        .sinks = &g->ingest_sinks[first_sink],
        .sink_count = source->sink_count,
    };
}

static void fill_tokens(struct generation *g)
{
    for (size_t i = 0; i < g->config->token_count; i++)
        g->tokens[i] = (struct admin_token){.hash = g->config->tokens[i].hash,
                                            .name = g->config->tokens[i].name,
                                            .scopes = g->config->tokens[i].scopes};
}

enum status generation_new(struct config *config, uint64_t number, struct store *store,
                           struct metrics *metrics, struct generation **out, struct error *err)
{
    if (config->scripts)
        scripts_meter(config->scripts, metrics);
    struct generation *g = mem_zalloc(sizeof *g);
    atomic_init(&g->refs, 1);
    g->number = number;
    g->config = config_ref(config);
    g->sink_count = count_sinks(config);
    g->lanes_sinks = mem_zalloc((g->sink_count + 1) * sizeof *g->lanes_sinks);
    g->admin_sinks = mem_zalloc((g->sink_count + 1) * sizeof *g->admin_sinks);
    g->ingest_sinks = mem_zalloc((g->sink_count + 1) * sizeof *g->ingest_sinks);
    g->ingest_sources = mem_zalloc((config->source_count + 1) * sizeof *g->ingest_sources);
    g->tokens = mem_zalloc((config->token_count + 1) * sizeof *g->tokens);
    fill_tokens(g);
    size_t at = 0;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < config->source_count; i++) {
        fill_source(g, i, at);
        for (size_t k = 0; k < config->sources[i].sink_count && status == STATUS_OK; k++)
            status = fill_sink(g, at++, &config->sources[i], &config->sources[i].sinks[k], store, err);
    }
    if (status == STATUS_OK)
        *out = g;
    else
        generation_free(g);
    return status;
}

struct generation *generation_ref(struct generation *generation)
{
    atomic_fetch_add_explicit(&generation->refs, 1, memory_order_relaxed);
    return generation;
}

void generation_unref(void *of)
{
    struct generation *g = of;
    if (g && atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) == 1)
        g->over(g->ctx, g);
}

void generation_free(struct generation *g)
{
    config_unref(g->config);
    free(g->lanes_sinks);
    free(g->admin_sinks);
    free(g->ingest_sinks);
    free(g->ingest_sources);
    free(g->tokens);
    free(g);
}

enum status generation_open_sinks(struct generation *g, struct deliver *deliver, struct error *err)
{
    enum status status = STATUS_OK;
    size_t at = 0;
    for (size_t i = 0; i < g->config->source_count; i++) {
        const struct config_source *source = &g->config->sources[i];
        for (size_t k = 0; k < source->sink_count && status == STATUS_OK; k++, at++) {
            struct sink_options options = source->sinks[k].transport;
            options.released = generation_unref;
            options.ctx = g;
            status = sink_open(deliver, &options, &g->lanes_sinks[at].sink, err);
            if (status == STATUS_OK)
                generation_ref(g);
        }
    }
    if (status != STATUS_OK)
        generation_close_sinks(g);
    return status;
}

void generation_close_sinks(struct generation *g)
{
    for (size_t i = 0; i < g->sink_count; i++) {
        struct sink *sink = g->lanes_sinks[i].sink;
        g->lanes_sinks[i].sink = NULL;
        sink_close(sink);
    }
}

void generation_lanes(const struct generation *g, struct lanes_options *out)
{
    out->sinks = g->lanes_sinks;
    out->sink_count = g->sink_count;
    out->concurrency = g->config->dispatch_concurrency;
    out->max_inflight_bytes = g->config->max_inflight_bytes;
    out->max_pending_bytes = g->config->max_pending_bytes;
    out->attempt_timeout_ms = g->config->attempt_timeout_ms;
}

struct ingest_rules generation_ingest(const struct generation *g)
{
    return (struct ingest_rules){.prefix = g->config->prefix,
                                 .tenant_in_path = g->config->routing == ROUTING_TENANT_PATH,
                                 .sources = g->ingest_sources,
                                 .source_count = g->config->source_count,
                                 .max_body_bytes = g->config->http.max_body_bytes,
                                 .trusted_proxies = g->config->trusted_proxies,
                                 .gate = g->config->gate,
                                 .address = g->config->address_limit,
                                 .failed_signatures = g->config->failed_signatures,
                                 .many_tenants = g->config->many_tenants,
                                 .pen = g->config->pen_limit,
                                 .pen_share_bytes = g->config->pen_share_bytes};
}

void generation_limits(const struct generation *g, struct limits *limits)
{
    const struct config *config = g->config;
    limits_configure(limits, config->tenant_limit, config->limited_tenants, config->limited_tenant_count);
}

struct admin_rules generation_admin(const struct generation *g)
{
    return (struct admin_rules){.tokens = g->tokens,
                                .token_count = g->config->token_count,
                                .sinks = g->admin_sinks,
                                .sink_count = g->sink_count};
}

struct store_dlq_bound *generation_dlq_bounds(const struct config *config)
{
    struct store_dlq_bound *bounds = mem_zalloc((config->source_count + 1) * sizeof *bounds);
    for (size_t i = 0; i < config->source_count; i++)
        bounds[i] = (struct store_dlq_bound){.source = config->sources[i].name,
                                             .max_rows = config->sources[i].dlq_max_rows,
                                             .max_bytes = config->sources[i].dlq_max_bytes};
    return bounds;
}
