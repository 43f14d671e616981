/* The rows of a lane against the plainest list there is, and the age of the oldest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "lanes/ages.h"
#include "lanes/heap.h"
#include "lanes/rows.h"

static uint64_t roll(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

enum { SEQS = 4000 };

static void check_all(const struct rows *rows, const bool *there)
{
    uint32_t count = 0;
    uint64_t seq = 0;
    for (uint64_t i = 1; i < SEQS; i++) {
        if (!there[i])
            continue;
        seq = rows_next(rows, seq);
        assert_int_equal(seq, i * 3);
        count++;
    }
    assert_int_equal(rows_next(rows, seq), 0);
    assert_int_equal(rows->count, count);
}

static void rows_are_a_sorted_list_whatever_comes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 40; seed++) {
        uint64_t dice = seed * 7919;
        struct rows rows = {0};
        size_t bytes = 0;
        bool there[SEQS] = {false};
        for (int step = 0; step < 6000; step++) {
            uint64_t i = 1 + roll(&dice) % (SEQS - 1);
            int64_t received_ms = 0;
            if (roll(&dice) % 100 < (seed % 3 ? 60 : 45)) {
                /* Now and then a time far from the others: it fits no chunk. */
                int64_t age_ms = roll(&dice) % 50 == 0 ? (int64_t)40 * 86400000 : (int64_t)i;
                assert_int_equal(rows_add(&rows, i * 3, age_ms + (int64_t)i, &bytes), !there[i]);
                there[i] = true;
            } else {
                uint64_t first = roll(&dice) % 2 && rows.count ? rows.first / 3 : i;
                assert_int_equal(rows_remove(&rows, first * 3, &received_ms, &bytes), there[first]);
                if (there[first])
                    assert_true(received_ms == 2 * (int64_t)first ||
                                received_ms == (int64_t)40 * 86400000 + (int64_t)first);
                there[first] = false;
            }
        }
        check_all(&rows, there);
        rows_free(&rows, &bytes);
        assert_int_equal(bytes, 0);
    }
}

static void a_long_queue_costs_eight_bytes_a_row(void **state)
{
    (void)state;
    struct rows rows = {0};
    size_t bytes = 0;
    for (uint64_t seq = 1; seq <= 100000; seq++)
        assert_true(rows_add(&rows, seq, (int64_t)seq, &bytes));
    assert_true(bytes < 100000 * 9);
    for (uint64_t seq = 1; seq <= 100000; seq++) {
        assert_int_equal(rows.first, seq);
        assert_int_equal(rows.received_ms, seq);
        assert_true(rows_remove(&rows, seq, NULL, &bytes));
    }
    assert_int_equal(bytes, 0);
}

static void a_heap_gives_the_smallest_and_lets_any_go(void **state)
{
    (void)state;
    struct heap heap = {0};
    struct heap_node nodes[500] = {0};
    uint64_t dice = 5;
    for (int i = 0; i < 500; i++)
        heap_push(&heap, &nodes[i], (int64_t)(roll(&dice) % 1000));
    for (int i = 0; i < 500; i += 3)
        heap_remove(&heap, &nodes[i]);
    int64_t last = -1;
    for (struct heap_item *top; (top = heap_top(&heap));) {
        assert_true(top->key >= last);
        last = top->key;
        assert_true((top->node - nodes) % 3 != 0);
        heap_remove(&heap, top->node);
    }
    heap_free(&heap);
}

static void the_oldest_is_known_to_a_hundredth_of_its_age(void **state)
{
    (void)state;
    struct ages ages = {0};
    for (uint64_t seq = 1; seq <= 100000; seq++)
        ages_add(&ages, seq, 1000 + (int64_t)seq * 10);
    assert_int_equal(ages_oldest_ms(&ages), 1010);
    for (uint64_t seq = 1; seq <= 50000; seq++)
        ages_remove(&ages, seq);
    int64_t oldest_ms = ages_oldest_ms(&ages), exact_ms = 1000 + 50001 * 10;
    assert_true(oldest_ms <= exact_ms && exact_ms - oldest_ms < 1000000 / 100);
    ages_add(&ages, 7, 1070); /* one comes back from the dead letters */
    assert_true(ages_oldest_ms(&ages) <= 1070);
    ages_remove(&ages, 7);
    for (uint64_t seq = 50001; seq <= 100000; seq++)
        ages_remove(&ages, seq);
    assert_int_equal(ages_oldest_ms(&ages), 0);
    ages_free(&ages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_a_sorted_list_whatever_comes),
        cmocka_unit_test(a_long_queue_costs_eight_bytes_a_row),
        cmocka_unit_test(a_heap_gives_the_smallest_and_lets_any_go),
        cmocka_unit_test(the_oldest_is_known_to_a_hundredth_of_its_age),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
