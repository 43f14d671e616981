/* Raw requests in files: as the gateway prints them, and as people write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "envelope/raw.h"

#define ASSERT_BYTES(text, got)                                                                              \
    do {                                                                                                     \
        assert_int_equal((got).len, sizeof(text) - 1);                                                       \
        assert_memory_equal((got).at, text, sizeof(text) - 1);                                               \
    } while (0)

static struct envelope *read_ok(struct bytes raw)
{
    struct envelope *envelope;
    struct error err = {{0}};
    if (envelope_from_raw(raw, &envelope, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return envelope;
}

static void test_as_it_is_printed(void **state)
{
    (void)state;
    struct envelope *e =
        read_ok(BYTES("POST /webhooks/shop?a=b&c HTTP/1.1\r\nX-Shop:  7 \r\nx-shop: 8\r\n"
                      "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"a\":\r\n1}"));
    ASSERT_BYTES("POST", e->method);
    ASSERT_BYTES("/webhooks/shop", e->path);
    ASSERT_BYTES("a=b&c", e->query);
    ASSERT_BYTES("application/json", e->content_type);
    assert_int_equal(4, e->header_count);
    ASSERT_BYTES("7", envelope_header(e, BYTES("x-shop")));
    ASSERT_BYTES("{\"a\":\r\n1}", e->body);
    envelope_unref(e);
}

static void test_as_people_write_it(void **state)
{
    (void)state;
    struct envelope *e = read_ok(BYTES("POST /x\nA: 1\n\n{\"a\":1}"));
    ASSERT_BYTES("/x", e->path);
    assert_null(e->query.at);
    assert_null(e->content_type.at);
    ASSERT_BYTES("{\"a\":1}", e->body);
    envelope_unref(e);

    e = read_ok(BYTES("POST /x HTTP/1.1\nContent-Length: 3\n\nabc\n")); /* an editor's line end */
    ASSERT_BYTES("abc", e->body);
    envelope_unref(e);

    e = read_ok(BYTES("GET /x? HTTP/1.1\n\n"));
    ASSERT_BYTES("", e->body);
    ASSERT_BYTES("", e->query);
    assert_non_null(e->body.at);
    envelope_unref(e);

    e = read_ok(BYTES("POST /x HTTP/1.1\nEmpty:\n\na\0b"));
    ASSERT_BYTES("", envelope_header(e, BYTES("empty")));
    ASSERT_BYTES("a\0b", e->body);
    envelope_unref(e);
}

static void test_what_is_no_request_says_why(void **state)
{
    (void)state;
    static const struct {
        struct bytes raw;
        const char *part;
    } cases[] = {
        {BYTES(""), "begins with a line"},
        {BYTES("POST /x HTTP/1.1"), "begins with a line"},
        {BYTES("{\"a\":1}\n"), "line 1: expected \"METHOD /path HTTP/1.1\", found \"{\"a\":1}\""},
        {BYTES("POST x HTTP/1.1\n\n"), "line 1"},
        {BYTES("POST /x y HTTP/1.1\n\n"), "line 1"},
        {BYTES("POST /x HTTP/1.1\nno colon\n\n"), "line 2: expected \"Name: value\", found \"no colon\""},
        {BYTES("POST /x HTTP/1.1\nA: 1\n folded\n\n"), "line 3"},
        {BYTES("POST /x HTTP/1.1\nA : 1\n\n"), "line 2"},
        {BYTES("POST /x HTTP/1.1\nA: 1\n"), "an empty line behind the headers"},
        {BYTES("POST /x HTTP/1.1\nContent-Length: 4\n\nabc"), "says 4 bytes, the body has 3"},
        {BYTES("POST /x HTTP/1.1\nContent-Length: 1\n\nabc"), "says 1 bytes, the body has 3"},
        {BYTES("POST /x HTTP/1.1\nContent-Length: -1\n\nabc"), "expected a number"},
        {BYTES("POST /x HTTP/1.1\nContent-Length: 1x\n\nabc"), "expected a number"},
        {BYTES("POST /x HTTP/1.1\nTransfer-Encoding: chunked\n\n3\nabc\n0\n\n"),
         "Transfer-Encoding: chunked"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct envelope *envelope;
        struct error err = {{0}};
        assert_int_equal(STATUS_INVALID, envelope_from_raw(cases[i].raw, &envelope, &err));
        assert_null(envelope);
        if (!strstr(err.text, cases[i].part))
            fail_msg("\"%s\" is not in \"%s\"", cases[i].part, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_it_is_printed),
        cmocka_unit_test(test_as_people_write_it),
        cmocka_unit_test(test_what_is_no_request_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
