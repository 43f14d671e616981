/* What is JSON and what is not (contract, section 4, rule 6), and what a path finds in it. */
#include "json_support.h"

#include "util/buf.h"

#define EACH(text, list)                                                                                     \
    for (size_t i_ = 0; i_ < sizeof(list) / sizeof *(list) && ((text) = (list)[i_], true); i_++)

static const struct bytes good[] = {
    BYTES("null"),
    BYTES("true"),
    BYTES(" false "),
    BYTES("0"),
    BYTES("-0"),
    BYTES("-0.0e-0"),
    BYTES("10"),
    BYTES("1.25"),
    BYTES("1E+9"),
    BYTES("1e400"),
    BYTES("123456789012345678901234567890"),
    BYTES("\"\""),
    BYTES("[]"),
    BYTES("{}"),
    BYTES("[ ]"),
    BYTES("{ \t\r\n}"),
    BYTES("[1,[2,[3,{}]],{\"a\":[]}]"),
    BYTES("\t{ \"a\" :\n1 , \"b\"\r:[ 2 ] } \n"),
    BYTES("\xef\xbb\xbf{}"),
    BYTES("\xef\xbb\xbf []"),
    BYTES("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u00E9\""),
    BYTES("\"\\u0000\""),
    BYTES("{\"\\u0000\":1}"),
    BYTES("\"\\ud800\""),
    BYTES("\"\\udc00\""),
    BYTES("\"\\ud800\\u0041\""),
    BYTES("\"\\ud800\\n\""),
    BYTES("{\"\\ud800\":0}"),
    BYTES("\"\x7f\""),
    BYTES("\"\xc2\x80 \xdf\xbf\""),
    BYTES("\"\xe0\xa0\x80\xed\x9f\xbf\""),
    BYTES("\"\xee\x80\x80\xef\xbf\xbf\""),
    BYTES("\"\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf\""),
    BYTES("{\"a\":1,\"a\":2}"),
    BYTES("{\"\":{\"\":0}}"),
    BYTES("                                        1"),
    BYTES("[1                                        ,\n                             2]"),
};

static const struct bytes bad[] = {
    BYTES(""),
    BYTES(" "),
    BYTES("\xef\xbb\xbf"),
    BYTES("\xef\xbb"),
    BYTES("\xef\xbb\xbf\xef\xbb\xbf{}"),
    BYTES("nul"),
    BYTES("nulL"),
    BYTES("True"),
    BYTES("tru"),
    BYTES("truee"),
    BYTES("fals"),
    BYTES("NaN"),
    BYTES("Infinity"),
    BYTES("-"),
    BYTES("+1"),
    BYTES("01"),
    BYTES("-01"),
    BYTES("1."),
    BYTES(".5"),
    BYTES("1.e1"),
    BYTES("1e"),
    BYTES("1e+"),
    BYTES("0x1"),
    BYTES("1 2"),
    BYTES("1,"),
    BYTES("--1"),
    BYTES("1e1.5"),
    BYTES("\""),
    BYTES("\"a"),
    BYTES("'a'"),
    BYTES("\"\n\""),
    BYTES("\"\t\""),
    BYTES("\"\x1f\""),
    BYTES("\"\0\""),
    BYTES("\"\\\""),
    BYTES("\"\\x\""),
    BYTES("\"\\u12\""),
    BYTES("\"\\u123g\""),
    BYTES("\"\\U0041\""),
    BYTES("\"\\ud800\\u\""),
    BYTES("\"\\ud800\\ux\""),
    BYTES("\"\\"),
    BYTES("\"\\u"),
    BYTES("\"\\u1234"),
    BYTES("\"\\ud800\\"),
    BYTES("\"\\ud800\\udc0"),
    BYTES("["),
    BYTES("[1"),
    BYTES("[1,"),
    BYTES("[1,]"),
    BYTES("[,1]"),
    BYTES("[1 2]"),
    BYTES("[1}"),
    BYTES("]"),
    BYTES("[1]]"),
    BYTES("[\"a\":1]"),
    BYTES("[1,,2]"),
    BYTES("{"),
    BYTES("{\"a\""),
    BYTES("{\"a\":"),
    BYTES("{\"a\":1"),
    BYTES("{\"a\":1,"),
    BYTES("{\"a\":1,}"),
    BYTES("{,}"),
    BYTES("{a:1}"),
    BYTES("{1:1}"),
    BYTES("{\"a\" 1}"),
    BYTES("{\"a\"::1}"),
    BYTES("{\"a\":1 \"b\":2}"),
    BYTES("{\"a\":1]"),
    BYTES("{\"a\"}"),
    BYTES("{}}"),
    BYTES("{\"a\":1}x"),
    BYTES("{} {}"),
    BYTES("{\"a\":\"x\"}\0"),
    BYTES("\0"),
    BYTES("[1]\0"),
    BYTES("1\0"),
    BYTES("[1\0]"),
    BYTES("\f1"),
    BYTES("\v1"),
    BYTES("\xc2\xa0"
          "1"),
    BYTES("[1]//"),
    BYTES("/**/1"),
    BYTES("\"\x80\""),
    BYTES("\"\xbf\""),
    BYTES("\"\xc0\x80\""),
    BYTES("\"\xc1\xbf\""),
    BYTES("\"\xc2\""),
    BYTES("\"\xc2"),
    BYTES("\"\xe0\x9f\xbf\""),
    BYTES("\"\xed\xa0\x80\""),
    BYTES("\"\xe1\x80\""),
    BYTES("\"\xe1\x80"),
    BYTES("\"\xe1\x80\xc0\""),
    BYTES("\"\xf0\x8f\xbf\xbf\""),
    BYTES("\"\xf4\x90\x80\x80\""),
    BYTES("\"\xf5\x80\x80\x80\""),
    BYTES("\"\xf1\x80\x80\""),
    BYTES("\"\xff\""),
    BYTES("\"\xfe\""),
    BYTES("{\"\x80\":1}"),
    BYTES("\xff\xfe{\0}\0"),
};

