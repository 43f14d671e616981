/* The raw head is read strictly: what two readers could read in two ways is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/head.h"

#define POST "POST /in/gh HTTP/1.1\r\n"
#define HOST "Host: gw.test\r\n"

static const struct {
    const char *what;
    struct bytes raw;
    enum head_verdict verdict;
} cases[] = {
    {"a plain head", BYTES(POST HOST "Content-Length: 2\r\n\r\n{}"), HEAD_OK},
    {"names lowered in place", BYTES(POST "host: a\r\ncontent-length: 2\r\n\r\n{}"), HEAD_OK},
    {"chunked in any case", BYTES(POST HOST "tRANSFER-eNCODING: CHUNKED\r\n\r\n"), HEAD_OK},
    {"one empty line in front", BYTES("\r\n" POST HOST "\r\n"), HEAD_OK},
    {"two empty lines in front", BYTES("\r\n\r\n" POST HOST "\r\n"), HEAD_BAD},
    {"an empty value", BYTES(POST HOST "X: \r\n\r\n"), HEAD_OK},
    {"tab and blanks in a value", BYTES(POST HOST "X: a \t b\r\n\r\n"), HEAD_OK},
    {"HTTP/1.0 without Host", BYTES("GET / HTTP/1.0\r\n\r\n"), HEAD_OK},
    {"HTTP/1.1 without Host", BYTES(POST "\r\n"), HEAD_BAD},
    {"two Hosts", BYTES(POST HOST HOST "\r\n"), HEAD_BAD},
    {"two lengths that differ", BYTES(POST HOST "Content-Length: 0\r\nContent-Length: 63\r\n\r\n"), HEAD_BAD},
    {"two equal lengths", BYTES(POST HOST "Content-Length: 3\r\nContent-Length: 3\r\n\r\n"), HEAD_BAD},
    {"a list of lengths", BYTES(POST HOST "Content-Length: 3, 3\r\n\r\n"), HEAD_BAD},
    {"a signed length", BYTES(POST HOST "Content-Length: +2\r\n\r\n"), HEAD_BAD},
    {"an empty length", BYTES(POST HOST "Content-Length: \r\n\r\n"), HEAD_BAD},
    {"a length and a coding", BYTES(POST HOST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"),
     HEAD_BAD},
    {"two codings", BYTES(POST HOST "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n"),
     HEAD_BAD},
    {"another coding", BYTES(POST HOST "Transfer-Encoding: gzip, chunked\r\n\r\n"), HEAD_BAD},
    {"chunked in HTTP/1.0", BYTES("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), HEAD_BAD},
    {"bare LF after the request line", BYTES("POST / HTTP/1.1\n" HOST "\r\n"), HEAD_BAD},
    {"bare LF after a header", BYTES(POST "Host: a\nX: b\r\n\r\n"), HEAD_BAD},
    {"bare LF at the end", BYTES(POST HOST "\n"), HEAD_BAD},
    {"bare LF in front", BYTES("\n" POST HOST "\r\n"), HEAD_BAD},
    {"a folded line", BYTES(POST HOST "X: a\r\n b: c\r\n\r\n"), HEAD_BAD},
    {"a blank before the colon", BYTES(POST HOST "X : a\r\n\r\n"), HEAD_BAD},
    {"no name", BYTES(POST HOST ": a\r\n\r\n"), HEAD_BAD},
    {"no colon", BYTES(POST HOST "X\r\n\r\n"), HEAD_BAD},
    {"an illegal name", BYTES(POST HOST "X(y): a\r\n\r\n"), HEAD_BAD},
    {"no method", BYTES(" / HTTP/1.1\r\n" HOST "\r\n"), HEAD_BAD},
    {"an illegal method", BYTES("P{ST / HTTP/1.1\r\n" HOST "\r\n"), HEAD_BAD},
    {"no target", BYTES("POST  HTTP/1.1\r\n" HOST "\r\n"), HEAD_BAD},
    {"HTTP/2", BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), HEAD_BAD},
    {"raw UTF-8 in the target", BYTES("GET /?q=\xc3\xa9 HTTP/1.1\r\n" HOST "\r\n"), HEAD_OK},
    {"a high byte in a value", BYTES(POST HOST "X: \xe9\r\n\r\n"), HEAD_INVALID_HEADER},
    {"DEL in a value", BYTES(POST HOST "X: \x7f\r\n\r\n"), HEAD_INVALID_HEADER},
    {"NUL in a value", BYTES(POST HOST "X: a\0b\r\n\r\n"), HEAD_INVALID_HEADER},
    {"bare CR in a value", BYTES(POST HOST "X: a\rb\r\n\r\n"), HEAD_INVALID_HEADER},
    {"framing is judged before bytes", BYTES(POST HOST HOST "X: \xe9\r\n\r\n"), HEAD_BAD},
    {"an expectation we know", BYTES(POST HOST "Expect: 100-Continue\r\n\r\n"), HEAD_OK},
    {"another expectation", BYTES(POST HOST "Expect: tea\r\n\r\n"), HEAD_UNKNOWN_EXPECT},
    {"no end", BYTES(POST HOST), HEAD_BAD},
    {"nothing", BYTES(""), HEAD_BAD},
};

static void every_head_gets_its_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct head head;
        enum head_verdict verdict = head_check(cases[i].raw, &head);
        if (verdict != cases[i].verdict)
            fail_msg("%s: verdict %d, expected %d", cases[i].what, verdict, cases[i].verdict);
    }
}

static void no_prefix_of_a_head_is_a_head(void **state)
{
    (void)state;
    const struct bytes whole = BYTES(POST HOST "X: y\r\nContent-Length: 2\r\n\r\n");
    for (size_t len = 0; len < whole.len; len++) {
        struct head head;
        assert_int_equal(head_check(bytes_of(whole.at, len), &head), HEAD_BAD);
    }
}

static void headers_come_in_order_trimmed_and_marked(void **state)
{
    (void)state;
    struct head head;
    assert_int_equal(
        head_check(
            BYTES("PUT /a?b HTTP/1.1\r\nx-a:  1 \t\r\nhost:h\r\nexpect: 100-continue\r\nx-a: 2\r\n\r\nrest"),
            &head),
        HEAD_OK);
    assert_true(bytes_eq(head.method, BYTES("PUT")));
    assert_true(bytes_eq(head.target, BYTES("/a?b")));
    assert_int_equal(head.header_count, 4);
    assert_true(bytes_eq(head.headers[0].name, BYTES("x-a")));
    assert_true(bytes_eq(head.headers[0].value, BYTES("1")));
    assert_true(bytes_eq(head.headers[1].name, BYTES("Host")));
    assert_true(bytes_eq(head.headers[1].value, BYTES("h")));
    assert_true(bytes_eq(head.headers[2].name, BYTES("Expect")));
    assert_true(bytes_eq(head.headers[3].value, BYTES("2")));
    assert_false(head.taken[0]);
    assert_true(head.taken[1] && head.taken[2]);
    assert_false(head.chunked);
}

static void the_first_bad_header_is_named(void **state)
{
    (void)state;
    struct head head;
    assert_int_equal(head_check(BYTES(POST HOST "A: 1\r\nB: \x80\r\nC: \x80\r\n\r\n"), &head),
                     HEAD_INVALID_HEADER);
    assert_true(bytes_eq(head.headers[head.culprit].name, BYTES("B")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_head_gets_its_verdict),
        cmocka_unit_test(no_prefix_of_a_head_is_a_head),
        cmocka_unit_test(headers_come_in_order_trimmed_and_marked),
        cmocka_unit_test(the_first_bad_header_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
