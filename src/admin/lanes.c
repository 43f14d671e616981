/* GET /v1/lanes and /v1/lanes/{tenant}/{lane}: which lanes wait, for how long, behind what. The scheduler
 * knows depth, state and the head's seq; what the head is called, and why it failed, is in the store. */
#include <stdlib.h>

#include "admin/admin_priv.h"
#include "order/order.h"
#include "util/mem.h"
#include "util/vec.h"

/* Used with VEC_*. */
struct lane_views {
    struct lane_view *at;
    size_t len, size;
};

/* The head's row, as far as the answer shows it. */
struct head {
    struct ask *ask;
    const struct lane_view *view;
    bool whole; /* the answer about one lane says more, and goes on behind the head */
};

enum { LANE_NEXT_ROWS = 20 };

static void write_head(struct jsonw *w, const struct head *head, const struct store_row_view *row)
{
    char id[UUID_TEXT];
    uuid_format(&row->id, id);
    jsonw_object(w, "head");
    jsonw_str(w, "id", id);
    jsonw_uint(w, "seq", row->seq);
    jsonw_uint(w, "attempts", head->view->head_attempts);
    ask_time(head->ask, "due_at", head->view->head_due_ms);
    jsonw_bytes(w, "last_error", row->reason.len ? row->reason : BYTES_NONE);
    jsonw_str(w, "class", row->cls);
    jsonw_int(w, "http_status", row->http_status);
    if (head->whole) {
        ask_time(head->ask, "first_attempt_at", row->first_attempt_ms);
        ask_time(head->ask, "last_attempt_at", row->attempts ? row->at_ms : 0);
        jsonw_uint(w, "size", row->body_size);
    }
    jsonw_end_object(w);
}

static bool write_lane(void *ctx, const struct store_row_view *row)
{
    const struct head *head = ctx;
    const struct lane_view *view = head->view;
    struct jsonw *w = &head->ask->json;
    jsonw_object(w, NULL);
    jsonw_str(w, "tenant", row->tenant_name);
    jsonw_str(w, "source", row->source);
    jsonw_str(w, "sink", row->sink_name);
    jsonw_bytes_percent(w, "key", row->key);
    ask_lane_id(head->ask, "lane", view->lane);
    jsonw_str(w, "state", lane_state_name(view->state));
    jsonw_uint(w, "depth", view->depth);
    ask_time(head->ask, "oldest_at", view->oldest_ms);
    ask_time(head->ask, "blocked_since", view->blocked_since_ms);
    ask_time(head->ask, "paused_since", view->paused_since_ms);
    write_head(w, head, row);
    if (!head->whole)
        jsonw_end_object(w);
    return true;
}

static bool means(const struct query *query, const struct admin_sink *sink)
{
    return (!query->source.at || bytes_eq(query->source, bytes_str(sink->source))) &&
           (!query->sink.at || bytes_eq(query->sink, bytes_str(sink->name)));
}

/* Ids of the configured sinks that the filter means, from the arena. */
static const uint32_t *sinks_meant(const struct ask *ask, size_t *count)
{
    const struct admin_rules *rules = ask->rules;
    uint32_t *ids = arena_alloc(ask->arena, (rules->sink_count + 1) * sizeof *ids);
    *count = 0;
    for (size_t i = 0; i < rules->sink_count; i++)
        if (means(&ask->query, &rules->sinks[i]))
            ids[(*count)++] = rules->sinks[i].id;
    return ids;
}

/* Up to the filter's limit, behind what is there. */
static uint64_t add_lanes(struct lanes *lanes, const struct lane_filter *filter, struct lane_views *views)
{
    views->size = views->len + filter->limit;
    views->at = mem_resize(views->at, views->size * sizeof *views->at);
    uint64_t total = 0;
    views->len += lanes_list(lanes, filter, views->at + views->len, &total);
    return total;
}

static int by_age(const void *a, const void *b)
{
    const struct lane_view *x = a, *y = b;
    return (x->oldest_ms > y->oldest_ms) - (x->oldest_ms < y->oldest_ms);
}

static int by_depth(const void *a, const void *b)
{
    const struct lane_view *x = a, *y = b;
    return (x->depth < y->depth) - (x->depth > y->depth);
}

/* All lanes of one filter, page by page. */
static void add_all_lanes(struct lanes *lanes, struct lane_filter filter, struct lane_views *views)
{
    size_t before = views->len, had;
    uint64_t total;
    filter.limit = QUERY_LIMIT_MAX;
    do {
        had = views->len;
        filter.offset = had - before;
        total = add_lanes(lanes, &filter, views);
    } while (views->len > had && views->len - before < total);
}

/* One key over several sinks is one lane id a sink, so it is asked sink by sink, and sorted and cut here.
 * Such lanes are few: one a sink and tenant. */
