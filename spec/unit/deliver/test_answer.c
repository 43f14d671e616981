/* The reader of answers: what is one, where it ends, whether its connection may be used again. Every case is
 * read whole, cut in two at every place, and byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "deliver/sinks/http_priv.h"

struct known {
    const char *text;
    enum answer_state state;
    int status;
    bool keeps;
    const char *body; /* NULL: not looked at */
};

static const struct known answers[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", ANSWER_COMPLETE, 200, true, "ok"},
    {"HTTP/1.1 200\r\ncontent-length:0\r\n\r\n", ANSWER_COMPLETE, 200, true, ""},
    {"HTTP/1.1 200 \r\nCONTENT-LENGTH: \t2 \r\n\r\nok", ANSWER_COMPLETE, 200, true, "ok"},
    {"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", ANSWER_COMPLETE, 200, true, "ok"},
    {"HTTP/1.1 200 OK\nContent-Length: 2\n\r\nok", ANSWER_COMPLETE, 200, true, "ok"},
    {"HTTP/1.1 204 No\r\n\r\n", ANSWER_COMPLETE, 204, true, ""},
    {"HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n", ANSWER_COMPLETE, 304, true, ""},
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: x, CLOSE\r\n\r\nok", ANSWER_COMPLETE, 200, false,
     "ok"},
    {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", ANSWER_COMPLETE, 200, false, "ok"},
    {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: Keep-Alive\r\n\r\nok", ANSWER_COMPLETE, 200, true,
     "ok"},
    {"HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 103 Hints\r\nContent-Length: 7\r\n\r\nHTTP/1.1 201 "
     "X\r\nContent-Length: 1\r\n\r\nx",
     ANSWER_COMPLETE, 201, true, "x"},
    {"HTTP/1.1 101 Other\r\nUpgrade: x\r\n\r\n", ANSWER_COMPLETE, 101, false, ""},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n00A;x=y\r\n0123456789\r\n0\r\n\r\n",
     ANSWER_COMPLETE, 200, true, "abc0123456789"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n1\nx\n0\nTrailer: 1\n\n", ANSWER_COMPLETE,
     200, false, "x"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n1\r\nx\r\n0\r\n\r\n",
     ANSWER_COMPLETE, 200, false, "x"},
    {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n",
     ANSWER_COMPLETE, 200, false, ""},
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", ANSWER_COMPLETE, 200, true, "ok"},
    {"HTTP/1.1 200 OK\r\nX: a\r\n folded: here\r\nContent-Length: 2\r\n\r\nok", ANSWER_COMPLETE, 200, true,
     "ok"},

    /* Odd, and not used again: some reader sees another end. */
    {"HTTP/1.1 204 X\r\nContent-Length: 2\r\n\r\n", ANSWER_COMPLETE, 204, false, ""},
    {"HTTP/1.1 204 X\r\nTransfer-Encoding: chunked\r\n\r\n", ANSWER_COMPLETE, 204, false, ""},
    {"HTTP/1.1 204 X\r\nContent-Length:\r\n\r\n", ANSWER_COMPLETE, 204, false, ""},
    {"HTTP/1.1 204 X\r\nContent-Length: 0\r\n\r\n", ANSWER_COMPLETE, 204, true, ""},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\nContent-Length: 2\r\n\r\nok", ANSWER_COMPLETE, 200,
     false, "ok"},
    {"HTTP/1.1 200 OK\r\nA B: 1\r\nContent-Length: 2\r\n\r\nok", ANSWER_COMPLETE, 200, false, "ok"},
    {"HTTP/1.1 200 OK\r\nX: y\rContent-Length: 9\r\nContent-Length: 2\r\n\r\nok", ANSWER_COMPLETE, 200, false,
     "ok"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", ANSWER_COMPLETE, 200, false,
     ""},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     ANSWER_COMPLETE, 200, false, ""},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\rX\nok\r\n0\r\n\r\n", ANSWER_COMPLETE, 200,
     false, "ok"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\r\n0\r\n\r\n", ANSWER_COMPLETE, 200,
     false, "ok"},
    /* Odd, and clear. */
    {"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", ANSWER_COMPLETE, 200, true, "ok"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0000000000000000000002\r\n\r\nok", ANSWER_COMPLETE, 200, true, "ok"},
    {"HTTP/1.1  200OK\r\nContent-Length: 2\r\n\r\nok", ANSWER_COMPLETE, 200, true, "ok"},
    {"http/1.1 200 ok\r\nContent-Length: 2\r\n\r\nok", ANSWER_COMPLETE, 200, true, "ok"},

    {"HTTP/1.1 200 OK\r\n\r\nuntil it closes", ANSWER_GOES_ON, 200, false, "until it closes"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nxx", ANSWER_GOES_ON, 200, false, "xx"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", ANSWER_GOES_ON, 200, true, "ok"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", ANSWER_GOES_ON, 200, true,
     "abc"},
    {"HTTP/1.1 100 Go on\r\n\r\n", ANSWER_GOES_ON, 0, false, ""},
    {"HTTP/1.1 503 X\r\nRetry", ANSWER_GOES_ON, 503, false, ""},
    {"", ANSWER_GOES_ON, 0, false, ""},

    {"SSH-2.0-OpenSSH_9.2\r\n", ANSWER_NOT_HTTP, 0, false, NULL},
    {"S", ANSWER_NOT_HTTP, 0, false, NULL},
    {"\r\n", ANSWER_NOT_HTTP, 0, false, NULL},
    {"HTTP/2 200 OK\r\n\r\n", ANSWER_NOT_HTTP, 0, false, NULL},
    {"HTTP/1.2 200 OK\r\n\r\n", ANSWER_NOT_HTTP, 0, false, NULL},
    {"HTTP/1.1 20 OK\r\n\r\n", ANSWER_NOT_HTTP, 0, false, NULL},
    {"HTTP/1.1 2000\r\n\r\n", ANSWER_NOT_HTTP, 0, false, NULL},
    {"HTTP/1.1 099 X\r\n\r\n", ANSWER_NOT_HTTP, 99, false, NULL},
    {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", ANSWER_NOT_HTTP, 200, false, NULL},
    {"HTTP/1.1 200 OK\r\n: no name\r\n\r\n", ANSWER_NOT_HTTP, 200, false, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", ANSWER_NOT_HTTP, 200, false, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok", ANSWER_NOT_HTTP, 200, false, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length:\r\n 2\r\n\r\nok", ANSWER_NOT_HTTP, 200, false, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n 0\r\n\r\nok", ANSWER_NOT_HTTP, 200, false, NULL},
    {"HTTP/1.1 200 OK\r\nConnection: x,\r\n close\r\n\r\n", ANSWER_NOT_HTTP, 200, false, NULL},
    {"HTTP/1.1 200 OK\r\n X: y\r\n\r\n", ANSWER_NOT_HTTP, 200, false, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", ANSWER_NOT_HTTP, 200, false, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nok", ANSWER_NOT_HTTP, 200, false, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", ANSWER_NOT_HTTP, 200, false, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", ANSWER_NOT_HTTP, 200, false,
     NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", ANSWER_NOT_HTTP, 200, true, NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\nok\r\n", ANSWER_NOT_HTTP, 200, true, NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", ANSWER_NOT_HTTP, 200, true, NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", ANSWER_NOT_HTTP, 200, true,
     NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokay\r\n", ANSWER_NOT_HTTP, 200, true, "ok"},
};

struct reading {
    struct answer answer;
    struct http_seen seen;
    enum answer_state state;
};

static void begin(struct reading *reading)
{
    answer_begin(&reading->answer);
    memset(&reading->seen, 0, sizeof reading->seen);
    reading->state = ANSWER_GOES_ON;
}

static void read_on(struct reading *reading, const char *at, size_t len)
{
    char copy[1024]; /* so that a sanitizer sees a look beyond the end */
    assert_true(len <= sizeof copy);
    memcpy(copy + sizeof copy - len, at, len);
    if (reading->state == ANSWER_GOES_ON)
        reading->state =
            answer_take(&reading->answer, &reading->seen, bytes_of(copy + sizeof copy - len, len));
}

static void assert_known(const struct known *known, struct reading *reading, const char *how)
{
    struct bytes body = bytes_of(reading->seen.response, reading->seen.response_len);
    if (reading->state != known->state || reading->answer.status != known->status ||
        (known->state == ANSWER_COMPLETE && reading->answer.keeps != known->keeps) ||
        (known->body && !bytes_eq(body, bytes_str(known->body))))
        fail_msg("%s, %s: state %d, status %d, keeps %d, body \"%.*s\"", known->text, how, reading->state,
                 reading->answer.status, reading->answer.keeps, BYTES_ARG(body));
}

static void answers_in_any_pieces(void **state)
{
    (void)state;
    struct reading reading = {0};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        size_t len = strlen(answers[i].text);
        for (size_t cut = 0; cut <= len; cut++) {
            char how[32];
            snprintf(how, sizeof how, "cut at %zu", cut);
            begin(&reading);
            read_on(&reading, answers[i].text, cut);
            read_on(&reading, answers[i].text + cut, len - cut);
            assert_known(&answers[i], &reading, how);
        }
        begin(&reading);
        for (size_t at = 0; at < len; at++)
            read_on(&reading, answers[i].text + at, 1);
        assert_known(&answers[i], &reading, "byte by byte");
    }
    answer_free(&reading.answer);
}

static void the_end_of_a_connection_ends_what_has_no_length(void **state)
{
    (void)state;
    struct reading reading = {0};
    static const char endless[] = "HTTP/1.1 200 OK\r\n\r\nab",
                      counted[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab";
    begin(&reading);
    assert_int_equal(answer_end(&reading.answer), ANSWER_GOES_ON);
    read_on(&reading, endless, sizeof endless - 1);
    assert_int_equal(answer_end(&reading.answer), ANSWER_COMPLETE);
    begin(&reading);
    read_on(&reading, counted, sizeof counted - 1);
    assert_int_equal(answer_end(&reading.answer), ANSWER_GOES_ON);
    answer_free(&reading.answer);
}

/* A second answer that nobody asked for would be taken for the next hook's. */
static void bytes_behind_an_answer_end_its_connection(void **state)
{
    (void)state;
    struct reading reading = {0};
    static const char two[] =
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    begin(&reading);
    read_on(&reading, two, sizeof two - 1);
    assert_int_equal(reading.state, ANSWER_COMPLETE);
    assert_false(reading.answer.keeps);
    answer_free(&reading.answer);
}

static enum answer_state after_filler(struct reading *reading, const char *start, const char *filler)
{
    begin(reading);
    read_on(reading, start, strlen(start));
    for (size_t len = 0; reading->state == ANSWER_GOES_ON && len < 2 * HTTP_RESPONSE_MAX;
         len += strlen(filler))
        read_on(reading, filler, strlen(filler));
    return reading->state;
}

static void reading_stops_at_its_bound(void **state)
{
    (void)state;
    struct reading reading = {0};
    assert_int_equal(after_filler(&reading, "HTTP/1.1 200 OK\r\n", "X-Filler: 0123456789\r\n"),
                     ANSWER_HEAD_LARGE);
    assert_int_equal(after_filler(&reading, "HTTP/1.1 200 OK\r\nX: ", "0123456789"), ANSWER_HEAD_LARGE);
    assert_int_equal(after_filler(&reading, "", "HTTP/1.1 100 Go on\r\n\r\n"), ANSWER_HEAD_LARGE);
    assert_int_equal(after_filler(&reading, "HTTP/1.1 410 X\r\n\r\n", "0123456789"), ANSWER_CUT);
    assert_int_equal(
        after_filler(&reading, "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"),
        ANSWER_CUT);
    assert_int_equal(
        after_filler(&reading, "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "A: b\r\n"),
        ANSWER_CUT);
    assert_int_equal(reading.answer.status, 200);
    assert_true(reading.seen.received > HTTP_RESPONSE_MAX && reading.seen.received < HTTP_RESPONSE_MAX + 100);
    answer_free(&reading.answer);
}

static void only_the_last_retry_after_counts(void **state)
{
    (void)state;
    struct reading reading = {0};
    static const char
        text[] = "HTTP/1.1 103 X\r\nRetry-After: 9\r\n\r\n"
                 "HTTP/1.1 503 X\r\nRetry-After: 7\r\nretry-after:5\r\nContent-Length: 0\r\n\r\n",
        interim[] = "HTTP/1.1 103 X\r\nRetry-After: 9\r\n\r\nHTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n";
    begin(&reading);
    read_on(&reading, text, sizeof text - 1);
    assert_true(reading.seen.has_retry_after);
    assert_int_equal(reading.seen.retry_after_ms, 5000);
    begin(&reading);
    read_on(&reading, interim, sizeof interim - 1);
    assert_false(reading.seen.has_retry_after);
    answer_free(&reading.answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_in_any_pieces),
        cmocka_unit_test(the_end_of_a_connection_ends_what_has_no_length),
        cmocka_unit_test(bytes_behind_an_answer_end_its_connection),
        cmocka_unit_test(reading_stops_at_its_bound),
        cmocka_unit_test(only_the_last_retry_after_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
