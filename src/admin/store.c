/* GET /v1/store: how the store is. All of it is in memory but for its two ends, which take a look each. */
#include "admin/admin_priv.h"

static void write_id(struct jsonw *w, const char *name, const struct uuid *id)
{
    char text[UUID_TEXT];
    uuid_format(id, text);
    jsonw_str(w, name, text);
}

static void write_end(struct ask *ask, const char *name, const struct store_end *end)
{
    struct jsonw *w = &ask->json;
    jsonw_object(w, name);
    write_id(w, "id", &end->id);
    jsonw_uint(w, "seq", end->seq);
    jsonw_int(w, "received_at", end->received_at_ms);
    jsonw_end_object(w);
}

static void write_hooks(struct ask *ask, const struct store_stats *stats, enum status found,
                        const struct store_end *oldest, const struct store_end *newest)
{
    struct jsonw *w = &ask->json;
    jsonw_object(w, "hooks");
    jsonw_uint(w, "count", stats->hooks);
    jsonw_uint(w, "last_seq", stats->next_seq - 1);
    if (found == STATUS_OK) {
        write_end(ask, "oldest", oldest);
        write_end(ask, "newest", newest);
    } else {
        jsonw_null(w, "oldest");
        jsonw_null(w, "newest");
    }
    jsonw_end_object(w);
}

/* What is owed is the scheduler's to know. */
static void write_rows(struct ask *ask, const struct store_stats *stats)
{
    struct lanes *lanes = ask->admin->options.lanes;
    struct lanes_sink_view sum = {0};
    size_t count = lanes_sinks(lanes, NULL, 0);
    struct lanes_sink_view *views = arena_alloc(ask->arena, (count ? count : 1) * sizeof *views);
    size_t filled = lanes_sinks(lanes, views, count);
    for (size_t i = 0; i < count && i < filled; i++) {
        sum.pending += views[i].pending;
        sum.running += views[i].running;
        sum.retrying += views[i].retrying;
        sum.held += views[i].held;
    }
    struct jsonw *w = &ask->json;
    jsonw_object(w, "rows");
    jsonw_uint(w, "pending", sum.pending);
    jsonw_uint(w, "running", sum.running);
    jsonw_uint(w, "retrying", sum.retrying);
    jsonw_uint(w, "dead", stats->dead);
    jsonw_uint(w, "held_lanes", sum.held);
    jsonw_end_object(w);
}

static void write_disk(struct ask *ask, const struct store_stats *stats)
{
    struct jsonw *w = &ask->json;
    jsonw_object(w, "disk");
    jsonw_int(w, "bytes", stats->disk_bytes);
    jsonw_int(w, "log_bytes", stats->log_bytes);
    jsonw_int(w, "free_bytes", stats->free_bytes);
    jsonw_int(w, "min_free_bytes", stats->min_free_bytes);
    if (stats->max_bytes)
        jsonw_int(w, "max_bytes", stats->max_bytes);
    else
        jsonw_null(w, "max_bytes");
    jsonw_bool(w, "full", stats->disk_full);
    jsonw_end_object(w);
}

static void write_work(struct ask *ask, const struct store_stats *stats)
{
    struct jsonw *w = &ask->json;
    jsonw_object(w, "commit");
    ask_time(ask, "last_at", stats->committed_ms);
    if (stats->committed_ms)
        jsonw_int(w, "last_us", stats->commit_us);
    else
        jsonw_null(w, "last_us");
    ask_time(ask, "undecided_since", stats->undecided ? stats->undecided_since_ms : 0);
    jsonw_bool(w, "failing", stats->failing);
    jsonw_bool(w, "hung", stats->hung);
    jsonw_uint(w, "waiting_hooks", stats->queued);
    jsonw_uint(w, "waiting_bytes", stats->queued_bytes);
    jsonw_end_object(w);
    jsonw_object(w, "checkpoint");
    ask_time(ask, "last_at", stats->checkpoint_ms);
    jsonw_int(w, "left_bytes", stats->log_left_bytes);
    jsonw_end_object(w);
}

static void write_asides(struct ask *ask, const struct store_stats *stats)
{
    struct jsonw *w = &ask->json;
    jsonw_object(w, "dead_letters");
    jsonw_uint(w, "rows", stats->dead);
    jsonw_int(w, "bytes", stats->dead_bytes);
    jsonw_end_object(w);
    jsonw_object(w, "quarantine");
    jsonw_int(w, "hooks", stats->pen_hooks);
    jsonw_int(w, "bytes", stats->pen_bytes);
    jsonw_end_object(w);
    jsonw_uint(w, "dedupe_keys", stats->dedupe_keys);
    jsonw_int(w, "retention_ms", stats->retention_ms);
    if (!stats->restored_ms) {
        jsonw_null(w, "restored");
        return;
    }
    jsonw_object(w, "restored");
    jsonw_int(w, "at", stats->restored_ms);
    write_id(w, "from_epoch", &stats->restored_from);
    jsonw_end_object(w);
}

void get_store(struct ask *ask)
{
    struct store *store = ask->admin->options.store;
    struct store_stats stats;
    struct store_end oldest, newest;
    enum status found = store_ends(ask->reader, &oldest, &newest);
    if (found != STATUS_OK && found != STATUS_NOT_FOUND) {
        ask_store_failed(ask, found);
        return;
    }
    store_stats(store, &stats);
    struct uuid epoch = store_epoch(store);
    struct jsonw *w = &ask->json;
    jsonw_object(w, NULL);
    write_id(w, "epoch", &epoch);
    jsonw_int(w, "layout", stats.layout);
    jsonw_bool(w, "available", stats.available);
    write_hooks(ask, &stats, found, &oldest, &newest);
    write_rows(ask, &stats);
    write_disk(ask, &stats);
    write_work(ask, &stats);
    write_asides(ask, &stats);
    jsonw_end_object(w);
}
