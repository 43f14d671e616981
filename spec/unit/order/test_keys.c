/* Which lane, and why none (contract, section 4, rules 4 to 6). */
#include "order_support.h"

#include "util/buf.h"

static void header_keys(void **state)
{
    (void)state;
    struct key_spec key = {.kind = KEY_HEADER, .header = BYTES("x-shop-id")};
    const char *const repeated[] = {"Other", "0", "X-SHOP-Id", "7", "x-shop-id", "8", NULL, NULL};
    struct envelope *e = hook(BYTES(""), repeated);
    struct order_lane lane = resolve_key_of(&key, e);
    is_key(&lane, BYTES("7"));
    envelope_unref(e);

    e = hook(BYTES(""), NULL);
    lane = resolve_key_of(&key, e);
    is_keyless(&lane, MISSING_NO_HEADER);
    envelope_unref(e);

    /* The first one counts, even when it is empty and a later one is not. */
    const char *const empty[] = {"x-shop-id", "", "x-shop-id", "8", NULL, NULL};
    e = hook(BYTES(""), empty);
    lane = resolve_key_of(&key, e);
    is_keyless(&lane, MISSING_EMPTY);
    envelope_unref(e);
}

static const struct json_case {
    struct bytes body;
    struct bytes key; /* absent: missing for `reason` */
    enum missing_reason reason;
    enum json_kind found;
} json_cases[] = {
    {BYTES("{\"a\":{\"id\":\"cus_1\"}}"), BYTES("cus_1"), MISSING_NOTHING, JSON_KIND_ABSENT},
    {BYTES("{\"a\":{\"id\":\"caf\\u00e9\"}}"), BYTES("caf\xc3\xa9"), MISSING_NOTHING, JSON_KIND_ABSENT},
    {BYTES("{\"a\":{\"id\":\"a\\u0000b\"}}"), BYTES("a\0b"), MISSING_NOTHING, JSON_KIND_ABSENT},
    {BYTES("{\"a\":{\"id\":\"c\\r\\n*\"}}"), BYTES("c\r\n*"), MISSING_NOTHING, JSON_KIND_ABSENT},
    {BYTES("{\"a\":{\"id\":\"0\"}}"), BYTES("0"), MISSING_NOTHING, JSON_KIND_ABSENT},
    {BYTES("{\"a\":{\"id\":\" \"}}"), BYTES(" "), MISSING_NOTHING, JSON_KIND_ABSENT},
    {BYTES("\xef\xbb\xbf{\"a\":{\"id\":\"x\"}}"), BYTES("x"), MISSING_NOTHING, JSON_KIND_ABSENT},
    {BYTES("{\"a\":{\"id\":\"x\"},\"n\":1e400,\"s\":\"\\ud800\"}"), BYTES("x"), MISSING_NOTHING,
     JSON_KIND_ABSENT},
    {BYTES("{\"a\":{\"id\":\"x\"},\"a\":{\"id\":\"y\"}}"), BYTES("y"), MISSING_NOTHING, JSON_KIND_ABSENT},
    {BYTES("{\"a\":{\"id\":\"\"}}"), {NULL, 0}, MISSING_EMPTY, JSON_KIND_ABSENT},
    {BYTES("{\"a\":{}}"), {NULL, 0}, MISSING_NO_PATH, JSON_KIND_ABSENT},
    {BYTES("{\"a\":null}"), {NULL, 0}, MISSING_NO_PATH, JSON_KIND_ABSENT},
    {BYTES("[]"), {NULL, 0}, MISSING_NO_PATH, JSON_KIND_ABSENT},
    {BYTES("{\"a\":{\"id\":\"x\"},\"a\":{}}"), {NULL, 0}, MISSING_NO_PATH, JSON_KIND_ABSENT},
    {BYTES("{\"a\":{\"id\":17}}"), {NULL, 0}, MISSING_NOT_STRING, JSON_KIND_NUMBER},
    {BYTES("{\"a\":{\"id\":true}}"), {NULL, 0}, MISSING_NOT_STRING, JSON_KIND_TRUE},
    {BYTES("{\"a\":{\"id\":null}}"), {NULL, 0}, MISSING_NOT_STRING, JSON_KIND_NULL},
    {BYTES("{\"a\":{\"id\":{\"id\":\"x\"}}}"), {NULL, 0}, MISSING_NOT_STRING, JSON_KIND_OBJECT},
    {BYTES("{\"a\":{\"id\":[]}}"), {NULL, 0}, MISSING_NOT_STRING, JSON_KIND_ARRAY},
    {BYTES("{\"a\":{\"id\":\"\\ud83d\"}}"), {NULL, 0}, MISSING_NOT_STRING, JSON_KIND_STRING},
    {BYTES(""), {NULL, 0}, MISSING_NOT_JSON, JSON_KIND_ABSENT},
    {BYTES("{\"a\":{\"id\":\"x\"}"), {NULL, 0}, MISSING_NOT_JSON, JSON_KIND_ABSENT},
    {BYTES("{\"a\":{\"id\":\"x\"}} x"), {NULL, 0}, MISSING_NOT_JSON, JSON_KIND_ABSENT},
    {BYTES("{\"a\":{\"id\":\"x\"},}"), {NULL, 0}, MISSING_NOT_JSON, JSON_KIND_ABSENT},
    {BYTES("{\"a\":{\"id\":\"x\"},\"b\":\"\xff\"}"), {NULL, 0}, MISSING_NOT_JSON, JSON_KIND_ABSENT},
    {BYTES("payload=%7B%22a%22%3A%22x%22%7D"), {NULL, 0}, MISSING_NOT_JSON, JSON_KIND_ABSENT},
};

