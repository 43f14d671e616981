/* UUIDv7: the time in front, the version and variant in place, ascending within a thread and millisecond. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/uuid.h"

static void the_time_stands_in_front(void **state)
{
    (void)state;
    struct uuid id = uuid_new(0x017f22e279b0); /* the example of RFC 9562, appendix A.6 */
    char text[UUID_TEXT];
    uuid_format(&id, text);
    assert_int_equal(strlen(text), 36);
    assert_memory_equal(text, "017f22e2-79b0-7", 15);
    assert_non_null(strchr("89ab", text[19]));
    assert_int_equal(text[8], '-');
    assert_int_equal(text[13], '-');
    assert_int_equal(text[18], '-');
    assert_int_equal(text[23], '-');
}

static int order(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes);
}

static void a_thread_ascends_within_a_millisecond(void **state)
{
    (void)state;
    /* Far more than the 4,096 that the counting bits can tell apart: a burst borrows from the next
     * millisecond. */
    struct uuid before = uuid_new(1700000000000);
    for (int i = 0; i < 50000; i++) {
        struct uuid next = uuid_new(1700000000000);
        assert_true(order(&before, &next) < 0);
        before = next;
    }
    /* and the milliseconds it has borrowed do not come again */
    for (int64_t ms = 1700000000001; ms < 1700000000100; ms++) {
        struct uuid next = uuid_new(ms);
        assert_true(order(&before, &next) < 0);
        before = next;
    }
}

static void a_later_millisecond_is_above(void **state)
{
    (void)state;
    struct uuid before = uuid_new(1);
    for (int64_t ms = 2; ms < 3000; ms++) {
        struct uuid next = uuid_new(ms);
        assert_true(order(&before, &next) < 0);
        before = next;
    }
}

static void a_clock_set_back_shows_its_own_time(void **state)
{
    (void)state;
    uuid_new(0x0200000000ff);
    struct uuid id = uuid_new(0x020000000001);
    char text[UUID_TEXT];
    uuid_format(&id, text);
    assert_memory_equal(text, "02000000-0001-7", 15);
}

enum { THREADS = 4, EACH = 20000 };

static void *make(void *arg)
{
    struct uuid *ids = arg;
    for (int i = 0; i < EACH; i++)
        ids[i] = uuid_new(1700000000000);
    return NULL;
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct uuid));
}

static void threads_do_not_make_the_same_one(void **state)
{
    (void)state;
    struct uuid *ids = calloc(THREADS * EACH, sizeof *ids);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make, ids + i * EACH), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    qsort(ids, THREADS * EACH, sizeof *ids, by_bytes);
    for (int i = 1; i < THREADS * EACH; i++)
        assert_true(order(&ids[i - 1], &ids[i]) != 0);
    free(ids);
}

static void text_reads_back_in_any_case(void **state)
{
    (void)state;
    struct uuid id = uuid_new(1700000000000), back;
    char text[UUID_TEXT];
    uuid_format(&id, text);
    assert_true(uuid_parse(bytes_str(text), &back));
    assert_int_equal(order(&id, &back), 0);
    assert_true(uuid_parse(BYTES("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"), &back));
    uuid_format(&back, text);
    assert_string_equal(text, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
}

static void other_forms_are_not_ids(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "017f22e279b07cc398c4dc0c0c07398f",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398f0",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398g",
        "017f22e-279b0-7cc3-98c4-dc0c0c07398f",
        "{17f22e2-79b0-7cc3-98c4-dc0c0c07398}",
        "017f22e2-79b0-7cc3-98c4+dc0c0c07398f",
        "------------------------------------",
    };
    struct uuid id;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(uuid_parse(bytes_str(bad[i]), &id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_stands_in_front),
        cmocka_unit_test(a_thread_ascends_within_a_millisecond),
        cmocka_unit_test(a_later_millisecond_is_above),
        cmocka_unit_test(a_clock_set_back_shows_its_own_time),
        cmocka_unit_test(threads_do_not_make_the_same_one),
        cmocka_unit_test(text_reads_back_in_any_case),
        cmocka_unit_test(other_forms_are_not_ids),
    };
    return cmocka_run_group_tests_name("util: uuid", tests, NULL, NULL);
}
