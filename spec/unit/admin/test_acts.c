/* What an operator does to lanes and sinks, over the wire, with rooms that are real. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "house.h"
#include "order/order.h"
#include "util/arena.h"

static struct house house;
static char ids[3][UUID_TEXT];
static char lane[128]; /* the path of lane "a" at the sink that nobody answers */

/* Lane "a" has two hooks that wait for an hour, lane "b" one. */
static int move_in(void **state)
{
    (void)state;
    house_open(&house, NULL, 0);
    house_take(&house, BYTES("a"), BYTES("x"), ids[0]);
    house_take(&house, BYTES("a"), BYTES("y"), ids[1]);
    house_take(&house, BYTES("b"), BYTES("x"), ids[2]);
    house_wait_total(&house, "/v1/lanes?sink=gone&state=retrying", 2);
    json_t *lanes = house_get(&house, "/v1/lanes?sink=gone&source=demo&key=a");
    const json_t *found = json_array_get(json_object_get(lanes, "lanes"), 0);
    snprintf(lane, sizeof lane, "/v1/lanes/default/%s", json_string_value(json_object_get(found, "lane")));
    json_decref(lanes);
    return 0;
}

static int move_out(void **state)
{
    (void)state;
    house_close(&house);
    return 0;
}

/* POSTs to `path` and what is behind it; the answer's status and JSON. */
static int post(const char *path, const char *more, json_t **json)
{
    char target[256];
    struct house_answer answer;
    snprintf(target, sizeof target, "%s%s", path, more);
    house_ask(&house, "POST", target, NULL, &answer);
    int status = answer.status;
    *json = json_incref(answer.json);
    house_answer_free(&answer);
    return status;
}

static void expect(int status, const char *member, const char *value, const char *path, const char *more)
{
    json_t *json;
    int got = post(path, more, &json);
    const char *found = json_string_value(json_object_get(json, member));
    if (got != status || !found || strcmp(found, value) != 0)
        fail_msg("%s%s: %d %s=%s", path, more, got, member, found ? found : "(none)");
    json_decref(json);
}

static char *with_head(const char *act, const char *id)
{
    static char more[96];
    snprintf(more, sizeof more, "/%s?expect_head=%s", act, id);
    return more;
}

static json_int_t depth(void)
{
    json_t *json = house_get(&house, lane);
    json_int_t n = json_integer_value(json_object_get(json, "depth"));
    assert_int_equal(json_array_size(json_object_get(json, "rows")), n);
    json_decref(json);
    return n;
}

static void a_lane_is_paused_and_resumed(void **state)
{
    (void)state;
    expect(200, "state", "paused", lane, "/pause");
    expect(200, "status", "unchanged", lane, "/pause");
    expect(200, "state", "retrying", lane, "/resume");
    expect(200, "status", "unchanged", lane, "/resume");
    assert_int_equal(depth(), 2);
}

static void an_act_is_held_to_the_head_that_was_seen(void **state)
{
    (void)state;
    expect(409, "error", "head_changed", lane, with_head("skip", ids[1]));
    expect(409, "error", "head_changed", lane, with_head("skip", "01890a5d-ac96-774b-bcce-b302099a8057"));
    assert_int_equal(depth(), 2);
    expect(200, "status", "done", lane, with_head("skip", ids[0]));
    assert_int_equal(depth(), 1);
    json_t *dead = house_get(&house, "/v1/dlq?sink=gone");
    const json_t *entry = json_array_get(json_object_get(dead, "entries"), 0);
    assert_string_equal(json_string_value(json_object_get(entry, "id")), ids[0]);
    assert_string_equal(json_string_value(json_object_get(entry, "class")), "skipped");
    json_decref(dead);
}

static void a_sink_is_paused_for_a_while(void **state)
{
    (void)state;
    expect(200, "status", "done", "/v1/sinks/demo/gone", "/pause?for=1h&reason=upgrade");
    json_t *audit = house_get(&house, "/v1/audit?what=sink.pause");
    const json_t *line = json_array_get(json_object_get(audit, "lines"), 0);
    assert_string_equal(json_string_value(json_object_get(line, "reason")), "upgrade");
    assert_string_equal(json_string_value(json_object_get(line, "who")), "local");
    assert_string_equal(json_string_value(json_object_get(line, "target")), "demo/gone for 3600 s");
    json_decref(audit);
    expect(200, "status", "done", "/v1/sinks/demo/gone", "/resume");
}

