/* Dead letters: listed, walked, counted. All of it goes through their index, in order of seq, a bounded
 * number in one read transaction. */
#include "store/reader_priv.h"
#include "util/clock.h"

enum { DEAD_STEP = 20000 }; /* dead letters a read transaction: some ten milliseconds */

struct dead_key {
    uint64_t seq;
    uint32_t sink;
};

static bool after(struct dead_key key, uint64_t seq, uint32_t sink)
{
    return key.seq > seq || (key.seq == seq && key.sink > sink);
}

/* All of it is in the index. */
bool dead_matches(struct store *store, const struct store_dead_filter *filter, sqlite3_stmt *stmt)
{
    const char *cls = (const char *)sqlite3_column_text(stmt, 3);
    int64_t at_ms = sqlite3_column_int64(stmt, 4);
    struct bytes lane = db_column(stmt, 5);
    if ((filter->cls && (!cls || strcmp(filter->cls, cls) != 0)) ||
        (filter->since_ms > 0 && at_ms < filter->since_ms) ||
        (filter->until_ms > 0 && at_ms >= filter->until_ms) ||
        (filter->lane && !bytes_eq(lane, bytes_of(filter->lane, 16))))
        return false;
    const struct name *tenant = names_by_id(&store->names, (uint32_t)sqlite3_column_int64(stmt, 2));
    const struct name *sink = names_by_id(&store->names, (uint32_t)sqlite3_column_int64(stmt, 1));
    return tenant && sink && sink->kind == NAME_SINK &&
           (!filter->tenant || strcmp(filter->tenant, tenant->text) == 0) &&
           (!filter->source || strcmp(filter->source, sink->text) == 0) &&
           (!filter->sink || strcmp(filter->sink, sink->sink) == 0);
}

/* One read transaction: from behind `last`, which moves. DONE at the end, ROW when there is more. */
static int dead_step(struct store_reader *reader, const struct store_dead_filter *filter,
                     struct dead_key *last, struct dead_key *page, size_t *page_len, uint64_t *total)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_DEAD);
    sqlite3_bind_int64(stmt, 1, (int64_t)dead_first(filter, last->seq));
    int rc = SQLITE_ROW;
    for (size_t n = 0; n < DEAD_STEP && (rc = sqlite3_step(stmt)) == SQLITE_ROW; n++) {
        struct dead_key key = {(uint64_t)sqlite3_column_int64(stmt, 0),
                               (uint32_t)sqlite3_column_int64(stmt, 1)};
        if (!after(key, last->seq, last->sink))
            continue;
        if (dead_over(filter, key.seq)) {
            rc = SQLITE_DONE;
            break;
        }
        *last = key;
        if (!dead_matches(reader->store, filter, stmt))
            continue;
        ++*total;
        if (*page_len < filter->limit && after(key, filter->after_seq, filter->after_sink))
            page[(*page_len)++] = key;
    }
    sqlite3_reset(stmt);
    return rc;
}

struct dead_each {
    store_each_row each;
    void *ctx;
    bool stopped;
};

static bool each_dead(void *ctx, const struct store_row_view *row)
{
    struct dead_each *out = ctx;
    out->stopped = !out->each(out->ctx, row);
    return !out->stopped;
}

static enum status each_of_page(struct store_reader *reader, const struct dead_key *page, size_t len,
                                store_each_row each, void *ctx, enum status status)
{
    struct dead_each out = {each, ctx, false};
    for (size_t i = 0; i < len && status == STATUS_OK && !out.stopped; i++) {
        status = store_row_of(reader, page[i].seq, page[i].sink, each_dead, &out);
        if (status == STATUS_NOT_FOUND)
            status = STATUS_OK; /* gone since */
    }
    return status;
}

enum status store_list_dead(struct store_reader *reader, const struct store_dead_filter *filter,
                            store_each_row each, void *ctx, uint64_t *total)
{
    struct dead_key last = {0, 0};
    struct dead_key *page = mem_alloc((filter->limit + 1) * sizeof *page);
    size_t page_len = 0;
    int rc;
    *total = 0;
    do
        rc = dead_step(reader, filter, &last, page, &page_len, total);
    while (rc == SQLITE_ROW);

    enum status status = each_of_page(reader, page, page_len, each, ctx, reader_status(rc, true));
    free(page);
    return status;
}

enum status store_walk_dead(struct store_reader *reader, struct store_dead_filter *filter, size_t most,
                            store_each_row each, void *ctx, bool *end)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_DEAD);
    struct dead_key *page = mem_alloc((filter->limit + 1) * sizeof *page);
    size_t page_len = 0, looked = 0;
    int rc = SQLITE_ROW;
    sqlite3_bind_int64(stmt, 1, (int64_t)dead_first(filter, filter->after_seq));
    while (page_len < filter->limit && looked < most && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct dead_key key = {(uint64_t)sqlite3_column_int64(stmt, 0),
                               (uint32_t)sqlite3_column_int64(stmt, 1)};
        if (!after(key, filter->after_seq, filter->after_sink))
            continue;
        if (dead_over(filter, key.seq)) {
            rc = SQLITE_DONE;
            break;
        }
        looked++;
        filter->after_seq = key.seq;
        filter->after_sink = key.sink;
        if (dead_matches(reader->store, filter, stmt))
            page[page_len++] = key;
    }
    sqlite3_reset(stmt);
    *end = rc == SQLITE_DONE;
    enum status status = each_of_page(reader, page, page_len, each, ctx, reader_status(rc, true));
    free(page);
    return status;
}
