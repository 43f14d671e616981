/* Opening the room, and the head of every request: address, route, draining, method, header bytes. */
#include "ingest/ingest.h"

#include <stdlib.h>
#include <string.h>

#include "ingest/handshake.h"
#include "ingest/ingest_priv.h"
#include "util/jsonw.h"
#include "util/mem.h"

static int by_entry_name(const void *a, const void *b)
{
    return bytes_cmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static void open_sinks(struct ingest *ingest, struct entry *entry)
{
    const struct ingest_source *source = entry->source;
    struct metrics *metrics = ingest->options.metrics;
    entry->sinks = mem_zalloc(source->sink_count * sizeof *entry->sinks);
    for (size_t i = 0; i < source->sink_count; i++) {
        struct sink_entry *sink = &entry->sinks[i];
        const char *name = source->sinks[i].name;
        sink->filtered = metrics_series3(metrics, METRIC_DISPATCH_FILTERED, source->name, name, NULL);
        sink->unordered = metrics_series3(metrics, METRIC_DISPATCH_UNORDERED, source->name, name, NULL);
        for (int r = MISSING_NOTHING + 1; r < MISSING_REASON_COUNT; r++)
            sink->missing[r] = metrics_series3(metrics, METRIC_DISPATCH_KEY_MISSING, source->name, name,
                                               missing_reason_name((enum missing_reason)r));
    }
}

static void open_entry(struct ingest *ingest, struct entry *entry, const struct ingest_source *source)
{
    struct metrics *metrics = ingest->options.metrics;
    *entry = (struct entry){
        .source = source, .name = bytes_str(source->name), .tenant = bytes_str(source->tenant)};
    entry->accepted = metrics_series3(metrics, METRIC_INGEST_REQUESTS, source->name, "accepted", NULL);
    entry->duplicate = metrics_series3(metrics, METRIC_INGEST_REQUESTS, source->name, "duplicate", NULL);
    entry->revived = metrics_series3(metrics, METRIC_INGEST_REQUESTS, source->name, "revived", NULL);
    entry->handshakes = metrics_series3(metrics, METRIC_INGEST_REQUESTS, source->name, "handshake", NULL);
    entry->handshake = handshake_open(source);
    entry->quarantined = metrics_series3(metrics, METRIC_INGEST_REQUESTS, source->name, "quarantined", NULL);
    entry->released = metrics_series3(metrics, METRIC_QUARANTINE_RELEASED, source->name, NULL, NULL);
    entry->counts_failures = limit_counts_failures(source);
    entry->limit_key = limits_key(entry->name);
    for (int kind = 0; kind < LIMIT_KINDS; kind++)
        entry->limited[kind] = metrics_series3(metrics, METRIC_INGEST_RATE_LIMITED, source->name,
                                               limit_kind_name((enum limit_kind)kind), NULL);
    entry->dropped = metrics_series3(metrics, METRIC_INGEST_REQUESTS, source->name, "undecided", NULL);
    for (int r = 0; r < REFUSAL_COUNT; r++)
        entry->refused[r] = metrics_series3(metrics, METRIC_INGEST_REQUESTS, source->name,
                                            refusal_code((enum refusal)r), NULL);
    size_t reasons = 0;
    while (verify_reasons()[reasons])
        reasons++;
    entry->verify_failures = mem_zalloc(reasons * sizeof *entry->verify_failures);
    for (size_t i = 0; i < reasons; i++)
        entry->verify_failures[i] =
            metrics_series3(metrics, METRIC_VERIFY_FAILURES, source->name, verify_reasons()[i], NULL);
    open_sinks(ingest, entry);
}

static void table_free(void *ctx, void *value)
{
    (void)ctx;
    struct table *table = value;
    struct ingest_rules rules = table->rules;
    for (size_t i = 0; i < rules.source_count; i++) {
        free(table->entries[i].verify_failures);
        free(table->entries[i].sinks);
        handshake_close(table->entries[i].handshake);
    }
    free(table->entries);
    free(table);
    if (rules.released)
        rules.released(rules.of);
}

void ingest_set(struct ingest *ingest, const struct ingest_rules *rules)
{
    struct table *table = mem_zalloc(sizeof *table);
    table->rules = *rules;
    table->prefix = bytes_str(rules->prefix);
    table->entries = mem_zalloc(rules->source_count * sizeof *table->entries);
    for (size_t i = 0; i < rules->source_count; i++)
        open_entry(ingest, &table->entries[i], &rules->sources[i]);
    qsort(table->entries, rules->source_count, sizeof *table->entries, by_entry_name);
    current_set(&ingest->tables, table);
}

enum status ingest_open(const struct ingest_options *options, struct ingest **out, struct error *err)
{
    (void)err;
    struct ingest *ingest = mem_zalloc(sizeof *ingest);
    ingest->options = *options;
    current_init(&ingest->tables, table_free, NULL);
    ingest_set(ingest, &options->rules);
    for (int r = 0; r < REFUSAL_COUNT; r++)
        ingest->refused[r] = metrics_series3(options->metrics, METRIC_INGEST_REFUSED,
                                             refusal_code((enum refusal)r), NULL, NULL);
    ingest->duration = metrics_series(options->metrics, METRIC_INGEST_DURATION, NULL);
    *out = ingest;
    return STATUS_OK;
}

void ingest_close(struct ingest *ingest)
{
    if (!ingest)
        return;
    current_close(&ingest->tables);
    free(ingest);
}

void ingest_drain(struct ingest *ingest)
{
    ingest->draining = true;
}

void ingest_refused(void *ctx, const char *reason)
{
    struct ingest *ingest = ctx;
    counter_add(metrics_series3(ingest->options.metrics, METRIC_INGEST_REFUSED, reason, NULL, NULL), 1);
}

static void answer_probe(const struct http_request *request, bool good, const char *word)
{
    bool reads = bytes_eq(request->method, BYTES("GET")) || bytes_eq(request->method, BYTES("HEAD"));
    struct buf body = {0};
    struct jsonw w = jsonw_on(&body);
    jsonw_object(&w, NULL);
    if (reads)
        jsonw_str(&w, "status", word);
    else
        jsonw_str(&w, "error", refusal_code(REFUSE_METHOD_NOT_ALLOWED));
    jsonw_end_object(&w);
    const struct http_header allow = {BYTES("allow"), BYTES("GET, HEAD")};
    http_answer(request->exchange, &(struct http_answer){.status = !reads ? 405
                                                                   : good ? 200
                                                                          : 503,
                                                         .body = buf_bytes(&body),
                                                         .headers = &allow,
                                                         .header_count = reads ? 0 : 1});
    buf_free(&body);
}

static void refuse_early(struct ingest *ingest, const struct http_request *request, enum refusal refusal,
                         const struct refusal_detail *detail)
{
    counter_add(ingest->refused[refusal], 1);
    refuse(request->exchange, refusal, detail);
}

static void answer_ready(struct ingest *ingest, const struct http_request *request)
{
    bool ready = !ingest->draining && ingest->options.ready(ingest->options.ctx);
    answer_probe(request, ready, ready ? "ready" : "not_ready");
}

/* False: it was answered. The gate of all stands before the route, so that who is shut out does not learn
 * which sources there are. */
static bool passes_gates(struct ingest *ingest, const struct table *table, const struct http_request *request,
                         const struct route *route, const struct caller *caller)
{
    struct entry *entry = route->kind == ROUTE_HOOK ? route->entry : NULL;
    const char *reason = caller_denied(&table->rules.gate, caller);
    bool by_source = !reason && entry;
    if (by_source)
        reason = caller_denied(&entry->source->gate, caller);
    if (!reason)
        return true;
    counter_add(by_source ? entry->refused[REFUSE_IP_DENIED] : ingest->refused[REFUSE_IP_DENIED], 1);
    caller_log(ingest, caller, by_source ? entry->source->name : NULL, reason);
    refuse(request->exchange, REFUSE_IP_DENIED,
           &(struct refusal_detail){.name = "reason", .value = bytes_str(reason)});
    return false;
}

/* False: it was answered. */
static bool goes_on(struct ingest *ingest, const struct table *table, const struct http_request *request,
                    const struct route *route, const struct caller *caller)
{
    if (route->kind == ROUTE_HEALTH) {
        answer_probe(request, true, "ok");
        return false;
    }
    if (route->kind == ROUTE_READY) {
        answer_ready(ingest, request);
        return false;
    }
    if (!passes_gates(ingest, table, request, route, caller))
        return false;
    if (route->kind != ROUTE_HOOK) {
        refuse_early(ingest, request,
                     route->kind == ROUTE_UNKNOWN_SOURCE ? REFUSE_UNKNOWN_SOURCE : REFUSE_NOT_FOUND, NULL);
        return false;
    }
    bool asks = bytes_eq(request->method, BYTES("GET")) && route->entry->handshake; /* it is no hook */
    if (!bytes_eq(request->method, BYTES("POST")) && !asks)
        refuse_early(ingest, request, REFUSE_METHOD_NOT_ALLOWED, NULL);
    else if (ingest->draining && request->kept)
        refuse_early(ingest, request, REFUSE_DRAINING, NULL);
    else if (request->invalid_header.at)
        refuse_early(ingest, request, REFUSE_INVALID_HEADER,
                     &(struct refusal_detail){.name = "header", .value = request->invalid_header});
    else if (request->body.len > table->rules.max_body_bytes)
        refuse_early(
            ingest, request, REFUSE_PAYLOAD_TOO_LARGE,
            &(struct refusal_detail){.name = "limit", .number = (int64_t)table->rules.max_body_bytes});
    else if (handshake_unsigned(route->entry, request))
        return false;
    else if (asks)
        refuse_early(ingest, request, REFUSE_BAD_REQUEST, NULL);
    else
        return true;
    return false;
}

void ingest_handle(void *ctx, const struct http_request *given)
{
    struct ingest *ingest = ctx;
    struct current_hold *hold = current_take(&ingest->tables);
    struct table *table = hold->value;
    struct caller caller;
    caller_find(&table->rules.trusted_proxies, given, &caller);
    struct http_request request = *given;
    request.remote_ip = caller.text; /* from here on whoever asks is told the client, not a proxy */
    struct route route = route_of(table, request.path);
    route.hold = hold;
    if (!goes_on(ingest, table, &request, &route, &caller) || !intake(ingest, &route, &request, &caller))
        current_drop(&ingest->tables, hold);
}