static uint64_t find_by_key(struct ask *ask, const struct lane_filter *filter, struct lane_views *page)
{
    const struct admin_rules *rules = ask->rules;
    struct lane_views found = {0};
    struct bytes key = ask->query.key.len ? order_key_stamp(ask->query.key, ask->arena) : BYTES_NONE;
    for (size_t i = 0; i < rules->sink_count; i++) {
        const struct admin_sink *sink = &rules->sinks[i];
        if (!means(&ask->query, sink))
            continue;
        struct lane_id lane = lane_id_of(bytes_str(sink->source), bytes_str(sink->name), key);
        struct lane_filter one = *filter;
        one.sink_ids = &sink->id;
        one.sink_id_count = 1;
        one.lane = lane.bytes;
        add_all_lanes(ask->admin->options.lanes, one, &found);
    }
    if (found.len)
        qsort(found.at, found.len, sizeof *found.at, filter->sort == LANE_SORT_DEPTH ? by_depth : by_age);
    for (size_t i = filter->offset; i < found.len && page->len < filter->limit; i++)
        VEC_PUSH(page, found.at[i]);
    uint64_t total = found.len;
    VEC_FREE(&found);
    return total;
}

/* The page of lanes asked for, and how many there are in all. */
static uint64_t find_lanes(struct ask *ask, struct lane_views *page)
{
    const struct query *query = &ask->query;
    struct lane_filter filter = {.tenant = -1,
                                 .sink = -1,
                                 .state = query->lane_state,
                                 .sort = query->sort,
                                 .offset = query->cursor.seq,
                                 .limit = query->limit};
    if (query->tenant.at) {
        uint32_t tenant;
        if (!store_tenant_find(ask->admin->options.store, query->tenant, &tenant))
            return 0;
        filter.tenant = tenant;
    }
    if (query->key.at)
        return find_by_key(ask, &filter, page);

    if (query->source.at || query->sink.at) {
        filter.sink_ids = sinks_meant(ask, &filter.sink_id_count);
        if (filter.sink_id_count == 0)
            return 0;
    }
    return add_lanes(ask->admin->options.lanes, &filter, page);
}

void get_lanes(struct ask *ask)
{
    struct lane_views page = {0};
    uint64_t total = find_lanes(ask, &page);
    enum status status = STATUS_OK;

    jsonw_object(&ask->json, NULL);
    jsonw_array(&ask->json, "lanes");
    for (size_t i = 0; i < page.len && status == STATUS_OK; i++) {
        struct head head = {ask, &page.at[i], false};
        status = store_row_of(ask->reader, page.at[i].head_seq, page.at[i].sink, write_lane, &head);
        /* The list may be a second old: a head that retention has taken since was delivered, and its lane is
         * done. */
        if (status == STATUS_NOT_FOUND)
            status = STATUS_OK;
    }
    jsonw_end_array(&ask->json);
    jsonw_uint(&ask->json, "total", total);
    struct cursor next = {.seq = ask->query.cursor.seq + page.len};
    ask_next_cursor(ask, CURSOR_LANES, page.len && next.seq < total ? &next : NULL);
    jsonw_end_object(&ask->json);

    if (status != STATUS_OK)
        ask_store_failed(ask, status);
    VEC_FREE(&page);
}

/* One of its next rows. */
static bool write_row(void *ctx, const struct store_row_view *row)
{
    struct ask *ask = ctx;
    struct jsonw *w = &ask->json;
    char id[UUID_TEXT];
    uuid_format(&row->id, id);
    jsonw_object(w, NULL);
    jsonw_str(w, "id", id);
    jsonw_uint(w, "seq", row->seq);
    ask_time(ask, "received_at", row->received_at_ms);
    jsonw_uint(w, "attempts", row->attempts);
    jsonw_str(w, "state", row_state_name(row->state));
    jsonw_uint(w, "size", row->body_size);
    jsonw_end_object(w);
    return false;
}

void get_lane(struct ask *ask)
{
    const struct admin_options *options = &ask->admin->options;
    struct lanes_lane lane;
    if (!ask_lane(ask, &lane))
        return;
    struct lane_view view;
    uint64_t seqs[LANE_NEXT_ROWS];
    size_t count;
    if (ask_act_failed(ask, lanes_lane_look(options->lanes, &lane, &view, seqs, LANE_NEXT_ROWS, &count),
                       "lane"))
        return;
    struct head head = {ask, &view, true};
    enum status status = store_row_of(ask->reader, view.head_seq, view.sink, write_lane, &head);
    if (status == STATUS_OK) {
        jsonw_array(&ask->json, "rows");
        for (size_t i = 0; i < count && status == STATUS_OK; i++)
            status = store_row_of(ask->reader, seqs[i], view.sink, write_row, ask);
        jsonw_end_array(&ask->json);
        jsonw_end_object(&ask->json);
    }
    if (status == STATUS_NOT_FOUND)
        ask_not_found(ask, "lane");
    else if (status != STATUS_OK)
        ask_store_failed(ask, status);
}
