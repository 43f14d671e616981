/* Dead letters in sums: how many a source may have, and how late a replay of them would be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store_rig.h"
#include "util/clock.h"

static const struct store_dlq_bound bounds[] = {{"shop", 3, 0}, {"mail", 0, 3000}};
static struct store_options options;
static struct store *store;
static struct store_reader *reader;
static uint32_t billing, mailer, other;
static char *dir;

static void start(void)
{
    struct error err;
    options.dlq = bounds;
    options.dlq_count = 2;
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
    struct error err;
    dir = rig_make_dir();
    options = rig_options(dir);
    start();
    return store_sink_id(store, "shop", "billing", &billing, &err) == STATUS_OK &&
                   store_sink_id(store, "mail", "mailer", &mailer, &err) == STATUS_OK &&
                   store_sink_id(store, "free", "other", &other, &err) == STATUS_OK
               ? 0
               : -1;
}

static int teardown(void **state)
{
    (void)state;
    stop();
    rig_remove_dir(dir);
    return 0;
}

static enum status put(const char *source, uint32_t sink, const char *key, size_t body_len, uint64_t *seq)
{
    struct rig_hook *rig = rig_hook_new(body_len);
    rig->hook.envelope->source = bytes_str(source);
    rig_hook_row(rig, sink, key);
    enum status status = rig_commit(store, rig);
    *seq = rig->seq;
    rig_hook_free(rig);
    return status;
}

static void change(uint64_t seq, uint32_t sink, enum row_state state, const char *cls)
{
    rig_change(store, seq, sink, state, cls);
    assert_true(store_flush(store));
}

static void a_source_that_has_too_many_is_refused_alone(void **state)
{
    (void)state;
    uint64_t seqs[3], seq;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(put("shop", billing, NULL, 10, &seqs[i]), STATUS_OK);
        change(seqs[i], billing, i == 1 ? ROW_HELD : ROW_DEAD, "refused");
    }
    assert_int_equal(put("shop", billing, NULL, 10, &seq), STATUS_DLQ_FULL);
    assert_int_equal(put("mail", mailer, NULL, 10, &seq), STATUS_OK);
    assert_int_equal(put("free", other, NULL, 10, &seq), STATUS_OK);
    stop(); /* the sums are found again */
    start();
    assert_int_equal(put("shop", billing, NULL, 10, &seq), STATUS_DLQ_FULL);
    change(seqs[0], billing, ROW_DISCARDED, NULL);
    assert_int_equal(put("shop", billing, NULL, 10, &seq), STATUS_OK);
    change(seqs[1], billing, ROW_DEAD, NULL); /* from held to dead: one all the same */
    assert_int_equal(put("shop", billing, NULL, 10, &seq), STATUS_OK);
    change(seq, billing, ROW_DEAD, "refused");
    assert_int_equal(put("shop", billing, NULL, 10, &seq), STATUS_DLQ_FULL);
    assert_int_equal(store_erase(store, seqs[2]), STATUS_OK);
    assert_int_equal(put("shop", billing, NULL, 10, &seq), STATUS_OK);
}

static void bytes_are_a_bound_too(void **state)
{
    (void)state;
    uint64_t first, second, seq;
    assert_int_equal(put("mail", mailer, NULL, 1500, &first), STATUS_OK);
    assert_int_equal(put("mail", mailer, NULL, 1500, &second), STATUS_OK);
    change(first, mailer, ROW_DEAD, "refused");
    assert_int_equal(put("mail", mailer, NULL, 10, &seq), STATUS_OK);
    change(second, mailer, ROW_DEAD, "refused");
    assert_int_equal(put("mail", mailer, NULL, 10, &seq), STATUS_DLQ_FULL);
    change(second, mailer, ROW_PENDING, NULL);
    assert_int_equal(put("mail", mailer, NULL, 10, &seq), STATUS_OK);
}

struct walked {
    size_t count;
    uint64_t seqs[16];
};

