/* The list of hooks: walks in order from a cursor, judges in C, and looks at a bounded number a call. */
#include "store/reader_priv.h"

enum { HOOKS_LOOK_MAX = 4096 }; /* hooks a call looks at */

static bool in_time(const struct store_hook_filter *filter, int64_t oldest_ms, int64_t newest_ms)
{
    return (filter->since_ms == 0 || newest_ms >= filter->since_ms) &&
           (filter->until_ms == 0 || oldest_ms < filter->until_ms);
}

/* A block that has no hook of that time is stepped over whole. */
static bool block_in_time(struct store_reader *reader, const struct store_hook_filter *filter,
                          uint64_t number)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_BLOCK);
    sqlite3_bind_int64(stmt, 1, (int64_t)number);
    bool may = sqlite3_step(stmt) != SQLITE_ROW ||
               in_time(filter, sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1));
    sqlite3_reset(stmt);
    return may;
}

static int count_rows(struct store_reader *reader, const struct store_hook_filter *filter,
                      struct store_hook_view *view, bool *matches)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_STATES);
    int rc;
    *matches = filter->state < 0;
    sqlite3_bind_int64(stmt, 1, (int64_t)view->seq);
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        int state = sqlite3_column_int(stmt, 0);
        *matches |= state == filter->state;
        view->rows++;
        view->rows_done += state == ROW_DONE;
        view->rows_dead += row_state_dead((enum row_state)state);
    }
    sqlite3_reset(stmt);
    return rc;
}

static bool has_dedupe_key(struct bytes head, struct bytes key)
{
    struct envelope_parts parts = {.head = head, .tenant = BYTES(""), .source = BYTES(""), .body = BYTES("")};
    struct envelope *envelope;
    if (envelope_decode(&parts, &envelope) != STATUS_OK)
        return false;
    bool same = envelope->dedupe_key.at && bytes_eq(envelope->dedupe_key, key);
    envelope_unref(envelope);
    return same;
}

/* The newest hook below `before`, as far as its own row tells. DONE when there is none. */
static int next_hook(struct store_reader *reader, const struct store_hook_filter *filter, uint64_t before,
                     struct store_hook_view *view, bool *matches)
{
    struct names *names = &reader->store->names;
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_NEWEST);
    sqlite3_bind_int64(stmt, 1, before > INT64_MAX ? INT64_MAX : (int64_t)before);
    int rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW)
        goto out;
    struct bytes id = db_column(stmt, 1);
    const struct name *tenant = names_by_id(names, (uint32_t)sqlite3_column_int64(stmt, 3));
    const struct name *source = names_by_id(names, (uint32_t)sqlite3_column_int64(stmt, 4));
    if (id.len != sizeof view->id || !tenant || !source) {
        rc = SQLITE_CORRUPT;
        goto out;
    }
    *view = (struct store_hook_view){
        .seq = (uint64_t)sqlite3_column_int64(stmt, 0),
        .tenant = tenant->text,
        .source = source->text,
        .received_at_ms = sqlite3_column_int64(stmt, 2),
        .body_size = (size_t)sqlite3_column_int64(stmt, 5),
    };
    memcpy(view->id.bytes, id.at, id.len);
    *matches = in_time(filter, view->received_at_ms, view->received_at_ms) &&
               (!filter->tenant || strcmp(filter->tenant, view->tenant) == 0) &&
               (!filter->source || strcmp(filter->source, view->source) == 0) &&
               (!filter->dedupe_key.at || has_dedupe_key(db_column(stmt, 6), filter->dedupe_key));

out:
    sqlite3_reset(stmt);
    return rc;
}

enum status store_list_hooks(struct store_reader *reader, const struct store_hook_filter *filter,
                             bool (*each)(void *ctx, const struct store_hook_view *hook), void *ctx,
                             uint64_t *next)
{
    bool timed = filter->since_ms > 0 || filter->until_ms > 0;
    uint64_t before = filter->before_seq > 0 ? filter->before_seq : INT64_MAX;
    uint64_t judged_block = UINT64_MAX;
    size_t listed = 0;
    for (size_t looked = 0; listed < filter->limit && looked < HOOKS_LOOK_MAX; looked++) {
        struct store_hook_view view;
        bool matches, row_matches;
        int rc = next_hook(reader, filter, before, &view, &matches);
        if (rc == SQLITE_DONE) {
            *next = 0;
            return STATUS_OK;
        }
        if (rc != SQLITE_ROW)
            return db_status(rc);
        before = view.seq;
        uint64_t number = view.seq / BLOCK_SEQS;
        if (timed && !matches && number != judged_block) {
            judged_block = number;
            if (!block_in_time(reader, filter, number))
                before = number * BLOCK_SEQS;
        }
        if (!matches)
            continue;
        rc = count_rows(reader, filter, &view, &row_matches);
        if (rc != SQLITE_DONE)
            return db_status(rc);
        if (!row_matches)
            continue;
        listed++;
        if (!each(ctx, &view))
            break;
    }
    *next = before;
    return STATUS_OK;
}
