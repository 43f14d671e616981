/* A hook that was erased is nowhere: not in answers, not in sums, and its bytes not in any file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stage.h"
#include "util/clock.h"
#include "util/mem.h"

static uint32_t sink;

static int setup(void **state)
{
    (void)state;
    struct error err;
    stage_open();
    return store_sink_id(store, "shop", "billing", &sink, &err) == STATUS_OK ? 0 : -1;
}

static bool file_has(const char *name, const char *text)
{
    char *path = mem_format("%s/%s", dir, name);
    FILE *file = fopen(path, "rb");
    free(path);
    if (!file)
        return false;
    fseek(file, 0, SEEK_END);
    size_t len = (size_t)ftell(file);
    rewind(file);
    char *bytes = mem_alloc(len + 1);
    assert_int_equal(fread(bytes, 1, len, file), len);
    fclose(file);
    bool found = memmem(bytes, len, text, strlen(text)) != NULL;
    free(bytes);
    return found;
}

static bool anywhere(const char *text)
{
    return file_has("store.db", text) || file_has("store.db-wal", text);
}

/* A hook whose body, key, header and failure each hold a text to look for. */
static uint64_t put_marked(const char *mark, size_t body_len)
{
    struct rig_hook *rig = rig_hook_new(body_len);
    char *key = mem_format("key-%s", mark), *body = mem_format("body-%s", mark),
         *path = mem_format("/head-%s", mark);
    for (size_t at = 0; at + strlen(body) < body_len; at += 1000)
        memcpy((char *)rig->hook.envelope->body.at + at, body, strlen(body));
    rig->hook.envelope->path = arena_copy(rig->hook.envelope->arena, bytes_str(path));
    rig_hook_row(rig, sink, key);
    assert_int_equal(rig_commit(store, rig), STATUS_OK);
    uint64_t seq = rig->seq;
    rig_hook_free(rig);

    struct store_change *change = store_change_new();
    *change = (struct store_change){.seq = seq,
                                    .sink = sink,
                                    .state = ROW_HELD,
                                    .attempts = 1,
                                    .at_ms = 5,
                                    .cls = "exhausted",
                                    .failed = true};
    snprintf(change->reason, sizeof change->reason, "why-%s", mark);
    char *said = mem_format("said-%s", mark);
    change->response = bytes_str(said);
    struct list changes = LIST_INIT(changes);
    list_append(&changes, &change->node);
    store_changes(store, &changes);
    assert_true(store_flush(store));
    free(key);
    free(body);
    free(path);
    return seq;
}

static const char *const kinds[] = {"key", "body", "head", "why", "said"};

static void expect_marks(const char *mark, bool there)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char *text = mem_format("%s-%s", kinds[i], mark);
        if (anywhere(text) != there)
            fail_msg("%s is %s", text, there ? "missing" : "still there");
        free(text);
    }
}

static struct store_stats stats(void)
{
    struct store_stats stats;
    store_stats(store, &stats);
    return stats;
}

static bool no_row(void *ctx, const struct store_row_view *row)
{
    (void)ctx;
    (void)row;
    fail_msg("a row is left");
    return false;
}

static bool no_attempt(void *ctx, const struct store_attempt_view *attempt)
{
    (void)ctx;
    (void)attempt;
    fail_msg("an attempt is left");
    return false;
}

static void its_bytes_are_in_no_file(void **state)
{
    (void)state;
    static const size_t sizes[] = {100, 5000, 300000};
    for (size_t i = 0; i < 3; i++) {
        uint64_t before = put_marked("neighbour", 2000), seq = put_marked("Zm5xQ9", sizes[i]),
                 after = put_marked("neighbour", 2000);
        expect_marks("Zm5xQ9", true); /* the search finds what is there */
        assert_int_equal(store_erase(store, seq), STATUS_OK);
        expect_marks("Zm5xQ9", false);
        expect_marks("neighbour", true);

        struct envelope *envelope;
        assert_int_equal(store_read_hook(reader, seq, &envelope), STATUS_NOT_FOUND);
        assert_int_equal(store_rows_of(reader, seq, no_row, NULL), STATUS_OK);
        assert_int_equal(store_attempts_of(reader, seq, no_attempt, NULL), STATUS_OK);
        assert_int_equal(store_read_hook(reader, before, &envelope), STATUS_OK);
        envelope_unref(envelope);
        assert_int_equal(store_read_hook(reader, after, &envelope), STATUS_OK);
        envelope_unref(envelope);
    }
    assert_int_equal(stats().hooks, 6);
    assert_int_equal(stats().dead, 6);
}

/* Also where the database has its pages long since, and among many. */
static void its_bytes_go_from_settled_pages_too(void **state)
{
    (void)state;
    rig_put_many(store, sink, 500, 700);
    uint64_t seq = put_marked("Zm5xQ9", 20000);
    rig_put_many(store, sink, 500, 1500);
    stop();
    start();
    expect_marks("Zm5xQ9", true);
    assert_int_equal(store_erase(store, seq), STATUS_OK);
    expect_marks("Zm5xQ9", false);
    stop();
    start();
    expect_marks("Zm5xQ9", false);
    assert_int_equal(stats().hooks, 2200);
}

static void the_seq_of_the_newest_is_not_given_again(void **state)
{
    (void)state;
    rig_put(store, sink, 10);
    uint64_t seq = rig_put(store, sink, 10);
    assert_int_equal(store_erase(store, seq), STATUS_OK);
    stop();
    start();
    assert_true(rig_put(store, sink, 10) > seq);
}

static bool count_owed(void *ctx, const struct store_owed *row)
{
    (void)row;
    ++*(int *)ctx;
    return true;
}

/* A pending row that nobody took out of memory first: nothing counts it any more. */
static void what_it_owed_is_not_owed(void **state)
{
    (void)state;
    uint64_t seq = rig_put(store, sink, 10);
    uint64_t other = rig_put(store, sink, 10);
    assert_int_equal(store_erase(store, seq), STATUS_OK);
    rig_change(store, seq, sink, ROW_DONE, "ok"); /* too late, and harmless */
    rig_change(store, other, sink, ROW_DONE, "ok");
    assert_true(store_flush(store));
    stop();
    store = rig_open(&options);
    int owed = 0;
    struct error err;
    assert_int_equal(store_scan(store, count_owed, &owed, &err), STATUS_OK);
    assert_int_equal(owed, 0);
    store_close(store);
    start();
    assert_int_equal(store_erase(store, 12345), STATUS_OK); /* there is none: nothing happens */
    assert_int_equal(stats().hooks, 1);
}

int main(void)
{
#define FRESH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        FRESH(its_bytes_are_in_no_file),
        FRESH(its_bytes_go_from_settled_pages_too),
        FRESH(the_seq_of_the_newest_is_not_given_again),
        FRESH(what_it_owed_is_not_owed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
