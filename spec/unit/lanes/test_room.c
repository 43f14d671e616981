/* The thread around the scheduler, with a real store, real attempts and a receiver that can be told to fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../deliver/receiver.h"
#include "deliver/deliver.h"
#include "lanes/lanes_priv.h"
#include "store_rig.h"
#include "util/check.h"
#include "util/clock.h"

/* ---- the stage ---- */

static char *dir;
static struct store *store;
static struct deliver *deliver;
static struct sink *sink;
static struct lanes *lanes;
static struct receiver *receiver;
static struct metrics *metrics;
static uint32_t sink_id;
static struct lanes_options options;
static struct sched_policy policy;
static int64_t dead_retention_ms;
static bool asleep; /* the lanes thread never starts */

/* Answers by key: the one that is sick gets `sick_answer`; -1 hangs until it is well. */
static _Atomic(const char *) sick_key;
static atomic_int sick_status;

static bool answers(struct exchange *exchange, const char *text)
{
    (void)text;
    const struct received *request = receiver_request(exchange->receiver, exchange->number);
    const char *key = strstr(request->head, "x-lanegate-ordering-key: ");
    const char *sick = atomic_load(&sick_key);
    int status = 200;
    if (sick && key && strncmp(key + 25, sick, strlen(sick)) == 0)
        status = atomic_load(&sick_status);
    char answer[96];
    snprintf(answer, sizeof answer, "HTTP/1.1 %d Told\r\ncontent-length: 0\r\n\r\n", status);
    return say(exchange, answer);
}

static void committed(void *ctx, struct store_hook *const *hooks, size_t count)
{
    (void)ctx;
    lanes_committed(lanes, hooks, count);
}

/* A gateway's middle, on the directory as it is. */
static void rise(void)
{
    struct error err = {""};
    struct store_options store_options = rig_options(dir);
    store_options.committed = committed;
    store = rig_open(&store_options);
    CHECK(store_sink_id(store, "shop", "billing", &sink_id, &err) == STATUS_OK);
    static struct ip_range loopback;
    CHECK(ip_range_parse("127.0.0.0/8", &loopback, NULL) == STATUS_OK);
    struct deliver_options deliver_options = {
        .threads = 2, .egress = {.allow_private = {&loopback, 1}, .allow_http = true}};
    CHECK(deliver_open(&deliver_options, &deliver, &err) == STATUS_OK);
    static char url[64];
    static const int refused[] = {400, 410};
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", receiver_port(receiver));
    struct sink_options sink_options = {.type = "http",
                                        .source = "shop",
                                        .name = "billing",
                                        .header_prefix = "lanegate",
                                        .url = url,
                                        .method = "POST",
                                        .timeout_ms = 5000,
                                        .refused = refused,
                                        .refused_count = 2};
    CHECK(sink_open(deliver, &sink_options, &sink, &err) == STATUS_OK);
    static struct lanes_sink lanes_sink;
    lanes_sink = (struct lanes_sink){
        .id = sink_id, .source = "shop", .name = "billing", .ordered = true, .sink = sink, .policy = policy};
    lanes_sink.dead_retention_ms = dead_retention_ms;
    options.store = store;
    options.deliver = deliver;
    options.sinks = &lanes_sink;
    options.sink_count = 1;
    options.metrics = metrics = metrics_new();
    CHECK(lanes_open(&options, &lanes, &err) == STATUS_OK);
    CHECK(asleep || lanes_start(lanes, &err) == STATUS_OK);
    CHECK(store_start(store, &err) == STATUS_OK);
}

static void fall(void)
{
    lanes_quiesce(lanes);
    deliver_stop(deliver, clock_mono_ms() + 2000);
    lanes_stop(lanes);
    store_stop(store);
    lanes_close(lanes);
    sink_close(sink);
    deliver_close(deliver);
    store_close(store);
    metrics_free(metrics);
}