/* In this house a hook's key is its body: "x" of lane "b" and "y" of lane "a" go to lanes of their own. */
static void rekey_counts_first_and_then_moves(void **state)
{
    (void)state;
    json_t *json;
    assert_int_equal(post("/v1/sinks/demo/gone", "/rekey?dry_run=true", &json), 200);
    assert_int_equal(json_integer_value(json_object_get(json, "matched")), 2);
    assert_int_equal(json_integer_value(json_object_get(json, "moving")), 2);
    assert_int_equal(json_integer_value(json_object_get(json, "done")), 0);
    json_decref(json);
    assert_int_equal(depth(), 1);
    assert_int_equal(post("/v1/sinks/demo/gone", "/rekey", &json), 200);
    assert_int_equal(json_integer_value(json_object_get(json, "done")), 2);
    json_decref(json);
    expect(404, "what", "lane", lane, "/retry");
    house_wait_total(&house, "/v1/lanes?sink=gone&source=demo&key=y", 1);
    house_wait_total(&house, "/v1/lanes?sink=gone&source=demo&key=x", 1);
}

/* At three in the morning: the next hook of that customer must not go out, and there is none yet. */
static void a_lane_is_paused_before_its_first_hook(void **state)
{
    (void)state;
    char path[128], hex[2 * LANE_ID_SIZE + 1], id[UUID_TEXT];
    struct arena *arena = arena_new(256);
    struct lane_id new_one = lane_id_of(BYTES("demo"), BYTES("gone"), order_key_stamp(BYTES("c"), arena));
    hex_encode(new_one.bytes, sizeof new_one.bytes, hex);
    arena_free(arena);
    snprintf(path, sizeof path, "/v1/lanes/default/%s", hex);
    expect(404, "what", "lane", path, "/pause"); /* of whom? */
    expect(404, "what", "lane", path, "/resume");
    expect(200, "state", "paused", path, "/pause?source=demo&sink=gone&key=c&reason=test");
    expect(200, "status", "unchanged", path, "/pause?source=demo&sink=gone&key=c");
    json_t *audit = house_get(&house, "/v1/audit?what=lane.pause");
    const json_t *line = json_array_get(json_object_get(audit, "lines"), 0);
    assert_string_equal(json_string_value(json_object_get(line, "target")), "demo/gone/c");
    json_decref(audit);

    house_take(&house, BYTES("c"), BYTES("c"), id);
    house_wait_total(&house, "/v1/lanes?sink=gone&state=paused", 1);
    expect(200, "status", "done", path, "/resume");
    house_wait_total(&house, "/v1/lanes?sink=gone&state=paused", 0);
}

static void what_is_not_there_is_said(void **state)
{
    (void)state;
    expect(404, "what", "sink", "/v1/sinks/demo/nobody", "/pause");
    expect(404, "what", "lane", "/v1/lanes/nobody/00000000000000000000000000000000", "/pause");
    expect(404, "what", "lane", "/v1/lanes/default/00000000000000000000000000000000", "/pause");
    expect(404, "what", "lane", "/v1/lanes/default/zz", "/pause");
    expect(400, "error", "bad_filter", lane, "/pause?source=demo&sink=gone&key=another");
    expect(400, "filter", "for", "/v1/sinks/demo/gone", "/resume?for=1h");
    expect(400, "filter", "for", "/v1/sinks/demo/gone", "/pause?for=0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lane_is_paused_and_resumed),
        cmocka_unit_test(an_act_is_held_to_the_head_that_was_seen),
        cmocka_unit_test(a_sink_is_paused_for_a_while),
        cmocka_unit_test(rekey_counts_first_and_then_moves),
        cmocka_unit_test(a_lane_is_paused_before_its_first_hook),
        cmocka_unit_test(what_is_not_there_is_said),
    };
    return cmocka_run_group_tests(tests, move_in, move_out);
}
