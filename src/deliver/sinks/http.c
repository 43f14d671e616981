/* The HTTP sink: one POST an attempt, over kept connections. Easy handles are kept with their options set,
 * per sink and loop, so that an attempt sets only what differs: body, headers, timeout. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deliver/sinks/http_priv.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/mem.h"

enum {
    IDLE_TRANSFERS_MAX = 64,    /* kept per sink and loop */
    CONNECT_TIMEOUT_MS = 10000, /* at most; the total one may be shorter */
    IDLE_CONNECTION_S = 60,     /* many firewalls forget a connection after that */
    NAME_CACHE_S = 5,           /* a receiver that moves, or a name that is mended, is found soon */
    CA_CACHE_S = 300,           /* how long a changed CA file may go unnoticed */
    READ_BUFFER_BYTES = 8192,   /* answers are short */
};

struct idle_list {
    struct list items; /* of transfer.idle; touched by one loop only */
    size_t count;
};

struct sink_http {
    struct sink base;
    struct sink_options options;
    struct http_shape shape;
    struct idle_list *idle; /* one per loop */
};

struct transfer {
    struct loop_transfer base;
    struct list idle;
    struct sink_http *sink;
    unsigned loop;
    struct http_request request;

    /* of one attempt */
    struct attempt *attempt;
    int64_t started_us, timeout_ms;
    struct http_seen seen;
};

static struct loop *own_loop(const struct transfer *transfer)
{
    return transfer->sink->base.deliver->loops[transfer->loop];
}

static bool is_allowed(struct transfer *transfer, const struct ip *address)
{
    if (egress_allows(&atomic_load(&transfer->sink->base.deliver->egress)->rules, address))
        return true;
    transfer->seen.forbidden = true;
    transfer->seen.forbidden_address = *address;
    return false;
}

/* Before each request, on a kept connection too: the rules may have changed since it was made. */
static int before_request(void *ctx, char *peer_ip, char *own_ip, int peer_port, int own_port)
{
    (void)own_ip, (void)peer_port, (void)own_port;
    struct ip one;
    if (ip_parse(bytes_str(peer_ip), &one) && is_allowed(ctx, &one))
        return CURL_PREREQFUNC_OK;
    return CURL_PREREQFUNC_ABORT;
}

/* The address to connect to, before the first packet. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)purpose;
    struct transfer *transfer = ctx;
    struct http_seen *seen = &transfer->seen;
    struct ip ip;
    if (!ip_of_socket(&address->addr, &ip) || !is_allowed(transfer, &ip))
        return CURL_SOCKET_BAD;
    seen->dialled = true;
    seen->address = ip;
    seen->port =
        ntohs(address->family == AF_INET ? ((struct sockaddr_in *)(void *)&address->addr)->sin_port
                                         : ((struct sockaddr_in6 *)(void *)&address->addr)->sin6_port);
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (fd < 0) {
        seen->socket_errno = errno;
        return CURL_SOCKET_BAD;
    }
    loop_opened(own_loop(transfer), fd);
    return fd;
}

static int close_socket(void *ctx, curl_socket_t fd)
{
    loop_closes(ctx, fd);
    return close(fd);
}

/* One line of a head; an interim answer (1xx) has a head of its own, and a proxy's is not shown. */
static size_t on_header(char *at, size_t one, size_t len, void *ctx)
{
    (void)one;
    struct http_seen *seen = ctx;
    struct bytes line = bytes_of(at, len), name = BYTES("retry-after:");
    seen->received += len;
    if (seen->received > HTTP_RESPONSE_MAX) {
        seen->head_too_large = true;
        return 0;
    }
    if (bytes_starts_nocase(line, BYTES("HTTP/"))) {
        seen->has_retry_after = false;
    } else if (bytes_starts_nocase(line, name)) {
        while (line.len && (line.at[line.len - 1] == '\n' || line.at[line.len - 1] == '\r'))
            line.len--;
        struct bytes value = bytes_trim(bytes_of(line.at + name.len, line.len - name.len));
        seen->has_retry_after = http_retry_after_parse(value, clock_unix_ms(), &seen->retry_after_ms);
    }
    return len;
}

static size_t on_body(char *at, size_t one, size_t len, void *ctx)
{
    (void)one;
    struct http_seen *seen = ctx;
    size_t room = sizeof seen->response - seen->response_len;
    size_t kept = len < room ? len : room;
    memcpy(seen->response + seen->response_len, at, kept);
    seen->response_len += kept;
    seen->received += len;
    if (seen->received > HTTP_RESPONSE_MAX) {
        seen->cut = true;
        return 0;
    }
    return len;
}

