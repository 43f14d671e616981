/* GET /v1/dlq: what was given up on, oldest first. On the worker's thread, since all of it is counted. */
#include "admin/admin_priv.h"
#include "order/order.h"

/* One row more than the page is asked for, to know whether there is a next one. */
struct page {
    struct ask *ask;
    size_t written;
    bool more;
    struct cursor last;
};

static bool write_entry(void *ctx, const struct store_row_view *row)
{
    struct page *page = ctx;
    if (page->written == page->ask->query.limit) {
        page->more = true;
        return false;
    }
    page->written++;
    page->last = (struct cursor){.seq = row->seq, .sink = row->sink};

    struct jsonw *w = &page->ask->json;
    char id[UUID_TEXT];
    uuid_format(&row->id, id);
    jsonw_object(w, NULL);
    jsonw_str(w, "id", id);
    jsonw_uint(w, "seq", row->seq);
    jsonw_str(w, "tenant", row->tenant_name);
    jsonw_str(w, "source", row->source);
    jsonw_str(w, "sink", row->sink_name);
    if (row->ordered)
        ask_lane_id(page->ask, "lane", row->lane);
    else
        jsonw_null(w, "lane");
    jsonw_bytes_percent(w, "key", row->ordered ? row->key : BYTES_NONE);
    jsonw_str(w, "state", row_state_name(row->state));
    jsonw_str(w, "class", row->cls);
    jsonw_bytes(w, "reason", row->reason.len ? row->reason : BYTES_NONE);
    jsonw_int(w, "http_status", row->http_status);
    jsonw_uint(w, "attempts", row->attempts);
    jsonw_bool(w, "late", row->late);
    ask_time(page->ask, "dead_at", row->at_ms);
    ask_time(page->ask, "received_at", row->received_at_ms);
    jsonw_uint(w, "size", row->body_size);
    jsonw_end_object(w);
    return true;
}

/* A key names a lane once source and sink are known. False when it was refused. */
static bool key_to_lane(struct ask *ask)
{
    struct query *query = &ask->query;
    if (!query->key.at)
        return true;
    if (!query->source.at || !query->sink.at || query->has_lane) {
        const char *expected =
            query->has_lane ? "left out where lane is given" : "with source and sink beside it";
        ask_refuse_filter(ask, &(struct query_fault){"bad_filter", BYTES("key"), expected});
        return false;
    }
    struct bytes key = query->key.len ? order_key_stamp(query->key, ask->arena) : BYTES_NONE;
    struct lane_id lane = lane_id_of(query->source, query->sink, key);
    memcpy(query->lane, lane.bytes, sizeof query->lane);
    query->has_lane = true;
    return true;
}

/* One hook's. False when it was refused. */
static bool hook_to_seq(struct ask *ask, uint64_t *seq)
{
    if (!ask->query.has_hook)
        return true;
    enum status status = store_find_hook(ask->reader, &ask->query.hook, seq);
    if (status == STATUS_NOT_FOUND)
        ask_not_found(ask, "hook");
    else if (status != STATUS_OK)
        ask_store_failed(ask, status);
    return status == STATUS_OK;
}

bool ask_dead_filter(struct ask *ask, struct store_dead_filter *filter)
{
    uint64_t seq = 0;
    if (!key_to_lane(ask) || !hook_to_seq(ask, &seq))
        return false;
    const struct query *query = &ask->query;
    *filter = (struct store_dead_filter){.tenant = query->tenant.at,
                                         .source = query->source.at,
                                         .sink = query->sink.at,
                                         .cls = query->cls.at,
                                         .lane = query->has_lane ? query->lane : NULL,
                                         .seq = seq,
                                         .since_ms = query->since_ms,
                                         .until_ms = query->until_ms,
                                         .after_seq = query->cursor.seq,
                                         .after_sink = query->cursor.sink,
                                         .limit = query->limit + 1};
    return true;
}

static void list_dead(struct ask *ask)
{
    struct store_dead_filter filter;
    if (!ask_dead_filter(ask, &filter))
        return;
    struct page page = {.ask = ask};
    uint64_t total = 0;
    jsonw_object(&ask->json, NULL);
    jsonw_array(&ask->json, "entries");
    enum status status = store_list_dead(ask->reader, &filter, write_entry, &page, &total);
    jsonw_end_array(&ask->json);
    jsonw_uint(&ask->json, "total", total);
    ask_next_cursor(ask, CURSOR_DEAD, page.more ? &page.last : NULL);
    jsonw_end_object(&ask->json);
    if (status != STATUS_OK)
        ask_store_failed(ask, status);
}

void get_dead(struct ask *ask)
{
    ask_work(ask, WORK_DEAD_LETTERS, list_dead);
}