static int setup(void **state)
{
    (void)state;
    dir = rig_make_dir();
    dead_retention_ms = 0;
    asleep = false;
    atomic_store(&sick_key, NULL);
    atomic_store(&sick_status, 500);
    receiver = receiver_open(answers, NULL, NULL);
    policy = (struct sched_policy){.concurrency = 32,
                                   .retry = {.base_ms = 20, .max_ms = 40},
                                   .breaker = {.failures = 10, .open_ms = 100, .max_open_ms = 200},
                                   .on_refused = ON_DEAD_SKIP,
                                   .on_exhausted = ON_DEAD_HOLD};
    options = (struct lanes_options){.concurrency = 64,
                                     .max_inflight_bytes = 8 << 20,
                                     .max_pending_bytes = 64 << 20,
                                     .attempt_timeout_ms = 10000};
    rise();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fall();
    receiver_close(receiver);
    rig_remove_dir(dir);
    return 0;
}

static enum status put(const char *key)
{
    struct rig_hook *hook = rig_hook_new(100);
    rig_hook_row(hook, sink_id, key);
    enum status status = rig_commit(store, hook);
    rig_hook_free(hook);
    return status;
}

static struct lanes_sink_view look(void)
{
    struct lanes_sink_view view = {0};
    assert_int_equal(lanes_sinks(lanes, &view, 1), 1);
    return view;
}

static bool metrics_say(const char *line)
{
    struct buf text = {0};
    metrics_write(metrics, &text);
    bool said = strstr(text.at, line) != NULL;
    buf_free(&text);
    return said;
}

/* First deliveries of each key must ascend. */
static void check_order(unsigned keys)
{
    uint64_t last[16] = {0};
    for (unsigned i = 1; i <= receiver_requests(receiver); i++) {
        const struct received *request = receiver_request(receiver, i);
        unsigned key = (unsigned)atoi(received_header(request, "x-lanegate-ordering-key") + 1);
        uint64_t seq = strtoull(received_header(request, "x-lanegate-seq"), NULL, 10);
        assert_true(key < keys);
        assert_true(seq >= last[key]);
        last[key] = seq;
    }
}

/* ---- promises ---- */

static void hooks_of_a_lane_arrive_complete_and_in_order(void **state)
{
    (void)state;
    char key[8];
    for (unsigned i = 0; i < 300; i++) {
        snprintf(key, sizeof key, "k%u", i % 5);
        assert_int_equal(put(key), STATUS_OK);
    }
    assert_true(RIG_WAIT(receiver_requests(receiver) == 300));
    assert_true(RIG_WAIT(look().pending == 0 && look().running == 0));
    check_order(5);
    assert_true(lanes_progress(lanes));
    /* Views are some milliseconds old: the counts tell when the last outcome is in. */
    assert_true(RIG_WAIT(metrics_say(
        "lanegate_dispatch_deliveries_total{source=\"shop\",sink=\"billing\",result=\"ok\"} 300")));
    assert_true(RIG_WAIT(metrics_say("lanegate_queue_pending 0")));
}

static void a_failing_head_blocks_its_lane_and_nothing_else(void **state)
{
    (void)state;
    atomic_store(&sick_key, "k0");
    char key[8];
    for (unsigned i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "k%u", i % 4);
        assert_int_equal(put(key), STATUS_OK);
    }
    assert_true(RIG_WAIT(look().pending == 25 && look().rows_behind_blocked == 24));
    struct lanes_sink_view view = look();
    assert_int_equal(view.lane_depth_max, 25);
    assert_true(view.blocked_since_ms > 0);
    assert_string_equal(view.last_error[0] ? "said" : "", "said");
    atomic_store(&sick_key, NULL);
    assert_true(RIG_WAIT(look().pending == 0));
    check_order(4);
}

static void what_is_owed_goes_on_after_a_restart(void **state)
{
    (void)state;
    atomic_store(&sick_key, "k");
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(put(i % 2 ? "k1" : "k0"), STATUS_OK);
    assert_true(RIG_WAIT(receiver_requests(receiver) >= 4));
    fall();
    atomic_store(&sick_key, NULL);
    rise();
    assert_true(RIG_WAIT(look().pending == 0 && look().running == 0));
    check_order(2);
    assert_int_equal(store_flush(store), true);
    fall();
    unsigned before = receiver_requests(receiver);
    rise();
    assert_int_equal(look().pending, 0); /* their ok was written: nothing goes twice */
    assert_int_equal(receiver_requests(receiver), before);
}