/* What is the same for every attempt of a sink. */
static void set_options(CURL *easy, struct transfer *transfer)
{
    const struct sink_options *o = &transfer->sink->options;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, &transfer->base);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->seen.error);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)IDLE_CONNECTION_S);
    curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, (long)NAME_CACHE_S);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)READ_BUFFER_BYTES);
    curl_easy_setopt(easy, CURLOPT_URL, o->url);
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    if (o->method && strcmp(o->method, "POST") != 0)
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, o->method);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "lanegate/" LANEGATE_VERSION);

    curl_easy_setopt(easy, CURLOPT_PROXY, o->proxy ? o->proxy : "");
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);

    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, (long)CA_CACHE_S);
    if (o->tls_ca) { /* this one instead of the system's, not beside them */
        curl_easy_setopt(easy, CURLOPT_CAINFO, o->tls_ca);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    if (o->tls_cert)
        curl_easy_setopt(easy, CURLOPT_SSLCERT, o->tls_cert);
    if (o->tls_key)
        curl_easy_setopt(easy, CURLOPT_SSLKEY, o->tls_key);

    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, own_loop(transfer));
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, before_request);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer->seen);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer->seen);
}

static void transfer_free(struct transfer *transfer)
{
    curl_easy_cleanup(transfer->base.easy);
    http_request_free(&transfer->request);
    free(transfer);
}

/* Answers to the loop. After done() the sink may be gone, so the transfer goes back first. */
static void on_finished(struct loop_transfer *base, CURLcode code)
{
    struct transfer *transfer = (struct transfer *)base;
    struct sink_http *sink = transfer->sink;
    struct attempt *attempt = transfer->attempt;
    struct outcome *outcome = &attempt->outcome;
    struct idle_list *idle = &sink->idle[transfer->loop];

    outcome->duration_us = clock_mono_us() - transfer->started_us;
    http_outcome(&sink->options, base->easy, code, &transfer->seen, transfer->timeout_ms, outcome);
    char response[SINK_RESPONSE_KEPT];
    if (outcome->cls != OUTCOME_OK && transfer->seen.response_len > 0) {
        memcpy(response, transfer->seen.response, transfer->seen.response_len);
        outcome->response = bytes_of(response, transfer->seen.response_len);
    }

    curl_easy_setopt(base->easy, CURLOPT_HTTPHEADER, NULL); /* it pointed at this attempt's */
    curl_easy_setopt(base->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)0);
    curl_easy_setopt(base->easy, CURLOPT_POSTFIELDS, "");
    transfer->attempt = NULL;
    if (idle->count < IDLE_TRANSFERS_MAX) {
        list_append(&idle->items, &transfer->idle);
        idle->count++;
    } else {
        transfer_free(transfer);
    }
    attempt_finish(attempt); /* and it is gone */
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
    transfer->base.finished = on_finished;
    transfer->base.easy = curl_easy_init();
    CHECK(transfer->base.easy);
    set_options(transfer->base.easy, transfer);
    return transfer;
}

static void http_start(struct sink *base, unsigned loop, struct attempt *attempt)
{
    struct sink_http *sink = (struct sink_http *)base;
    struct transfer *transfer = transfer_take(sink, loop);
    CURL *easy = transfer->base.easy;
    struct bytes body = attempt->envelope->body;

    attempt->outcome = (struct outcome){0};
    transfer->attempt = attempt;
    transfer->started_us = clock_mono_us();
    transfer->timeout_ms = sink->options.timeout_ms;
    if (attempt->timeout_ms > 0 && attempt->timeout_ms < transfer->timeout_ms)
        transfer->timeout_ms = attempt->timeout_ms;
    memset(&transfer->seen, 0, offsetof(struct http_seen, error));
    transfer->seen.error[0] = 0;

    struct curl_slist *headers =
        http_request_fill(&transfer->request, &sink->shape, attempt, clock_unix_ms() / 1000);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.len ? body.at : "");
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)transfer->timeout_ms);
    curl_easy_setopt(
        easy, CURLOPT_CONNECTTIMEOUT_MS,
        (long)(transfer->timeout_ms < CONNECT_TIMEOUT_MS ? transfer->timeout_ms : CONNECT_TIMEOUT_MS));
    loop_run(own_loop(transfer), &transfer->base);
}

static enum status http_open(struct deliver *deliver, const struct sink_options *options, struct sink **out,
                             struct error *err)
{
    (void)err;
    struct sink_http *sink = mem_zalloc(sizeof *sink);
    sink_init(&sink->base, &sink_type_http, deliver, options);
    sink->options = *options;
    http_shape_init(&sink->shape, &sink->options);
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
