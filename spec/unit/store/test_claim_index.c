/* The table of claims against a plain list of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/store_priv.h"
#include "util/digest.h"

#define HOUR_MS (3600 * 1000LL)

static void claim_of(uint64_t number, uint8_t out[CLAIM_SIZE])
{
    uint8_t whole[SHA256_SIZE];
    struct bytes part = bytes_of(&number, sizeof number);
    sha256(&part, 1, whole);
    memcpy(out, whole, CLAIM_SIZE);
}

struct seen {
    uint64_t wanted, last;
    int count;
    bool found;
};

static bool is_it(void *ctx, uint64_t seq)
{
    struct seen *seen = ctx;
    assert_true(seen->count == 0 || seq < seen->last); /* newest first */
    seen->count++;
    seen->last = seq;
    seen->found |= seq == seen->wanted;
    return seq == seen->wanted;
}

static bool has(const struct claim_index *index, uint64_t number, uint64_t seq)
{
    uint8_t claim[CLAIM_SIZE];
    struct seen seen = {.wanted = seq};
    claim_of(number, claim);
    bool found = claim_index_find(index, claim, is_it, &seen);
    assert_int_equal(found, seen.found);
    return found;
}

static void add(struct claim_index *index, uint64_t number, uint64_t seq, int64_t expires_ms)
{
    uint8_t claim[CLAIM_SIZE];
    claim_of(number, claim);
    claim_index_add(index, claim, seq, expires_ms);
}

/* Gaps in seqs, some wider than 32 bits. */
static void every_claim_is_found_and_no_other(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    struct claim_index index = {0};
    static uint64_t seqs[MANY];
    uint64_t seq = 1;
    for (size_t i = 0; i < MANY; i++) {
        seqs[i] = seq;
        add(&index, i, seq, (int64_t)i);
        seq += i % 1000 == 0 ? 5000000000ULL : 1 + i % 3;
    }
    assert_int_equal(index.count, MANY);
    for (size_t i = 0; i < MANY; i++) {
        assert_true(has(&index, i, seqs[i]));
        assert_false(has(&index, i + MANY, seqs[i]));
    }
    claim_index_free(&index);
}

static void runs_grow_and_nothing_is_moved(void **state)
{
    (void)state;
    struct claim_index index = {0};
    for (size_t i = 0; i < 200000; i++)
        add(&index, i, i + 1, 0);
    assert_in_range(index.runs.len, 5, 7);
    assert_int_equal(index.runs.at[0].used, CLAIM_RUN_MIN);
    assert_int_equal(index.runs.at[1].used, 2 * CLAIM_RUN_MIN);
    claim_index_free(&index);
}

static void a_removed_one_hides_nothing_behind_it(void **state)
{
    (void)state;
    enum { MANY = 4000 };
    struct claim_index index = {0};
    uint8_t claim[CLAIM_SIZE];
    for (size_t i = 0; i < MANY; i++)
        add(&index, i, i + 1, 0);
    for (size_t i = 0; i < MANY; i += 2) {
        claim_of(i, claim);
        claim_index_remove(&index, claim, i + 1);
        claim_index_remove(&index, claim, i + 1); /* and none but that one */
    }
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(has(&index, i, i + 1), i % 2);
    add(&index, 0, MANY + 1, 0);
    assert_true(has(&index, 0, MANY + 1));
    claim_index_free(&index);
}

/* The same key claimed again after its time: the newest claim is asked about first. */
static void claims_of_one_key_are_told_newest_first(void **state)
{
    (void)state;
    struct claim_index index = {0};
    for (uint64_t seq = 1; seq < 20; seq++)
        add(&index, 7, seq, (int64_t)seq * 25 * HOUR_MS);
    assert_true(has(&index, 7, 19));
    assert_true(has(&index, 7, 1));
    claim_index_free(&index);
}

static void runs_go_when_all_of_them_expired(void **state)
{
    (void)state;
    struct claim_index index = {0};
    assert_int_equal(claim_index_due_ms(&index), INT64_MAX);
    for (uint64_t i = 0; i < 100; i++)
        add(&index, i, i + 1, (int64_t)(i + 1) * HOUR_MS);
    assert_int_equal(index.runs.len, 4); /* of 25 hours each */
    assert_int_equal(claim_index_due_ms(&index), 25 * HOUR_MS);
    assert_int_equal(claim_index_expire(&index, 25 * HOUR_MS - 1, SIZE_MAX), 0);
    assert_int_equal(index.count, 100);
    assert_int_equal(claim_index_floor(&index), 1);
    assert_int_equal(claim_index_expire(&index, 51 * HOUR_MS, SIZE_MAX), 0);
    assert_int_equal(index.count, 50);
    assert_int_equal(claim_index_floor(&index), 51);
    assert_false(has(&index, 49, 50));
    assert_true(has(&index, 50, 51));
    claim_index_expire(&index, 101 * HOUR_MS, SIZE_MAX);
    assert_int_equal(index.count, 0);
    assert_int_equal(claim_index_floor(&index), UINT64_MAX);
    claim_index_free(&index);
}

static void beyond_the_bound_the_oldest_go_early(void **state)
{
    (void)state;
    struct claim_index index = {0};
    size_t early = 0;
    for (size_t i = 0; i < 100000; i++) {
        add(&index, i, i + 1, INT64_MAX);
        early += claim_index_expire(&index, 0, 50000);
        assert_true(index.count <= 50000 || index.runs.len == 1);
    }
    assert_int_equal(early + index.count, 100000);
    assert_true(has(&index, 99999, 100000));
    assert_false(has(&index, 0, 1));
    claim_index_free(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_claim_is_found_and_no_other),
        cmocka_unit_test(runs_grow_and_nothing_is_moved),
        cmocka_unit_test(a_removed_one_hides_nothing_behind_it),
        cmocka_unit_test(claims_of_one_key_are_told_newest_first),
        cmocka_unit_test(runs_go_when_all_of_them_expired),
        cmocka_unit_test(beyond_the_bound_the_oldest_go_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
