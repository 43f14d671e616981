/* How lanes and gateways are named on the command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/client.h"
#include "cli/lane_name.h"

static void a_lane_is_source_sink_and_key(void **state)
{
    (void)state;
    struct lane_name name;
    assert_true(lane_name_parse("demo/receiver/a", &name));
    assert_string_equal("demo", name.source);
    assert_string_equal("receiver", name.sink);
    assert_true(name.has_key);
    assert_true(bytes_eq(buf_bytes(&name.key), BYTES("a")));
    lane_name_free(&name);
}

static void a_key_is_decoded_and_may_hold_slashes(void **state)
{
    (void)state;
    struct lane_name name;
    assert_true(lane_name_parse("demo/receiver/eu/7 %25%00%C3%A4%20", &name));
    assert_true(bytes_eq(buf_bytes(&name.key), BYTES("eu/7 %\0\xc3\xa4 ")));
    lane_name_free(&name);
}

static void what_is_not_said_is_open(void **state)
{
    (void)state;
    struct lane_name name;
    assert_true(lane_name_parse("demo", &name));
    assert_null(name.sink);
    assert_false(name.has_key);
    lane_name_free(&name);

    assert_true(lane_name_parse("demo/receiver", &name));
    assert_string_equal("receiver", name.sink);
    assert_false(name.has_key);
    lane_name_free(&name);

    assert_true(lane_name_parse("demo/receiver/", &name)); /* the keyless lane */
    assert_true(name.has_key);
    assert_int_equal(0, name.key.len);
    lane_name_free(&name);
}

static void no_name_of_a_lane(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",        "/",  "/receiver",        "demo/",
                                        "demo//a", "//", "demo/receiver/%2", "demo/receiver/%zz"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct lane_name name;
        if (lane_name_parse(wrong[i], &name))
            fail_msg("\"%s\" should be refused", wrong[i]);
        assert_null(name.source);
    }
}

static void url_is(const char *text, const char *expected)
{
    struct buf url = {0};
    if (client_url_from_text(text, &url) != (expected != NULL))
        fail_msg("%s", text);
    if (expected)
        assert_string_equal(expected, url.at);
    buf_free(&url);
}

static void a_gateway_by_url(void **state)
{
    (void)state;
    url_is("http://127.0.0.1:4002", "http://127.0.0.1:4002");
    url_is("HTTPS://gate.example/behind/", "https://gate.example/behind");
    url_is("gate.internal:4002", "http://gate.internal:4002");
    url_is("[::1]:4002", "http://[::1]:4002");
    url_is("", NULL);
    url_is("http://", NULL);
    url_is("http:///", NULL);
    url_is("ftp://gate", NULL);
    url_is("file:///etc/passwd", NULL);
    url_is("gate 1:4002", NULL);
    url_is("gate\r\nX: y", NULL);
    url_is("http://gate/?x=1", NULL);
    url_is("http://gate#x", NULL);
}

static void a_gateway_by_its_listen(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{"127.0.0.1:4002", "http://127.0.0.1:4002"},
                                          {"0.0.0.0:4002", "http://127.0.0.1:4002"},
                                          {"[::]:4002", "http://[::1]:4002"},
                                          {"10.1.2.3:80", "http://10.1.2.3:80"}};
    for (size_t i = 0; i < 4; i++) {
        struct buf url = {0};
        client_url_from_listen(rows[i][0], &url);
        assert_string_equal(rows[i][1], url.at);
        buf_free(&url);
    }
}

static void filters_are_url_encoded(void **state)
{
    (void)state;
    struct buf path = {0};
    buf_puts(&path, "/v1/lanes");
    client_query(&path, "tenant", BYTES_NONE);
    assert_string_equal("/v1/lanes", path.at);
    client_query(&path, "source", BYTES("demo"));
    client_query(&path, "key", BYTES("a b&c=%\0\xff~/+"));
    client_query(&path, "x", BYTES(""));
    assert_string_equal("/v1/lanes?source=demo&key=a%20b%26c%3D%25%00%FF~%2F%2B&x=", path.at);
    buf_free(&path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lane_is_source_sink_and_key),
        cmocka_unit_test(a_key_is_decoded_and_may_hold_slashes),
        cmocka_unit_test(what_is_not_said_is_open),
        cmocka_unit_test(no_name_of_a_lane),
        cmocka_unit_test(a_gateway_by_url),
        cmocka_unit_test(a_gateway_by_its_listen),
        cmocka_unit_test(filters_are_url_encoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
