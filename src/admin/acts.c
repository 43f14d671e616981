/* POST on lanes and sinks: pause, resume, retry, skip. An act is done by the scheduler, written down, and in
 * the audit table before its answer goes out. */
#include <string.h>

#include "admin/admin_priv.h"
#include "order/order.h"
#include "util/buf.h"
#include "util/check.h"

/* Why an act was not done, as an answer. */
static void refuse(struct ask *ask, enum lanes_answer answer, const char *what)
{
    switch (answer) {
    case LANES_DONE:
    case LANES_NOTHING:
        break;
    case LANES_NOT_FOUND:
        ask_not_found(ask, what);
        return;
    case LANES_HEAD_CHANGED:
        ask_refuse_with(ask, 409, "head_changed", "expected", "expect_head to name the lane's first hook");
        return;
    case LANES_IN_FLIGHT:
        ask_refuse_with(ask, 409, "in_flight", "expected",
                        "no attempt to be running; try again when it ended");
        return;
    case LANES_FULL:
        ask_refuse_with(ask, 409, "too_many_paused", "expected",
                        "fewer paused lanes; resume some, or pause the sink");
        return;
    case LANES_BUSY:
    case LANES_DRAINING:
        ask_refuse(ask, 503, lanes_answer_name(answer));
        return;
    }
    UNREACHABLE();
}

bool ask_act_failed(struct ask *ask, enum lanes_answer answer, const char *what)
{
    if (answer == LANES_DONE || answer == LANES_NOTHING)
        return false;
    refuse(ask, answer, what);
    return true;
}

/* ---- lanes ---- */

/* What a person calls a lane, in the words of the command line. */
struct named {
    struct buf name;
    struct ask *ask;
    bool with_hook;
};

static bool name_lane(void *ctx, const struct store_row_view *row)
{
    struct named *named = ctx;
    buf_putf(&named->name, "%s/%s/", row->source, row->sink_name);
    percent_encode(&named->name, row->key);
    if (strcmp(row->tenant_name, "default") != 0)
        buf_putf(&named->name, " of tenant %s", row->tenant_name);
    char id[UUID_TEXT];
    uuid_format(&row->id, id);
    if (named->with_hook)
        buf_putf(&named->name, ", hook %s", id);
    return false;
}

static void audit_lane(struct ask *ask, const char *what, const struct lane_view *before, bool with_hook)
{
    struct named named = {.ask = ask, .with_hook = with_hook};
    if (before->head_seq)
        store_row_of(ask->reader, before->head_seq, before->sink, name_lane, &named);
    if (!named.name.len && ask->query.sink.at) {
        buf_putf(&named.name, "%.*s/%.*s/", BYTES_ARG(ask->query.source), BYTES_ARG(ask->query.sink));
        percent_encode(&named.name, ask->query.key);
    } else if (!named.name.len) { /* an empty lane has no hook to tell its key */
        buf_putb(&named.name, ask->parts[0]);
        buf_putc(&named.name, '/');
        buf_putb(&named.name, ask->parts[1]);
    }
    ask_audit(ask, what, buf_bytes(&named.name), -1, -1);
    buf_free(&named.name);
}

/* The seq that `expect_head` means; 0: not said. False when it was refused. */
static bool expected_head(struct ask *ask, uint64_t *seq)
{
    *seq = ask->query.head_seq;
    if (!ask->query.has_head_id)
        return true;
    enum status status = store_find_hook(ask->reader, &ask->query.head_id, seq);
    if (status == STATUS_NOT_FOUND)
        refuse(ask, LANES_HEAD_CHANGED, "lane");
    else if (status != STATUS_OK)
        ask_store_failed(ask, status);
    return status == STATUS_OK;
}

bool ask_lane(struct ask *ask, struct lanes_lane *lane)
{
    lane->sink = LANES_SINK_ANY;
    if (hex_decode(ask->parts[1], lane->lane, sizeof lane->lane) &&
        store_tenant_find(ask->admin->options.store, ask->parts[0], &lane->tenant))
        return true;
    ask_not_found(ask, "lane");
    return false;
}

/* What nothing is known of is found by name alone: the address hides source and sink in a hash. False when
 * the name is another lane's, and that was refused. */
static bool lane_by_name(struct ask *ask, struct lanes_lane *lane)
{
    const struct query *query = &ask->query;
    if (!query->source.at && !query->sink.at && !query->key.at)
        return true;
    struct bytes key = query->key.len ? order_key_stamp(query->key, ask->arena) : BYTES_NONE;
    struct lane_id id = lane_id_of(query->source, query->sink, key);
    if (memcmp(id.bytes, lane->lane, sizeof lane->lane) != 0) {
        ask_refuse_filter(ask, &(struct query_fault){"bad_filter", BYTES("source, sink, key"),
                                                     "those of the lane in the path, or none"});
        return false;
    }
    for (size_t i = 0; i < ask->rules->sink_count; i++) {
        const struct admin_sink *sink = &ask->rules->sinks[i];
        if (sink->ordered && bytes_eq(query->source, bytes_str(sink->source)) &&
            bytes_eq(query->sink, bytes_str(sink->name)))
            lane->sink = sink->id;
    }
    return true;
}

