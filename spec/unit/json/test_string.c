#include "json_support.h"

static void decodes_every_escape(void **state)
{
    (void)state;
    finds_string(BYTES("{\"k\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}"), "k", BYTES("\"\\/\b\f\n\r\t"));
    finds_string(BYTES("{\"k\":\"\\u0063us_\\u0031\"}"), "k", BYTES("cus_1"));
    finds_string(BYTES("{\"k\":\"\\u007f\\u0080\\u07ff\\u0800\\uffff\"}"), "k",
                 BYTES("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf"));
    finds_string(BYTES("{\"k\":\"a\\uD83D\\uDE00b\"}"), "k",
                 BYTES("a\xf0\x9f\x98\x80"
                       "b"));
    finds_string(BYTES("{\"k\":\"\\udbff\\udfff\"}"), "k", BYTES("\xf4\x8f\xbf\xbf"));
    finds_string(BYTES("{\"k\":\"a\\u0000b\"}"), "k", BYTES("a\0b"));
    finds_string(BYTES("{\"k\":\"\\\\u0041\"}"), "k", BYTES("\\u0041"));
    finds_string(BYTES("{\"k\":\"\"}"), "k", BYTES(""));
    finds_string(BYTES("{\"k\":\"\xf0\x9f\x98\x80 plain\"}"), "k", BYTES("\xf0\x9f\x98\x80 plain"));
}

static void a_lone_surrogate_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        bool lone;
    } cases[] = {
        {"{\"k\":\"\\ud83d\"}", true},
        {"{\"k\":\"\\ude00\"}", true},
        {"{\"k\":\"\\ud83dx\"}", true},
        {"{\"k\":\"\\ud83d\\n\"}", true},
        {"{\"k\":\"\\ud83d\\u0041\"}", true},
        {"{\"k\":\"\\ude00\\ud83d\"}", true},
        {"{\"k\":\"\\ud83d\\ud83d\\ude00\"}", true},
        {"{\"k\":\"\\ud83d\\ude00\\ude00\"}", true},
        {"{\"k\":\"\\ud83d\\ude00\"}", false},
        {"{\"k\":\"\\ud7ff\\ue000\"}", false},
        {"{\"k\":\"x\",\"other\":\"\\ud83d\"}", false},
        {"{\"\\ud83d\":1,\"k\":\"x\"}", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lookup result = look_up(bytes_str(cases[i].body), "k");
        assert_true(result.valid);
        assert_int_equal(result.found.kind, JSON_KIND_STRING);
        assert_int_equal(result.found.lone_surrogate, cases[i].lone);
        free(result.body);
    }
}

static void every_code_point_survives(void **state)
{
    (void)state;
    for (unsigned n = 0; n <= 0x10ffff; n += n < 0x10000 ? 1 : 61) {
        if (n >= 0xd800 && n < 0xe000)
            continue;
        char body[32], utf8[4];
        if (n < 0x10000)
            snprintf(body, sizeof body, "[\"\\u%04x\"]", n);
        else
            snprintf(body, sizeof body, "[\"\\u%04X\\u%04x\"]", 0xd800 + ((n - 0x10000) >> 10),
                     0xdc00 + (n & 0x3ff));
        size_t len = n < 0x80 ? 1 : n < 0x800 ? 2 : n < 0x10000 ? 3 : 4;
        for (size_t i = len; i-- > 1;)
            utf8[i] = (char)(0x80 | (n >> (6 * (len - 1 - i)) & 0x3f));
        utf8[0] = (char)(len == 1 ? n : (0xf00u >> len & 0xff) | n >> (6 * (len - 1)));

        struct bytes zero = BYTES("0");
        struct json_path path = {&zero, 1};
        struct json_paths *paths = json_paths_new(&path, 1);
        struct json_found found;
        char out[16];
        assert_true(json_walk(bytes_str(body), paths, &found));
        assert_int_equal(json_string_decode(&found, out), len);
        assert_memory_equal(out, utf8, len);

        /* Its own UTF-8 is accepted as it is, and a name written either way is the same name. */
        char raw[8], named[48];
        int raw_len = snprintf(raw, sizeof raw, "\"%.*s\"", (int)len, utf8);
        if (n >= 0x20 && n != '"' && n != '\\')
            assert_true(json_walk(bytes_of(raw, (size_t)raw_len), NULL, NULL));
        json_paths_free(paths);
        struct bytes name = bytes_of(utf8, len);
        path = (struct json_path){&name, 1};
        paths = json_paths_new(&path, 1);
        snprintf(named, sizeof named, "{%.*s:1}", (int)strlen(body) - 2, body + 1);
        assert_true(json_walk(bytes_str(named), paths, &found));
        assert_int_equal(found.kind, JSON_KIND_NUMBER);
        json_paths_free(paths);
    }
}

static void kinds_have_names(void **state)
{
    (void)state;
    assert_string_equal(json_kind_name(JSON_KIND_ABSENT), "nothing");
    assert_string_equal(json_kind_name(JSON_KIND_OBJECT), "an object");
    assert_string_equal(json_kind_name(JSON_KIND_ARRAY), "an array");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_every_escape),
        cmocka_unit_test(a_lone_surrogate_is_told),
        cmocka_unit_test(every_code_point_survives),
        cmocka_unit_test(kinds_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