static void json_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof json_cases / sizeof *json_cases; i++) {
        const struct json_case *c = &json_cases[i];
        struct envelope *e = hook(c->body, NULL);
        struct key_spec key = {.kind = KEY_JSON, .path = path_of("a.id", e->arena)};
        struct order_lane lane = resolve_key_of(&key, e);
        if (c->key.at)
            is_key(&lane, c->key);
        else
            is_keyless(&lane, c->reason);
        assert_int_equal(lane.found, c->found);
        envelope_unref(e);
    }
}

static void integers_are_keys_when_asked_for(void **state)
{
    (void)state;
    static const struct json_case cases[] = {
        {BYTES("{\"id\":17}"), BYTES("17"), MISSING_NOTHING, JSON_KIND_ABSENT},
        {BYTES("{\"id\":-0}"), BYTES("-0"), MISSING_NOTHING, JSON_KIND_ABSENT},
        {BYTES("{\"id\":820982911946154508123}"), BYTES("820982911946154508123"), MISSING_NOTHING,
         JSON_KIND_ABSENT},
        {BYTES("{\"id\":\"17\"}"), BYTES("17"), MISSING_NOTHING, JSON_KIND_ABSENT},
        {BYTES("{\"id\":17.0}"), {NULL, 0}, MISSING_NOT_STRING, JSON_KIND_NUMBER},
        {BYTES("{\"id\":1e3}"), {NULL, 0}, MISSING_NOT_STRING, JSON_KIND_NUMBER},
        {BYTES("{\"id\":true}"), {NULL, 0}, MISSING_NOT_STRING, JSON_KIND_TRUE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct envelope *e = hook(cases[i].body, NULL);
        struct key_spec key = {.kind = KEY_JSON, .path = path_of("id", e->arena), .integers = true};
        struct order_lane lane = resolve_key_of(&key, e);
        if (cases[i].key.at)
            is_key(&lane, cases[i].key);
        else
            is_keyless(&lane, cases[i].reason);
        envelope_unref(e);
    }
}

/* A long number of digits is stamped like any long key. */
static void long_keys_are_hashed(void **state)
{
    (void)state;
    for (size_t n = ORDER_KEY_MAX - 1; n < ORDER_KEY_MAX + 3; n++) {
        struct buf body = {0};
        buf_puts(&body, "{\"id\":\"");
        for (size_t i = 0; i < n; i++)
            buf_putc(&body, 'k');
        struct bytes text = bytes_of(body.at + 7, n);
        buf_puts(&body, "\"}");
        text.at = body.at + 7;
        struct envelope *e = hook(buf_bytes(&body), NULL);
        struct key_spec key = {.kind = KEY_JSON, .path = path_of("id", e->arena)};
        struct order_lane lane = resolve_key_of(&key, e);
        is_key(&lane, order_key_stamp(text, e->arena));
        assert_int_equal(lane.key.len, n <= ORDER_KEY_MAX ? n : 71);
        envelope_unref(e);
        buf_free(&body);
    }
}

static void a_body_over_the_limit_is_not_read(void **state)
{
    (void)state;
    struct bytes body = BYTES("{\"id\":\"cus_1\"}");
    struct envelope *e = hook(body, NULL);
    struct key_spec key = {.kind = KEY_JSON, .path = path_of("id", e->arena)};
    struct order_sink sink = {.name = SINK, .ordered = true, .key = &key};
    struct order_options options = one_sink(&sink);
    options.json_max_bytes = body.len;
    struct order_lane lane = resolve_with(&options, e);
    is_key(&lane, BYTES("cus_1"));
    options.json_max_bytes = body.len - 1;
    lane = resolve_with(&options, e);
    is_keyless(&lane, MISSING_TOO_LARGE);
    /* Not one byte of it: this one does not exist. */
    e->body = bytes_of((const char *)(uintptr_t)64, (size_t)1 << 40);
    lane = resolve_with(&options, e);
    is_keyless(&lane, MISSING_TOO_LARGE);
    envelope_unref(e);
}

static void a_body_nobody_asks_about_is_not_read(void **state)
{
    (void)state;
    const char *const headers[] = {"x-shop", "7", NULL, NULL};
    struct envelope *e = hook(bytes_of((const char *)(uintptr_t)64, 100), headers);
    struct key_spec items[] = {{.kind = KEY_HEADER, .header = BYTES("x-shop")},
                               {.kind = KEY_JSON, .path = path_of("id", e->arena)}};
    struct key_spec key = {.kind = KEY_FIRST, .items = items, .item_count = 2};
    struct order_lane lane = resolve_key_of(&key, e); /* the header is enough */
    is_key(&lane, BYTES("7"));
    lane = resolve_key_of(&items[0], e);
    is_key(&lane, BYTES("7"));
    lane = resolve_key_of(NULL, e);
    is_keyless(&lane, MISSING_NOTHING);
    envelope_unref(e);
}

static void the_first_that_yields_a_key(void **state)
{
    (void)state;
    struct envelope *e = hook(BYTES("{\"a\":\"\",\"b\":\"key\",\"c\":5}"), NULL);
    struct key_spec inner[] = {{.kind = KEY_JSON, .path = path_of("c", e->arena)},
                               {.kind = KEY_JSON, .path = path_of("b", e->arena)}};
    struct key_spec items[] = {{.kind = KEY_HEADER, .header = BYTES("x-none")},
                               {.kind = KEY_JSON, .path = path_of("a", e->arena)},
                               {.kind = KEY_FIRST, .items = inner, .item_count = 2}};
    struct key_spec key = {.kind = KEY_FIRST, .items = items, .item_count = 3};
    struct order_lane lane = resolve_key_of(&key, e);
    is_key(&lane, BYTES("key"));
    /* Without one it says why its last one had none. */
    key.item_count = 2;
    lane = resolve_key_of(&key, e);
    is_keyless(&lane, MISSING_EMPTY);
    key.item_count = 1;
    lane = resolve_key_of(&key, e);
    is_keyless(&lane, MISSING_NO_HEADER);
    inner[1] = inner[0];
    key.item_count = 3;
    lane = resolve_key_of(&key, e);
    is_keyless(&lane, MISSING_NOT_STRING);
    assert_int_equal(lane.found, JSON_KIND_NUMBER);
    envelope_unref(e);
}

static void a_missing_key_can_mean_unordered(void **state)
{
    (void)state;
    struct key_spec key = {.kind = KEY_HEADER, .header = BYTES("x-shop")};
    struct order_sink sink = {.name = SINK, .ordered = true, .key = &key, .missing_is_unordered = true};
    struct order_options options = one_sink(&sink);
    struct envelope *e = hook(BYTES(""), NULL);
    struct order_lane lane = resolve_with(&options, e);
    assert_false(lane.ordered);
    assert_true(lane.unordered_by_word);
    assert_int_equal(lane.missing, MISSING_NO_HEADER);
    assert_null(lane.key.at);
    envelope_unref(e);
    const char *const headers[] = {"x-shop", "7", NULL, NULL};
    e = hook(BYTES(""), headers);
    lane = resolve_with(&options, e);
    is_key(&lane, BYTES("7"));
    assert_false(lane.unordered_by_word);
    envelope_unref(e);
}

static void an_unordered_sink_has_no_lane(void **state)
{
    (void)state;
    struct order_sink sink = {.name = SINK};
    struct order_options options = one_sink(&sink);
    struct envelope *e = hook(BYTES("x"), NULL);
    struct order_lane lane = resolve_with(&options, e);
    assert_false(lane.ordered || lane.filtered || lane.unordered_by_word);
    assert_int_equal(lane.missing, MISSING_NOTHING);
    assert_null(lane.key.at);
    envelope_unref(e);
}

/* A script that answers as its function is called. */
static enum missing_reason scripted(void *ctx, const struct key_spec *spec, const struct envelope *envelope,
                                    struct arena *arena, struct bytes *key, bool *unordered)
{
    assert_ptr_equal(ctx, &json_cases);
    assert_true(bytes_eq(envelope->source, SOURCE));
    if (!strcmp(spec->function, "error"))
        return MISSING_SCRIPT_ERROR;
    if (!strcmp(spec->function, "breach"))
        return MISSING_SCRIPT_BREACH;
    if (!strcmp(spec->function, "type"))
        return MISSING_SCRIPT_TYPE;
    if (!strcmp(spec->function, "unordered"))
        *unordered = true;
    else
        *key = arena_copy(arena, bytes_str(strcmp(spec->function, "empty") ? spec->function : ""));
    return MISSING_NOTHING;
}

static struct order_lane resolve_script_of(const char *function, bool unordered, const struct envelope *e)
{
    struct key_engine engine = {.ctx = (void *)&json_cases, .resolve = scripted};
    struct key_spec items[] = {{.kind = KEY_HEADER, .header = BYTES("x-none")},
                               {.kind = KEY_SCRIPT, .module = "m", .function = function}};
    struct key_spec key = {.kind = KEY_FIRST, .items = items, .item_count = 2};
    struct order_sink sink = {.name = SINK, .ordered = true, .key = &key, .missing_is_unordered = unordered};
    struct order_options options = one_sink(&sink);
    options.engine = &engine;
    return resolve_with(&options, e);
}

static void scripts_answer_through_their_engine(void **state)
{
    (void)state;
    struct envelope *e = hook(BYTES(""), NULL);
    struct order_lane lane = resolve_script_of("eu:42", false, e);
    is_key(&lane, BYTES("eu:42"));
    lane = resolve_script_of("error", false, e);
    is_keyless(&lane, MISSING_SCRIPT_ERROR);
    lane = resolve_script_of("breach", false, e);
    is_keyless(&lane, MISSING_SCRIPT_BREACH);
    lane = resolve_script_of("type", false, e);
    is_keyless(&lane, MISSING_SCRIPT_TYPE);
    lane = resolve_script_of("empty", false, e);
    is_keyless(&lane, MISSING_EMPTY);
    lane = resolve_script_of("unordered", false, e);
    assert_false(lane.ordered);
    assert_true(lane.unordered_by_word);
    assert_int_equal(lane.missing, MISSING_NOTHING);
    lane = resolve_script_of("error", true, e);
    assert_true(lane.unordered_by_word);
    assert_int_equal(lane.missing, MISSING_SCRIPT_ERROR);
    envelope_unref(e);
}

static void dedupe_keys(void **state)
{
    (void)state;
    const char *const headers[] = {"X-Delivery", "d-1", NULL, NULL};
    struct envelope *e =
        hook(BYTES("{\"id\":170141183460469231731687303715884105728,\"long\":\"\"}"), headers);
    struct key_spec dedupe = {.kind = KEY_HEADER, .header = BYTES("x-delivery")};
    struct order_options options = {.source = SOURCE, .dedupe = &dedupe, .json_max_bytes = 1 << 20};
    struct order_plan *plan;
    struct bytes key;

    assert_int_equal(order_plan_new(&options, &plan, NULL), STATUS_OK);
    order_resolve(plan, e, e->arena, NULL, &key);
    assert_true(bytes_eq(key, BYTES("d-1")));
    order_plan_free(plan);

    dedupe = (struct key_spec){.kind = KEY_JSON, .path = path_of("id", e->arena), .integers = true};
    assert_int_equal(order_plan_new(&options, &plan, NULL), STATUS_OK);
    order_resolve(plan, e, e->arena, NULL, &key);
    assert_true(bytes_eq(key, BYTES("170141183460469231731687303715884105728")));
    order_plan_free(plan);

    dedupe.path = path_of("long", e->arena); /* empty: no key */
    assert_int_equal(order_plan_new(&options, &plan, NULL), STATUS_OK);
    order_resolve(plan, e, e->arena, NULL, &key);
    assert_null(key.at);
    char body[300];
    for (int n = ORDER_DEDUPE_MAX; n <= ORDER_DEDUPE_MAX + 1; n++) {
        snprintf(body, sizeof body, "{\"long\":\"%0*d\"}", n, 0);
        e->body = bytes_str(body);
        order_resolve(plan, e, e->arena, NULL, &key);
        assert_int_equal(key.len, n == ORDER_DEDUPE_MAX ? n : 71);
    }
    order_plan_free(plan);

    options.dedupe = NULL;
    assert_int_equal(order_plan_new(&options, &plan, NULL), STATUS_OK);
    order_resolve(plan, e, e->arena, NULL, &key);
    assert_null(key.at);
    order_plan_free(plan);
    envelope_unref(e);
}

static void reasons_have_the_names_of_the_metric(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",        "no_header",  "empty",        "not_json",      "too_large",
        "no_path", "not_string", "script_error", "script_breach", "script_type"};
    assert_int_equal(MISSING_REASON_COUNT, sizeof names / sizeof *names);
    for (int i = 0; i < MISSING_REASON_COUNT; i++)
        assert_string_equal(missing_reason_name((enum missing_reason)i), names[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_keys),
        cmocka_unit_test(json_keys),
        cmocka_unit_test(integers_are_keys_when_asked_for),
        cmocka_unit_test(long_keys_are_hashed),
        cmocka_unit_test(a_body_over_the_limit_is_not_read),
        cmocka_unit_test(a_body_nobody_asks_about_is_not_read),
        cmocka_unit_test(the_first_that_yields_a_key),
        cmocka_unit_test(a_missing_key_can_mean_unordered),
        cmocka_unit_test(an_unordered_sink_has_no_lane),
        cmocka_unit_test(scripts_answer_through_their_engine),
        cmocka_unit_test(dedupe_keys),
        cmocka_unit_test(reasons_have_the_names_of_the_metric),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
