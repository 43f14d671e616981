/* The table hash: the same text the same number, every byte counts, and the buckets fill evenly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/hash.h"

static void the_same_bytes_give_the_same_number(void **state)
{
    (void)state;
    char a[] = "customer-7", b[] = "customer-7";
    assert_true(hash_bytes(bytes_str(a)) == hash_bytes(bytes_str(b)));
    assert_true(hash_bytes(BYTES_NONE) == hash_bytes(BYTES("")));
    assert_true(hash_seed() == hash_seed());
    assert_true(hash_u64(1, 2) == hash_u64(1, 2));
    assert_true(hash_u64(1, 2) != hash_u64(2, 1));
}

static void every_byte_counts(void **state)
{
    (void)state;
    char text[40];
    memset(text, 'x', sizeof text);
    for (size_t len = 1; len <= sizeof text; len++)
        for (size_t i = 0; i < len; i++) {
            uint64_t before = hash_bytes(bytes_of(text, len));
            text[i] ^= 1;
            assert_true(hash_bytes(bytes_of(text, len)) != before);
            text[i] ^= 1;
        }
    static const char zeros[20];
    for (size_t len = 1; len < sizeof zeros; len++) /* lengths of the same bytes */
        assert_true(hash_bytes(bytes_of(zeros, len)) != hash_bytes(bytes_of(zeros, len - 1)));
}

static void buckets_fill_evenly(void **state)
{
    (void)state;
    enum { BUCKETS = 256, EACH = 100 };
    int filled[BUCKETS] = {0};
    char text[32];
    for (int i = 0; i < BUCKETS * EACH; i++) {
        int n = snprintf(text, sizeof text, "shop:%d", i);
        filled[hash_bytes(bytes_of(text, (size_t)n)) % BUCKETS]++;
    }
    for (int i = 0; i < BUCKETS; i++) /* mean 100, deviation 10: nine deviations either way */
        assert_in_range(filled[i], 10, 190);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bytes_give_the_same_number),
        cmocka_unit_test(every_byte_counts),
        cmocka_unit_test(buckets_fill_evenly),
    };
    return cmocka_run_group_tests_name("util: hash", tests, NULL, NULL);
}
