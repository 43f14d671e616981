/* Sources and their sinks, and what is made of them at load: verifiers and plans. */
#include "config/config_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fill_retry(struct retry_policy *policy, const struct value *retry, struct arena *arena)
{
    const struct value *list = value_get(retry, "schedule_ms");
    int64_t *schedule = NULL;
    if (list->len) {
        schedule = arena_zalloc(arena, list->len * sizeof *schedule);
        for (size_t i = 0; i < list->len; i++)
            schedule[i] = (int64_t)list->items[i].number;
    }
    *policy = (struct retry_policy){
        .base_ms = value_int(retry, "base_ms", 0), /* absent beside a schedule */
        .max_ms = value_int(retry, "max_ms", 0),
        .give_up_after_ms = value_int(retry, "give_up_after_ms", 0),
        .max_attempts = (uint32_t)value_int(retry, "max_attempts", 0),
        .jitter = value_bool(retry, "jitter", true),
        .schedule_ms = schedule,
        .schedule_count = list->len,
    };
}

static enum on_dead on_dead_of(const struct value *on_dead, const char *cls)
{
    return config_is(on_dead, cls, "hold") ? ON_DEAD_HOLD : ON_DEAD_SKIP;
}

static void fill_policy(struct config *config, struct sched_policy *policy, const struct value *sink)
{
    const struct value *breaker = value_get(value_get(config->root, "dispatch"), "breaker");
    const struct value *on_dead = value_get(sink, "on_dead");
    policy->concurrency = (unsigned)value_int(sink, "concurrency", 1);
    const struct value *rate = value_get(sink, "rate");
    policy->rate = rate->kind == VALUE_NUMBER ? rate->number : 0;
    fill_retry(&policy->retry, value_get(sink, "retry"), config->arena);
    policy->breaker = (struct breaker_policy){
        .failures = (uint32_t)value_int(breaker, "failures", 1),
        .open_ms = value_int(breaker, "open_ms", 1),
        .max_open_ms = value_int(breaker, "max_open_ms", 1),
    };
    policy->on_refused = on_dead_of(on_dead, "refused");
    policy->on_exhausted = on_dead_of(on_dead, "exhausted");
}

static void fill_headers(struct sink_options *transport, const struct value *map, struct arena *arena)
{
    struct sink_header *headers = arena_zalloc(arena, (map->len + 1) * sizeof *headers);
    for (size_t i = 0; i < map->len; i++)
        headers[i] = (struct sink_header){.name = map->names[i].at, .value = map->items[i].string.at};
    transport->headers = headers;
    transport->header_count = map->len;
}

static void fill_refused(struct sink_options *transport, const struct value *list, struct arena *arena)
{
    int *statuses = arena_zalloc(arena, (list->len + 1) * sizeof *statuses);
    for (size_t i = 0; i < list->len; i++)
        statuses[i] = (int)list->items[i].number;
    transport->refused = statuses;
    transport->refused_count = list->len;
}

static void fill_secrets(struct loading *loading, struct sink_options *transport, const struct value *list,
                         const char *path)
{
    struct bytes *keys = arena_zalloc(loading->config->arena, (list->len + 1) * sizeof *keys);
    struct error err;
    for (size_t i = 0; i < list->len; i++)
        if (sink_secret_decode(list->items[i].string, loading->config->arena, &keys[i], &err) == STATUS_OK)
            transport->secret_count++;
        else
            config_fault(loading, path, err.text);
    transport->secrets = keys;
}

static void fill_transport(struct loading *loading, struct sink_options *transport, const struct value *sink,
                           const char *path)
{
    struct arena *arena = loading->config->arena;
    const struct value *tls = value_get(sink, "tls");
    transport->type = value_str(sink, "type", NULL);
    transport->header_prefix = value_str(loading->config->root, "sink_header_prefix", NULL);
    transport->url = value_str(sink, "url", NULL);
    transport->method = value_str(sink, "method", NULL);
    transport->tls_ca = value_str(tls, "ca", NULL);
    transport->tls_cert = value_str(tls, "cert", NULL);
    transport->tls_key = value_str(tls, "key", NULL);
    transport->timeout_ms = value_int(sink, "timeout_ms", 0);
    transport->proxy = value_str(sink, "proxy", NULL);
    fill_headers(transport, value_get(sink, "headers"), arena);
    fill_refused(transport, value_get(sink, "refused"), arena);
    fill_secrets(loading, transport, value_get(sink, "secret"), path);
}

