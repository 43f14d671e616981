/* Listings: filtered, bounded, paged by cursor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store_rig.h"

static struct store_options options;
static struct store *store;
static struct store_reader *reader;
static uint32_t billing, audit;
static char *dir;

static int setup(void **state)
{
    (void)state;
    struct error err;
    dir = rig_make_dir();
    options = rig_options(dir);
    store = rig_start(&options);
    return store_reader_open(store, &reader, &err) == STATUS_OK &&
                   store_sink_id(store, "shop", "billing", &billing, &err) == STATUS_OK &&
                   store_sink_id(store, "forge", "audit", &audit, &err) == STATUS_OK
               ? 0
               : -1;
}

static int teardown(void **state)
{
    (void)state;
    store_reader_close(reader);
    store_close(store);
    rig_remove_dir(dir);
    return 0;
}

struct found {
    size_t count, stop_at;
    uint64_t seqs[4000];
    struct store_hook_view last;
};

static bool take_hook(void *ctx, const struct store_hook_view *hook)
{
    struct found *found = ctx;
    assert_true(found->count < 4000);
    assert_true(found->count == 0 || hook->seq < found->seqs[found->count - 1]);
    found->last = *hook;
    found->seqs[found->count++] = hook->seq;
    return found->count != found->stop_at;
}

static struct found found;

/* All pages of a filter; how many calls it took. */
static size_t list_all(struct store_hook_filter filter)
{
    size_t calls = 0;
    uint64_t next;
    found = (struct found){0};
    do {
        assert_int_equal(store_list_hooks(reader, &filter, take_hook, &found, &next), STATUS_OK);
        filter.before_seq = next;
        calls++;
    } while (next != 0);
    return calls;
}

static uint64_t put(const char *tenant, const char *source, int64_t received_at_ms, const char *dedupe_key,
                    uint32_t sink)
{
    struct rig_hook *rig = rig_hook_new(77);
    rig->hook.envelope->tenant = bytes_str(tenant);
    rig->hook.envelope->source = bytes_str(source);
    rig->hook.envelope->received_at_ms = received_at_ms;
    rig->hook.envelope->id = uuid_new(received_at_ms);
    rig->hook.envelope->dedupe_key = bytes_str(dedupe_key);
    rig_hook_row(rig, sink, NULL);
    assert_int_equal(rig_commit(store, rig), STATUS_OK);
    uint64_t seq = rig->seq;
    rig_hook_free(rig);
    return seq;
}

static void hooks_are_listed_newest_first_and_filtered(void **state)
{
    (void)state;
    uint64_t a = put("default", "shop", 1000, "evt_1", billing);
    uint64_t b = put("acme", "forge", 2000, NULL, audit);
    uint64_t c = put("default", "forge", 3000, "evt_2", audit);
    rig_change(store, b, audit, ROW_DONE, "ok");
    rig_change(store, c, audit, ROW_DEAD, "refused");
    assert_true(store_flush(store));

    list_all((struct store_hook_filter){.state = -1, .limit = 2});
    assert_int_equal(found.count, 3);
    assert_int_equal(found.seqs[0], c);
    assert_int_equal(found.seqs[2], a);
    assert_string_equal(found.last.tenant, "default");
    assert_string_equal(found.last.source, "shop");
    assert_int_equal(found.last.body_size, 77);
    assert_int_equal(found.last.rows, 1);
    assert_int_equal(found.last.rows_done, 0);

    const struct {
        struct store_hook_filter filter;
        uint64_t seq;
    } one[] = {
        {{.state = -1, .tenant = "acme"}, b},
        {{.state = -1, .source = "shop"}, a},
        {{.state = -1, .tenant = "default", .source = "forge"}, c},
        {{.state = -1, .dedupe_key = BYTES("evt_2")}, c},
        {{.state = -1, .since_ms = 2000, .until_ms = 3000}, b},
        {{.state = -1, .since_ms = 3000}, c},
        {{.state = -1, .until_ms = 2000}, a},
        {{.state = ROW_PENDING}, a},
        {{.state = ROW_DONE}, b},
        {{.state = ROW_DEAD}, c},
        {{.state = -1, .before_seq = b}, a},
    };
    for (size_t i = 0; i < sizeof one / sizeof one[0]; i++) {
        struct store_hook_filter filter = one[i].filter;
        filter.limit = 10;
        list_all(filter);
        assert_int_equal(found.count, 1);
        assert_int_equal(found.seqs[0], one[i].seq);
    }
    list_all((struct store_hook_filter){.state = ROW_HELD, .limit = 10});
    assert_int_equal(found.count, 0);
    list_all((struct store_hook_filter){.state = -1, .dedupe_key = BYTES("evt"), .limit = 10});
    assert_int_equal(found.count, 0);
}

