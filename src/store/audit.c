/* What people did: a line rides with the changes that it tells about, and the oldest lines go when there are
 * too many. */
#include "store/reader_priv.h"
#include "util/clock.h"
#include "util/mem.h"

/* Behind it: who, what (with their NULs), target, reason. */
struct line {
    struct list node;
    int kind;
    int64_t at_ms, matched, done;
    const char *who, *what;
    struct bytes target, reason;
    char texts[];
};

static struct bytes cut(struct bytes text)
{
    if (text.len > AUDIT_TEXT_MAX)
        text.len = AUDIT_TEXT_MAX;
    return text;
}

/* `from` and a NUL behind it to *at, which moves. */
static struct bytes keep(char **at, struct bytes from)
{
    if (!from.at)
        return BYTES_NONE;
    struct bytes kept = bytes_of(*at, from.len);
    if (from.len)
        memcpy(*at, from.at, from.len);
    (*at)[from.len] = 0;
    *at += from.len + 1;
    return kept;
}

void store_audit(struct store *store, const struct store_audit *audit)
{
    struct bytes who = bytes_str(audit->who), what = bytes_str(audit->what);
    struct bytes target = cut(audit->target), reason = cut(audit->reason);
    struct line *line = mem_alloc(sizeof *line + who.len + what.len + target.len + reason.len + 4);
    *line = (struct line){
        .kind = CHANGE_AUDIT, .at_ms = clock_unix_ms(), .matched = audit->matched, .done = audit->done};
    char *at = line->texts;
    line->who = keep(&at, who).at;
    line->what = keep(&at, what).at;
    line->target = keep(&at, target);
    line->reason = keep(&at, reason);
    struct list lines = LIST_INIT(lines);
    list_append(&lines, &line->node);
    changes_give(store, &lines);
}

static void bind_count(sqlite3_stmt *stmt, int at, int64_t count)
{
    if (count >= 0)
        sqlite3_bind_int64(stmt, at, count);
    else
        sqlite3_bind_null(stmt, at);
}

bool audit_write(sqlite3_stmt **sql, const struct list *node)
{
    const struct line *line = LIST_OWNER(node, struct line, node);
    sqlite3_stmt *insert = sql[WRITER_AUDIT], *trim = sql[WRITER_AUDIT_TRIM];
    sqlite3_bind_int64(insert, 1, line->at_ms);
    sqlite3_bind_text(insert, 2, line->who, -1, SQLITE_STATIC);
    sqlite3_bind_text(insert, 3, line->what, -1, SQLITE_STATIC);
    db_bind(insert, 4, line->target);
    db_bind(insert, 5, line->reason);
    bind_count(insert, 6, line->matched);
    bind_count(insert, 7, line->done);
    sqlite3_bind_int64(trim, 1, AUDIT_ROWS);
    return db_run(insert) && db_run(trim);
}

static int64_t count_of(sqlite3_stmt *stmt, int at)
{
    return sqlite3_column_type(stmt, at) == SQLITE_NULL ? -1 : sqlite3_column_int64(stmt, at);
}

static void bind_word(sqlite3_stmt *stmt, int at, struct bytes word)
{
    if (word.at)
        sqlite3_bind_text(stmt, at, word.at, (int)word.len, SQLITE_STATIC);
    else
        sqlite3_bind_null(stmt, at);
}

enum status store_list_audit(struct store_reader *reader, const struct store_audit_filter *filter,
                             bool (*each)(void *ctx, const struct store_audit_view *line), void *ctx)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_AUDIT);
    sqlite3_bind_int64(stmt, 1, filter->before_id > 0 ? (int64_t)filter->before_id : INT64_MAX);
    bind_word(stmt, 2, filter->who);
    bind_word(stmt, 3, filter->what);
    sqlite3_bind_int64(stmt, 4, filter->since_ms);
    sqlite3_bind_int64(stmt, 5, filter->until_ms > 0 ? filter->until_ms : INT64_MAX);
    sqlite3_bind_int64(stmt, 6, (int64_t)filter->limit);
    int rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct store_audit_view view = {
            .id = (uint64_t)sqlite3_column_int64(stmt, 0),
            .at_ms = sqlite3_column_int64(stmt, 1),
            .line = {.who = (const char *)sqlite3_column_text(stmt, 2),
                     .what = (const char *)sqlite3_column_text(stmt, 3),
                     .target = db_column(stmt, 4),
                     .reason = db_column(stmt, 5),
                     .matched = count_of(stmt, 6),
                     .done = count_of(stmt, 7)},
        };
        if (!each(ctx, &view))
            break;
    }
    sqlite3_reset(stmt);
    return reader_status(rc, true);
}