/* Rows cross from one thread to the other in batches of 1,024: one full to the brim, and two and one row
 * more. */
static void every_row_that_is_owed_is_found_at_the_start(void **state)
{
    (void)state;
    static const unsigned counts[] = {1024, 2049};
    unsigned sent = 0;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        fall();
        asleep = true;
        rise();
        rig_put_many(store, sink_id, 10, counts[i]);
        fall();
        asleep = false;
        rise();
        sent += counts[i];
        assert_true(RIG_WAIT(receiver_requests(receiver) == sent));
        assert_true(RIG_WAIT(look().pending == 0 && look().running == 0));
    }
}

static void a_hook_that_did_not_fit_into_memory_is_read_back(void **state)
{
    (void)state;
    fall();
    options.max_inflight_bytes = 1;
    rise();
    for (unsigned i = 0; i < 50; i++)
        assert_int_equal(put(i % 2 ? "k1" : NULL), STATUS_OK);
    assert_true(RIG_WAIT(receiver_requests(receiver) == 50));
    const struct received *request = receiver_request(receiver, 50);
    assert_int_equal(request->body_len, 100);
}

static void a_refused_hook_is_a_dead_letter_and_the_next_one_says_so(void **state)
{
    (void)state;
    atomic_store(&sick_status, 400);
    atomic_store(&sick_key, "k0");
    assert_int_equal(put("k0"), STATUS_OK);
    assert_true(RIG_WAIT(look().dead == 1));
    atomic_store(&sick_key, NULL);
    assert_int_equal(put("k0"), STATUS_OK);
    assert_true(RIG_WAIT(receiver_requests(receiver) == 2));
    assert_string_equal(received_header(receiver_request(receiver, 2), "x-lanegate-skipped"), "1");
    assert_true(RIG_WAIT(look().pending == 0));
    fall();
    rise();
    assert_int_equal(look().dead, 1);
    assert_int_equal(put("k0"), STATUS_OK);
    assert_true(RIG_WAIT(receiver_requests(receiver) == 3));
    assert_string_equal(received_header(receiver_request(receiver, 3), "x-lanegate-skipped"), "1");
}

static void too_much_memory_closes_the_gate_and_a_drained_backlog_opens_it(void **state)
{
    (void)state;
    fall();
    options.max_pending_bytes = 2000;
    atomic_store(&sick_key, "k");
    rise();
    char key[8];
    unsigned n = 0;
    enum status status = STATUS_OK;
    for (; n < 1000 && status == STATUS_OK; n++) {
        snprintf(key, sizeof key, "k%u", n % 10);
        status = put(key);
    }
    assert_int_equal(status, STATUS_BACKLOG_FULL);
    atomic_store(&sick_key, NULL);
    assert_true(RIG_WAIT(look().pending == 0));
    assert_true(RIG_WAIT(put("k0") == STATUS_OK));
}

/* With no room for envelopes, a box that nobody empties was bounded by nothing: commits went on for ever. */
static void hooks_that_nobody_takes_close_the_gate_too(void **state)
{
    (void)state;
    fall();
    options.max_inflight_bytes = 1;
    options.max_pending_bytes = 20000;
    asleep = true;
    rise();
    unsigned taken = 0;
    enum status status;
    while ((status = put("k0")) == STATUS_OK && taken < 1000)
        taken++;
    assert_int_equal(status, STATUS_BACKLOG_FULL);
    assert_true(taken > 10);
    fall();
    asleep = false;
    options.max_pending_bytes = 64 << 20;
    rise();
    assert_true(RIG_WAIT(receiver_requests(receiver) == taken)); /* and nothing that was taken is lost */
    assert_int_equal(put("k0"), STATUS_OK);
}

/* A loop that finds the turn taken goes on with its transfers; what ended on it is seen to by the lanes
 * thread.
 */
