/* Filters: what is said is read, and what can't be meant is refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "admin/query.h"
#include "store/store.h"

enum {
    ALL_OF_LANES = QUERY_TENANT | QUERY_SOURCE | QUERY_SINK | QUERY_KEY | QUERY_LANE_STATE | QUERY_SORT |
                   QUERY_LIMIT | QUERY_LANES_CURSOR
};

static struct arena *arena;
static struct query query;
static struct query_fault fault;

static int open_arena(void **state)
{
    (void)state;
    arena = arena_new(4096);
    return 0;
}

static int free_arena(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

static bool parse(const char *text, uint64_t allowed)
{
    return query_parse(bytes_str(text), allowed, arena, &query, &fault);
}

static void refuses(const char *text, uint64_t allowed, const char *code, const char *filter)
{
    if (parse(text, allowed))
        fail_msg("%s should be refused", text);
    assert_string_equal(code, fault.code);
    assert_string_equal(filter, fault.filter.at);
    assert_non_null(fault.expected);
}

static void nothing_said_is_everything(void **state)
{
    (void)state;
    static const char *const empty[] = {NULL, "", "&", "&&"};
    for (size_t i = 0; i < 4; i++) {
        assert_true(parse(empty[i], ALL_OF_LANES));
        assert_null(query.tenant.at);
        assert_null(query.key.at);
        assert_false(query.has_lane);
        assert_int_equal(-1, query.lane_state);
        assert_int_equal(-1, query.row_state);
        assert_int_equal(LANE_SORT_AGE, query.sort);
        assert_int_equal(100, query.limit);
        assert_true(query.cursor.seq == 0);
    }
}

static void every_filter_of_lanes(void **state)
{
    (void)state;
    char cursor[CURSOR_TEXT], text[256];
    cursor_format(CURSOR_LANES, (struct cursor){.seq = 300}, cursor);
    snprintf(text, sizeof text,
             "tenant=acme&source=stripe&sink=billing&key=cus_1&state=held&sort=depth&limit=7&cursor=%s",
             cursor);
    assert_true(parse(text, ALL_OF_LANES));
    assert_string_equal("acme", query.tenant.at);
    assert_string_equal("stripe", query.source.at);
    assert_string_equal("billing", query.sink.at);
    assert_string_equal("cus_1", query.key.at);
    assert_int_equal(LANE_STATE_HELD, query.lane_state);
    assert_int_equal(LANE_SORT_DEPTH, query.sort);
    assert_int_equal(7, query.limit);
    assert_true(query.cursor.seq == 300);
}

static void a_key_is_any_bytes(void **state)
{
    (void)state;
    assert_true(parse("key=a%20b%25%00%ff/+x=y", QUERY_KEY));
    assert_true(bytes_eq(query.key, BYTES("a b%\0\xff/ x=y")));
    assert_true(parse("key=", QUERY_KEY)); /* the keyless lane: present and empty */
    assert_non_null(query.key.at);
    assert_int_equal(0, query.key.len);
    refuses("key=a%2", QUERY_KEY, "bad_filter", "key");
    refuses("key=%zz", QUERY_KEY, "bad_filter", "key");
}

static void filters_of_hooks_and_dead_letters(void **state)
{
    (void)state;
    assert_true(parse("since=2026-07-01T12:00:00Z&until=1782907200001&dedupe_key=evt%201",
                      QUERY_SINCE | QUERY_UNTIL | QUERY_DEDUPE_KEY));
    assert_true(query.since_ms == 1782907200000);
    assert_true(query.until_ms == 1782907200001);
    assert_string_equal("evt 1", query.dedupe_key.at);
    assert_true(parse("lane=000102030405060708090a0b0c0d0e0F&class=refused", QUERY_LANE | QUERY_CLASS));
    assert_true(query.has_lane);
    assert_int_equal(15, query.lane[15]);
    assert_string_equal("refused", query.cls.at);
}