static void accepts_what_the_contract_calls_json(void **state)
{
    (void)state;
    struct bytes text;
    EACH(text, good)
    if (!is_json(text))
        fail_msg("refused: %.*s", BYTES_ARG(text));
}

static void refuses_everything_else(void **state)
{
    (void)state;
    struct bytes text;
    EACH(text, bad)
    if (is_json(text))
        fail_msg("accepted: %.*s", BYTES_ARG(text));
}

/* The same texts where paths look at every level: the other half of the walk has the same opinion. */
static void paths_do_not_change_what_is_json(void **state)
{
    (void)state;
    struct bytes text;
    struct bytes a[] = {BYTES("a"), BYTES("0"), BYTES("a")}, zero[] = {BYTES("0"), BYTES("1"), BYTES("0")},
                 one[] = {BYTES("1"), BYTES("1"), BYTES("a")}, none[] = {BYTES(""), BYTES("")};
    struct json_path wanted[] = {{NULL, 0}, {a, 3}, {zero, 3}, {one, 3}, {none, 2}};
    struct json_paths *paths = json_paths_new(wanted, 5);
    struct json_found found[5];
    EACH(text, good)
    if (!json_walk(text, paths, found))
        fail_msg("refused: %.*s", BYTES_ARG(text));
    EACH(text, bad)
    if (json_walk(text, paths, found))
        fail_msg("accepted: %.*s", BYTES_ARG(text));
    json_paths_free(paths);
}

/* Blocks of sixteen have edges: a byte that matters, at every distance from the start and from the end. */
static void strings_are_read_the_same_at_every_offset(void **state)
{
    (void)state;
    static const struct {
        struct bytes inner;
        bool valid;
    } cases[] = {{BYTES("\\\""), true},     {BYTES("\\\\"), true},          {BYTES("\n"), false},
                 {BYTES("\xc3\xa9"), true}, {BYTES("\xc3"), false},         {BYTES("\\u00e9"), true},
                 {BYTES("\\u00e"), false},  {BYTES("\""), false},           {BYTES("\xe2\x82\xac"), true},
                 {BYTES("\\"), false},      {BYTES("\\ud83d\\ude00"), true}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (size_t before = 0; before < 40; before++) {
            for (size_t after = 0; after < 40; after++) {
                struct buf text = {0};
                buf_puts(&text, "[\"");
                for (size_t i = 0; i < before; i++)
                    buf_putc(&text, 'x');
                buf_putb(&text, cases[c].inner);
                for (size_t i = 0; i < after; i++)
                    buf_putc(&text, 'z');
                buf_puts(&text, "\"]");
                assert_int_equal(is_json(buf_bytes(&text)), cases[c].valid);
                buf_free(&text);
            }
        }
    }
}

