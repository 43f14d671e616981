/* Opening, draining and closing a server. The loops do the work; here they are set up and taken down. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http/http_priv.h"
#include "util/check.h"
#include "util/mem.h"

static void conf_open(struct http_server *server)
{
    const struct http_options *options = &server->options;
    h2o_globalconf_t *conf = &server->conf;

    h2o_config_init(conf);
    conf->server_name = h2o_iovec_init(NULL, 0); /* no Server header */
    conf->http1.upgrade_to_http2 = 0;            /* neither by preface nor by h2c */
    /* One timer for all three phases of reading; the sweep keeps them apart. */
    conf->http1.req_timeout =
        (uint64_t)(options->header_timeout_ms + options->body_timeout_ms + options->idle_timeout_ms);
    /* A chunked body of exactly the bound would be refused: one more, and http_request_take looks again. */
    conf->max_request_entity_size = options->max_body_bytes + 1;
    conf->handshake_timeout = (uint64_t)options->header_timeout_ms + HTTP_SWEEP_MS; /* the sweep is first */

    h2o_hostconf_t *host = h2o_config_register_host(conf, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    h2o_create_handler(&host->fallback_path, sizeof(h2o_handler_t))->on_req = http_request_take;
    http_refuse_install(host, server);
}

static void options_copy(struct http_server *server, const struct http_options *options)
{
    CHECK(options->handler);
    CHECK(options->threads >= 1 && options->threads <= HTTP_THREADS_MAX);
    CHECK(options->listen_count >= 1 && options->listen_count <= HTTP_LISTENS_MAX);
    CHECK(options->header_timeout_ms > 0 && options->body_timeout_ms > 0 && options->idle_timeout_ms > 0);
    CHECK(options->max_body_bytes < SIZE_MAX / 4);
    server->options = *options;
    if (options->close_timeout_ms == 0)
        server->options.close_timeout_ms = HTTP_CLOSE_MS;
    snprintf(server->name, sizeof server->name, "%s", options->name ? options->name : "http");
    server->options.name = server->name;
    if (options->metrics) {
        server->connections_gauge = metrics_series(options->metrics, METRIC_HTTP_CONNECTIONS, NULL);
        server->buffered_gauge = metrics_series(options->metrics, METRIC_HTTP_BUFFERED_BYTES, NULL);
    }
}

static void listen_fds_close(struct http_server *server)
{
    for (size_t i = 0; i < HTTP_LISTENS_MAX; i++) {
        if (server->listen_fds[i] >= 0)
            close(server->listen_fds[i]);
        server->listen_fds[i] = -1;
    }
}

/* A loop may see the flag by itself and be gone before it is woken: so it is held until then. */
static void stop(struct http_server *server)
{
    for (unsigned i = 0; i < server->loop_count; i++)
        http_loop_hold(server->loops[i], true);
    atomic_store_explicit(&server->stopping, true, memory_order_release);
    for (unsigned i = 0; i < server->loop_count; i++) {
        if (server->loops[i]->started)
            http_loop_wake(server->loops[i]);
        http_loop_hold(server->loops[i], false);
    }
    bool left = false;
    for (unsigned i = 0; i < server->loop_count; i++) {
        http_loop_join(server->loops[i]);
        left |= server->loops[i]->left;
    }
    listen_fds_close(server);
    if (left) /* a loop that stays points at the server */
        return;
    for (unsigned i = 0; i < server->loop_count; i++)
        free(server->loops[i]);
    h2o_config_dispose(&server->conf);
    http_tls_close(server);
    for (size_t i = 0; i < HTTP_LISTENS_MAX; i++)
        free(server->addresses[i]);
    free(server);
}

enum status http_bind(const struct http_options *options, struct http_server **out, struct error *err)
{
    struct http_server *server = mem_zalloc(sizeof *server);
    for (size_t i = 0; i < HTTP_LISTENS_MAX; i++)
        server->listen_fds[i] = -1;
    http_debts_once();
    options_copy(server, options);
    conf_open(server);
    http_tls_open(server);

    enum status status = options->tls ? http_tls_reload(server, options->tls, err) : STATUS_OK;
    server->options.tls = NULL; /* the caller's */
    if (status == STATUS_OK)
        status = http_listen_all(server, err);
    server->options.listen = NULL; /* the caller's; the addresses are ours */
    for (unsigned i = 0; i < options->threads && status == STATUS_OK; i++)
        status = http_loop_new(server, i, err);
    if (status != STATUS_OK) {
        stop(server);
        return status;
    }
    *out = server;
    return STATUS_OK;
}

enum status http_start(struct http_server *server, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < server->loop_count && status == STATUS_OK; i++)
        status = http_loop_start(server->loops[i], err);
    if (status == STATUS_OK)
        listen_fds_close(server); /* the loops have handles of their own */
    return status;
}

enum status http_open(const struct http_options *options, struct http_server **out, struct error *err)
{
    enum status status = http_bind(options, out, err);
    if (status != STATUS_OK)
        return status;
    status = http_start(*out, err);
    if (status != STATUS_OK) {
        stop(*out);
        *out = NULL;
    }
    return status;
}

const char *http_address(const struct http_server *server, size_t i)
{
    CHECK(i < server->options.listen_count);
    return server->addresses[i];
}

unsigned http_threads(const struct http_server *server)
{
    return server->options.threads;
}

void http_drain(struct http_server *server)
{
    atomic_store_explicit(&server->draining, true, memory_order_release);
    for (unsigned i = 0; i < server->loop_count; i++)
        http_loop_wake(server->loops[i]);
}

bool http_drained(struct http_server *server)
{
    for (unsigned i = 0; i < server->loop_count; i++) {
        struct http_loop *loop = server->loops[i];
        if (!atomic_load_explicit(&loop->drained, memory_order_acquire) ||
            atomic_load_explicit(&loop->exchanges, memory_order_acquire) > 0 ||
            atomic_load_explicit(&loop->streams, memory_order_acquire) > 0)
            return false;
    }
    return true;
}

void http_close(struct http_server *server)
{
    stop(server);
}
