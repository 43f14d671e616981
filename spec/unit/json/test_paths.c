#include "json_support.h"

static void splits_at_dots(void **state)
{
    (void)state;
    struct bytes segments[JSON_PATH_SEGMENTS_MAX];
    size_t count;
    assert_int_equal(json_path_split(BYTES("data.object.customer"), segments, &count, NULL), STATUS_OK);
    assert_int_equal(count, 3);
    assert_true(bytes_eq(segments[0], BYTES("data")));
    assert_true(bytes_eq(segments[1], BYTES("object")));
    assert_true(bytes_eq(segments[2], BYTES("customer")));
    assert_int_equal(json_path_split(BYTES("id"), segments, &count, NULL), STATUS_OK);
    assert_int_equal(count, 1);
}

static void refuses_empty_paths_and_segments(void **state)
{
    (void)state;
    struct bytes segments[JSON_PATH_SEGMENTS_MAX];
    size_t count;
    static const char *const wrong[] = {"", ".", "a.", ".a", "a..b"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error err = {0};
        assert_int_equal(json_path_split(bytes_str(wrong[i]), segments, &count, &err), STATUS_INVALID);
        assert_non_null(strstr(err.text, "empty"));
    }
}

static void bounds_the_number_of_segments(void **state)
{
    (void)state;
    struct bytes segments[JSON_PATH_SEGMENTS_MAX];
    size_t count;
    char text[2 * JSON_PATH_SEGMENTS_MAX + 1];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i & 1 ? '.' : 'a';
    assert_int_equal(json_path_split(bytes_of(text, sizeof text - 2), segments, &count, NULL), STATUS_OK);
    assert_int_equal(count, JSON_PATH_SEGMENTS_MAX);
    assert_int_equal(json_path_split(bytes_of(text, sizeof text), segments, &count, NULL), STATUS_INVALID);
}

/* Paths that are equal, that begin with each other, that share a stem, out of order: each gets its own
 * answer. */
static void many_paths_are_picked_in_one_walk(void **state)
{
    (void)state;
    static const char *const texts[] = {"b.c.d", "a",   "b.c", "b", "b.c.d", "list.1", "list.0.x",
                                        "b.ce",  "b.e", "zz",  "a", "b.c.x", "list"};
    enum { COUNT = sizeof texts / sizeof *texts };
    struct bytes segments[COUNT][JSON_PATH_SEGMENTS_MAX];
    struct json_path wanted[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        wanted[i].segments = segments[i];
        assert_int_equal(json_path_split(bytes_str(texts[i]), segments[i], &wanted[i].segment_count, NULL),
                         STATUS_OK);
    }
    struct json_paths *paths = json_paths_new(wanted, COUNT);
    assert_int_equal(json_paths_count(paths), COUNT);

    struct json_found found[COUNT];
    assert_true(json_walk(
        BYTES("{\"a\":1,\"b\":{\"c\":{\"d\":\"deep\"},\"e\":true},\"list\":[{\"x\":null},\"two\"]}"), paths,
        found));
    assert_true(bytes_eq(found[0].raw, BYTES("deep")));
    assert_true(bytes_eq(found[1].raw, BYTES("1")));
    assert_int_equal(found[2].kind, JSON_KIND_OBJECT);
    assert_true(bytes_eq(found[2].raw, BYTES("{\"d\":\"deep\"}")));
    assert_int_equal(found[3].kind, JSON_KIND_OBJECT);
    assert_true(bytes_eq(found[4].raw, BYTES("deep")));
    assert_true(bytes_eq(found[5].raw, BYTES("two")));
    assert_int_equal(found[6].kind, JSON_KIND_NULL);
    assert_int_equal(found[7].kind, JSON_KIND_ABSENT);
    assert_int_equal(found[8].kind, JSON_KIND_TRUE);
    assert_int_equal(found[9].kind, JSON_KIND_ABSENT);
    assert_int_equal(found[10].kind, JSON_KIND_NUMBER);
    assert_int_equal(found[11].kind, JSON_KIND_ABSENT);
    assert_int_equal(found[12].kind, JSON_KIND_ARRAY);

    /* A body that is not JSON leaves nothing behind, not even what stood before the fault. */
    assert_false(json_walk(BYTES("{\"a\":1,\"b\":}"), paths, found));
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(found[i].kind, JSON_KIND_ABSENT);
    json_paths_free(paths);
}

static void a_path_may_be_empty_or_hold_any_bytes(void **state)
{
    (void)state;
    struct bytes dotted[] = {BYTES("a.b"), BYTES("c")}, nothing[] = {BYTES("")}, nul[] = {BYTES("x\0y")};
    struct json_path wanted[] = {{NULL, 0}, {dotted, 2}, {nothing, 1}, {nul, 1}};
    struct json_paths *paths = json_paths_new(wanted, 4);
    struct json_found found[4];
    assert_true(json_walk(BYTES("{\"a.b\":{\"c\":\"1\"},\"\":\"2\",\"x\\u0000y\":\"3\"}"), paths, found));
    assert_int_equal(found[0].kind, JSON_KIND_OBJECT);
    assert_true(bytes_eq(found[1].raw, BYTES("1")));
    assert_true(bytes_eq(found[2].raw, BYTES("2")));
    assert_true(bytes_eq(found[3].raw, BYTES("3")));
    assert_true(json_walk(BYTES(" 17 "), paths, found));
    assert_true(bytes_eq(found[0].raw, BYTES("17")));
    json_paths_free(paths);
}

static void no_paths_at_all_are_fine(void **state)
{
    (void)state;
    struct json_paths *paths = json_paths_new(NULL, 0);
    assert_true(json_walk(BYTES("{\"a\":[1,{}]}"), paths, NULL));
    assert_false(json_walk(BYTES("{\"a\":[1,{}}"), paths, NULL));
    json_paths_free(paths);
    json_paths_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_at_dots),
        cmocka_unit_test(refuses_empty_paths_and_segments),
        cmocka_unit_test(bounds_the_number_of_segments),
        cmocka_unit_test(many_paths_are_picked_in_one_walk),
        cmocka_unit_test(a_path_may_be_empty_or_hold_any_bytes),
        cmocka_unit_test(no_paths_at_all_are_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