static void fill_sink(struct loading *loading, const struct config_source *source, const struct value *tree,
                      struct config_sink *sink)
{
    struct config *config = loading->config;
    sink->name = value_str(tree, "name", NULL);
    sink->was = value_str(tree, "was", NULL);
    char path[256];
    snprintf(path, sizeof path, "sources.%s.sinks.%s", source->name, sink->name);

    sink->transport.source = source->name;
    sink->transport.name = sink->name;
    fill_transport(loading, &sink->transport, tree, path);
    sink->order = (struct order_sink){
        .name = bytes_str(sink->name),
        .ordered = value_bool(tree, "ordered", false),
        .key = config_key(value_get(tree, "ordering_key"), config->arena),
        .missing_is_unordered = config_is(tree, "on_missing_key", "unordered"),
        .only = config_filter(value_get(tree, "only"), config->arena),
    };
    fill_policy(config, &sink->policy, tree);
}

/* What a sink's own room finds beyond the checks of single values. */
static void check_sink(struct loading *loading, const struct config_source *source,
                       const struct config_sink *sink)
{
    struct error err;
    if (loading->mode != CONFIG_SERVE ||
        sink_options_check(&sink->transport, &loading->config->egress, &err) == STATUS_OK)
        return;
    char path[256];
    snprintf(path, sizeof path, "sources.%s.sinks.%s", source->name, sink->name);
    config_fault(loading, path, err.text);
}

static void fill_sinks(struct loading *loading, struct config_source *source, const struct value *tree)
{
    struct arena *arena = loading->config->arena;
    const struct value *list = value_get(tree, "sinks"), *forward = value_get(tree, "forward_headers");
    struct config_sink *sinks = arena_zalloc(arena, (list->len + 1) * sizeof *sinks);
    for (size_t i = 0; i < list->len; i++) {
        if (forward->kind == VALUE_LIST) {
            sinks[i].transport.forward_headers = config_strings(forward, arena);
            sinks[i].transport.forward_count = forward->len;
        }
        fill_sink(loading, source, &list->items[i], &sinks[i]);
        check_sink(loading, source, &sinks[i]);
    }
    source->sinks = sinks;
    source->sink_count = list->len;
}

/* False after a fault. */
static bool add_scripts(struct loading *loading, const struct config_source *source)
{
    bool good = true;
    for (size_t i = 0; i < source->sink_count; i++) {
        char path[256];
        snprintf(path, sizeof path, "sources.%s.sinks.%s.ordering_key", source->name, source->sinks[i].name);
        good = config_add_script(loading, source->sinks[i].order.key, path) && good;
    }
    return good;
}

static void make_plan(struct loading *loading, struct config_source *source)
{
    if (loading->mode == CONFIG_CLIENT || !add_scripts(loading, source))
        return;
    struct config *config = loading->config;
    struct order_sink *sinks = arena_zalloc(config->arena, (source->sink_count + 1) * sizeof *sinks);
    for (size_t i = 0; i < source->sink_count; i++)
        sinks[i] = source->sinks[i].order;
    struct order_options options = {
        .engine = config->scripts ? scripts_engine(config->scripts) : NULL,
        .source = bytes_str(source->name),
        .sinks = sinks,
        .sink_count = source->sink_count,
        .dedupe = source->dedupe,
        .json_max_bytes = (size_t)value_int(value_get(config->root, "ordering"), "max_body_bytes", 0),
    };
    struct error err;
    if (order_plan_new(&options, &source->plan, &err) != STATUS_OK)
        config_fault(loading, "sources", err.text); /* which names source and sink */
}