static void pages_meet_without_gap_or_overlap(void **state)
{
    (void)state;
    rig_put_many(store, billing, 10, 3000);
    assert_true(list_all((struct store_hook_filter){.state = -1, .limit = 70}) >= 3000 / 70);
    assert_int_equal(found.count, 3000);
    assert_int_equal(found.seqs[0], 3000);
    assert_int_equal(found.seqs[2999], 1);
}

/* A rare hook under many: the call gives up after a while with a cursor, and steps over blocks of another
 * time. */
static void a_call_looks_at_a_bounded_number_of_hooks(void **state)
{
    (void)state;
    uint64_t rare = put("acme", "forge", 1000, NULL, audit);
    rig_put_many(store, billing, 10, 9000);
    struct store_hook_filter filter = {.state = -1, .tenant = "acme", .limit = 10};
    uint64_t next;
    found = (struct found){0};
    assert_int_equal(store_list_hooks(reader, &filter, take_hook, &found, &next), STATUS_OK);
    assert_int_equal(found.count, 0);
    assert_int_not_equal(next, 0);
    assert_true(list_all(filter) > 1);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.seqs[0], rare);

    filter.until_ms = 2000;
    assert_int_equal(list_all(filter), 1);
    assert_int_equal(found.count, 1);
}

struct dead {
    size_t count;
    struct store_row_view rows[100];
};

static bool take_dead(void *ctx, const struct store_row_view *row)
{
    struct dead *dead = ctx;
    dead->rows[dead->count++] = *row;
    return dead->count < 100;
}

static void dead_letters_are_listed_oldest_first_with_their_total(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        struct rig_hook *rig = rig_hook_new(10);
        rig_hook_row(rig, billing, i % 2 ? "cus_1" : "cus_2");
        rig_hook_row(rig, audit, NULL);
        assert_int_equal(rig_commit(store, rig), STATUS_OK);
        rig_hook_free(rig);
        rig_change(store, (uint64_t)i + 1, billing, i % 4 ? ROW_DEAD : ROW_HELD,
                   i % 4 ? "refused" : "exhausted");
        rig_change(store, (uint64_t)i + 1, audit, i == 20 ? ROW_DEAD : ROW_DONE, "refused");
    }
    assert_true(store_flush(store));
    struct dead dead = {0};
    uint64_t total;
    struct store_dead_filter filter = {.limit = 15};
    assert_int_equal(store_list_dead(reader, &filter, take_dead, &dead, &total), STATUS_OK);
    assert_int_equal(total, 41);
    assert_int_equal(dead.count, 15);
    assert_int_equal(dead.rows[0].seq, 1);
    assert_int_equal(dead.rows[0].state, ROW_HELD);
    assert_string_equal(dead.rows[0].cls, "exhausted");
    assert_int_equal(dead.rows[14].seq, 15);

    filter.after_seq = dead.rows[14].seq;
    filter.after_sink = dead.rows[14].sink;
    filter.limit = 100;
    assert_int_equal(store_list_dead(reader, &filter, take_dead, &dead, &total), STATUS_OK);
    assert_int_equal(total, 41);
    assert_int_equal(dead.count, 41);
    assert_int_equal(dead.rows[15].seq, 16);
    assert_int_equal(dead.rows[40].seq, 40);

    uint8_t lane[16] = "cus_1";
    const struct {
        struct store_dead_filter filter;
        uint64_t total;
    } cases[] = {
        {{.cls = "exhausted"}, 10},
        {{.cls = "no such"}, 0},
        {{.sink = "audit"}, 1},
        {{.source = "forge"}, 1},
        {{.source = "shop", .sink = "billing"}, 40},
        {{.tenant = "default"}, 41},
        {{.tenant = "acme"}, 0},
        {{.lane = lane}, 20},
        {{.since_ms = 1}, 41},
        {{.until_ms = 1}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        filter = cases[i].filter;
        filter.limit = 100;
        dead.count = 0;
        assert_int_equal(store_list_dead(reader, &filter, take_dead, &dead, &total), STATUS_OK);
        assert_int_equal(total, cases[i].total);
        assert_int_equal(dead.count, cases[i].total);
    }

    /* Replayed, one is none. */
    rig_change(store, 1, billing, ROW_PENDING, NULL);
    assert_true(store_flush(store));
    filter = (struct store_dead_filter){.limit = 0};
    assert_int_equal(store_list_dead(reader, &filter, take_dead, &dead, &total), STATUS_OK);
    assert_int_equal(total, 40);
    struct store_stats stats;
    store_stats(store, &stats);
    assert_int_equal(stats.dead, 40);
}

int main(void)
{
#define FRESH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        FRESH(hooks_are_listed_newest_first_and_filtered),
        FRESH(pages_meet_without_gap_or_overlap),
        FRESH(a_call_looks_at_a_bounded_number_of_hooks),
        FRESH(dead_letters_are_listed_oldest_first_with_their_total),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