static void blanks_are_read_the_same_at_every_length(void **state)
{
    (void)state;
    for (size_t n = 0; n < 70; n++) {
        struct buf text = {0};
        buf_puts(&text, "{");
        for (size_t i = 0; i < n; i++)
            buf_putc(&text, " \n\t\r"[i * 7 % 4]);
        buf_puts(&text, "\"a\":\"b\"");
        for (size_t i = 0; i < n; i++)
            buf_putc(&text, ' ');
        buf_puts(&text, "}");
        finds_string(buf_bytes(&text), "a", BYTES("b"));
        text.at[text.len - 2] = '\f';
        assert_false(n > 0 && is_json(buf_bytes(&text)));
        buf_free(&text);
    }
}

static void finds_each_kind_of_value(void **state)
{
    (void)state;
    struct bytes body = BYTES(
        "{\"s\":\"x\",\"n\":-12,\"f\":1.0,\"e\":1e2,\"t\":true,\"u\":false,\"z\":null,\"o\":{},\"a\":[]}");
    finds_string(body, "s", BYTES("x"));
    static const struct {
        const char *path;
        enum json_kind kind;
        struct bytes raw;
        bool integer;
    } cases[] = {
        {"n", JSON_KIND_NUMBER, BYTES("-12"), true},   {"f", JSON_KIND_NUMBER, BYTES("1.0"), false},
        {"e", JSON_KIND_NUMBER, BYTES("1e2"), false},  {"t", JSON_KIND_TRUE, BYTES("true"), false},
        {"u", JSON_KIND_FALSE, BYTES("false"), false}, {"z", JSON_KIND_NULL, BYTES("null"), false},
        {"o", JSON_KIND_OBJECT, BYTES("{}"), false},   {"a", JSON_KIND_ARRAY, BYTES("[]"), false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lookup result = look_up(body, cases[i].path);
        assert_true(result.valid);
        assert_int_equal(result.found.kind, cases[i].kind);
        assert_true(bytes_eq(result.found.raw, cases[i].raw));
        assert_int_equal(result.found.integer, cases[i].integer);
        free(result.body);
    }
    finds_kind(body, "missing", JSON_KIND_ABSENT);
    finds_kind(body, "s.x", JSON_KIND_ABSENT);
    finds_kind(body, "z.x", JSON_KIND_ABSENT);
    finds_kind(body, "S", JSON_KIND_ABSENT);
}

static void integers_keep_their_exact_digits(void **state)
{
    (void)state;
    struct lookup result = look_up(BYTES("{\"id\":-123456789012345678901234567890}"), "id");
    assert_true(result.found.integer);
    assert_true(bytes_eq(result.found.raw, BYTES("-123456789012345678901234567890")));
    free(result.body);
}

static void array_elements_go_by_number(void **state)
{
    (void)state;
    struct bytes body = BYTES("{\"items\":[{\"id\":\"a\"},{\"id\":\"b\"},[\"c\"]]}");
    finds_string(body, "items.0.id", BYTES("a"));
    finds_string(body, "items.1.id", BYTES("b"));
    finds_string(body, "items.2.0", BYTES("c"));
    static const char *const not_there[] = {"items.3.id",
                                            "items.00.id",
                                            "items.+0.id",
                                            "items.-1.id",
                                            "items. 0.id",
                                            "items.0x0.id",
                                            "items.4294967296.id",
                                            "items.18446744073709551616.id",
                                            "items.18446744073709551615.id",
                                            "items.id",
                                            "0"};
    for (size_t i = 0; i < sizeof not_there / sizeof *not_there; i++)
        finds_kind(body, not_there[i], JSON_KIND_ABSENT);
    finds_string(BYTES("[\"x\"]"), "0", BYTES("x"));
    finds_string(BYTES("[0,1,2,3,4,5,6,7,8,9,\"ten\"]"), "10", BYTES("ten"));
}

static void a_number_is_a_name_too(void **state)
{
    (void)state;
    finds_string(BYTES("{\"0\":\"x\"}"), "0", BYTES("x"));
    finds_string(BYTES("{\"00\":\"x\"}"), "00", BYTES("x"));
    finds_kind(BYTES("{\"0\":\"x\"}"), "00", JSON_KIND_ABSENT);
}

static void names_are_compared_after_decoding(void **state)
{
    (void)state;
    finds_string(BYTES("{\"d\\u0061ta\":{\"\\u0069d\":\"x\"}}"), "data.id", BYTES("x"));
    finds_string(BYTES("{\"caf\\u00e9\":\"x\"}"), "caf\xc3\xa9", BYTES("x"));
    finds_string(BYTES("{\"caf\xc3\xa9\":\"x\"}"), "caf\xc3\xa9", BYTES("x"));
    finds_string(BYTES("{\"\\ud83d\\ude00\":\"x\"}"), "\xf0\x9f\x98\x80", BYTES("x"));
    finds_string(BYTES("{\"a\\/b\\\"\\\\\":\"x\"}"), "a/b\"\\", BYTES("x"));
    finds_kind(BYTES("{\"cafe\\u0301\":\"x\"}"), "caf\xc3\xa9", JSON_KIND_ABSENT); /* not normalised */
    finds_kind(BYTES("{\"a\\u0000\":\"x\"}"), "a", JSON_KIND_ABSENT);
    finds_kind(BYTES("{\"\\u0061b\":\"x\",\"\\u0061\\u0061\":1}"), "a", JSON_KIND_ABSENT);
    finds_kind(BYTES("{\"a\\ud800\":\"x\"}"), "a", JSON_KIND_ABSENT);
    finds_kind(BYTES("{\"a\\ud800\":\"x\"}"), "a\xed\xa0\x80", JSON_KIND_ABSENT);
    /* A name of a length that only looks like a wanted one's (63 and more share a bit). */
    char name[80];
    memset(name, 'n', 79);
    name[79] = 0;
    char body[100];
    snprintf(body, sizeof body, "{\"%s\":\"x\"}", name);
    finds_string(bytes_str(body), name, BYTES("x"));
    name[70] = 0;
    finds_kind(bytes_str(body), name, JSON_KIND_ABSENT);
}

static void the_last_of_duplicate_names_wins(void **state)
{
    (void)state;
    finds_string(BYTES("{\"a\":\"1\",\"a\":\"2\"}"), "a", BYTES("2"));
    finds_string(BYTES("{\"a\":null,\"a\":\"2\"}"), "a", BYTES("2"));
    finds_kind(BYTES("{\"a\":\"1\",\"a\":null}"), "a", JSON_KIND_NULL);
    finds_string(BYTES("{\"a\":\"1\",\"\\u0061\":\"2\"}"), "a", BYTES("2"));
    finds_string(BYTES("{\"a\":{\"b\":\"1\"},\"a\":{\"b\":\"2\"}}"), "a.b", BYTES("2"));
}

/* The earlier object is gone with everything in it, whatever the later value is. */
static void a_duplicate_of_an_ancestor_forgets_what_was_below(void **state)
{
    (void)state;
    finds_kind(BYTES("{\"a\":{\"b\":\"1\"},\"a\":{}}"), "a.b", JSON_KIND_ABSENT);
    finds_kind(BYTES("{\"a\":{\"b\":\"1\"},\"a\":{\"c\":0}}"), "a.b", JSON_KIND_ABSENT);
    finds_kind(BYTES("{\"a\":{\"b\":\"1\"},\"a\":null}"), "a.b", JSON_KIND_ABSENT);
    finds_kind(BYTES("{\"a\":{\"b\":\"1\"},\"a\":[\"b\"]}"), "a.b", JSON_KIND_ABSENT);
    finds_kind(BYTES("{\"a\":{\"b\":{\"c\":\"1\"}},\"a\":{\"b\":{}}}"), "a.b.c", JSON_KIND_ABSENT);
    finds_kind(BYTES("{\"a\":[\"1\",\"2\"],\"a\":[\"3\"]}"), "a.1", JSON_KIND_ABSENT);
    finds_string(BYTES("{\"a\":{\"b\":\"1\"},\"x\":{\"b\":\"2\"}}"), "a.b",
                 BYTES("1")); /* no duplicate: kept */
    finds_string(BYTES("{\"a\":{\"b\":\"1\",\"c\":{\"b\":\"2\"}}}"), "a.b", BYTES("1"));
}

/* {"id":"cus_1","d":[[[...]]]}: `arrays` inside the object, so one level more in all. */
static struct buf nested(size_t arrays, const char *innermost)
{
    struct buf text = {0};
    buf_puts(&text, "{\"id\":\"cus_1\",\"d\":");
    for (size_t i = 0; i < arrays; i++)
        buf_putc(&text, '[');
    buf_puts(&text, innermost);
    for (size_t i = 0; i < arrays; i++)
        buf_putc(&text, ']');
    buf_puts(&text, "}");
    return text;
}

static void nesting_ends_at_2048(void **state) /* DEP-01 to DEP-04 */
{
    (void)state;
    static const size_t fine[] = {500, JSON_DEPTH_MAX - 1}, deep[] = {JSON_DEPTH_MAX, 100000, 1000000};
    static const char *const inside[] = {"", "1", "\"x\""};
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < 2; k++) {
            struct buf text = nested(fine[k], inside[i]);
            finds_string(buf_bytes(&text), "id", BYTES("cus_1"));
            buf_free(&text);
        }
        for (size_t k = 0; k < 3; k++) {
            struct buf text = nested(deep[k], inside[i]);
            assert_false(is_json(buf_bytes(&text)));
            struct lookup result = look_up(buf_bytes(&text), "id");
            assert_false(result.valid);
            assert_int_equal(result.found.kind, JSON_KIND_ABSENT);
            free(result.body);
            buf_free(&text);
        }
    }
}

