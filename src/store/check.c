/* Is this a store of ours, whole and sound? SQLite's own look at every page and index, then our rules, then
 * every envelope is decoded. */
#include <stdlib.h>

#include "store/check_rules.h"
#include "store/tools_priv.h"
#include "util/check.h"

#define RESTORE_ACTION "restore a backup (lanegate store restore --replace keeps this one aside)"
/* What SQLite finds beyond it is more of the same. */
enum { PAGE_FAULTS_MAX = 20 };
_Static_assert(BLOCK_SEQS == 1024, "check_rules.c says so too");

struct check {
    struct still *still;
    const struct store_judge *judge;
    struct watching watching;
    struct store_verdict *verdict;
};

static void tell(struct check *check, const char *what, const char *expected, const char *action,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

static void tell(struct check *check, const char *what, const char *expected, const char *action,
                 const char *format, ...)
{
    struct buf found = {0};
    va_list args;
    va_start(args, format);
    buf_putv(&found, format, args);
    va_end(args);
    check->verdict->faults++;
    if (check->judge->fault)
        check->judge->fault(
            check->judge->ctx,
            &(struct store_fault){.what = what, .found = found.at, .expected = expected, .action = action});
    buf_free(&found);
}

static void unreadable(struct check *check, const char *what)
{
    if (!check->watching.stopped)
        tell(check, what, "all of it can be read", RESTORE_ACTION, "it can't be read: %s",
             db_problem(&check->still->db));
}

/* ---- pages ---- */

static void check_pages(struct check *check)
{
    sqlite3_stmt *stmt = NULL;
    char *sql = mem_format("PRAGMA integrity_check(%d)", PAGE_FAULTS_MAX);
    watching_phase(&check->watching, "checking pages", 0);
    int rc = sqlite3_prepare_v2(check->still->db.handle, sql, -1, &stmt, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(stmt);
        const char *line = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
        if (line && strcmp(line, "ok") != 0)
            tell(check, "pages", "every page and index is sound", RESTORE_ACTION, "%s", line);
    }
    if (rc != SQLITE_DONE)
        unreadable(check, "pages");
    sqlite3_finalize(stmt);
    free(sql);
}

/* ---- rules ---- */

static void check_rule(struct check *check, const struct check_rule *rule)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(check->still->db.handle, rule->sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW) {
        unreadable(check, rule->what);
    } else if (sqlite3_column_int64(stmt, 0) != 0) {
        long long count = sqlite3_column_int64(stmt, 0), first = sqlite3_column_int64(stmt, 1);
        if (rule->of)
            tell(check, rule->what, rule->expected, rule->action, "%lld %s, the first with %s %lld", count,
                 rule->of, rule->by, first);
        else
            tell(check, rule->what, rule->expected, rule->action, "it is missing or another thing");
    }
    sqlite3_finalize(stmt);
}

/* The judge's lane_of, as SQL. */
static void lane_in_sql(sqlite3_context *context, int count, sqlite3_value **values)
{
    const struct store_judge *judge = sqlite3_user_data(context);
    struct bytes parts[3];
    CHECK(count == 3);
    for (int i = 0; i < 3; i++) {
        const void *at = sqlite3_value_blob(values[i]);
        parts[i] = sqlite3_value_type(values[i]) == SQLITE_NULL
                       ? BYTES_NONE
                       : bytes_of(at ? at : "", (size_t)sqlite3_value_bytes(values[i]));
    }
    uint8_t lane[16];
    judge->lane_of(parts[0], parts[1], parts[2], lane);
    sqlite3_result_blob(context, lane, sizeof lane, SQLITE_TRANSIENT);
}

/* Rows that are over keep the lane of a name that their sink had then. */
static void check_lanes(struct check *check)
{
    static const struct check_rule rule = {
        1,
        "lanes",
        "SELECT count(*), min(seq) FROM rows r JOIN names s ON s.id = r.sink WHERE r.lane IS NOT NULL "
        "AND r.state IN " KEPT_STATES " AND r.lane <> lane_of(s.text, s.sink, r.key)",
        "rows",
        "seq",
        "the lane of its sink and key: in another one it would overtake, or be overtaken",
        RESTORE_ACTION};
    sqlite3 *handle = check->still->db.handle;
    if (!check->judge->lane_of)
        return;
    if (sqlite3_create_function_v2(handle, "lane_of", 3, SQLITE_UTF8 | SQLITE_DIRECTONLY,
                                   (void *)check->judge, lane_in_sql, NULL, NULL, NULL) == SQLITE_OK)
        check_rule(check, &rule);
    else
        unreadable(check, rule.what);
}

static void check_all_rules(struct check *check)
{
    watching_phase(&check->watching, "checking rules", (uint64_t)check_rule_count);
    for (int i = 0; i < check_rule_count && watching_tick(&check->watching); i++) {
        if (check_rules[i].since <= check->still->layout)
            check_rule(check, &check_rules[i]);
        check->watching.done++;
    }
    if (watching_tick(&check->watching))
        check_lanes(check);
}

