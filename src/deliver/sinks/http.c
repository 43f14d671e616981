/* The HTTP sink: one POST an attempt, over kept connections. Begins an attempt, sends it one of two ways, and
 * ends it. */
#include <stdlib.h>
#include <string.h>

#include "deliver/sinks/http_priv.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/mem.h"

enum { IDLE_TRANSFERS_MAX = 64 }; /* kept per sink and loop */

struct loop *transfer_loop(const struct transfer *transfer)
{
    return transfer->sink->base.deliver->loops[transfer->loop];
}

bool transfer_may_reach(struct transfer *transfer, const struct ip *address)
{
    if (egress_allows(&atomic_load(&transfer->sink->base.deliver->egress)->rules, address))
        return true;
    transfer->seen.forbidden = true;
    transfer->seen.forbidden_address = *address;
    return false;
}

static void transfer_free(struct transfer *transfer)
{
    curl_easy_cleanup(transfer->base.easy);
    http_request_free(&transfer->request);
    answer_free(&transfer->answer);
    free(transfer);
}

static struct transfer *transfer_take(struct sink_http *sink, unsigned loop)
{
    struct idle_list *idle = &sink->idle[loop];
    if (!list_empty(&idle->items)) {
        struct list *node = idle->items.prev; /* the warmest */
        list_remove(node);
        idle->count--;
        return LIST_OWNER(node, struct transfer, idle);
    }
    struct transfer *transfer = mem_zalloc(sizeof *transfer);
    transfer->sink = sink;
    transfer->loop = loop;
    return transfer;
}

static void transfer_give_back(struct transfer *transfer)
{
    struct idle_list *idle = &transfer->sink->idle[transfer->loop];
    transfer->attempt = NULL;
    if (idle->count == IDLE_TRANSFERS_MAX) {
        transfer_free(transfer);
        return;
    }
    list_append(&idle->items, &transfer->idle);
    idle->count++;
}

/* After done() the sink may be gone, so the transfer goes back first. */
void transfer_finish(struct transfer *transfer, const struct http_end *end)
{
    struct attempt *attempt = transfer->attempt;
    struct outcome *outcome = &attempt->outcome;
    const struct http_seen *seen = &transfer->seen;
    char response[SINK_RESPONSE_KEPT];

    outcome->duration_us = clock_mono_us() - transfer->started_us;
    http_outcome(&transfer->sink->options, end, seen, transfer->timeout_ms, outcome);
    if (outcome->cls != OUTCOME_OK && seen->response_len > 0) {
        memcpy(response, seen->response, seen->response_len);
        outcome->response = bytes_of(response, seen->response_len);
    }
    transfer_give_back(transfer);
    attempt_finish(attempt); /* and it is gone */
}

static void http_start(struct sink *base, unsigned loop, struct attempt *attempt)
{
    struct sink_http *sink = (struct sink_http *)base;
    struct transfer *transfer = transfer_take(sink, loop);

    attempt->outcome = (struct outcome){0};
    transfer->attempt = attempt;
    transfer->started_us = clock_mono_us();
    transfer->timeout_ms = sink->options.timeout_ms;
    if (attempt->timeout_ms > 0 && attempt->timeout_ms < transfer->timeout_ms)
        transfer->timeout_ms = attempt->timeout_ms;
    memset(&transfer->seen, 0, offsetof(struct http_seen, error));
    transfer->seen.error[0] = 0;
    if (sink->authority)
        http_plain_start(transfer);
    else
        http_library_start(transfer);
}

/* A part of a URL that was checked; free with curl_free(). */
static char *part_of(CURLU *url, CURLUPart part, unsigned flags)
{
    char *text = NULL;
    CURLUcode code = curl_url_get(url, part, &text, flags);
    CHECK(code == CURLUE_OK || (code == CURLUE_NO_QUERY && part == CURLUPART_QUERY));
    return text;
}

/* What a plain receiver is asked, out of its URL as libcurl reads it. */
static void go_plain(struct sink_http *sink, CURLU *url)
{
    char *host = part_of(url, CURLUPART_HOST, 0), *port = part_of(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
    char *path = part_of(url, CURLUPART_PATH, 0), *query = part_of(url, CURLUPART_QUERY, 0);
    char *target = mem_format("%s%s%s", path, query ? "?" : "", query ? query : "");
    sink->authority = mem_format("%s:%s", host, port);
    http_shape_plain(&sink->shape, target, strcmp(port, "80") == 0 ? host : sink->authority);
    free(target);
    curl_free(query);
    curl_free(path);
    curl_free(port);
    curl_free(host);
}

static void choose_way(struct sink_http *sink)
{
    if (sink->options.proxy)
        return;
    CURLU *url = curl_url();
    CHECK(url && curl_url_set(url, CURLUPART_URL, sink->options.url, 0) == CURLUE_OK);
    char *scheme = part_of(url, CURLUPART_SCHEME, 0);
    if (strcmp(scheme, "http") == 0)
        go_plain(sink, url);
    curl_free(scheme);
    curl_url_cleanup(url);
}

static enum status http_open(struct deliver *deliver, const struct sink_options *options, struct sink **out,
                             struct error *err)
{
    (void)err;
    struct sink_http *sink = mem_zalloc(sizeof *sink);
    sink_init(&sink->base, &sink_type_http, deliver, options);
    sink->options = *options;
    http_shape_init(&sink->shape, &sink->options);
    choose_way(sink);
    sink->pools = mem_zalloc(deliver->threads * sizeof(struct pool *));
    sink->idle = mem_alloc(deliver->threads * sizeof *sink->idle);
    for (unsigned i = 0; i < deliver->threads; i++) {
        list_init(&sink->idle[i].items);
        sink->idle[i].count = 0;
    }
    *out = &sink->base;
    return STATUS_OK;
}

static void http_close(struct sink *base)
{
    struct sink_http *sink = (struct sink_http *)base;
    for (unsigned i = 0; i < base->deliver->threads; i++) {
        struct list *node;
        while ((node = list_pop(&sink->idle[i].items)))
            transfer_free(LIST_OWNER(node, struct transfer, idle));
    }
    http_shape_free(&sink->shape);
    free(sink->authority);
    free(sink->pools);
    free(sink->idle);
    free(sink);
}

const struct sink_type sink_type_http = {
    .name = "http",
    .check = http_check,
    .open = http_open,
    .close = http_close,
    .start = http_start,
};
