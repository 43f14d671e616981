/* Sinks that configuration names no longer, or by another name: what is owed to them is counted, moves with
 * the name, or becomes dead letters. */
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

#include "fault_vfs.h"
#include "store_rig.h"
#include "util/clock.h"
#include "util/mem.h"

static struct store_options options;
static struct store *store;
static uint32_t billing;
static char *dir;

static uint32_t id_of(const char *sink)
{
    uint32_t id;
    struct error err;
    assert_int_equal(store_sink_id(store, "shop", sink, &id, &err), STATUS_OK);
    return id;
}

static int setup(void **state)
{
    (void)state;
    dir = rig_make_dir();
    options = rig_options(dir);
    store = rig_start(&options);
    billing = id_of("billing");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fault_vfs_set(FAULT_NONE);
    store_close(store);
    rig_remove_dir(dir);
    return 0;
}

/* Open, but not started: where the guard works. */
static void reopen(void)
{
    store_close(store);
    store = rig_open(&options);
}

static void start(void)
{
    struct error err;
    assert_int_equal(store_start(store, &err), STATUS_OK);
}

static uint64_t put_in_lane(uint32_t sink, const char *key)
{
    struct rig_hook *rig = rig_hook_new(10);
    rig_hook_row(rig, sink, key);
    assert_int_equal(rig_commit(store, rig), STATUS_OK);
    uint64_t seq = rig->seq;
    rig_hook_free(rig);
    return seq;
}

static void change(uint64_t seq, enum row_state state, const char *cls)
{
    rig_change(store, seq, billing, state, cls);
    assert_true(store_flush(store));
}

/* ---- looking ---- */

static bool any(void *ctx, const char *source, const char *sink)
{
    (void)ctx;
    (void)source;
    (void)sink;
    return true;
}

static bool all_but_billing(void *ctx, const char *source, const char *sink)
{
    (void)ctx;
    return strcmp(source, "shop") != 0 || strcmp(sink, "billing") != 0;
}

static void write_count(void *ctx, const struct store_sink_rows *rows)
{
    char *text = ctx;
    sprintf(text + strlen(text), "%s/%s %llu %llu %llu;", rows->source, rows->name,
            (unsigned long long)rows->pending, (unsigned long long)rows->held,
            (unsigned long long)rows->dead);
}

/* "source/sink pending held dead;..." */
static void assert_rows(const char *expected)
{
    char text[512] = "";
    struct error err;
    assert_int_equal(store_count_rows(store, any, text, write_count, &err), STATUS_OK);
    assert_string_equal(text, expected);
}

struct row {
    uint64_t seq;
    uint32_t sink;
    char lane[17], cls[32], reason[128];
    enum row_state state;
    unsigned attempts;
};

struct rows {
    struct row at[64];
    size_t len;
};

static bool note(void *ctx, const struct store_owed *row)
{
    struct rows *rows = ctx;
    struct row *out = &rows->at[rows->len++];
    *out = (struct row){.seq = row->seq, .sink = row->sink, .state = row->state, .attempts = row->attempts};
    memcpy(out->lane, row->lane, 16);
    return true;
}

static bool note_outcome(void *ctx, const struct store_row_view *row)
{
    struct row *out = ctx;
    snprintf(out->cls, sizeof out->cls, "%s", row->cls ? row->cls : "");
    snprintf(out->reason, sizeof out->reason, "%.*s", (int)row->reason.len, row->reason.at);
    return true;
}

static struct rows scan(void)
{
    struct rows rows = {.len = 0};
    struct error err;
    assert_int_equal(store_scan(store, note, &rows, &err), STATUS_OK);
    struct store_reader *reader;
    assert_int_equal(store_reader_open(store, &reader, &err), STATUS_OK);
    for (size_t i = 0; i < rows.len; i++)
        assert_int_equal(store_row_of(reader, rows.at[i].seq, rows.at[i].sink, note_outcome, &rows.at[i]),
                         STATUS_OK);
    store_reader_close(reader);
    return rows;
}

static uint64_t dead(void)
{
    struct store_stats stats;
    store_stats(store, &stats);
    return stats.dead;
}

/* A lane that can be read: "sink:key". */
static void readable_lane(struct bytes source, struct bytes sink, struct bytes key, uint8_t lane[16])
{
    char text[64];
    assert_true(bytes_eq(source, BYTES("shop")));
    snprintf(text, sizeof text, "%.*s:%.*s", (int)sink.len, sink.at, key.at ? (int)key.len : 4,
             key.at ? key.at : "none");
    memset(lane, 0, 16);
    memcpy(lane, text, strnlen(text, 16));
}

static enum status rename_to(const char *from, const char *to, bool *renamed, struct error *err)
{
    return store_sink_rename(store, "shop", from, to, readable_lane, renamed, err);
}