/* ---- envelopes ---- */

static bool decodes(sqlite3_stmt *stmt)
{
    struct envelope_parts parts = {.seq = (uint64_t)sqlite3_column_int64(stmt, 0),
                                   .tenant = BYTES("tenant"),
                                   .source = BYTES("source"),
                                   .head = db_column(stmt, 1),
                                   .body = db_column(stmt, 2)};
    struct envelope *envelope;
    if (envelope_decode(&parts, &envelope) != STATUS_OK)
        return false;
    envelope_unref(envelope);
    return true;
}

/* `sql` gives a number, a head and a body. */
static void check_envelopes(struct check *check, const char *what, const char *sql, uint64_t total)
{
    sqlite3_stmt *stmt = NULL;
    long long bad = 0, first = 0;
    watching_phase(&check->watching, "decoding hooks", total);
    int rc = sqlite3_prepare_v2(check->still->db.handle, sql, -1, &stmt, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(stmt);
        if (rc != SQLITE_ROW || !watching_tick(&check->watching))
            break;
        check->watching.done++;
        if (decodes(stmt))
            continue;
        first = bad == 0 ? sqlite3_column_int64(stmt, 0) : first;
        bad++;
    }
    if (rc != SQLITE_DONE)
        unreadable(check, what);
    if (bad > 0)
        tell(check, what, "an envelope that decodes", RESTORE_ACTION,
             "%lld hooks, the first with number %lld", bad, first);
    sqlite3_finalize(stmt);
}

static void check_hooks(struct check *check)
{
    struct db *db = &check->still->db;
    int64_t hooks = 0, rows = 0, penned = 0;
    if (!db_int(db, "SELECT count(*) FROM hooks", 0, &hooks) ||
        !db_int(db, "SELECT count(*) FROM rows", 0, &rows))
        unreadable(check, "envelopes");
    check->verdict->hooks = (uint64_t)hooks;
    check->verdict->rows = (uint64_t)rows;
    check_envelopes(check, "envelopes", "SELECT seq, head, body FROM hooks ORDER BY seq", (uint64_t)hooks);
    if (check->still->layout < 6 || check->watching.stopped)
        return;
    if (!db_int(db, "SELECT count(*) FROM pen", 0, &penned))
        unreadable(check, "quarantined_envelopes");
    check_envelopes(check, "quarantined_envelopes", "SELECT id, head, body FROM pen ORDER BY id",
                    (uint64_t)penned);
}

/* ---- all ---- */

enum status check_all(struct still *still, const struct store_judge *judge, struct store_verdict *out,
                      struct error *err)
{
    struct check check = {.still = still, .judge = judge, .verdict = out};
    struct error why = {""};
    *out = (struct store_verdict){0};
    watching_begin(&check.watching, &judge->watch, &still->db);
    enum status status = schema_version(&still->db, &still->layout, &why);
    if (status == STATUS_OK && still->layout == 0)
        status = error_set(&why, STATUS_CORRUPT, "it is empty");
    if (status == STATUS_OK)
        status = seal_check(still, &check.watching, &why);
    if (status == STATUS_CORRUPT || status == STATUS_REFUSED) {
        tell(&check, status == STATUS_REFUSED ? "seal" : "database",
             "a store of this version of Lanegate or an older one",
             status == STATUS_REFUSED
                 ? "take another copy of this backup, or an older backup"
                 : "run the version of Lanegate that made it; if it is damaged, restore a backup",
             "%s", why.text);
    } else if (status != STATUS_OK) {
        watching_end(&still->db);
        return error_set(err, status, "%s", why.text);
    }
    if (status != STATUS_CORRUPT && !check.watching.stopped)
        check_pages(&check);
    if (status != STATUS_CORRUPT && !check.watching.stopped)
        check_all_rules(&check);
    if (status != STATUS_CORRUPT && !check.watching.stopped)
        check_hooks(&check);
    watching_end(&still->db);
    return check.watching.stopped ? error_set(err, STATUS_DRAINING, "interrupted") : STATUS_OK;
}

enum status store_check(const char *path, const struct store_judge *judge, struct store_verdict *out,
                        struct error *err)
{
    struct still still;
    enum status status = still_open(&still, path, false, err);
    if (status == STATUS_CORRUPT &&
        !still.db.handle) { /* cut off, or no database at all: that is a finding too */
        *out = (struct store_verdict){0};
        tell(&(struct check){.judge = judge, .verdict = out}, "database", "a store that Lanegate made, whole",
             RESTORE_ACTION, "%s", err->text);
        return STATUS_OK;
    }
    if (status != STATUS_OK && !still.db.handle)
        return status;
    status = check_all(&still, judge, out, err);
    out->lacks_log = still_lacks_log(&still);
    still_close(&still);
    return status;
}
