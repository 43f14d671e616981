/* The lanes of a job and the last row of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "replay/lane_map.h"

static struct map_lane lane(uint32_t number, uint64_t last)
{
    struct map_lane lane = {.sink = 1 + number % 3, .tenant = 1, .last = last};
    memcpy(lane.lane, &number, sizeof number);
    return lane;
}

static void each_lane_is_there_once_with_its_last_row(void **state)
{
    (void)state;
    enum { LANES = 3000, ROWS = 30000 };
    struct lane_map map = {.full = false};
    for (uint64_t seq = 1; seq <= ROWS; seq++)
        lane_map_add(&map, &(struct map_lane[]){lane((uint32_t)(seq * 7 % LANES), seq)}[0]);
    assert_true(map.all.len < ROWS); /* it was tidied on the way */
    lane_map_sort(&map);
    assert_int_equal(map.all.len, LANES);
    assert_false(map.full);
    for (uint32_t i = 0; i < LANES; i++) {
        struct map_lane wanted = lane(i, 0);
        struct map_lane *found = lane_map_find(&map, wanted.sink, wanted.tenant, wanted.lane);
        assert_non_null(found);
        assert_true(found->last > ROWS - LANES && found->last * 7 % LANES == i);
    }
    struct map_lane none = lane(LANES, 0);
    assert_null(lane_map_find(&map, none.sink, none.tenant, none.lane));
    lane_map_free(&map);
}

static void lanes_are_passed_in_order_of_their_last_row(void **state)
{
    (void)state;
    struct lane_map map = {.full = false};
    const uint64_t lasts[] = {40, 10, 30, 20};
    for (uint32_t i = 0; i < 4; i++)
        lane_map_add(&map, &(struct map_lane[]){lane(i, lasts[i])}[0]);
    lane_map_sort(&map);
    assert_null(lane_map_pass(&map, 9));
    assert_int_equal(lane_map_pass(&map, 25)->last, 10);
    assert_int_equal(lane_map_pass(&map, 25)->last, 20);
    assert_null(lane_map_pass(&map, 25));
    assert_int_equal(lane_map_pass(&map, 100)->last, 30);
    assert_int_equal(lane_map_pass(&map, 100)->last, 40);
    assert_null(lane_map_pass(&map, 100));
    lane_map_free(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_lane_is_there_once_with_its_last_row),
        cmocka_unit_test(lanes_are_passed_in_order_of_their_last_row),
    };
    return cmocka_run_group_tests_name("replay/lane_map", tests, NULL, NULL);
}