static void every_state_by_its_name(void **state)
{
    (void)state;
    char text[64];
    for (int s = 0; s < LANE_STATE_COUNT; s++) {
        snprintf(text, sizeof text, "state=%s", lane_state_name((enum lane_state)s));
        assert_true(parse(text, QUERY_LANE_STATE));
        assert_int_equal(s, query.lane_state);
    }
    refuses("state=done", QUERY_LANE_STATE, "bad_filter", "state");
    const char *lane_states = fault.expected;
    for (int s = 0; s < LANE_STATE_COUNT; s++)
        assert_non_null(strstr(lane_states, lane_state_name((enum lane_state)s)));

    for (int s = ROW_PENDING; s <= ROW_DISCARDED; s++) {
        snprintf(text, sizeof text, "state=%s", row_state_name((enum row_state)s));
        assert_true(parse(text, QUERY_ROW_STATE));
        assert_int_equal(s, query.row_state);
    }
    refuses("state=ready", QUERY_ROW_STATE, "bad_filter", "state");
    for (int s = ROW_PENDING; s <= ROW_DISCARDED; s++)
        assert_non_null(strstr(fault.expected, row_state_name((enum row_state)s)));
}

static void an_unknown_filter_is_named_with_the_known_ones(void **state)
{
    (void)state;
    refuses("sink=a", QUERY_SOURCE | QUERY_LIMIT, "unknown_filter", "sink");
    assert_string_equal("one of: source limit", fault.expected);
    refuses("souce=a", ALL_OF_LANES, "unknown_filter", "souce");
    refuses("=a", ALL_OF_LANES, "unknown_filter", "");
    refuses("%zz=a", ALL_OF_LANES, "unknown_filter", "%zz");
    refuses("Source=a", ALL_OF_LANES, "unknown_filter", "Source");
    refuses("a%20b=1", 0, "unknown_filter", "a b");
    assert_string_equal("no parameters", fault.expected);
}

static void a_bad_value_is_named(void **state)
{
    (void)state;
    refuses("tenant=", ALL_OF_LANES, "bad_filter", "tenant");
    refuses("tenant", ALL_OF_LANES, "bad_filter", "tenant");
    refuses("source=a/b", ALL_OF_LANES, "bad_filter", "source");
    refuses("sink=a%00", ALL_OF_LANES, "bad_filter", "sink");
    refuses("source=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ALL_OF_LANES,
            "bad_filter", "source");
    refuses("limit=0", ALL_OF_LANES, "bad_filter", "limit");
    refuses("limit=1001", ALL_OF_LANES, "bad_filter", "limit");
    refuses("limit=ten", ALL_OF_LANES, "bad_filter", "limit");
    assert_string_equal("a whole number from 1 to 1000", fault.expected);
    refuses("sort=size", ALL_OF_LANES, "bad_filter", "sort");
    refuses("cursor=abc", ALL_OF_LANES, "bad_filter", "cursor");
    refuses("since=now", QUERY_SINCE, "bad_filter", "since");
    refuses("lane=00", QUERY_LANE, "bad_filter", "lane");
    refuses("dedupe_key=", QUERY_DEDUPE_KEY, "bad_filter", "dedupe_key");
    refuses("class=a%20b", QUERY_CLASS, "bad_filter", "class");
    refuses("class=exausted", QUERY_CLASS, "bad_filter", "class");
    assert_string_equal("one of: refused exhausted skipped unreadable withdrawn sink_gone source_gone",
                        fault.expected);
    refuses("failure=", QUERY_FAILURE, "bad_filter", "failure");
    refuses("failure=bad_signatur", QUERY_FAILURE, "bad_filter", "failure");
    assert_non_null(strstr(fault.expected, "one of: "));
    assert_non_null(strstr(fault.expected, " bad_signature"));
    assert_true(parse("failure=bad_signature", QUERY_FAILURE));
    assert_true(parse("limit=1000", ALL_OF_LANES)); /* the edge that is allowed */
}

