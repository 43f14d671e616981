/* From libh2o's request to ours. The handler of libh2o runs when the body is complete; the raw head is still
 * at the front of the connection's input then (names lowered in place, a chunked body decoded behind it), and
 * is judged before anybody sees the request. */
#include "http/head.h"
#include "http/http_priv.h"

/* libh2o has lowered the names in the raw head and keeps the spelling beside its own list, which is in the
 * same order and lacks the five headers it took for itself. False when the lists do not tell the same story.
 */
static bool restore_names(struct head *head, const h2o_headers_t *list)
{
    size_t next = 0;
    for (size_t i = 0; i < head->header_count; i++) {
        if (head->taken[i])
            continue;
        if (next == list->size)
            return false;
        const h2o_header_t *known = &list->entries[next++];
        if (known->name->len != head->headers[i].name.len || !known->orig_name)
            return false;
        head->headers[i].name.at = known->orig_name;
    }
    return next == list->size;
}

static struct http_request describe(const struct http_conn *conn, h2o_req_t *req, const struct head *head)
{
    struct bytes target = bytes_of(req->input.path.base, req->input.path.len);
    const char *mark = memchr(target.at, '?', target.len);
    size_t path_len = mark ? (size_t)(mark - target.at) : target.len;
    return (struct http_request){
        .method = bytes_of(req->input.method.base, req->input.method.len),
        .path = bytes_of(target.at, path_len),
        .query = mark ? bytes_of(mark + 1, target.len - path_len - 1) : BYTES_NONE,
        .target = target,
        .headers = head->headers,
        .header_count = head->header_count,
        .body = req->entity.base ? bytes_of(req->entity.base, req->entity.len) : BYTES(""),
        .remote_ip = bytes_of(conn->remote_ip, conn->remote_ip_len),
        .kept = conn->requests > 1,
        .client_cert = conn->secure.fingerprint[0] ? bytes_str(conn->secure.fingerprint) : BYTES_NONE,
        .loop = conn->loop->index,
    };
}

int http_request_take(h2o_handler_t *handler, h2o_req_t *req)
{
    struct http_conn *conn = http_conn_of(req);
    struct http_server *server = conn->loop->server;
    h2o_buffer_t *input = conn->sock->input;
    struct head head;

    (void)handler;
    conn->requests++;
    conn->close_after = true; /* until the head has been found good */
    enum head_verdict verdict = head_check(bytes_of(input->bytes, input->size), &head);
    if (verdict != HEAD_BAD && !restore_names(&head, &req->headers))
        verdict = HEAD_BAD;
    if (req->entity.len > server->options.max_body_bytes) {
        http_refuse_too_large(conn, req);
    } else if (verdict == HEAD_BAD) {
        http_refuse_bad_request(conn, req);
    } else if (verdict == HEAD_INVALID_HEADER && !server->options.judges_headers) {
        http_refuse_invalid_header(conn, req, head.headers[head.culprit].name);
    } else if (verdict == HEAD_UNKNOWN_EXPECT) {
        http_refuse_expectation(conn, req);
    } else {
        struct http_request request = describe(conn, req, &head);
        request.exchange = &conn->exchange;
        if (verdict == HEAD_INVALID_HEADER)
            request.invalid_header = head.headers[head.culprit].name;
        conn->close_after = head.chunked; /* chunk framing is decoded by now and can't be judged */
        http_exchange_open(conn, req);
        server->options.handler(server->options.ctx, &request);
        http_exchange_await(conn);
    }
    return 0;
}
