/* DELETE /v1/hooks/{id}: one hook is gone for good, from lanes, from the store, from its files. */
#include "admin/admin_priv.h"
#include "util/vec.h"

enum { TRIES = 5 }; /* an outcome may come between the look and the act */

struct rows {
    VEC(struct lanes_row) all;
    uint64_t count;
};

struct lanes_row ask_lanes_row(const struct store_row_view *row)
{
    struct lanes_row out = {.seq = row->seq,
                            .sink = row->sink,
                            .tenant = row->tenant,
                            .state = row->state,
                            .ordered = row->ordered,
                            .late = row->late,
                            .received_ms = row->received_at_ms};
    memcpy(out.lane, row->lane, sizeof out.lane);
    return out;
}

static bool take_row(void *ctx, const struct store_row_view *row)
{
    struct rows *rows = ctx;
    rows->count++;
    if (row->state != ROW_DONE && row->state != ROW_DISCARDED)
        VEC_PUSH(&rows->all, ask_lanes_row(row));
    return true;
}

/* Nothing of it is in lanes any more. False when it was refused. */
static bool leave_lanes(struct ask *ask, uint64_t seq, uint64_t *count)
{
    struct admin *admin = ask->admin;
    enum lanes_answer answer = LANES_NOTHING;
    for (int i = 0; i < TRIES && answer == LANES_NOTHING; i++) {
        struct rows rows = {0};
        enum status status = store_flush(admin->options.store) ? STATUS_OK : STATUS_UNAVAILABLE;
        if (status == STATUS_OK)
            status = store_rows_of(ask->reader, seq, take_row, &rows);
        if (status == STATUS_OK)
            answer = lanes_erase(admin->options.lanes, rows.all.at, rows.all.len);
        *count = rows.count;
        VEC_FREE(&rows.all);
        if (status != STATUS_OK) {
            ask_store_failed(ask, status);
            return false;
        }
    }
    return !ask_act_failed(ask, answer == LANES_NOTHING ? LANES_IN_FLIGHT : answer, "hook");
}

/* One that never became a hook: gone from the quarantine in the same way. False when it is not there. */
static bool erase_penned(struct ask *ask)
{
    struct uuid hook;
    uint64_t id;
    if (!uuid_parse(ask->parts[0], &hook) || ask_pen_find(ask, &hook, &id) != STATUS_OK)
        return false;
    ask_audit(ask, "hook.erase", ask->parts[0], -1, -1);
    enum status status = store_pen_erase(ask->admin->options.store, id);
    if (status != STATUS_OK && status != STATUS_BUSY) {
        ask_store_failed(ask, status);
        return true;
    }
    struct jsonw *w = &ask->json;
    jsonw_object(w, NULL);
    jsonw_str(w, "status", "erased");
    jsonw_bytes(w, "id", ask->parts[0]);
    jsonw_bool(w, "quarantined", true);
    jsonw_bool(w, "log_emptied", status == STATUS_OK);
    jsonw_end_object(w);
    return true;
}

void delete_hook(struct ask *ask)
{
    uint64_t seq, rows = 0;
    if (erase_penned(ask))
        return;
    if (!ask_hook(ask, &seq) || !leave_lanes(ask, seq, &rows))
        return;
    ask_audit(ask, "hook.erase", ask->parts[0], -1, -1);
    enum status status = store_erase(ask->admin->options.store, seq);
    if (status != STATUS_OK && status != STATUS_BUSY) {
        ask_store_failed(ask, status);
        return;
    }
    struct jsonw *w = &ask->json;
    jsonw_object(w, NULL);
    jsonw_str(w, "status", "erased");
    jsonw_bytes(w, "id", ask->parts[0]);
    jsonw_uint(w, "seq", seq);
    jsonw_uint(w, "rows", rows);
    jsonw_bool(w, "log_emptied", status == STATUS_OK);
    jsonw_end_object(w);
}