static bool take(void *ctx, const struct store_row_view *row)
{
    struct walked *walked = ctx;
    walked->seqs[walked->count++] = row->seq;
    return true;
}

/* Small steps come to the same end, each no further than it may look. */
static void a_walk_goes_on_where_it_was(void **state)
{
    (void)state;
    uint64_t dead[6];
    for (int i = 0; i < 6; i++) {
        bool ours = i % 2 == 0;
        assert_int_equal(put(ours ? "free" : "mail", ours ? other : mailer, NULL, 10, &dead[i]), STATUS_OK);
        change(dead[i], ours ? other : mailer, ROW_DEAD, "refused");
    }
    struct walked walked = {0};
    struct store_dead_filter filter = {.source = "free", .limit = 2};
    bool end = false;
    assert_int_equal(store_walk_dead(reader, &filter, 100, take, &walked, &end), STATUS_OK);
    assert_int_equal(walked.count, 2);
    assert_false(end);
    assert_int_equal(store_walk_dead(reader, &filter, 1, take, &walked, &end), STATUS_OK);
    assert_int_equal(walked.count, 2); /* looked at one of the other source */
    assert_false(end);
    assert_int_equal(store_walk_dead(reader, &filter, 100, take, &walked, &end), STATUS_OK);
    assert_int_equal(walked.count, 3);
    assert_true(end);
    for (int i = 0; i < 3; i++)
        assert_int_equal(walked.seqs[i], dead[2 * i]);
}

static void mark_late(uint64_t seq, enum row_state state)
{
    struct store_change *late = store_change_new();
    *late = (struct store_change){.seq = seq, .sink = other, .state = state, .late = true, .attempts = 1};
    struct list changes = LIST_INIT(changes);
    list_append(&changes, &late->node);
    store_changes(store, &changes);
}

static void what_was_overtaken_is_counted(void **state)
{
    (void)state;
    /* Lane a: 1 dead and late, 2 delivered, 3 dead and late, 4 and 5 delivered. Lane b: one dead, in time. */
    uint64_t a[6], b, c;
    for (int i = 1; i <= 5; i++)
        assert_int_equal(put("free", other, "a", 10, &a[i]), STATUS_OK);
    assert_int_equal(put("free", other, "b", 10, &b), STATUS_OK);
    assert_int_equal(put("free", other, "c", 10, &c), STATUS_OK);
    rig_change(store, a[1], other, ROW_DEAD, "refused");
    rig_change(store, a[2], other, ROW_DONE, "ok");
    rig_change(store, a[3], other, ROW_DEAD, "refused");
    rig_change(store, a[4], other, ROW_DONE, "ok");
    rig_change(store, a[5], other, ROW_DONE, "ok");
    rig_change(store, b, other, ROW_DEAD, "exhausted");
    rig_change(store, c, other, ROW_DONE, "ok");
    mark_late(a[1], ROW_DEAD);
    mark_late(a[3], ROW_DEAD);
    assert_true(store_flush(store));

    struct store_dead_sum sum;
    assert_int_equal(store_sum_dead(reader, &(struct store_dead_filter){0}, &sum), STATUS_OK);
    assert_int_equal(sum.rows, 3);
    assert_int_equal(sum.late, 2);
    assert_int_equal(sum.delivered_after, 3);
    assert_int_equal(store_sum_dead(reader, &(struct store_dead_filter){.cls = "exhausted"}, &sum),
                     STATUS_OK);
    assert_int_equal(sum.rows, 1);
    assert_int_equal(sum.late, 0);
    assert_int_equal(sum.delivered_after, 0);
    assert_int_equal(store_sum_dead(reader, &(struct store_dead_filter){.source = "shop"}, &sum), STATUS_OK);
    assert_int_equal(sum.rows, 0);
}

int main(void)
{
#define FRESH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        FRESH(a_source_that_has_too_many_is_refused_alone),
        FRESH(bytes_are_a_bound_too),
        FRESH(a_walk_goes_on_where_it_was),
        FRESH(what_was_overtaken_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
