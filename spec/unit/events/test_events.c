/* The ring of events: in order, bounded, honest about what is gone; one wake an arming. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "events/events.h"

static int wakes;

static void wake(void *ctx)
{
    (void)ctx;
    wakes++;
}

static struct event numbered(int64_t seq)
{
    return (struct event){.kind = EVENT_DELIVERED, .seq = seq, .source = BYTES("shop")};
}

static void publish(struct events *events, int64_t from, int64_t to)
{
    for (int64_t seq = from; seq <= to; seq++) {
        struct event event = numbered(seq);
        events_publish(events, &event);
    }
}

static void test_reads_in_order_and_resumes(void **state)
{
    (void)state;
    struct events *events = events_open();
    struct event_copy out[4];
    bool missed = true;
    publish(events, 1, 5);
    assert_int_equal(4, events_read(events, 0, out, 4, &missed));
    assert_false(missed);
    for (int i = 0; i < 4; i++)
        assert_int_equal(i + 1, out[i].is.seq);
    assert_int_equal(1, events_read(events, out[3].is.id, out, 4, &missed));
    assert_int_equal(5, out[0].is.seq);
    assert_int_equal(events_newest(events), out[0].is.id);
    assert_int_equal(0, events_read(events, out[0].is.id, out, 4, &missed));
    assert_false(missed);
    events_close(events);
}

static void test_says_what_is_gone(void **state)
{
    (void)state;
    struct events *events = events_open();
    static struct event_copy out[EVENTS_KEPT];
    bool missed;
    publish(events, 1, 1);
    uint64_t first = events_newest(events);
    publish(events, 2, EVENTS_KEPT + 1);
    assert_int_equal(EVENTS_KEPT, events_read(events, first, out, EVENTS_KEPT, &missed));
    assert_false(missed); /* the one after it is the oldest kept */
    assert_int_equal(2, out[0].is.seq);
    publish(events, EVENTS_KEPT + 2, EVENTS_KEPT + 2);
    assert_int_equal(EVENTS_KEPT, events_read(events, first, out, EVENTS_KEPT, &missed));
    assert_true(missed);
    assert_int_equal(3, out[0].is.seq);
    assert_int_equal(EVENTS_KEPT, events_read(events, 0, out, EVENTS_KEPT, &missed));
    assert_false(missed);
    events_close(events);
}

static void test_ids_ascend_over_a_restart(void **state)
{
    (void)state;
    struct events *events = events_open();
    struct event_copy out[1];
    bool missed;
    publish(events, 1, 1);
    uint64_t earlier = events_newest(events) - 5000000; /* of a process some seconds ago */
    assert_true(events_newest(events) < UINT64_C(1) << 53);
    assert_int_equal(1, events_read(events, earlier, out, 1, &missed));
    assert_true(missed);
    events_close(events);
}

static void test_copies_what_it_keeps_and_cuts_the_reason_first(void **state)
{
    (void)state;
    struct events *events = events_open();
    static struct event_copy out[1];
    bool missed;
    char *reason = malloc(1000), key[128];
    memset(reason, 'r', 1000);
    memset(key, 'k', sizeof key);
    struct event event = {.kind = EVENT_ATTEMPT,
                          .tenant = BYTES("acme"),
                          .key = bytes_of(key, sizeof key),
                          .has_lane = true,
                          .outcome = BYTES("transient"),
                          .reason = bytes_of(reason, 1000)};
    events_publish(events, &event);
    free(reason);
    memset(key, 0, sizeof key);
    assert_int_equal(1, events_read(events, 0, out, 1, &missed));
    assert_true(bytes_eq(out[0].is.outcome, BYTES("transient")));
    assert_int_equal(128, out[0].is.key.len);
    assert_int_equal('k', out[0].is.key.at[127]);
    assert_int_equal(EVENT_TEXT_MAX - 4 - 128 - 9, out[0].is.reason.len);
    events_close(events);
}

static void test_wakes_once_an_arming(void **state)
{
    (void)state;
    struct events *events = events_open();
    wakes = 0;
    events_on_news(events, wake, NULL);
    publish(events, 1, 3);
    assert_int_equal(0, wakes);
    assert_true(events_arm(events, events_newest(events) - 1));
    publish(events, 4, 4);
    assert_int_equal(0, wakes); /* it was told that there is something */
    assert_false(events_arm(events, events_newest(events)));
    publish(events, 5, 7);
    assert_int_equal(1, wakes);
    events_close(events);
    events_publish(NULL, &(struct event){.kind = EVENT_DEAD}); /* nobody keeps events */
}

enum { PUBLISHED = 20000 };

static void *publish_many(void *ctx)
{
    publish(ctx, 1, PUBLISHED);
    return NULL;
}

static void test_many_threads_publish_while_one_reads(void **state)
{
    (void)state;
    struct events *events = events_open();
    uint64_t start = events_newest(events);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, publish_many, events);
    /* What was read and what is gone make up everything, one after the other. */
    struct event_copy out[64];
    uint64_t after = 0;
    bool missed;
    do {
        size_t n = events_read(events, after, out, 64, &missed);
        for (size_t i = 0; i < n; i++) {
            assert_true(bytes_eq(out[i].is.source, BYTES("shop")));
            assert_true(i == 0 ? missed || after == 0 || out[i].is.id == after + 1
                               : out[i].is.id == out[i - 1].is.id + 1);
        }
        after = n ? out[n - 1].is.id : after;
    } while (after < start + 3 * PUBLISHED);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    events_close(events);
}

static void test_writes_only_what_there_is(void **state)
{
    (void)state;
    struct buf out = {0};
    event_write(
        &(struct event){.id = 7, .kind = EVENT_ACCEPTED, .at_ms = 5, .source = BYTES("shop"), .seq = 3},
        &out);
    assert_string_equal("{\"event_id\":7,\"event\":\"accepted\",\"at\":5,\"source\":\"shop\",\"seq\":3}",
                        out.at);
    buf_clear(&out);
    event_write(&(struct event){.id = 8,
                                .kind = EVENT_DEAD,
                                .at_ms = 5,
                                .has_lane = true,
                                .key = BYTES("a\nb"),
                                .outcome = BYTES("refused"),
                                .http_status = 410},
                &out);
    assert_string_equal(
        "{\"event_id\":8,\"event\":\"dead\",\"at\":5,\"lane\":\"00000000000000000000000000000000\","
        "\"key\":\"a%0Ab\",\"outcome\":\"refused\",\"status\":410}",
        out.at);
    buf_free(&out);
}

static void test_kinds_have_names(void **state)
{
    (void)state;
    enum event_kind kind;
    for (int i = 0; i < EVENT_KIND_COUNT; i++) {
        assert_true(event_kind_parse(bytes_str(event_kind_name((enum event_kind)i)), &kind));
        assert_int_equal(i, kind);
    }
    assert_false(event_kind_parse(BYTES("nonsense"), &kind));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_in_order_and_resumes),
        cmocka_unit_test(test_says_what_is_gone),
        cmocka_unit_test(test_ids_ascend_over_a_restart),
        cmocka_unit_test(test_copies_what_it_keeps_and_cuts_the_reason_first),
        cmocka_unit_test(test_wakes_once_an_arming),
        cmocka_unit_test(test_many_threads_publish_while_one_reads),
        cmocka_unit_test(test_writes_only_what_there_is),
        cmocka_unit_test(test_kinds_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
