/* What people did is found again, newest first, and after a restart; the oldest lines make room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store_rig.h"
#include "util/clock.h"
#include "util/mem.h"

static struct store_options options;
static struct store *store;
static struct store_reader *reader;
static char *dir;

static void start(void)
{
    struct error err;
    store = rig_start(&options);
    assert_int_equal(store_reader_open(store, &reader, &err), STATUS_OK);
}

static void stop(void)
{
    store_reader_close(reader);
    store_close(store);
}

static int setup(void **state)
{
    (void)state;
    dir = rig_make_dir();
    options = rig_options(dir);
    start();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    stop();
    rig_remove_dir(dir);
    return 0;
}

struct seen {
    size_t count;
    uint64_t last_id;
    char text[2048]; /* "who what target reason matched done;" of each */
};

static bool take(void *ctx, const struct store_audit_view *view)
{
    struct seen *seen = ctx;
    size_t used = strlen(seen->text);
    if (used < 1000)
        snprintf(seen->text + used, sizeof seen->text - used, "%s %s %.*s %.*s %lld %lld;", view->line.who,
                 view->line.what, BYTES_ARG(view->line.target),
                 view->line.reason.at ? (int)view->line.reason.len : 1,
                 view->line.reason.at ? view->line.reason.at : "-", (long long)view->line.matched,
                 (long long)view->line.done);
    assert_true(seen->count == 0 || view->id < seen->last_id);
    seen->last_id = view->id;
    seen->count++;
    return true;
}

static struct seen list(struct store_audit_filter filter)
{
    struct seen seen = {0};
    if (filter.limit == 0)
        filter.limit = 100;
    assert_int_equal(store_list_audit(reader, &filter, take, &seen), STATUS_OK);
    return seen;
}

static void audit(const char *who, const char *what, const char *target, const char *reason)
{
    store_audit(store, &(struct store_audit){.who = who,
                                             .what = what,
                                             .target = bytes_str(target),
                                             .reason = bytes_str(reason),
                                             .matched = -1,
                                             .done = -1});
}

static void lines_come_back_newest_first(void **state)
{
    (void)state;
    audit("ana", "lane.skip", "default/00ff", "broken customer");
    store_audit(store, &(struct store_audit){.who = "local",
                                             .what = "dlq.replay",
                                             .target = BYTES("sink=billing"),
                                             .matched = 12,
                                             .done = 11});
    assert_true(store_flush(store));
    static const char both[] = "local dlq.replay sink=billing - 12 11;"
                               "ana lane.skip default/00ff broken customer -1 -1;";
    assert_string_equal(list((struct store_audit_filter){0}).text, both);
    stop();
    start();
    assert_string_equal(list((struct store_audit_filter){0}).text, both);
}

static void a_list_goes_on_from_a_cursor_and_takes_filters(void **state)
{
    (void)state;
    audit("ana", "a", "1", NULL);
    audit("ben", "b", "2", NULL);
    audit("ana", "b", "3", NULL);
    assert_true(store_flush(store));
    struct seen first = list((struct store_audit_filter){.limit = 2});
    assert_string_equal(first.text, "ana b 3 - -1 -1;ben b 2 - -1 -1;");
    assert_string_equal(list((struct store_audit_filter){.before_id = first.last_id}).text,
                        "ana a 1 - -1 -1;");
    assert_string_equal(list((struct store_audit_filter){.who = BYTES("ben")}).text, "ben b 2 - -1 -1;");
    assert_string_equal(list((struct store_audit_filter){.what = BYTES("a")}).text, "ana a 1 - -1 -1;");
    int64_t now_ms = clock_unix_ms();
    assert_int_equal(list((struct store_audit_filter){.since_ms = now_ms - 60000}).count, 3);
    assert_int_equal(list((struct store_audit_filter){.since_ms = now_ms + 60000}).count, 0);
    assert_int_equal(list((struct store_audit_filter){.until_ms = now_ms - 60000}).count, 0);
}

static void long_texts_are_cut_and_any_bytes_are_kept(void **state)
{
    (void)state;
    char *text = mem_zalloc(5000);
    memset(text, 'x', 4999);
    audit("ana", "a", text, "");
    free(text);
    assert_true(store_flush(store));
    struct seen seen = list((struct store_audit_filter){0});
    assert_int_equal(strlen(seen.text), strlen("ana a ") + 1024 + strlen("  -1 -1;"));
}

/* A hundred thousand lines, put there by hand, are the bound: the next one takes the place of the oldest. */
static void the_oldest_make_room(void **state)
{
    (void)state;
    stop();
    char *path = mem_format("%s/store.db", dir);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
                                  "100000) INSERT INTO audit(at, who, what) SELECT i, 'old', 'x' FROM n",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    free(path);
    start();
    assert_int_equal(list((struct store_audit_filter){.until_ms = 2}).count, 1);
    audit("new", "y", "", NULL);
    audit("new", "y", "", NULL);
    assert_true(store_flush(store));
    assert_int_equal(list((struct store_audit_filter){.until_ms = 3}).count, 0);
    assert_int_equal(list((struct store_audit_filter){.until_ms = 4}).count, 1);
    assert_int_equal(list((struct store_audit_filter){.limit = 200000}).count, 100000);
}

/* The layout before the audit table: opened, it gets what it lacks, and keeps what it has. */
static void a_store_of_an_older_layout_grows(void **state)
{
    (void)state;
    uint32_t sink;
    struct error err;
    assert_int_equal(store_sink_id(store, "shop", "billing", &sink, &err), STATUS_OK);
    uint64_t seq = rig_put(store, sink, 10);
    rig_change(store, seq, sink, ROW_DEAD, "refused");
    struct uuid epoch = store_epoch(store);
    stop();
    char *path = mem_format("%s/store.db", dir);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    static const char back[] =
        "DROP TABLE audit; DROP TABLE attempts; DROP TABLE marks; DROP TABLE claims; DROP TABLE pen; DROP "
        "INDEX dead;"
        "DROP TABLE limits; DROP TABLE replays; ALTER TABLE rows DROP COLUMN replay; ALTER TABLE rows DROP "
        "COLUMN before; ALTER TABLE rows DROP COLUMN size;"
        "CREATE INDEX dead ON rows(seq, sink, tenant, cls, at, lane) WHERE state IN (2, 3);"
        "PRAGMA user_version = 1;";
    assert_int_equal(sqlite3_exec(db, back, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    free(path);
    start();
    audit("ana", "a", "", NULL);
    assert_true(store_flush(store));
    assert_int_equal(list((struct store_audit_filter){0}).count, 1);
    struct uuid again = store_epoch(store);
    assert_memory_equal(&epoch, &again, sizeof epoch);
    struct envelope *envelope;
    assert_int_equal(store_read_hook(reader, seq, &envelope), STATUS_OK);
    envelope_unref(envelope);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(lines_come_back_newest_first),
        TEST(a_list_goes_on_from_a_cursor_and_takes_filters),
        TEST(long_texts_are_cut_and_any_bytes_are_kept),
        TEST(the_oldest_make_room),
        TEST(a_store_of_an_older_layout_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