static void a_turn_that_another_has_holds_up_no_loop(void **state)
{
    (void)state;
    enum { ROUNDS = 20 };
    for (unsigned i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lanes->turn);
        bool running = sched_running(lanes->sched) > 0;
        if (running) /* its outcome comes while we have the turn */
            assert_true(RIG_WAIT(atomic_load(&lanes->outcomes_wait)));
        pthread_mutex_unlock(&lanes->turn);
        assert_int_equal(put("k0"), STATUS_OK);
        assert_int_equal(put("k1"), STATUS_OK);
    }
    assert_true(RIG_WAIT(receiver_requests(receiver) == 2 * ROUNDS));
    check_order(2);
}

static void lanes_are_listed_by_age_and_by_depth(void **state)
{
    (void)state;
    atomic_store(&sick_key, "k");
    char key[8];
    for (unsigned lane = 0; lane < 8; lane++) {
        snprintf(key, sizeof key, "k%u", lane);
        for (unsigned i = 0; i <= lane; i++)
            assert_int_equal(put(key), STATUS_OK);
    }
    assert_true(RIG_WAIT(look().lanes == 8 && look().pending == 36));
    struct lane_filter filter = {.tenant = -1, .sink = -1, .state = -1, .sort = LANE_SORT_DEPTH, .limit = 3};
    struct lane_view views[8];
    uint64_t total = 0;
    assert_int_equal(lanes_list(lanes, &filter, views, &total), 3);
    assert_int_equal(total, 8);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(views[i].depth, 8 - i);
    filter.sort = LANE_SORT_AGE;
    filter.offset = 6;
    assert_int_equal(lanes_list(lanes, &filter, views, &total), 2);
    assert_true(views[0].head_seq < views[1].head_seq);
    filter.offset = 0;
    filter.lane = views[1].lane;
    struct lane_view one;
    assert_int_equal(lanes_list(lanes, &filter, &one, &total), 1);
    assert_int_equal(total, 1);
    assert_int_equal(one.head_seq, views[1].head_seq);
    filter.lane = NULL;
    filter.sink = sink_id + 1;
    assert_int_equal(lanes_list(lanes, &filter, views, &total), 0);
    atomic_store(&sick_key, NULL);
    assert_true(RIG_WAIT(look().pending == 0));
}

static void a_stop_in_the_middle_of_an_attempt_spends_nothing(void **state)
{
    (void)state;
    fall();
    policy.retry.max_attempts = 1;
    rise();
    for (unsigned i = 0; i < 200; i++)
        assert_int_equal(put(i % 2 ? "k1" : "k0"), STATUS_OK);
    fall();
    rise();
    assert_true(RIG_WAIT(look().pending == 0));
    assert_int_equal(look().dead, 0);
    check_order(2);
}

/* ---- dead letters and erasing ---- */

static bool take_row(void *ctx, const struct store_row_view *row)
{
    struct lanes_row *out = ctx;
    *out = (struct lanes_row){.seq = row->seq,
                              .sink = row->sink,
                              .tenant = row->tenant,
                              .state = row->state,
                              .ordered = row->ordered,
                              .late = row->late,
                              .received_ms = row->received_at_ms};
    memcpy(out->lane, row->lane, sizeof out->lane);
    return true;
}

/* As the store has it now. */
static struct lanes_row row_of(uint64_t seq)
{
    struct store_reader *reader;
    struct error err;
    struct lanes_row row;
    assert_true(store_flush(store));
    assert_int_equal(store_reader_open(store, &reader, &err), STATUS_OK);
    assert_int_equal(store_row_of(reader, seq, sink_id, take_row, &row), STATUS_OK);
    store_reader_close(reader);
    return row;
}

