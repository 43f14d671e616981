#include "stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "certs.h"
#include "tunnel.h"
#include "util/buf.h"
#include "util/check.h"
#include "wire.h"

void stage_pause(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void echo(const struct http_request *request)
{
    struct buf text = {0};
    buf_putf(&text, "%.*s %.*s\n", BYTES_ARG(request->method), BYTES_ARG(request->target));
    for (size_t i = 0; i < request->header_count; i++)
        buf_putf(&text, "%.*s: %.*s\n", BYTES_ARG(request->headers[i].name),
                 BYTES_ARG(request->headers[i].value));
    buf_putc(&text, '\n');
    buf_putb(&text, request->body);
    http_answer(request->exchange,
                &(struct http_answer){.status = 200, .type = "text/plain", .body = buf_bytes(&text)});
    buf_free(&text);
}

static void who(const struct http_request *request)
{
    struct buf text = {0};
    buf_putf(&text, "%.*s %s", BYTES_ARG(request->remote_ip), request->kept ? "kept" : "new");
    if (request->client_cert.at)
        buf_putf(&text, " %.*s", BYTES_ARG(request->client_cert));
    http_answer(request->exchange, &(struct http_answer){.status = 200, .body = buf_bytes(&text)});
    buf_free(&text);
}

static void on_closed(void *ctx)
{
    struct stage *stage = ctx;
    atomic_fetch_add(&stage->closed, 1);
}

static void go_on(struct stage *stage, const struct http_request *request)
{
    const struct http_header no_store = {BYTES("cache-control"), BYTES("no-store")};
    struct http_stream *stream = http_stream_open(
        request->exchange, &(struct http_stream_options){.type = "text/event-stream",
                                                         .headers = &no_store,
                                                         .header_count = 1,
                                                         .greeting = BYTES(":\n\n"),
                                                         .max_buffered_bytes = STAGE_STREAM_MAX,
                                                         .closed = on_closed,
                                                         .ctx = stage});
    CHECK(!atomic_exchange(&stage->stream, stream));
}

static void big(const struct http_request *request)
{
    size_t len = (size_t)atol(request->query.at);
    char *body = malloc(len + 1);
    memset(body, 'b', len);
    http_answer(request->exchange, &(struct http_answer){.status = 200, .body = bytes_of(body, len)});
    free(body);
}

static void on_request(void *ctx, const struct http_request *request)
{
    struct stage *stage = ctx;
    struct http_answer created = {.status = 201, .body = BYTES("{\"ok\":true}")};

    atomic_fetch_add(&stage->handled, 1);
    if (request->loop < 2)
        atomic_fetch_add(&stage->handled_by[request->loop], 1);
    if (atomic_load(&stage->keep)) {
        pthread_mutex_lock(&stage->lock);
        CHECK(stage->kept_count < STAGE_KEPT_MAX);
        stage->kept[stage->kept_count++] = request->exchange;
        pthread_mutex_unlock(&stage->lock);
    } else if (bytes_eq(request->path, BYTES("/json"))) {
        http_answer(request->exchange, &created);
    } else if (bytes_eq(request->path, BYTES("/gate"))) {
        while (atomic_load(&stage->gate))
            stage_pause();
        http_answer(request->exchange, &created);
    } else if (bytes_eq(request->path, BYTES("/close"))) {
        created.close = true;
        http_answer(request->exchange, &created);
    } else if (bytes_eq(request->path, BYTES("/204"))) {
        http_answer(request->exchange, &(struct http_answer){.status = 204});
    } else if (bytes_eq(request->path, BYTES("/drop"))) {
        http_drop(request->exchange);
    } else if (bytes_eq(request->path, BYTES("/stream"))) {
        go_on(stage, request);
    } else if (bytes_eq(request->path, BYTES("/who"))) {
        who(request);
    } else if (bytes_eq(request->path, BYTES("/big"))) {
        big(request);
    } else {
        echo(request);
    }
}

static void on_refused(void *ctx, const char *reason)
{
    struct stage *stage = ctx;
    atomic_int *counter = strcmp(reason, "timeout") == 0         ? &stage->refused_timeout
                          : strcmp(reason, "memory") == 0        ? &stage->refused_memory
                          : strcmp(reason, "connections") == 0   ? &stage->refused_connections
                          : strcmp(reason, "tls_handshake") == 0 ? &stage->refused_handshake
                                                                 : &stage->refused_other;
    atomic_fetch_add(counter, 1);
}

static char folder[64];
static char cert_path[96];
static const struct http_tls_options *tls;

void stage_arguments(int argc, char **argv)
{
    static struct http_tls_options options = {.cert = cert_path, .key = cert_path};
    if (argc < 2 || strcmp(argv[1], "tls") != 0)
        return;
    snprintf(folder, sizeof folder, "/tmp/lanegate-spec-XXXXXX");
    CHECK(mkdtemp(folder));
    struct cert cert = cert_make(
        folder, &(struct cert_spec){.name = "server", .host = "127.0.0.1", .valid_until_s = 3600}, NULL);
    cert_free(&cert);
    snprintf(cert_path, sizeof cert_path, "%s/server.pem", folder);
    tls = &options;
    wire_through = tunnel_through;
}

void stage_done(void)
{
    if (!tls)
        return;
    tunnel_join_all();
    unlink(cert_path);
    rmdir(folder);
}

void stage_prepare(struct stage *stage)
{
    memset(stage, 0, sizeof *stage);
    pthread_mutex_init(&stage->lock, NULL);
    stage->metrics = metrics_new();
    stage->listen[0] = "127.0.0.1:0";
    stage->options = (struct http_options){.listen = stage->listen,
                                           .listen_count = 1,
                                           .threads = 1,
                                           .name = "test",
                                           .max_body_bytes = 1024 * 1024,
                                           .max_buffered_bytes = 64 * 1024 * 1024,
                                           .header_timeout_ms = 30000,
                                           .body_timeout_ms = 30000,
                                           .idle_timeout_ms = 30000,
                                           .max_connections = 1000,
                                           .tls = tls,
                                           .handler = on_request,
                                           .on_refused = on_refused,
                                           .ctx = stage,
                                           .metrics = stage->metrics};
}

void stage_open(struct stage *stage)
{
    struct error err = {{0}};
    assert_int_equal(http_open(&stage->options, &stage->server, &err), STATUS_OK);
}

void stage_shut(struct stage *stage)
{
    struct http_server *server = stage->server;
    stage->server = NULL;
    if (server)
        http_close(server);
}

void stage_close(struct stage *stage)
{
    stage_shut(stage);
    metrics_free(stage->metrics);
    pthread_mutex_destroy(&stage->lock);
}

double stage_gauge(struct stage *stage, const char *name)
{
    struct buf text = {0};
    char line[128];
    metrics_write(stage->metrics, &text);
    snprintf(line, sizeof line, "\n%s ", name);
    const char *at = strstr(text.at, line);
    double value = at ? atof(at + strlen(line)) : -1;
    buf_free(&text);
    return value;
}

static bool take(struct stage *stage, size_t n, struct http_exchange **out)
{
    pthread_mutex_lock(&stage->lock);
    bool enough = stage->kept_count >= n;
    if (enough) {
        memcpy(out, stage->kept, n * sizeof *out);
        stage->kept_count -= n;
        memmove(stage->kept, stage->kept + n, stage->kept_count * sizeof *out);
    }
    pthread_mutex_unlock(&stage->lock);
    return enough;
}

void stage_take(struct stage *stage, size_t n, struct http_exchange **out)
{
    STAGE_WAIT(take(stage, n, out));
}
