/* What the wall itself answers: requests that never reach the handler. libh2o's own texts (a broken chunk, a
 * length over the limit, an unknown coding or expectation) are turned into the same JSON on their way out.
 * Every refusal ends its connection, slowly: see http_conn_linger. */
#include <string.h>

#include "http/http_priv.h"
#include "util/jsonw.h"

void http_refuse_count(struct http_server *server, const char *reason)
{
    if (server->options.on_refused)
        server->options.on_refused(server->options.ctx, reason);
}

/* {"error": reason, and one more field if it has a name} */
static void write_json(struct buf *out, const char *reason, const char *name, struct bytes text,
                       uint64_t number)
{
    struct jsonw w = jsonw_on(out);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "error", reason);
    if (name && text.at)
        jsonw_bytes_percent(&w, name, text);
    else if (name)
        jsonw_uint(&w, name, number);
    jsonw_end_object(&w);
}

static void refuse(struct http_conn *conn, h2o_req_t *req, int status, const char *reason, const char *name,
                   struct bytes text, uint64_t number)
{
    struct buf json = {0};
    write_json(&json, reason, name, text, number);
    http_refuse_count(conn->loop->server, reason);
    http_exchange_refuse(conn, req, status, buf_bytes(&json));
    buf_free(&json);
}

void http_refuse_bad_request(struct http_conn *conn, h2o_req_t *req)
{
    refuse(conn, req, 400, "bad_request", NULL, BYTES_NONE, 0);
}

void http_refuse_invalid_header(struct http_conn *conn, h2o_req_t *req, struct bytes name)
{
    refuse(conn, req, 400, "invalid_header", "header", name, 0);
}

void http_refuse_too_large(struct http_conn *conn, h2o_req_t *req)
{
    refuse(conn, req, 413, "payload_too_large", "limit", BYTES_NONE,
           conn->loop->server->options.max_body_bytes);
}

void http_refuse_expectation(struct http_conn *conn, h2o_req_t *req)
{
    refuse(conn, req, 417, "expectation_failed", NULL, BYTES_NONE, 0);
}

/* ---- libh2o's own refusals ---- */

struct refuse_filter {
    h2o_filter_t super;
    struct http_server *server;
};

struct refuse_stream {
    h2o_ostream_t super;
    struct http_server *server;
};

static const char *reason_of(int status, struct bytes text)
{
    if (status == 413)
        return "payload_too_large";
    if (status == 417)
        return "expectation_failed";
    return bytes_eq(text, BYTES("broken chunked-encoding")) ? "body_read_failed" : "bad_request";
}

/* Called once, with the whole text and before libh2o has written the head. */
static void send_json(h2o_ostream_t *self, h2o_req_t *req, h2o_iovec_t *bufs, size_t count,
                      h2o_send_state_t state)
{
    struct http_server *server = ((struct refuse_stream *)self)->server;
    struct bytes text = count ? bytes_of(bufs[0].base, bufs[0].len) : BYTES_NONE;
    const char *reason = reason_of(req->res.status, text);
    struct buf json = {0};

    write_json(&json, reason, req->res.status == 413 ? "limit" : NULL, BYTES_NONE,
               server->options.max_body_bytes);
    h2o_iovec_t body = h2o_strdup(&req->pool, json.at, json.len);
    buf_free(&json);
    req->res.reason = http_reason(req->res.status);
    req->res.content_length = body.len;
    h2o_set_header(&req->pool, &req->res.headers, H2O_TOKEN_CONTENT_TYPE, H2O_STRLIT("application/json"), 1);
    http_refuse_count(server, reason);
    h2o_ostream_send_next(self, req, &body, count ? 1 : 0, state); /* count is 0 for HEAD */
}

static void on_setup_ostream(h2o_filter_t *self, h2o_req_t *req, h2o_ostream_t **slot)
{
    struct http_conn *conn = http_conn_of(req);
    if (!conn->answering) {
        struct refuse_stream *stream = (void *)h2o_add_ostream(req, sizeof *stream, slot);
        stream->super.do_send = send_json;
        stream->server = ((struct refuse_filter *)self)->server;
        slot = &stream->super.next;
        http_conn_linger(conn);
    }
    h2o_setup_next_ostream(req, slot);
}

void http_refuse_install(h2o_hostconf_t *host, struct http_server *server)
{
    struct refuse_filter *filter = (void *)h2o_create_filter(&host->fallback_path, sizeof *filter);
    filter->super.on_setup_ostream = on_setup_ostream;
    filter->server = server;
}