static void an_erased_row_leaves_its_lane(void **state)
{
    (void)state;
    fall();
    policy.retry.max_attempts = 1;
    rise();
    atomic_store(&sick_key, "k0");
    for (int i = 0; i < 3; i++)
        assert_int_equal(put("k0"), STATUS_OK);
    assert_true(RIG_WAIT(look().held == 1));
    struct lanes_row rows[] = {row_of(1), row_of(2)};
    assert_int_equal(rows[0].state, ROW_HELD);
    assert_int_equal(rows[1].state, ROW_PENDING);
    assert_int_equal(lanes_erase(lanes, &rows[1], 1), LANES_DONE);
    assert_int_equal(lanes_erase(lanes, &rows[1], 1), LANES_NOTHING); /* it is gone already */
    assert_int_equal(store_erase(store, 2), STATUS_OK);
    atomic_store(&sick_key, NULL);
    assert_int_equal(lanes_erase(lanes, &rows[0], 1), LANES_DONE); /* and the lane goes on */
    assert_true(RIG_WAIT(receiver_requests(receiver) == 2 && look().pending == 0 && look().running == 0));
    assert_string_equal(received_header(receiver_request(receiver, 2), "x-lanegate-seq"), "3");
    struct lanes_row done = row_of(3);
    done.state = ROW_PENDING; /* as it was a moment ago */
    assert_int_equal(lanes_erase(lanes, &done, 1), LANES_NOTHING);
    assert_true(RIG_WAIT(look().dead == 0));
}

/* All of a hook, or none of it. */
static void one_row_that_is_gone_keeps_the_others(void **state)
{
    (void)state;
    fall();
    policy.retry.max_attempts = 1;
    rise();
    atomic_store(&sick_key, "k0");
    assert_int_equal(put("k0"), STATUS_OK);
    assert_true(RIG_WAIT(look().held == 1));
    struct lanes_row rows[] = {row_of(1), row_of(1)};
    rows[1].seq = 99;
    rows[1].state = ROW_PENDING;
    assert_int_equal(lanes_erase(lanes, rows, 2), LANES_NOTHING);
    assert_int_equal(look().held, 1);
    assert_int_equal(row_of(1).state, ROW_HELD);
}

static void dead_letters_go_by_age_unless_one_holds_its_lane(void **state)
{
    (void)state;
    fall();
    policy.retry.max_attempts = 1;
    dead_retention_ms = 100;
    rise();
    atomic_store(&sick_key, "k");
    atomic_store(&sick_status, 500);
    assert_int_equal(put("k0"), STATUS_OK);
    assert_true(RIG_WAIT(look().held == 1));
    atomic_store(&sick_status, 400);
    assert_int_equal(put("k1"), STATUS_OK);
    assert_int_equal(put("k1"), STATUS_OK);
    assert_true(RIG_WAIT(row_of(3).state == ROW_DISCARDED && row_of(2).state == ROW_DISCARDED));
    assert_int_equal(row_of(1).state, ROW_HELD);
    assert_true(RIG_WAIT(look().dead == 1 && look().held == 1));
    fall(); /* and over a restart, one that died before it */
    dead_retention_ms = 0;
    rise();
    assert_int_equal(put("k2"), STATUS_OK);
    assert_true(RIG_WAIT(look().dead == 2));
    fall();
    dead_retention_ms = 100;
    rise();
    assert_true(RIG_WAIT(row_of(4).state == ROW_DISCARDED));
    assert_int_equal(row_of(1).state, ROW_HELD);
}

#define PLAY(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY(hooks_of_a_lane_arrive_complete_and_in_order),
        PLAY(a_failing_head_blocks_its_lane_and_nothing_else),
        PLAY(what_is_owed_goes_on_after_a_restart),
        PLAY(every_row_that_is_owed_is_found_at_the_start),
        PLAY(a_hook_that_did_not_fit_into_memory_is_read_back),
        PLAY(a_refused_hook_is_a_dead_letter_and_the_next_one_says_so),
        PLAY(too_much_memory_closes_the_gate_and_a_drained_backlog_opens_it),
        PLAY(hooks_that_nobody_takes_close_the_gate_too),
        PLAY(a_turn_that_another_has_holds_up_no_loop),
        PLAY(lanes_are_listed_by_age_and_by_depth),
        PLAY(a_stop_in_the_middle_of_an_attempt_spends_nothing),
        PLAY(an_erased_row_leaves_its_lane),
        PLAY(one_row_that_is_gone_keeps_the_others),
        PLAY(dead_letters_go_by_age_unless_one_holds_its_lane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