/* Half of the levels are walked with a path, half without; the bound is on their sum. */
static void levels_under_a_path_count_too(void **state)
{
    (void)state;
    const char *path = "d.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0";
    struct buf text = nested(JSON_DEPTH_MAX - 1, "");
    finds_kind(buf_bytes(&text), path, JSON_KIND_ARRAY);
    buf_free(&text);
    text = nested(JSON_DEPTH_MAX, "");
    struct lookup result = look_up(buf_bytes(&text), path);
    assert_false(result.valid);
    free(result.body);
    buf_free(&text);
}

/* Mixed containers at depth: each level remembers which one it is. */
static void containers_close_as_they_were_opened(void **state)
{
    (void)state;
    for (size_t wrong = 0; wrong <= 200; wrong++) {
        struct buf text = {0};
        for (size_t i = 0; i < 200; i++)
            buf_puts(&text, i % 3 ? "[" : "{\"a\":");
        buf_puts(&text, "0");
        for (size_t i = 200; i-- > 0;)
            buf_putc(&text, (i % 3 != 0) == (i != wrong) ? ']' : '}');
        assert_int_equal(is_json(buf_bytes(&text)), wrong == 200);
        buf_free(&text);
    }
}

static void many_names_take_linear_time(void **state) /* DEP-06 */
{
    (void)state;
    struct buf text = {0};
    buf_puts(&text, "{");
    for (int i = 0; i < 200000; i++)
        buf_putf(&text, "\"k%d\":%d,", i, i);
    buf_puts(&text, "\"id\":\"cus_1\"}");
    finds_string(buf_bytes(&text), "id", BYTES("cus_1"));
    buf_free(&text);
}

