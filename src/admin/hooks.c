/* GET /v1/hooks, /v1/hooks/{id} and its body: what came in, and what became of it. Lists and envelopes carry
 * no body; the body is payload, and so are the credentials that providers put into headers. */
#include "admin/admin_priv.h"

static bool write_listed(void *ctx, const struct store_hook_view *hook)
{
    struct ask *ask = ctx;
    struct jsonw *w = &ask->json;
    char id[UUID_TEXT];
    uuid_format(&hook->id, id);
    jsonw_object(w, NULL);
    jsonw_str(w, "id", id);
    jsonw_uint(w, "seq", hook->seq);
    jsonw_str(w, "tenant", hook->tenant);
    jsonw_str(w, "source", hook->source);
    ask_time(ask, "received_at", hook->received_at_ms);
    jsonw_uint(w, "size", hook->body_size);
    jsonw_uint(w, "rows", hook->rows);
    jsonw_uint(w, "done", hook->rows_done);
    jsonw_uint(w, "dead", hook->rows_dead);
    jsonw_end_object(w);
    return true;
}

void get_hooks(struct ask *ask)
{
    const struct query *query = &ask->query;
    struct store_hook_filter filter = {.tenant = query->tenant.at,
                                       .source = query->source.at,
                                       .since_ms = query->since_ms,
                                       .until_ms = query->until_ms,
                                       .dedupe_key = query->dedupe_key,
                                       .state = query->row_state,
                                       .before_seq = query->cursor.seq,
                                       .limit = query->limit};
    uint64_t next = 0;
    jsonw_object(&ask->json, NULL);
    jsonw_array(&ask->json, "hooks");
    enum status status = store_list_hooks(ask->reader, &filter, write_listed, ask, &next);
    jsonw_end_array(&ask->json);
    ask_next_cursor(ask, CURSOR_HOOKS, next ? &(struct cursor){.seq = next} : NULL);
    jsonw_end_object(&ask->json);
    if (status != STATUS_OK)
        ask_store_failed(ask, status);
}

/* Headers that prove who the provider is: whoever may read them can forge its hooks. */
static bool is_credential(struct bytes name)
{
    static const char *const names[] = {"authorization", "proxy-authorization", "cookie", "x-api-key",
                                        "x-gitlab-token"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (bytes_eq_nocase(name, bytes_str(names[i])))
            return true;
    return false;
}

static void write_headers(struct ask *ask, const struct envelope *envelope)
{
    struct jsonw *w = &ask->json;
    bool all = ask->scopes & ADMIN_SCOPE_PAYLOAD;
    jsonw_array(w, "headers");
    for (size_t i = 0; i < envelope->header_count; i++) {
        const struct header *header = &envelope->headers[i];
        jsonw_array(w, NULL);
        jsonw_bytes(w, NULL, header->name);
        jsonw_bytes(w, NULL, all || !is_credential(header->name) ? header->value : BYTES_NONE);
        jsonw_end_array(w);
    }
    jsonw_end_array(w);
}

void ask_write_envelope(struct ask *ask, const struct envelope *envelope)
{
    struct jsonw *w = &ask->json;
    char id[UUID_TEXT];
    uuid_format(&envelope->id, id);
    jsonw_str(w, "id", id);
    jsonw_uint(w, "seq", envelope->seq);
    jsonw_bytes(w, "tenant", envelope->tenant);
    jsonw_bytes(w, "source", envelope->source);
    ask_time(ask, "received_at", envelope->received_at_ms);
    jsonw_bytes(w, "method", envelope->method);
    jsonw_bytes(w, "path", envelope->path);
    jsonw_bytes(w, "query", envelope->query);
    write_headers(ask, envelope);
    jsonw_bytes(w, "content_type", envelope->content_type);
    jsonw_bytes(w, "remote_ip", envelope->remote_ip);
    jsonw_str(w, "verification", verification_name(envelope->verification));
    jsonw_bytes_percent(w, "dedupe_key", envelope->dedupe_key);
    jsonw_uint(w, "size", envelope->body.len);
}

static bool write_row(void *ctx, const struct store_row_view *row)
{
    struct ask *ask = ctx;
    struct jsonw *w = &ask->json;
    jsonw_object(w, NULL);
    jsonw_str(w, "sink", row->sink_name);
    jsonw_bool(w, "ordered", row->ordered);
    if (row->ordered)
        ask_lane_id(ask, "lane", row->lane);
    else
        jsonw_null(w, "lane");
    jsonw_bytes_percent(w, "key", row->ordered ? row->key : BYTES_NONE);
    jsonw_str(w, "state", row_state_name(row->state));
    jsonw_uint(w, "attempts", row->attempts);
    jsonw_bool(w, "late", row->late);
    ask_time(ask, "first_attempt_at", row->first_attempt_ms);
    ask_time(ask, "due_at", row->state == ROW_PENDING ? row->due_ms : 0);
    ask_time(ask, "changed_at", row->at_ms);
    jsonw_str(w, "class", row->cls);
    jsonw_int(w, "http_status", row->http_status);
    jsonw_int(w, "duration_us", row->duration_us);
    jsonw_bytes(w, "last_error", row->reason.len ? row->reason : BYTES_NONE);
    jsonw_end_object(w);
    return true;
}

bool ask_hook(struct ask *ask, uint64_t *seq)
{
    struct uuid id;
    enum status status = uuid_parse(ask->parts[0], &id) ? STATUS_OK : STATUS_NOT_FOUND;
    if (status == STATUS_OK)
        status = store_find_hook(ask->reader, &id, seq);
    if (status == STATUS_NOT_FOUND)
        ask_not_found(ask, "hook");
    else if (status != STATUS_OK)
        ask_store_failed(ask, status);
    return status == STATUS_OK;
}

/* The hook that the path names, one reference; NULL when it was refused. */
static struct envelope *named_hook(struct ask *ask)
{
    uint64_t seq;
    struct envelope *envelope = NULL;
    if (!ask_hook(ask, &seq))
        return NULL;
    enum status status = store_read_hook(ask->reader, seq, &envelope);
    if (status == STATUS_NOT_FOUND)
        ask_not_found(ask, "hook");
    else if (status != STATUS_OK)
        ask_store_failed(ask, status);
    return envelope;
}

void get_hook(struct ask *ask)
{
    struct envelope *envelope = named_hook(ask);
    if (!envelope)
        return;
    jsonw_object(&ask->json, NULL);
    ask_write_envelope(ask, envelope);
    jsonw_array(&ask->json, "rows");
    enum status status = store_rows_of(ask->reader, envelope->seq, write_row, ask);
    jsonw_end_array(&ask->json);
    jsonw_end_object(&ask->json);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) /* a hook that no sink took has no rows */
        ask_store_failed(ask, status);
    envelope_unref(envelope);
}

/* Never as the type that the provider claims: a browser must not run what a stranger sent. */
void get_hook_body(struct ask *ask)
{
    struct envelope *envelope = named_hook(ask);
    if (!envelope)
        return;
    ask->type = "application/octet-stream";
    ask->body.max = envelope->body.len + 1;
    buf_putb(&ask->body, envelope->body);
    envelope_unref(envelope);
}
