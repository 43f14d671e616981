/* Every malformed form is refused with source, sink and reason; the form beside it that is right is not. */
#include "order_support.h"

static enum missing_reason no_script(void *ctx, const struct key_spec *spec, const struct envelope *envelope,
                                     struct arena *arena, struct bytes *key, bool *unordered)
{
    (void)ctx, (void)spec, (void)envelope, (void)arena, (void)key, (void)unordered;
    return MISSING_SCRIPT_ERROR;
}

static const struct key_engine engine = {.resolve = no_script};

/* NULL expected: accepted. */
static void expect(const struct order_options *options, const char *expected)
{
    struct order_plan *plan;
    struct error err = {0};
    enum status status = order_plan_new(options, &plan, &err);
    if (expected) {
        assert_int_equal(status, STATUS_INVALID);
        assert_null(plan);
        if (!strstr(err.text, expected))
            fail_msg("\"%s\" does not hold \"%s\"", err.text, expected);
        assert_int_equal(order_plan_new(options, &plan, NULL), STATUS_INVALID);
    } else {
        if (status != STATUS_OK)
            fail_msg("%s", err.text);
        order_plan_free(plan);
    }
}

static void expect_key(const struct key_spec *key, const char *expected)
{
    struct order_sink sink = {.name = SINK, .ordered = true, .key = key};
    struct order_options options = one_sink(&sink);
    options.engine = &engine;
    expect(&options, expected);
}

static void header_names(void **state)
{
    (void)state;
    struct key_spec key = {.kind = KEY_HEADER, .header = BYTES("X-Shop_1.~")};
    expect_key(&key, NULL);
    static const struct bytes wrong[] = {BYTES(""),         BYTES("a b"), BYTES("a:"),
                                         BYTES("\xc3\xa9"), BYTES("a\0"), BYTES("a\n")};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        key.header = wrong[i];
        expect_key(&key, "sources.shop.sinks.billing.ordering_key: must name a header");
    }
}

static void json_paths(void **state)
{
    (void)state;
    struct bytes segments[JSON_PATH_SEGMENTS_MAX + 1];
    for (size_t i = 0; i < JSON_PATH_SEGMENTS_MAX + 1; i++)
        segments[i] = BYTES("a.b");
    struct key_spec key = {.kind = KEY_JSON, .path = {segments, JSON_PATH_SEGMENTS_MAX}};
    expect_key(&key, NULL);
    key.path.segment_count++;
    expect_key(&key, "at most 64");
    key.path.segment_count = 0;
    expect_key(&key, "must not be empty");
    key.path.segment_count = 3;
    segments[2] = BYTES("");
    expect_key(&key, "empty segment");
}

static void script_keys(void **state)
{
    (void)state;
    struct value args = {.kind = VALUE_LIST};
    struct key_spec key = {.kind = KEY_SCRIPT, .module = "keys.shop", .function = "by_region", .args = &args};
    expect_key(&key, NULL);
    args.kind = VALUE_MAP;
    expect_key(&key, "args must be a list");
    key.args = NULL;
    expect_key(&key, NULL);
    key.function = "";
    expect_key(&key, "a module and a function");
    key = (struct key_spec){.kind = KEY_SCRIPT, .function = "f"};
    expect_key(&key, "a module and a function");
    key.module = "m";
    struct order_sink sink = {.name = SINK, .ordered = true, .key = &key};
    struct order_options options = one_sink(&sink);
    expect(&options, "script engine");
}

static void first_of_keys(void **state)
{
    (void)state;
    struct key_spec items[2] = {{.kind = KEY_HEADER, .header = BYTES("a")},
                                {.kind = KEY_HEADER, .header = BYTES("b")}};
    struct key_spec key = {.kind = KEY_FIRST, .items = items, .item_count = 2};
    expect_key(&key, NULL);
    items[1].header = BYTES("");
    expect_key(&key, "must name a header");
    key.item_count = 0;
    expect_key(&key, "at least one");
    struct key_spec nest[KEY_FIRST_DEPTH_MAX + 2] = {{.kind = KEY_HEADER, .header = BYTES("a")}};
    for (size_t i = 1; i < KEY_FIRST_DEPTH_MAX + 2; i++)
        nest[i] = (struct key_spec){.kind = KEY_FIRST, .items = &nest[i - 1], .item_count = 1};
    expect_key(&nest[KEY_FIRST_DEPTH_MAX], NULL);
    expect_key(&nest[KEY_FIRST_DEPTH_MAX + 1], "too deep");
    key = (struct key_spec){.kind = (enum key_kind)17};
    expect_key(&key, "must be one of");
}

static void sinks(void **state)
{
    (void)state;
    struct key_spec key = {.kind = KEY_HEADER, .header = BYTES("a")};
    struct order_sink list[2] = {{.name = BYTES("one"), .ordered = true, .key = &key},
                                 {.name = BYTES("two")}};
    struct order_options options = one_sink(list);
    options.sink_count = 2;
    expect(&options, NULL);
    list[1].name = BYTES("one");
    expect(&options, "sources.shop.sinks.one.name: two sinks");
    list[1].name = BYTES("");
    expect(&options, "needs a name");
    list[1] = (struct order_sink){.name = BYTES("two"), .key = &key};
    expect(&options, "sources.shop.sinks.two.ordering_key: needs ordered = true");
    list[1] = (struct order_sink){.name = BYTES("two"), .missing_is_unordered = true};
    expect(&options, "sources.shop.sinks.two.on_missing_key: needs ordered = true");
    options.source = BYTES("");
    expect(&options, "a source needs a name");
    options = (struct order_options){.source = SOURCE};
    expect(&options, NULL);
}

static void filters(void **state)
{
    (void)state;
    struct bytes globs[] = {BYTES("a.*")}, segments[] = {BYTES("type")};
    struct filter_spec only = {.path = {segments, 1}, .globs = globs, .glob_count = 1};
    struct order_sink sink = {.name = SINK, .only = &only};
    struct order_options options = one_sink(&sink);
    expect(&options, NULL);
    only.path.segment_count = 0;
    expect(&options, "sinks.billing.only: a JSON path must not be empty");
    only.by_header = true;
    expect(&options, "must name a header");
    only.header = BYTES("x-topic");
    expect(&options, NULL);
    only.glob_count = 0;
    expect(&options, "at least one glob");
}

static void dedupe_specs(void **state)
{
    (void)state;
    struct key_spec dedupe = {.kind = KEY_HEADER, .header = BYTES("x-id")};
    struct order_options options = {.source = SOURCE, .dedupe = &dedupe, .engine = &engine};
    expect(&options, NULL);
    dedupe.header = BYTES("");
    expect(&options, "sources.shop.dedupe: must name a header");
    dedupe = (struct key_spec){.kind = KEY_SCRIPT, .module = "m", .function = "f"};
    expect(&options, "not a Lua function");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_names),  cmocka_unit_test(json_paths), cmocka_unit_test(script_keys),
        cmocka_unit_test(first_of_keys), cmocka_unit_test(sinks),      cmocka_unit_test(filters),
        cmocka_unit_test(dedupe_specs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