/* Every cut of a good body is bad, and none is read past its end. */
static void a_cut_body_is_never_json(void **state)
{
    (void)state;
    struct bytes body = BYTES("{\"a\":[1,-2.5e+3,\"\xc3\xa9\\u00e9\\ud83d\\ude00\\ud800\",true,false,null,{"
                              "\"b\":{}}],\"longer name\":"
                              "\"a text of more than sixteen bytes\"}");
    assert_true(is_json(body));
    for (size_t len = 0; len < body.len; len++) {
        assert_false(is_json(bytes_of(body.at, len)));
        struct lookup result = look_up(bytes_of(body.at, len), "a.6.b.c");
        assert_false(result.valid);
        free(result.body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_what_the_contract_calls_json),
        cmocka_unit_test(refuses_everything_else),
        cmocka_unit_test(paths_do_not_change_what_is_json),
        cmocka_unit_test(strings_are_read_the_same_at_every_offset),
        cmocka_unit_test(blanks_are_read_the_same_at_every_length),
        cmocka_unit_test(finds_each_kind_of_value),
        cmocka_unit_test(integers_keep_their_exact_digits),
        cmocka_unit_test(array_elements_go_by_number),
        cmocka_unit_test(a_number_is_a_name_too),
        cmocka_unit_test(names_are_compared_after_decoding),
        cmocka_unit_test(the_last_of_duplicate_names_wins),
        cmocka_unit_test(a_duplicate_of_an_ancestor_forgets_what_was_below),
        cmocka_unit_test(nesting_ends_at_2048),
        cmocka_unit_test(levels_under_a_path_count_too),
        cmocka_unit_test(containers_close_as_they_were_opened),
        cmocka_unit_test(many_names_take_linear_time),
        cmocka_unit_test(a_cut_body_is_never_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
