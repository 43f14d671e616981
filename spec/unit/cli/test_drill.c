/* What a drilling receiver was told, deliveries that wait, and how a delivery is written down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "cli/drill.h"
#include "cli/later.h"
#include "util/check.h"
#include "util/clock.h"

static void rules_of_a_key_stand_before_those_for_all(void **state)
{
    (void)state;
    struct drill *drill = drill_new(0, 1);
    struct drill_order order = drill_ask(drill, BYTES("A"));
    assert_int_equal(order.status, 200);
    assert_true(order.delay_us == 0 && !order.hang);

    assert_true(drill_fail(drill, BYTES("*"), 503));
    assert_true(drill_delay(drill, BYTES("A"), 200, 200));
    assert_true(drill_fail(drill, BYTES("B\n"), 410));
    order = drill_ask(drill, BYTES("A"));
    assert_int_equal(order.status, 503);
    assert_int_equal(order.delay_us, 200000);
    assert_int_equal(drill_ask(drill, BYTES("B\n")).status, 410);
    assert_int_equal(drill_ask(drill, BYTES_NONE).status, 503);

    assert_true(drill_hang(drill, BYTES("")));
    assert_true(drill_ask(drill, BYTES("")).hang);
    assert_false(drill_ask(drill, BYTES_NONE).hang);

    struct buf text = {0};
    drill_show(drill, &text);
    assert_non_null(strstr(
        text.at, "{\"key\":\"B%0A\",\"status\":410,\"delay_ms\":0,\"delay_most_ms\":0,\"hang\":false}"));
    buf_free(&text);

    drill_heal(drill, BYTES("B\n"));
    assert_int_equal(drill_ask(drill, BYTES("B\n")).status, 503);
    drill_heal(drill, BYTES_NONE);
    assert_int_equal(drill_ask(drill, BYTES("A")).status, 200);
    assert_int_equal(drill_ask(drill, BYTES("A")).delay_us, 0);
    drill_free(drill);
}

static void a_span_of_delays_is_drawn_from(void **state)
{
    (void)state;
    struct drill *drill = drill_new(0, 7);
    assert_true(drill_delay(drill, BYTES("*"), 1, 5));
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < 1000; i++) {
        int64_t us = drill_ask(drill, BYTES("A")).delay_us;
        least = us < least ? us : least;
        most = us > most ? us : most;
    }
    assert_true(least >= 1000 && least < 1200);
    assert_true(most <= 5000 && most > 4800);
    drill_free(drill);
}

static void chance_is_the_seeds(void **state)
{
    (void)state;
    struct drill *one = drill_new(30, 7), *same = drill_new(30, 7), *all = drill_new(100, 0);
    int failed = 0;
    for (int i = 0; i < 10000; i++) {
        int status = drill_ask(one, BYTES("A")).status;
        assert_int_equal(drill_ask(same, BYTES("A")).status, status);
        assert_int_equal(drill_ask(all, BYTES("A")).status, 503);
        failed += status == 503;
    }
    assert_true(failed > 2700 && failed < 3300);
    drill_heal(one, BYTES_NONE);
    for (int i = 0; i < 100; i++)
        assert_int_equal(drill_ask(one, BYTES("A")).status, 200);
    drill_free(one);
    drill_free(same);
    drill_free(all);
}

static void rules_are_bounded(void **state)
{
    (void)state;
    struct drill *drill = drill_new(0, 1);
    char key[DRILL_KEY_MAX + 1] = "";
    assert_false(drill_fail(drill, bytes_of(key, sizeof key), 503));
    for (uint32_t i = 0; i < DRILL_RULES_MAX; i++)
        assert_true(drill_fail(drill, bytes_of(&i, sizeof i), 503));
    assert_false(drill_fail(drill, BYTES("one more"), 503));
    uint32_t known = 7;
    assert_true(drill_fail(drill, bytes_of(&known, sizeof known), 500));
    drill_free(drill);
}

static struct delivery *delivery_of(struct bytes key)
{
    const struct http_header headers[] = {{BYTES("X-Lanegate-Ordering-Key"), key}};
    struct http_request request = {
        .target = BYTES("/hook?x"), .body = BYTES("abc"), .headers = headers, .header_count = 1};
    return delivery_read(&request, "lanegate");
}

struct ended {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool shut;      /* the thread waits inside its first answer */
    char order[16]; /* keys in the order of their end: 'A' answered, 'a' given up */
    size_t len;
};

static void note(struct ended *ended, struct delivery *delivery, int bit)
{
    pthread_mutex_lock(&ended->lock);
    while (ended->shut)
        pthread_cond_wait(&ended->changed, &ended->lock);
    ended->order[ended->len++] = (char)(delivery->key.at[0] | bit);
    pthread_cond_broadcast(&ended->changed);
    pthread_mutex_unlock(&ended->lock);
    delivery_free(delivery);
}