static void write_status(struct ask *ask, enum lanes_answer answer)
{
    jsonw_str(&ask->json, "status", answer == LANES_NOTHING ? "unchanged" : "done");
}

static void act_on_lane(struct ask *ask, enum lanes_lane_act act, const char *what)
{
    struct lanes *lanes = ask->admin->options.lanes;
    struct lanes_lane lane;
    uint64_t expect_head;
    if (!ask_lane(ask, &lane) || !lane_by_name(ask, &lane) || !expected_head(ask, &expect_head))
        return;
    struct lane_view before = {.head_seq = 0}, after = {.depth = 0};
    uint64_t head;
    size_t count;
    lanes_lane_look(lanes, &lane, &before, &head, 1, &count);
    enum lanes_answer answer = lanes_lane_act(lanes, &lane, act, expect_head);
    if (ask_act_failed(ask, answer, "lane"))
        return;
    if (answer == LANES_DONE)
        audit_lane(ask, what, &before, act == LANES_LANE_SKIP || act == LANES_LANE_RETRY);
    store_flush(ask->admin->options.store);
    bool rows = lanes_lane_look(lanes, &lane, &after, &head, 1, &count) == LANES_DONE;

    struct jsonw *w = &ask->json;
    jsonw_object(w, NULL);
    write_status(ask, answer);
    jsonw_bytes(w, "tenant", ask->parts[0]);
    ask_lane_id(ask, "lane", lane.lane);
    jsonw_str(w, "state",
              rows                      ? lane_state_name(after.state)
              : act == LANES_LANE_PAUSE ? lane_state_name(LANE_STATE_PAUSED)
                                        : NULL);
    jsonw_uint(w, "depth", after.depth);
    jsonw_end_object(w);
}

void post_lane_pause(struct ask *ask)
{
    act_on_lane(ask, LANES_LANE_PAUSE, "lane.pause");
}

void post_lane_resume(struct ask *ask)
{
    act_on_lane(ask, LANES_LANE_RESUME, "lane.resume");
}

void post_lane_retry(struct ask *ask)
{
    act_on_lane(ask, LANES_LANE_RETRY, "lane.retry");
}

void post_lane_skip(struct ask *ask)
{
    act_on_lane(ask, LANES_LANE_SKIP, "lane.skip");
}

/* ---- sinks ---- */

const struct admin_sink *ask_sink_named(struct ask *ask, struct bytes source, struct bytes name)
{
    for (size_t i = 0; i < ask->rules->sink_count; i++) {
        const struct admin_sink *sink = &ask->rules->sinks[i];
        if (bytes_eq(source, bytes_str(sink->source)) && bytes_eq(name, bytes_str(sink->name)))
            return sink;
    }
    ask_no_sink(ask);
    return NULL;
}

const struct admin_sink *ask_sink(struct ask *ask)
{
    return ask_sink_named(ask, ask->parts[0], ask->parts[1]);
}

void ask_audit_sink(struct ask *ask, const char *what, const struct admin_sink *sink, int64_t matched,
                    int64_t done)
{
    struct buf name = {0};
    buf_putf(&name, "%s/%s", sink->source, sink->name);
    if (ask->query.for_ms)
        buf_putf(&name, " for %lld s", (long long)((ask->query.for_ms + 999) / 1000));
    ask_audit(ask, what, buf_bytes(&name), matched, done);
    buf_free(&name);
}

static void act_on_sink(struct ask *ask, enum lanes_sink_act act, const char *what)
{
    const struct admin_sink *sink = ask_sink(ask);
    if (!sink)
        return;
    struct admin *admin = ask->admin;
    enum lanes_answer answer = LANES_DONE;
    pthread_mutex_lock(&admin->rekeyed_lock);
    bool rekeyed = admin->rekeyed == sink->id;
    if (!rekeyed)
        answer = lanes_sink_act(admin->options.lanes, sink->id, act, ask->query.for_ms);
    pthread_mutex_unlock(&admin->rekeyed_lock);
    if (rekeyed) {
        ask_refuse_with(ask, 409, "rekey_running", "expected",
                        "the sink's rekey to be over; it stands still until then");
        return;
    }
    if (ask_act_failed(ask, answer, "sink"))
        return;
    ask_audit_sink(ask, what, sink, -1, -1);
    store_flush(ask->admin->options.store);

    struct jsonw *w = &ask->json;
    jsonw_object(w, NULL);
    write_status(ask, answer);
    jsonw_str(w, "source", sink->source);
    jsonw_str(w, "sink", sink->name);
    jsonw_end_object(w);
}

void post_sink_pause(struct ask *ask)
{
    act_on_sink(ask, LANES_SINK_PAUSE, "sink.pause");
}

void post_sink_resume(struct ask *ask)
{
    act_on_sink(ask, LANES_SINK_RESUME, "sink.resume");
}

void post_sink_retry(struct ask *ask)
{
    act_on_sink(ask, LANES_SINK_RETRY, "sink.retry");
}