static bool renames(const char *from, const char *to)
{
    bool renamed;
    struct error err = {""};
    if (rename_to(from, to, &renamed, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return renamed;
}

/* ---- counting ---- */

static void rows_are_counted_by_sink(void **state)
{
    (void)state;
    uint32_t mail = id_of("mail");
    id_of("idle");
    rig_put_many(store, mail, 10, 1500);
    for (int i = 0; i < 4; i++)
        put_in_lane(billing, "a");
    change(1501, ROW_HELD, "exhausted");
    change(1502, ROW_DEAD, "refused");
    change(1503, ROW_DONE, "ok");
    rig_change(store, 7, mail, ROW_DISCARDED, NULL);
    assert_true(store_flush(store));
    reopen();
    assert_rows("shop/billing 1 1 1;shop/mail 1499 0 0;");

    char text[64] = "";
    struct error err;
    assert_int_equal(store_count_rows(store, all_but_billing, text, write_count, &err), STATUS_OK);
    assert_string_equal(text, "shop/mail 1499 0 0;");
}

/* ---- a new name ---- */

static void a_renamed_sink_keeps_its_id_and_gets_new_lanes(void **state)
{
    (void)state;
    uint32_t mail = id_of("mail");
    put_in_lane(billing, "a");
    put_in_lane(billing, "b");
    put_in_lane(billing, "");
    put_in_lane(mail, "a");
    rig_put(store, billing, 10); /* unordered: no lane before, none after */
    change(2, ROW_DEAD, "refused");
    reopen();
    assert_true(renames("billing", "invoices"));
    struct rows rows = scan();
    assert_int_equal(rows.len, 5);
    assert_string_equal(rows.at[0].lane, "invoices:a");
    assert_string_equal(rows.at[1].lane, "invoices:b");
    assert_string_equal(rows.at[1].cls, "refused");
    assert_string_equal(rows.at[2].lane, "invoices:");
    assert_string_equal(rows.at[3].lane, "a"); /* another sink's */
    assert_string_equal(rows.at[4].lane, "");
    assert_int_equal(id_of("invoices"), billing);
    assert_rows("shop/invoices 3 0 1;shop/mail 1 0 0;");

    /* It lasts, and the old name is a new sink's if somebody wants it. */
    reopen();
    assert_rows("shop/invoices 3 0 1;shop/mail 1 0 0;");
    assert_int_equal(id_of("invoices"), billing);
    assert_true(id_of("billing") > mail);
}

static void keyless_rows_get_the_lane_of_no_key(void **state)
{
    (void)state;
    struct rig_hook *rig = rig_hook_new(10);
    rig_hook_row(rig, billing, "old lane");
    rig->rows[0].key = BYTES_NONE;
    assert_int_equal(rig_commit(store, rig), STATUS_OK);
    rig_hook_free(rig);
    reopen();
    assert_true(renames("billing", "invoices"));
    assert_string_equal(scan().at[0].lane, "invoices:none");
}

static void dead_letters_far_behind_move_too(void **state)
{
    (void)state;
    put_in_lane(billing, "old");
    change(1, ROW_HELD, "exhausted");
    uint32_t mail = id_of("mail");
    rig_put_many(store, mail, 10, 3000);
    for (uint64_t seq = 2; seq <= 3001; seq++)
        rig_change(store, seq, mail, ROW_DONE, "ok");
    assert_true(store_flush(store));
    put_in_lane(billing, "new");
    reopen();
    start(); /* the blocks between become settled ones */
    reopen();
    assert_true(renames("billing", "invoices"));
    struct rows rows = scan();
    assert_int_equal(rows.len, 2);
    assert_string_equal(rows.at[0].lane, "invoices:old");
    assert_string_equal(rows.at[1].lane, "invoices:new");
}

static void a_rename_may_be_said_at_every_start(void **state)
{
    (void)state;
    put_in_lane(billing, "a");
    reopen();
    assert_false(renames("nobody", "invoices"));
    assert_false(renames("billing", "billing"));
    assert_true(renames("billing", "invoices"));
    assert_false(renames("billing", "invoices"));
    reopen();
    assert_false(renames("billing", "invoices"));
    start();
    put_in_lane(id_of("invoices"), "a");
    reopen();
    assert_false(renames("billing", "invoices"));
    assert_rows("shop/invoices 2 0 0;");
}

static void a_name_that_was_used_before_takes_the_rows_over(void **state)
{
    (void)state;
    uint32_t invoices = id_of("invoices");
    put_in_lane(billing, "a");
    put_in_lane(invoices, "a");
    rig_change(store, 2, invoices, ROW_DONE, "ok");
    assert_true(store_flush(store));
    reopen();
    assert_true(renames("billing", "invoices"));
    assert_int_equal(id_of("invoices"), billing);
    assert_int_equal(id_of("billing"), invoices); /* no number is given back */
    reopen();
    assert_false(renames("billing", "invoices"));
    assert_rows("shop/invoices 1 0 0;");
}

static void an_unused_name_does_nothing(void **state)
{
    (void)state;
    put_in_lane(billing, "a");
    change(1, ROW_DONE, "ok");
    reopen();
    assert_false(renames("billing", "invoices"));
    assert_int_equal(id_of("billing"), billing);
}

static void two_backlogs_are_not_mixed(void **state)
{
    (void)state;
    uint32_t invoices = id_of("invoices");
    put_in_lane(billing, "a");
    put_in_lane(invoices, "a");
    reopen();
    bool renamed = true;
    struct error err;
    assert_int_equal(rename_to("billing", "invoices", &renamed, &err), STATUS_REFUSED);
    assert_string_equal(err.text, "is owed hooks of its own (1, and 0 dead letters), so that the 1 owed to "
                                  "\"billing\" can't be put among them");
    assert_false(renamed);
    assert_rows("shop/billing 1 0 0;shop/invoices 1 0 0;");

    /* Dead letters alone are owed to nobody: they stay where they are. */
    start();
    change(1, ROW_DEAD, "refused");
    reopen();
    assert_false(renames("billing", "invoices"));
    assert_rows("shop/billing 0 0 1;shop/invoices 1 0 0;");
}

/* More pages than the cache holds, so that they are written before the commit. */
static void a_backlog_larger_than_the_cache_moves_whole(void **state)
{
    (void)state;
    enum { COUNT = 1500, KEY = 20000 };
    char *key = mem_alloc(KEY + 1);
    memset(key, 'k', KEY);
    key[KEY] = 0;
    struct rig_hook *hooks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        hooks[i] = rig_hook_new(10);
        rig_hook_row(hooks[i], billing, key);
        assert_int_equal(store_commit(store, &hooks[i]->hook), STATUS_OK);
    }
    for (int i = 0; i < COUNT; i++) {
        assert_true(rig_wait_done(hooks[i]));
        rig_hook_free(hooks[i]);
    }
    free(key);
    reopen();
    assert_true(renames("billing", "invoices"));
    assert_rows("shop/invoices 1500 0 0;");
    reopen();
    assert_rows("shop/invoices 1500 0 0;");
}

/* ---- giving up ---- */

static uint64_t retires(const char *sink, const char *cls)
{
    uint64_t retired;
    struct error err = {""};
    if (store_sink_retire(store, "shop", sink, cls, &retired, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return retired;
}

static void what_is_owed_becomes_dead_letters(void **state)
{
    (void)state;
    uint32_t mail = id_of("mail");
    put_in_lane(billing, "a");
    put_in_lane(billing, "b");
    rig_put(store, billing, 10);
    rig_put(store, billing, 10);
    rig_put(store, mail, 10);
    change(1, ROW_HELD, "exhausted");
    change(2, ROW_DONE, "ok");
    change(3, ROW_DEAD, "refused");
    reopen();
    assert_int_equal(dead(), 2);
    assert_int_equal(retires("billing", "sink_gone"), 2);
    assert_int_equal(dead(), 3);
    assert_rows("shop/billing 0 0 3;shop/mail 1 0 0;");
    struct rows rows = scan();
    assert_int_equal(rows.at[0].state, ROW_DEAD);
    assert_string_equal(rows.at[0].cls, "sink_gone");
    assert_int_equal(rows.at[0].attempts, 1);
    assert_string_equal(rows.at[1].cls, "refused"); /* dead already */
    assert_string_equal(rows.at[2].cls, "sink_gone");
    assert_string_equal(rows.at[2].reason, "retired by the configuration");
    assert_int_equal(rows.at[2].attempts, 0);

    assert_int_equal(retires("billing", "sink_gone"), 0);
    assert_int_equal(retires("nobody", "sink_gone"), 0);
    start();
    assert_int_equal(dead(), 3);
    reopen();
    assert_int_equal(retires("billing", "sink_gone"), 0);
    assert_rows("shop/billing 0 0 3;shop/mail 1 0 0;");
}

static void the_last_error_stays_readable(void **state)
{
    (void)state;
    put_in_lane(billing, "a");
    struct store_change *failed = store_change_new();
    failed->seq = 1;
    failed->sink = billing;
    failed->cls = "transient";
    failed->attempts = 3;
    memset(failed->reason, 'x', sizeof failed->reason - 1);
    memcpy(failed->reason, "HTTP 503 ", 9);
    struct list changes = LIST_INIT(changes);
    list_append(&changes, &failed->node);
    store_changes(store, &changes);
    assert_true(store_flush(store));
    reopen();
    assert_int_equal(retires("billing", "source_gone"), 1);
    struct row row = scan().at[0];
    assert_string_equal(row.cls, "source_gone");
    assert_int_equal(row.attempts, 3);
    assert_memory_equal(row.reason, "retired by the configuration; before: HTTP 503 xxx", 49);
    assert_int_equal(strlen(row.reason), 127);
}

static void a_retirement_goes_step_by_step(void **state)
{
    (void)state;
    rig_put_many(store, billing, 10, 9000);
    rig_put_many(store, billing, 10, 9000);
    for (uint64_t seq = 5000; seq < 7000; seq++)
        rig_change(store, seq, billing, seq == 6000 ? ROW_HELD : ROW_DONE, "ok");
    assert_true(store_flush(store));
    reopen();
    start(); /* the block around seq 6000 becomes settled, but for one that holds its lane */
    reopen();
    assert_rows("shop/billing 16000 1 0;");
    assert_int_equal(retires("billing", "sink_gone"), 16001);
    assert_rows("shop/billing 0 0 16001;");
    assert_int_equal(dead(), 16001);
    start();
    assert_int_equal(dead(), 16001);
}

/* ---- a disk that fails ---- */

static void what_could_not_be_written_is_as_it_was(void **state)
{
    (void)state;
    static const enum fault faults[] = {FAULT_LOG_WRITE, FAULT_LOG_FULL};
    put_in_lane(billing, "a");
    for (size_t i = 0; i < 2; i++) {
        reopen();
        bool renamed;
        uint64_t retired;
        struct error err = {""};
        fault_vfs_set(faults[i]);
        assert_int_equal(rename_to("billing", "invoices", &renamed, &err), STATUS_IO);
        assert_string_not_equal(err.text, "");
        assert_false(renamed);
        assert_int_equal(store_sink_retire(store, "shop", "billing", "sink_gone", &retired, &err), STATUS_IO);
        fault_vfs_set(FAULT_NONE);
        reopen();
        assert_rows("shop/billing 1 0 0;");
        assert_string_equal(scan().at[0].lane, "a");
    }
    assert_int_equal(retires("billing", "sink_gone"), 1);
}

/* Stops every change of rows from there on, as a crash would; 0 lets all of them through again. */
static void stop_at(uint64_t seq)
{
    sqlite3 *handle;
    char *path = mem_format("%s/store.db", dir);
    char *sql = seq == 0 ? mem_strdup("DROP TRIGGER stop")
                         : mem_format("CREATE TRIGGER stop BEFORE UPDATE ON rows WHEN new.seq >= %llu "
                                      "BEGIN SELECT raise(ABORT, 'stopped'); END",
                                      (unsigned long long)seq);
    store_close(store);
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    free(sql);
    free(path);
    store = rig_open(&options);
}

static void what_stopped_in_the_middle_is_finished_later(void **state)
{
    (void)state;
    bool renamed;
    uint64_t retired;
    struct error err = {""};
    rig_put_many(store, billing, 10, 9000);
    rig_put_many(store, billing, 10, 9000);
    put_in_lane(billing, "a");
    stop_at(18000);
    assert_int_equal(rename_to("billing", "invoices", &renamed, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "stopped"));
    assert_rows("shop/billing 18001 0 0;"); /* a name is all or nothing */
    assert_int_equal(store_sink_retire(store, "shop", "billing", "sink_gone", &retired, &err), STATUS_IO);
    stop_at(0);
    assert_rows("shop/billing 1618 0 16383;"); /* a step is sixteen blocks */
    assert_int_equal(retires("billing", "sink_gone"), 1618);
    assert_rows("shop/billing 0 0 18001;");
}

int main(void)
{
    fault_vfs_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_are_counted_by_sink, setup, teardown),
        cmocka_unit_test_setup_teardown(a_renamed_sink_keeps_its_id_and_gets_new_lanes, setup, teardown),
        cmocka_unit_test_setup_teardown(keyless_rows_get_the_lane_of_no_key, setup, teardown),
        cmocka_unit_test_setup_teardown(dead_letters_far_behind_move_too, setup, teardown),
        cmocka_unit_test_setup_teardown(a_rename_may_be_said_at_every_start, setup, teardown),
        cmocka_unit_test_setup_teardown(a_name_that_was_used_before_takes_the_rows_over, setup, teardown),
        cmocka_unit_test_setup_teardown(an_unused_name_does_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(two_backlogs_are_not_mixed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_backlog_larger_than_the_cache_moves_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_owed_becomes_dead_letters, setup, teardown),
        cmocka_unit_test_setup_teardown(the_last_error_stays_readable, setup, teardown),
        cmocka_unit_test_setup_teardown(what_could_not_be_written_is_as_it_was, setup, teardown),
        cmocka_unit_test_setup_teardown(what_stopped_in_the_middle_is_finished_later, setup, teardown),
        cmocka_unit_test_setup_teardown(a_retirement_goes_step_by_step, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
