/* Rule 6's warning: once, when half of the first hundred had no key. */
#include "order_support.h"

#include <pthread.h>

static const struct order_lane with_key = {.ordered = true},
                               without = {.ordered = true, .missing = MISSING_NO_PATH},
                               filtered = {.filtered = true};

static void speaks_once_at_the_fiftieth(void **state)
{
    (void)state;
    struct order_watch watch = {0};
    int said = 0;
    for (int i = 0; i < 300; i++) {
        if (order_watch_hook(&watch, i % 2 ? &without : &with_key)) {
            assert_int_equal(i, 99); /* the fiftieth without, the hundredth in all */
            said++;
        }
    }
    assert_int_equal(said, 1);
}

static void is_silent_below_half(void **state)
{
    (void)state;
    struct order_watch watch = {0};
    for (int i = 0; i < 49; i++)
        assert_false(order_watch_hook(&watch, &without));
    for (int i = 0; i < 51; i++)
        assert_false(order_watch_hook(&watch, &with_key));
    for (int i = 0; i < 1000; i++) /* later ones do not count */
        assert_false(order_watch_hook(&watch, &without));
}

static void does_not_count_what_the_filter_left_out(void **state)
{
    (void)state;
    struct order_watch watch = {0};
    for (int i = 0; i < 1000; i++)
        assert_false(order_watch_hook(&watch, &filtered));
    for (int i = 0; i < 49; i++)
        assert_false(order_watch_hook(&watch, &without));
    assert_true(order_watch_hook(&watch, &without));
}

static void *count_many(void *ctx)
{
    uintptr_t said = 0;
    for (int i = 0; i < 1000; i++)
        said += order_watch_hook(ctx, &without);
    return (void *)said;
}

static void many_threads_hear_it_once(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct order_watch watch = {0};
        pthread_t threads[4];
        uintptr_t said = 0;
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, count_many, &watch), 0);
        for (int i = 0; i < 4; i++) {
            void *result;
            pthread_join(threads[i], &result);
            said += (uintptr_t)result;
        }
        assert_int_equal(said, 1);
    }
}

static void texts_name_the_path_and_what_was_there(void **state)
{
    (void)state;
    struct bytes segments[] = {BYTES("data"), BYTES("object"), BYTES("id")};
    struct key_spec items[] = {{.kind = KEY_JSON, .path = {segments, 3}},
                               {.kind = KEY_HEADER, .header = BYTES("x-shop")},
                               {.kind = KEY_SCRIPT, .module = "keys.shop", .function = "by_region"}};
    struct key_spec key = {.kind = KEY_FIRST, .items = items, .item_count = 3};
    struct buf text = {0};
    key_spec_describe(&key, &text);
    assert_string_equal(text.at,
                        "first of json \"data.object.id\", header \"x-shop\", lua keys.shop.by_region");
    buf_free(&text);

    struct order_lane lane = {.missing = MISSING_NOT_STRING, .found = JSON_KIND_OBJECT};
    assert_string_equal(order_lane_instead(&lane), "an object");
    lane.found = JSON_KIND_STRING;
    assert_string_equal(order_lane_instead(&lane), "a string with half of a surrogate pair");
    for (int i = MISSING_NOTHING + 1; i < MISSING_REASON_COUNT; i++) {
        lane.missing = (enum missing_reason)i;
        assert_string_not_equal(order_lane_instead(&lane), "a key");
    }
    lane.missing = MISSING_NOTHING;
    assert_string_equal(order_lane_instead(&lane), "a key");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speaks_once_at_the_fiftieth),
        cmocka_unit_test(is_silent_below_half),
        cmocka_unit_test(does_not_count_what_the_filter_left_out),
        cmocka_unit_test(many_threads_hear_it_once),
        cmocka_unit_test(texts_name_the_path_and_what_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
