/* Opening the room, and the head of every request: draining, route, method, header bytes. */
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

enum status ingest_open(const struct ingest_options *options, struct ingest **out, struct error *err)
{
    (void)err;
    struct ingest *ingest = mem_zalloc(sizeof *ingest);
    ingest->options = *options;
    ingest->prefix = bytes_str(options->prefix);
    ingest->entries = mem_zalloc(options->source_count * sizeof *ingest->entries);
    for (size_t i = 0; i < options->source_count; i++)
        open_entry(ingest, &ingest->entries[i], &options->sources[i]);
    qsort(ingest->entries, options->source_count, sizeof *ingest->entries, by_entry_name);
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
    for (size_t i = 0; i < ingest->options.source_count; i++) {
        free(ingest->entries[i].verify_failures);
        free(ingest->entries[i].sinks);
        handshake_close(ingest->entries[i].handshake);
    }
    free(ingest->entries);
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

void ingest_handle(void *ctx, const struct http_request *request)
{
    struct ingest *ingest = ctx;
    struct route route = route_of(ingest, request->path);
    switch (route.kind) {
    case ROUTE_HEALTH:
        answer_probe(request, true, "ok");
        return;
    case ROUTE_READY: {
        bool ready = !ingest->draining && ingest->options.ready(ingest->options.ctx);
        answer_probe(request, ready, ready ? "ready" : "not_ready");
        return;
    }
    case ROUTE_NOT_FOUND:
        refuse_early(ingest, request, REFUSE_NOT_FOUND, NULL);
        return;
    case ROUTE_UNKNOWN_SOURCE:
        refuse_early(ingest, request, REFUSE_UNKNOWN_SOURCE, NULL);
        return;
    case ROUTE_HOOK:
        break;
    }
    bool asks = bytes_eq(request->method, BYTES("GET")) && route.entry->handshake; /* it is no hook */
    if (!bytes_eq(request->method, BYTES("POST")) && !asks)
        refuse_early(ingest, request, REFUSE_METHOD_NOT_ALLOWED, NULL);
    else if (ingest->draining && request->kept)
        refuse_early(ingest, request, REFUSE_DRAINING, NULL);
    else if (request->invalid_header.at)
        refuse_early(ingest, request, REFUSE_INVALID_HEADER,
                     &(struct refusal_detail){.name = "header", .value = request->invalid_header});
    else if (request->body.len > ingest->options.max_body_bytes)
        refuse_early(
            ingest, request, REFUSE_PAYLOAD_TOO_LARGE,
            &(struct refusal_detail){.name = "limit", .number = (int64_t)ingest->options.max_body_bytes});
    else if (handshake_unsigned(route.entry, request))
        return;
    else if (asks)
        refuse_early(ingest, request, REFUSE_BAD_REQUEST, NULL);
    else
        intake(ingest, &route, request);
}