static void fill_handshake(struct config_source *source, const struct value *tree, struct arena *arena)
{
    static const char *const names[] = {
        [CONFIG_SLACK] = "slack", [CONFIG_META] = "meta", [CONFIG_GRAPH] = "graph", [CONFIG_ZOOM] = "zoom"};
    for (size_t i = CONFIG_SLACK; i < sizeof names / sizeof *names; i++)
        if (config_is(tree, "type", names[i]))
            source->handshake = (enum config_handshake)i;
    const struct value *tokens = value_get(tree, "verify_token");
    if (tokens->kind == VALUE_LIST) {
        source->verify_tokens = config_texts(tokens, arena);
        source->verify_token_count = tokens->len;
    }
}

static void fill_source(struct loading *loading, const struct value *tree, struct config_source *source)
{
    source->tenant = value_str(tree, "tenant", NULL);
    source->shared = loading->config->routing == ROUTING_TENANT_PATH && config_is(tree, "tenant", "default");
    source->gate = config_gate(value_get(tree, "addresses"), loading->config->arena);
    source->on_verify_failure = config_is(tree, "on_verify_failure", "accept_flag")  ? VERIFY_ACCEPT_FLAG
                                : config_is(tree, "on_verify_failure", "quarantine") ? VERIFY_QUARANTINE
                                                                                     : VERIFY_REJECT;
    source->respond = (int)value_int(tree, "respond", 0);
    fill_handshake(source, value_get(tree, "handshake"), loading->config->arena);
    const struct value *stored = value_get(tree, "store_headers");
    if (stored->kind == VALUE_LIST) {
        source->store_headers = config_texts(stored, loading->config->arena);
        source->store_header_count = stored->len;
    }
    const struct value *dlq = value_get(tree, "dlq");
    source->dlq_max_rows = (uint64_t)value_int(dlq, "max_rows", 0);
    source->dlq_max_bytes = value_int(dlq, "max_bytes", 0);
    source->dlq_retention_ms = value_int(dlq, "retention_ms", 0);
    const struct value *limits = value_get(value_get(loading->config->root, "rate_limits"), "sources");
    source->limit = config_limit(value_get(limits, source->name));
    const struct value *dedupe = value_get(tree, "dedupe");
    source->dedupe = config_key(value_get(dedupe, "key"), loading->config->arena);
    source->dedupe_ttl_ms = value_int(dedupe, "ttl_ms", 0);
    fill_sinks(loading, source, tree);
    config_make_verifier(loading, source, value_get(tree, "verify"));
    make_plan(loading, source);
}

static void fill_retired(struct config *config, const struct value *list)
{
    struct config_retired *retired = arena_zalloc(config->arena, (list->len + 1) * sizeof *retired);
    config->retired = retired;
    for (size_t i = 0; i < list->len; i++) {
        char *source = (char *)arena_copy(config->arena, list->items[i].string).at;
        char *slash = strchr(source, '/');
        if (!slash)
            continue; /* a placeholder */
        *slash = 0;
        retired[config->retired_count++] = (struct config_retired){source, slash + 1};
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct config_source *)a)->name, ((const struct config_source *)b)->name);
}

void config_fill_sources(struct loading *loading)
{
    struct config *config = loading->config;
    const struct value *map = value_get(config->root, "sources");
    struct config_source *sources = arena_zalloc(config->arena, (map->len + 1) * sizeof *sources);
    for (size_t i = 0; i < map->len; i++)
        sources[i].name = map->names[i].at;
    qsort(sources, map->len, sizeof *sources, by_name);
    config->sources = sources;
    config->source_count = map->len;
    for (size_t i = 0; i < map->len; i++)
        fill_source(loading, value_get(map, sources[i].name), &sources[i]);
    fill_retired(config, value_get(config->root, "retire"));
}

void config_close_sources(struct config *config)
{
    for (size_t i = 0; i < config->source_count; i++) {
        verifier_free(config->sources[i].verifier);
        order_plan_free(config->sources[i].plan);
    }
    scripts_close(config->scripts);
}

const struct config_source *config_source_find(const struct config *config, struct bytes name)
{
    size_t low = 0, high = config->source_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = bytes_cmp(name, bytes_str(config->sources[middle].name));
        if (order == 0)
            return &config->sources[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
