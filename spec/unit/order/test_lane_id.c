#include "order_support.h"

#include "util/digest.h"

static void is_the_start_of_a_digest_over_prefixed_parts(void **state)
{
    (void)state;
    struct bytes whole = BYTES("\0\0\0\0\0\0\0\4shop\0\0\0\0\0\0\0\7billing\0\0\0\0\0\0\0\5cus_1");
    uint8_t digest[SHA256_SIZE];
    sha256(&whole, 1, digest);
    struct lane_id id = lane_id_of(SOURCE, SINK, BYTES("cus_1"));
    assert_memory_equal(id.bytes, digest, LANE_ID_SIZE);
}

static void differs_with_each_part(void **state)
{
    (void)state;
    const struct lane_id ids[] = {
        lane_id_of(BYTES("a"), BYTES("b"), BYTES("c")),   lane_id_of(BYTES("a"), BYTES("b"), BYTES("d")),
        lane_id_of(BYTES("a"), BYTES("x"), BYTES("c")),   lane_id_of(BYTES("x"), BYTES("b"), BYTES("c")),
        lane_id_of(BYTES("a"), BYTES("b"), BYTES_NONE),   lane_id_of(BYTES("a"), BYTES("b"), BYTES("")),
        lane_id_of(BYTES("ab"), BYTES(""), BYTES("c")),   lane_id_of(BYTES(""), BYTES("ab"), BYTES("c")),
        lane_id_of(BYTES("a"), BYTES("bc"), BYTES("")),   lane_id_of(BYTES("a"), BYTES("bc"), BYTES_NONE),
        lane_id_of(BYTES("a/b"), BYTES("c"), BYTES("d")), lane_id_of(BYTES("a"), BYTES("b/c"), BYTES("d")),
        lane_id_of(BYTES("a"), BYTES("b"), BYTES("c\0")), lane_id_of(BYTES("a"), BYTES("b"), BYTES("\0c")),
        lane_id_of(BYTES("a"), BYTES("b"), BYTES("*")),   lane_id_of(BYTES("a"), BYTES("b"), BYTES("C")),
    };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        for (size_t k = 0; k < i; k++)
            assert_false(same_lane(ids[i], ids[k]));
    assert_true(same_lane(ids[0], lane_id_of(BYTES("a"), BYTES("b"), BYTES("c"))));
}

static void a_key_is_stamped_as_it_is_up_to_128_bytes(void **state) /* rule 5 */
{
    (void)state;
    struct arena *arena = arena_new(64);
    char key[ORDER_KEY_MAX + 1];
    memset(key, 'k', sizeof key);
    struct bytes kept = order_key_stamp(bytes_of(key, ORDER_KEY_MAX), arena);
    assert_true(bytes_eq(kept, bytes_of(key, ORDER_KEY_MAX)));
    assert_ptr_not_equal(kept.at, key);

    struct bytes hashed = order_key_stamp(bytes_of(key, ORDER_KEY_MAX + 1), arena);
    assert_int_equal(hashed.len, 71);
    assert_true(bytes_starts(hashed, BYTES("sha256:")));
    uint8_t digest[SHA256_SIZE];
    char hex[2 * SHA256_SIZE + 1];
    struct bytes whole = bytes_of(key, ORDER_KEY_MAX + 1);
    sha256(&whole, 1, digest);
    hex_encode(digest, sizeof digest, hex);
    assert_string_equal(hashed.at + 7, hex);
    assert_true(bytes_eq(order_key_stamp(BYTES("a\0\r\n*"), arena), BYTES("a\0\r\n*")));
    arena_free(arena);
}

static void a_sink_receives_the_key_or_tenant_and_source(void **state) /* rule 8 */
{
    (void)state;
    struct arena *arena = arena_new(64);
    assert_true(bytes_eq(order_sink_key(BYTES("cus_1"), BYTES("default"), SOURCE, arena), BYTES("cus_1")));
    assert_true(bytes_eq(order_sink_key(BYTES_NONE, BYTES("acme"), SOURCE, arena), BYTES("acme/shop")));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_start_of_a_digest_over_prefixed_parts),
        cmocka_unit_test(differs_with_each_part),
        cmocka_unit_test(a_key_is_stamped_as_it_is_up_to_128_bytes),
        cmocka_unit_test(a_sink_receives_the_key_or_tenant_and_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