static void a_cursor_of_another_list_is_refused(void **state)
{
    (void)state;
    char cursor[CURSOR_TEXT], text[64];
    cursor_format(CURSOR_HOOKS, (struct cursor){.seq = 3}, cursor);
    snprintf(text, sizeof text, "cursor=%s", cursor);
    assert_true(parse(text, QUERY_HOOKS_CURSOR));
    refuses(text, QUERY_LANES_CURSOR, "bad_filter", "cursor");
    refuses(text, QUERY_DEAD_CURSOR, "bad_filter", "cursor");
}

static void said_twice_is_refused(void **state)
{
    (void)state;
    refuses("source=a&source=a", ALL_OF_LANES, "bad_filter", "source");
}

static bool parse_body(const char *text, uint64_t allowed)
{
    assert_true(parse("", allowed));
    return query_parse_body(bytes_str(text), allowed, arena, &query, &fault);
}

static void refuses_body(const char *text, const char *code, const char *member)
{
    if (parse_body(text, QUERY_REASON | QUERY_EXPECT_HEAD | QUERY_DRY_RUN | QUERY_FOR))
        fail_msg("%s should be refused", text);
    assert_string_equal(code, fault.code);
    assert_string_equal(member, fault.filter.at);
    assert_non_null(fault.expected);
}

static void a_body_says_the_same_as_a_query(void **state)
{
    (void)state;
    const unsigned all = QUERY_REASON | QUERY_EXPECT_HEAD | QUERY_DRY_RUN | QUERY_FOR;
    assert_true(parse_body("", all));
    assert_true(parse_body("  ", all));
    assert_true(parse_body("{}", all));
    assert_true(parse_body(
        "{\"reason\":\"50% off + tax\",\"expect_head\":12,\"dry_run\":true,\"for\":\"30m\"}", all));
    assert_string_equal("50% off + tax", query.reason.at); /* no form decoding in JSON */
    assert_true(query.head_seq == 12 && !query.has_head_id);
    assert_true(query.dry_run);
    assert_true(query.for_ms == 30 * 60 * 1000);
    assert_true(parse_body("{\"expect_head\":\"01890a5d-ac96-774b-bcce-b302099a8057\"}", all));
    assert_true(query.has_head_id);
}

static void a_wrong_body_is_refused_by_name(void **state)
{
    (void)state;
    refuses_body("{\"resaon\":\"x\"}", "unknown_member", "resaon");
    refuses_body("{\"sink\":\"x\"}", "unknown_member", "sink"); /* known, but not here */
    refuses_body("{\"for\":\"soon\"}", "bad_member", "for");
    refuses_body("{\"for\":0}", "bad_member", "for");
    refuses_body("{\"expect_head\":0}", "bad_member", "expect_head");
    refuses_body("{\"expect_head\":[1]}", "bad_member", "expect_head");
    refuses_body("{\"reason\":null}", "bad_member", "reason");
    refuses_body("[]", "bad_body", "");
    refuses_body("{\"reason\":\"x\"", "bad_body", "");
    refuses_body("{\"reason\":\"x\",\"reason\":\"y\"}", "bad_body", "");
}

static void said_in_the_query_and_in_the_body_is_refused(void **state)
{
    (void)state;
    assert_true(parse("reason=a", QUERY_REASON));
    assert_false(query_parse_body(BYTES("{\"reason\":\"b\"}"), QUERY_REASON, arena, &query, &fault));
    assert_string_equal("bad_member", fault.code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_said_is_everything),
        cmocka_unit_test(every_filter_of_lanes),
        cmocka_unit_test(a_key_is_any_bytes),
        cmocka_unit_test(filters_of_hooks_and_dead_letters),
        cmocka_unit_test(every_state_by_its_name),
        cmocka_unit_test(an_unknown_filter_is_named_with_the_known_ones),
        cmocka_unit_test(a_bad_value_is_named),
        cmocka_unit_test(a_cursor_of_another_list_is_refused),
        cmocka_unit_test(said_twice_is_refused),
        cmocka_unit_test(a_body_says_the_same_as_a_query),
        cmocka_unit_test(a_wrong_body_is_refused_by_name),
        cmocka_unit_test(said_in_the_query_and_in_the_body_is_refused),
    };
    return cmocka_run_group_tests(tests, open_arena, free_arena);
}
