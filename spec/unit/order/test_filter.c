#include "order_support.h"

static bool takes(struct filter_spec *only, const char *glob, const struct envelope *e)
{
    struct bytes globs[] = {BYTES("never-this"), bytes_str(glob)};
    only->globs = globs;
    only->glob_count = 2;
    struct order_sink sink = {.name = SINK, .only = only};
    struct order_options options = one_sink(&sink);
    return !resolve_with(&options, e).filtered;
}

static void globs_match_runs_of_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *glob, *text;
        bool match;
    } cases[] = {
        {"invoice.*", "invoice.paid", true},
        {"invoice.*", "invoice.", true},
        {"invoice.*", "invoice", false},
        {"invoice.*", "xinvoice.a", false},
        {"*", "", true},
        {"*", "anything", true},
        {"", "", true},
        {"", "a", false},
        {"a", "a", true},
        {"a", "A", false},
        {"a*b", "ab", true},
        {"a*b", "axxb", true},
        {"a*b", "axxbx", false},
        {"*.b", "a.b.b", true},
        {"a*b*c", "a.b.b.c", true},
        {"a*b*c", "acb", false},
        {"**a**", "xxa", true},
        {"a?c", "abc", false},
        {"a?c", "a?c", true},
        {"[ab]", "a", false},
        {"*aab", "aaaab", true},
    };
    struct filter_spec only = {.by_header = true, .header = BYTES("x-topic")};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const headers[] = {"X-Topic", cases[i].text, NULL, NULL};
        struct envelope *e = hook(BYTES(""), headers);
        if (takes(&only, cases[i].glob, e) != cases[i].match)
            fail_msg("%s on %s", cases[i].glob, cases[i].text);
        envelope_unref(e);
    }
}

/* Many stars on a long text that never matches: quadratic at most. */
static void globs_do_not_run_away(void **state)
{
    (void)state;
    char text[20001];
    memset(text, 'a', 20000);
    text[20000] = 0;
    const char *const headers[] = {"x-topic", text, NULL, NULL};
    struct envelope *e = hook(BYTES(""), headers);
    struct filter_spec only = {.by_header = true, .header = BYTES("x-topic")};
    assert_false(takes(&only, "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", e));
    assert_true(takes(&only, "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a", e));
    envelope_unref(e);
}

static void values_are_compared_as_text(void **state)
{
    (void)state;
    static const struct {
        struct bytes body;
        const char *glob;
        bool match;
    } cases[] = {
        {BYTES("{\"type\":\"invoice.paid\"}"), "invoice.*", true},
        {BYTES("{\"type\":\"inv\\u006fice.paid\"}"), "invoice.*", true},
        {BYTES("{\"type\":\"\"}"), "*", true},
        {BYTES("{\"type\":12}"), "12", true},
        {BYTES("{\"type\":1.50}"), "1.50", true},
        {BYTES("{\"type\":true}"), "true", true},
        {BYTES("{\"type\":false}"), "true", false},
        {BYTES("{\"type\":null}"), "*", false},
        {BYTES("{\"type\":{}}"), "*", false},
        {BYTES("{\"type\":[]}"), "*", false},
        {BYTES("{\"type\":\"\\ud800\"}"), "*", false},
        {BYTES("{\"kind\":\"invoice.paid\"}"), "*", false},
        {BYTES("not json"), "*", false},
        {BYTES(""), "*", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct envelope *e = hook(cases[i].body, NULL);
        struct filter_spec only = {.path = path_of("type", e->arena)};
        if (takes(&only, cases[i].glob, e) != cases[i].match)
            fail_msg("%s on %.*s", cases[i].glob, BYTES_ARG(cases[i].body));
        envelope_unref(e);
    }
}

static void an_absent_header_matches_nothing(void **state)
{
    (void)state;
    struct envelope *e = hook(BYTES(""), NULL);
    struct filter_spec only = {.by_header = true, .header = BYTES("x-topic")};
    assert_false(takes(&only, "*", e));
    envelope_unref(e);
}

static void a_body_too_large_to_judge_is_taken(void **state)
{
    (void)state;
    struct envelope *e = hook(BYTES("{\"type\":\"other\"}"), NULL);
    struct bytes glob = BYTES("invoice.*");
    struct filter_spec only = {.path = path_of("type", e->arena), .globs = &glob, .glob_count = 1};
    struct order_sink sink = {.name = SINK, .ordered = true, .only = &only};
    struct order_options options = one_sink(&sink);
    assert_true(resolve_with(&options, e).filtered);
    options.json_max_bytes = 4;
    assert_false(resolve_with(&options, e).filtered);
    envelope_unref(e);
}

/* Filters, keys and the dedupe key of several sinks, each its own answer from one walk. */
static void sinks_are_judged_one_by_one(void **state)
{
    (void)state;
    struct envelope *e =
        hook(BYTES("{\"type\":\"invoice.paid\",\"data\":{\"customer\":\"cus_1\"},\"id\":\"evt_1\"}"), NULL);
    struct bytes invoices = BYTES("invoice.*"), customers = BYTES("customer.*");
    struct filter_spec yes = {.path = path_of("type", e->arena), .globs = &invoices, .glob_count = 1};
    struct filter_spec no = {.path = path_of("type", e->arena), .globs = &customers, .glob_count = 1};
    struct key_spec customer = {.kind = KEY_JSON, .path = path_of("data.customer", e->arena)};
    struct key_spec id = {.kind = KEY_JSON, .path = path_of("id", e->arena)};
    struct key_spec none = {.kind = KEY_JSON, .path = path_of("data.other", e->arena)};
    struct order_sink sinks[] = {
        {.name = BYTES("a"), .ordered = true, .key = &customer, .only = &yes},
        {.name = BYTES("b"), .ordered = true, .key = &customer, .only = &no},
        {.name = BYTES("c"), .only = &yes},
        {.name = BYTES("d"), .ordered = true, .key = &none},
        {.name = BYTES("e"), .ordered = true, .key = &id},
    };
    struct order_options options = {
        .source = SOURCE, .sinks = sinks, .sink_count = 5, .dedupe = &id, .json_max_bytes = 1 << 20};
    struct order_plan *plan;
    struct order_lane lanes[5];
    struct bytes dedupe;
    assert_int_equal(order_plan_new(&options, &plan, NULL), STATUS_OK);
    order_resolve(plan, e, e->arena, lanes, &dedupe);
    assert_true(bytes_eq(lanes[0].key, BYTES("cus_1")));
    assert_true(same_lane(lanes[0].lane, lane_id_of(SOURCE, BYTES("a"), BYTES("cus_1"))));
    assert_true(lanes[1].filtered);
    assert_false(lanes[1].ordered);
    assert_false(lanes[2].filtered || lanes[2].ordered);
    assert_int_equal(lanes[3].missing, MISSING_NO_PATH);
    assert_true(same_lane(lanes[3].lane, lane_id_of(SOURCE, BYTES("d"), BYTES_NONE)));
    assert_true(bytes_eq(lanes[4].key, BYTES("evt_1")));
    assert_true(bytes_eq(dedupe, BYTES("evt_1")));
    order_plan_free(plan);
    envelope_unref(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(globs_match_runs_of_bytes),
        cmocka_unit_test(globs_do_not_run_away),
        cmocka_unit_test(values_are_compared_as_text),
        cmocka_unit_test(an_absent_header_matches_nothing),
        cmocka_unit_test(a_body_too_large_to_judge_is_taken),
        cmocka_unit_test(sinks_are_judged_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
