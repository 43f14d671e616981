/* What a log took, asked by sink and by lane. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "cli/order_taken.h"

enum { BILLING, MAIL, OTHER };

static const struct taken_sink sinks[] = {
    {"stripe", "billing", true}, {"stripe", "mail", true}, {"shop", "billing", true}};

static struct uuid hook(unsigned n)
{
    struct uuid id = {{0x01, 0x89, [14] = (uint8_t)(n >> 8), [15] = (uint8_t)n}};
    return id;
}

/* A delivery of hook n by that sink, as the log has it: `shown` is what stands in x-lanegate-ordering-key. */
static void add(struct order_taken *taken, unsigned n, const char *sink, const char *key, const char *shown)
{
    struct uuid id = hook(n);
    struct lane_id lane = lane_id_of(BYTES("stripe"), bytes_str(sink), key ? bytes_str(key) : BYTES_NONE);
    char id_text[UUID_TEXT], lane_text[2 * LANE_ID_SIZE + 1];
    uuid_format(&id, id_text);
    hex_encode(lane.bytes, sizeof lane.bytes, lane_text);
    order_taken_add(taken, bytes_str(id_text), BYTES("stripe"), bytes_str(lane_text), bytes_str(shown));
}

static void a_lane_says_which_sink_it_was(void **state)
{
    (void)state;
    struct order_taken *taken = order_taken_new(sinks, 3);
    struct uuid one = hook(1), two = hook(2), three = hook(3);
    add(taken, 1, "mail", "cus_1", "cus_1");
    add(taken, 2, "billing", NULL, "default/stripe"); /* the keyless lane */
    add(taken, 2, "mail", "cus_2", "cus_2");
    assert_false(order_taken_by(taken, &one, BILLING));
    assert_true(order_taken_by(taken, &one, MAIL));
    assert_false(order_taken_by(taken, &one, OTHER));
    assert_true(order_taken_by(taken, &two, BILLING));
    assert_true(order_taken_by(taken, &two, MAIL));
    assert_false(order_taken_by(taken, &three, BILLING));
    order_taken_free(taken);
}

/* As after a sink got another name: the lane is known, its sink is not. */
static void a_lane_of_no_known_sink_is_a_lane_still(void **state)
{
    (void)state;
    struct order_taken *taken = order_taken_new(sinks, 3);
    struct uuid one = hook(1);
    struct lane_id old = lane_id_of(BYTES("stripe"), BYTES("old"), BYTES("k")),
                   other = lane_id_of(BYTES("stripe"), BYTES("old"), BYTES("l"));
    add(taken, 1, "old", "k", "k");
    assert_false(order_taken_by(taken, &one, BILLING));
    assert_true(order_taken_in(taken, &one, &old));
    assert_false(order_taken_in(taken, &one, &other));
    assert_false(order_taken_in(taken, &one, NULL));
    order_taken_free(taken);
}

static void a_delivery_without_a_lane_stands_for_every_sink(void **state)
{
    (void)state;
    struct order_taken *taken = order_taken_new(sinks, 3);
    struct uuid one = hook(1);
    struct lane_id lane = lane_id_of(BYTES("stripe"), BYTES("mail"), BYTES("k"));
    char text[UUID_TEXT];
    uuid_format(&one, text);
    order_taken_add(taken, bytes_str(text), BYTES("stripe"), BYTES(""), BYTES(""));
    assert_true(order_taken_by(taken, &one, BILLING));
    assert_true(order_taken_in(taken, &one, NULL));
    assert_false(order_taken_in(taken, &one, &lane));
    order_taken_free(taken);
}

static void what_is_added_later_is_found_too(void **state)
{
    (void)state;
    enum { HOOKS = 1000 };
    struct order_taken *taken = order_taken_new(sinks, 3);
    for (unsigned i = 0; i < HOOKS; i++) {
        struct uuid now = hook(i * 7 % HOOKS), next = hook((i + 1) * 7 % HOOKS);
        assert_false(order_taken_by(taken, &now, MAIL));
        add(taken, i * 7 % HOOKS, "mail", "k", "k");
        assert_true(order_taken_by(taken, &now, MAIL));
        if (i + 1 < HOOKS)
            assert_false(order_taken_by(taken, &next, MAIL));
    }
    order_taken_free(taken);
}

static void what_names_no_hook_is_passed_over(void **state)
{
    (void)state;
    struct order_taken *taken = order_taken_new(sinks, 3);
    struct uuid one = hook(1);
    char text[UUID_TEXT];
    uuid_format(&one, text);
    order_taken_add(taken, BYTES("nonsense"), BYTES("stripe"), BYTES(""), BYTES(""));
    order_taken_add(taken, BYTES(""), BYTES("stripe"), BYTES(""), BYTES(""));
    order_taken_add(taken, bytes_str(text), BYTES("stripe"), BYTES("not a lane"), BYTES("k"));
    assert_false(order_taken_by(taken, &one, MAIL));
    order_taken_free(taken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lane_says_which_sink_it_was),
        cmocka_unit_test(a_lane_of_no_known_sink_is_a_lane_still),
        cmocka_unit_test(a_delivery_without_a_lane_stands_for_every_sink),
        cmocka_unit_test(what_is_added_later_is_found_too),
        cmocka_unit_test(what_names_no_hook_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