static void on_answer(void *ctx, struct delivery *delivery)
{
    note(ctx, delivery, 0);
}

static void on_give_up(void *ctx, struct delivery *delivery)
{
    note(ctx, delivery, 0x20);
}

static void add(struct later *later, struct bytes key, int64_t due_us)
{
    struct delivery *delivery = delivery_of(key);
    delivery->due_us = due_us;
    later_add(later, delivery);
}

static void waiting_ones_are_answered_by_due_time(void **state)
{
    (void)state;
    struct ended ended = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct later *later = later_open(on_answer, on_give_up, &ended);
    add(later, BYTES("H"), 0);
    add(later, BYTES("I"), 0);
    add(later, BYTES("Z"), clock_mono_us() + 3600000000);

    ended.shut = true; /* all three are due, and there, before any is answered */
    add(later, BYTES("G"), 1);
    add(later, BYTES("C"), 30);
    add(later, BYTES("A"), 10);
    add(later, BYTES("B"), 20);
    pthread_mutex_lock(&ended.lock);
    ended.shut = false;
    pthread_cond_broadcast(&ended.changed);
    while (ended.len < 4)
        pthread_cond_wait(&ended.changed, &ended.lock);
    pthread_mutex_unlock(&ended.lock);
    assert_memory_equal(ended.order, "GABC", 4);

    later_heal(later, BYTES("I"));
    assert_memory_equal(ended.order, "GABCi", 5);
    later_stop(later);
    assert_string_equal(ended.order, "GABCizh");
    add(later, BYTES("L"), clock_mono_us());
    assert_string_equal(ended.order, "GABCizhl");
    later_close(later);
}

static void a_delivery_on_one_line(void **state)
{
    (void)state;
    const struct http_header headers[] = {
        {BYTES("x-mine-source"), BYTES("stripe")},
        {BYTES("X-Mine-Tenant"), BYTES("acme")},
        {BYTES("X-Mine-Ordering-Key"), BYTES("a%0Ab")},
        {BYTES("X-Mine-Lane"), BYTES("ab")},
        {BYTES("X-Mine-Epoch"), BYTES("e")},
        {BYTES("X-Mine-Seq"), BYTES("42")},
        {BYTES("X-Mine-Previous-Seq"), BYTES("41")},
        {BYTES("X-Mine-Skipped"), BYTES("1")},
        {BYTES("X-Mine-Late"), BYTES("true")},
        {BYTES("X-Mine-Replay-Id"), BYTES("r")},
        {BYTES("X-Mine-Id"), BYTES("i")},
        {BYTES("X-Mine-Attempt"), BYTES("no number")},
        {BYTES("X-Mine-Body-Sha256"), BYTES("00")},
        {BYTES("X-Lanegate-Seq"), BYTES("7")},
    };
    struct http_request request = {
        .target = BYTES("/hook"), .body = BYTES("abc"), .headers = headers, .header_count = 14};
    struct delivery *delivery = delivery_read(&request, "mine");
    assert_true(bytes_eq(delivery->key, BYTES("a\nb")));
    delivery->started_us = 1700000000123456;
    delivery->finished_us = 1700000000125000;
    delivery->status = 503;
    struct buf line = {0};
    delivery_write_json(delivery, &line);
    assert_string_equal(
        line.at,
        "{\"event\":\"delivery\",\"ts\":1700000000125,\"source\":\"stripe\",\"tenant\":\"acme\",\"key\":\"a%"
        "0Ab\","
        "\"lane\":\"ab\",\"epoch\":\"e\",\"seq\":42,\"previous_seq\":41,\"skipped\":1,\"late\":true,"
        "\"replay_id\":\"r\",\"id\":\"i\",\"idempotency_key\":null,\"attempt\":null,\"status\":503,\"started_"
        "ms\":1700000000123,"
        "\"finished_ms\":1700000000125,\"service_us\":1544,\"body_sha256\":"
        "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\",\"intact\":false,\"path\":\"/"
        "hook\"}\n");
    buf_clear(&line);
    delivery_write_text(delivery, &line);
    assert_non_null(strstr(line.at,
                           "  stripe a%0Ab  seq 42  attempt no number  late  replay  BODY DIFFERS FROM ITS "
                           "DIGEST  -> 503 ("));
    buf_free(&line);
    delivery_free(delivery);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_of_a_key_stand_before_those_for_all),
        cmocka_unit_test(a_span_of_delays_is_drawn_from),
        cmocka_unit_test(chance_is_the_seeds),
        cmocka_unit_test(rules_are_bounded),
        cmocka_unit_test(waiting_ones_are_answered_by_due_time),
        cmocka_unit_test(a_delivery_on_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
