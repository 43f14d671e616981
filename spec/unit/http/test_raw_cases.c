/* Hostile bytes, one connection each: what is answered, whether the connection ends, and how many requests a
 * handler saw. The ids are those of the collected cases that this table retells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "stage.h"
#include "wire.h"

static const struct raw_case {
    const char *id, *what;
    struct bytes raw;
    int statuses[3]; /* in order; none: it ends without an answer */
    int handled;
    bool half_closes; /* the client, behind its bytes */
    bool ends;        /* the server closes behind an answer of success too */
    const char *says; /* what the first echo must hold */
} cases[] = {
    {"H01",
     "two Content-Length headers that differ: 0 first",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length: 0\r\n"
           "Content-Length: 63\r\n"
           "\r\n"
           "POST /in/other HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length: 2\r\n"
           "\r\n"
           "{}"),
     {400},
     .handled = 0},
    {"H02",
     "two Content-Length headers that differ: the longer first",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length: 63\r\n"
           "Content-Length: 0\r\n"
           "\r\n"
           "POST /in/other HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length: 2\r\n"
           "\r\n"
           "{}"),
     {400},
     .handled = 0},
    {"H03",
     "two equal Content-Length headers",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length: 3\r\n"
           "Content-Length: 3\r\n"
           "\r\n"
           "{ }"),
     {400},
     .handled = 0},
    {"H06",
     "Content-Length that is not a number, with chunked",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length: many\r\n"
           "Transfer-Encoding: chunked\r\n"
           "\r\n"
           "2\r\n"
           "{}\r\n"
           "0\r\n"
           "\r\n"),
     {400},
     .handled = 0},
    {"H08",
     "Content-Length: 0x2",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length: 0x2\r\n"
           "\r\n"
           "{}"),
     {400},
     .handled = 0},
    {"H09",
     "Content-Length: -2",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length: -2\r\n"
           "\r\n"
           "{}"),
     {400},
     .handled = 0},
    {"H11",
     "Content-Length: 18446744073709551618",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length: 18446744073709551618\r\n"
           "\r\n"
           "{}"),
     {400},
     .handled = 0},
    {"H12",
     "Content-Length: (empty)",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length: \r\n"
           "\r\n"
           "{}"),
     {400},
     .handled = 0},
    {"H14",
     "Content-Length with spaces around the number",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length:  2 \r\n"
           "\r\n"
           "{}"),
     {400},
     .handled = 0},
    {"H15",
     "signature header with a trailing space and tab",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length: 2\r\n"
           "X-Hub-Signature-256: sha256=aa \011\r\n"
           "\r\n"
           "{}"),
     {200},
     .handled = 1,
     .says = "X-Hub-Signature-256: sha256=aa\n"},
    {"H16",
     "space before the colon",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length : 2\r\n"
           "\r\n"
           "{}"),
     {400},
     .handled = 0},
    {"H17",
     "space before the colon of Transfer-Encoding",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length: 2\r\n"
           "Transfer-Encoding : chunked\r\n"
           "\r\n"
           "{}"),
     {400},
     .handled = 0},
    {"H18",
     "Transfer-Encoding: \"xchunked\"",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Transfer-Encoding: xchunked\r\n"
           "\r\n"
           "2\r\n"
           "{}\r\n"
           "0\r\n"
           "\r\n"),
     {400},
     .handled = 0},
    {"H19",
     "Transfer-Encoding: \"chunked, identity\"",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Transfer-Encoding: chunked, identity\r\n"
           "\r\n"
           "2\r\n"
           "{}\r\n"
           "0\r\n"
           "\r\n"),
     {400},
     .handled = 0},
    {"H20",
     "Transfer-Encoding: \"gzip, chunked\"",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Transfer-Encoding: gzip, chunked\r\n"
           "\r\n"
           "2\r\n"
           "{}\r\n"
           "0\r\n"
           "\r\n"),
     {400},
     .handled = 0},
    {"H21",
     "Transfer-Encoding: \"\\\"chunked\\\"\"",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Transfer-Encoding: \"chunked\"\r\n"
           "\r\n"
           "2\r\n"
           "{}\r\n"
           "0\r\n"
           "\r\n"),
     {400},
     .handled = 0},
    {"H22",
     "Transfer-Encoding: \"chunked;q=1\"",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Transfer-Encoding: chunked;q=1\r\n"
           "\r\n"
           "2\r\n"
           "{}\r\n"
           "0\r\n"
           "\r\n"),
     {400},
     .handled = 0},
    {"H23",
     "Transfer-Encoding: \"\\u000bchunked\"",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Transfer-Encoding: \013chunked\r\n"
           "\r\n"
           "2\r\n"
           "{}\r\n"
           "0\r\n"
           "\r\n"),
     {400},
     .handled = 0},
    {"H24",
     "two Transfer-Encoding headers, identity then chunked",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Transfer-Encoding: identity\r\n"
           "Transfer-Encoding: chunked\r\n"
           "\r\n"
           "2\r\n"
           "{}\r\n"
           "0\r\n"
           "\r\n"),
     {400},
     .handled = 0},
    {"H25",
     "tRANSFER-eNCODING: CHUNKED",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "tRANSFER-eNCODING: CHUNKED\r\n"
           "\r\n"
           "2\r\n"
           "{}\r\n"
           "0\r\n"
           "\r\n"),
     {200},
     .handled = 1,
     .says = "\n\n{}"},
    {"H26",
     "folded header line",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "X-Note: a\r\n"
           " b\r\n"
           "Content-Length: 2\r\n"
           "\r\n"
           "{}"),
     {400},
     .handled = 0},
    {"H27",
     "Transfer-Encoding on a folded line",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Transfer-Encoding:\r\n"
           " chunked\r\n"
           "\r\n"
           "2\r\n"
           "{}\r\n"
           "0\r\n"
           "\r\n"),
     {400},
     .handled = 0},
    {"H29",
     "bare CR inside a header value",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "X-Note: a\rContent-Length: 9\r\n"
           "Content-Length: 2\r\n"
           "\r\n"
           "{}"),
     {400},
     .handled = 0},
    {"H30",
     "NUL inside a header value",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "X-Note: a\000b\r\n"
           "Content-Length: 2\r\n"
           "\r\n"
           "{}"),
     {400},
     .handled = 0},
    {"H32",
     "header name ::x",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "::x: y\r\n"
           "Content-Length: 2\r\n"
           "\r\n"
           "{}"),
     {400},
     .handled = 0},
    {"H33",
     "chunk extension",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Transfer-Encoding: chunked\r\n"
           "\r\n"
           "2;name=val\r\n"
           "{}\r\n"
           "0\r\n"
           "\r\n"),
     {200},
     .handled = 1,
     .says = "\n\n{}"},
    {"H36",
     "chunk lines end in bare LF",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Transfer-Encoding: chunked\r\n"
           "\r\n"
           "2\n{}\n0\n\n"),
     {200},
     .handled = 1,
     .says = "\n\n{}"},
    {"H38",
     "chunk size with 17 hex digits",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Transfer-Encoding: chunked\r\n"
           "\r\n"
           "10000000000000002\r\n"
           "{}\r\n"
           "0\r\n"
           "\r\n"),
     {400},
     .handled = 0},
    {"H39",
     "chunk size with many leading zeros",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Transfer-Encoding: chunked\r\n"
           "\r\n"
           "0000000000000000000000000000002\r\n"
           "{}\r\n"
           "0\r\n"
           "\r\n"),
     {400},
     .handled = 0},
    {"H41",
     "chunk data longer than its size",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Transfer-Encoding: chunked\r\n"
           "\r\n"
           "1\r\n"
           "{}\r\n"
           "0\r\n"
           "\r\n"),
     {400},
     .handled = 0},
    {"H42",
     "negative chunk size",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Transfer-Encoding: chunked\r\n"
           "\r\n"
           "-1\r\n"
           "{}\r\n"
           "0\r\n"
           "\r\n"),
     {400},
     .handled = 0},
    {"H45",
     "last chunk never comes",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Transfer-Encoding: chunked\r\n"
           "\r\n"
           "2\r\n"
           "{}\r\n"),
     {0},
     .handled = 0},
    {"H50",
     "HTTP/1.1 without Host",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Content-Length: 2\r\n"
           "\r\n"
           "{}"),
     {400},
     .handled = 0},
    {"H51",
     "two Host headers",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Host: other\r\n"
           "Content-Length: 2\r\n"
           "\r\n"
           "{}"),
     {400},
     .handled = 0},
    {"H53",
     "dot segments and %00 in the path",
     BYTES("POST /x/../in/%2e/gh%00 HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length: 2\r\n"
           "\r\n"
           "{}"),
     {200},
     .handled = 1,
     .says = "POST /x/../in/%2e/gh%00\n"},
    {"H56",
     "Expect: 100-continue with an unknown transfer coding",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Transfer-Encoding: zzz\r\n"
           "Expect: 100-continue\r\n"
           "\r\n"
           "{}"),
     {400},
     .handled = 0},
    {"H59",
     "body shorter than Content-Length, then silence",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length: 20\r\n"
           "\r\n"
           "{}"),
     {0},
     .handled = 0},
    {"H60",
     "body shorter than Content-Length, then the client closes its side",
     BYTES("POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length: 20\r\n"
           "\r\n"
           "{}"),
     {0},
     .handled = 0,
     .half_closes = true},
    {"H62",
     "CR LF before the request line",
     BYTES("\r\n"
           "POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length: 2\r\n"
           "\r\n"
           "{}"),
     {200},
     .handled = 1,
     .says = "\n\n{}"},
    {"H63",
     "GET with a body, then another request",
     BYTES("GET /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length: 2\r\n"
           "\r\n"
           "{}POST /in/gh HTTP/1.1\r\n"
           "Host: gw.test\r\n"
           "Content-Length: 2\r\n"
           "\r\n"
           "[]"),
     {200, 200},
     .handled = 2,
     .says = "\n\n{}"},
    {"own",
     "Content-Length with chunked",
     BYTES("POST /in/gh HTTP/1.1\r\nHost: gw.test\r\nContent-Length: 2\r\nTransfer-Encoding: "
           "chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"),
     {400},
     .handled = 0},
    {"own",
     "bare LF in the head",
     BYTES("POST /in/gh HTTP/1.1\nHost: gw.test\nContent-Length: 2\n\n{}"),
     {400},
     .handled = 0},
    {"own",
     "two hosts and a smuggled request",
     BYTES("POST /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\nPOST /b HTTP/1.1\r\nHost: b\r\n\r\n"),
     {400},
     .handled = 0},
    {"own",
     "chunk size 0x2 reads as 0: the connection ends behind it, so nothing can hide in what follows",
     BYTES("POST /in/gh HTTP/1.1\r\nHost: gw.test\r\nTransfer-Encoding: "
           "chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\nPOST /b HTTP/1.1\r\nHost: b\r\n\r\n"),
     {200},
     .handled = 1,
     .ends = true},
    {"own",
     "trailers are thrown away",
     BYTES("POST /in/gh HTTP/1.1\r\nHost: gw.test\r\nTransfer-Encoding: "
           "chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Trailer: 1\r\n\r\n"),
     {200},
     .handled = 1,
     .ends = true,
     .says = "\n\n{}"},
    {"own", "HTTP/0.9", BYTES("GET /in/gh\r\n\r\n"), {400}, .handled = 0},
    {"own",
     "HTTP/1.0 without keep-alive",
     BYTES("POST /in/gh HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}"),
     {200},
     .handled = 1,
     .ends = true,
     .says = "\n\n{}"},
    {"own",
     "HTTP/1.0 with keep-alive",
     BYTES("POST /in/gh HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}"),
     {200},
     .handled = 1,
     .says = "\n\n{}"},
    {"own",
     "absolute form",
     BYTES("POST http://gw.test/in/gh?x HTTP/1.1\r\nHost: gw.test\r\nContent-Length: 2\r\n\r\n{}"),
     {200},
     .handled = 1,
     .says = "POST http://gw.test/in/gh?x\n"},
    {"own",
     "neither length nor coding",
     BYTES("POST /in/gh HTTP/1.1\r\nHost: gw.test\r\n\r\n"),
     {200},
     .handled = 1,
     .says = "\n\n"},
    {"own",
     "a length over the limit",
     BYTES("POST /in/gh HTTP/1.1\r\nHost: gw.test\r\nContent-Length: 999999999\r\n\r\n{}"),
     {413},
     .handled = 0},
};

static struct stage stage;

static void play(const struct raw_case *play)
{
    int before = atomic_load(&stage.handled), fd = wire_connect(stage.server);
    bool refused = true;

    print_message("%s %s\n", play->id, play->what);
    wire_try_send(fd, play->raw);
    if (play->half_closes)
        wire_no_more(fd);
    for (size_t i = 0; play->statuses[i]; i++) {
        struct wire_reply reply;
        wire_read(fd, &reply, false);
        assert_int_equal(reply.status, play->statuses[i]);
        if (i == 0 && play->says)
            assert_non_null(memmem(reply.body.at, reply.body.len, play->says, strlen(play->says)));
        refused = reply.status >= 400;
        assert_int_equal(reply.closes, refused || wire_header(&reply, "connection").len == 5);
        wire_reply_free(&reply);
    }
    if (!refused && !play->ends)
        wire_no_more(fd); /* a kept connection ends when the client wants it to */
    assert_true(wire_ends(fd));
    close(fd);
    assert_int_equal(atomic_load(&stage.handled) - before, play->handled);
}

static void every_case_gets_its_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        play(&cases[i]);
}

/* After all of that: the same server takes a good request. */
static void the_next_good_request_works(void **state)
{
    (void)state;
    play(&(struct raw_case){
        "own", "a good request", BYTES("GET / HTTP/1.1\r\nHost: t\r\n\r\n"), {200}, .handled = 1});
}

/* H44 */
static void one_byte_chunks_add_up(void **state)
{
    (void)state;
    enum { N = 20000 };
    struct buf raw = {0};
    struct wire_reply reply;
    int fd = wire_connect(stage.server);
    buf_puts(&raw, "POST /in/gh HTTP/1.1\r\nHost: gw.test\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < N; i++)
        buf_puts(&raw, "1;a=b\r\nx\r\n");
    buf_puts(&raw, "0\r\n\r\n");
    wire_send(fd, buf_bytes(&raw));
    wire_read(fd, &reply, false);
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply.body.len - (size_t)(strstr(reply.body.at, "\n\n") + 2 - reply.body.at), N);
    wire_reply_free(&reply);
    buf_free(&raw);
    close(fd);
}

/* H48 */
static void one_byte_packets_make_a_request(void **state)
{
    (void)state;
    const struct bytes raw = BYTES("POST /in/gh HTTP/1.1\r\nHost: gw.test\r\nContent-Length: 2\r\n\r\n{}");
    struct wire_reply reply;
    int fd = wire_connect(stage.server);
    for (size_t i = 0; i < raw.len; i++) {
        wire_send(fd, bytes_of(raw.at + i, 1));
        stage_pause();
    }
    wire_read(fd, &reply, false);
    assert_int_equal(reply.status, 200);
    assert_string_equal(strstr(reply.body.at, "\n\n"), "\n\n{}");
    wire_reply_free(&reply);
    close(fd);
}

static struct buf with_headers(int count)
{
    struct buf raw = {0};
    buf_puts(&raw, "GET /in/gh HTTP/1.1\r\nHost: gw.test\r\n");
    for (int i = 1; i < count; i++)
        buf_putf(&raw, "X-N%d: 1\r\n", i);
    buf_puts(&raw, "\r\n");
    return raw;
}

/* H54 */
static void a_hundred_headers_pass_and_one_more_does_not(void **state)
{
    (void)state;
    for (int count = 100; count <= 101; count++) {
        struct buf raw = with_headers(count);
        play(&(struct raw_case){
            "H54", "many headers", buf_bytes(&raw), {count == 100 ? 200 : 400}, .handled = count == 100});
        buf_free(&raw);
    }
}

static struct buf with_target(size_t len)
{
    struct buf raw = {0};
    buf_puts(&raw, "GET /");
    memset(buf_extend(&raw, len), 'a', len);
    buf_puts(&raw, " HTTP/1.1\r\nHost: t\r\n\r\n");
    return raw;
}

static void a_large_head_passes(void **state)
{
    (void)state;
    struct buf raw = with_target(300 * 1024);
    play(&(struct raw_case){"own", "a target of 300 KiB", buf_bytes(&raw), {200}, .handled = 1});
    buf_free(&raw);
}

/* libh2o holds 408 KiB of head. It answers a plain 400 and closes at once, so the client may see a reset
 * instead. */
static void a_huge_head_is_refused(void **state)
{
    (void)state;
    struct buf raw = with_target(600 * 1024);
    struct wire_reply reply;
    int before = atomic_load(&stage.handled), fd = wire_connect(stage.server);
    wire_try_send(fd, buf_bytes(&raw));
    wire_read(fd, &reply, false);
    assert_true(reply.status == 400 || reply.status == 0);
    assert_int_equal(atomic_load(&stage.handled), before);
    wire_reply_free(&reply);
    buf_free(&raw);
    close(fd);
}

static int open_stage(void **state)
{
    (void)state;
    stage_prepare(&stage);
    stage.options.body_timeout_ms = 300; /* some cases end by it */
    stage_open(&stage);
    return 0;
}

static int close_stage(void **state)
{
    (void)state;
    stage_close(&stage);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_gets_its_answer),
        cmocka_unit_test(the_next_good_request_works),
        cmocka_unit_test(one_byte_chunks_add_up),
        cmocka_unit_test(one_byte_packets_make_a_request),
        cmocka_unit_test(a_hundred_headers_pass_and_one_more_does_not),
        cmocka_unit_test(a_large_head_passes),
        cmocka_unit_test(a_huge_head_is_refused),
    };
    stage_arguments(argc, argv);
    int failed = cmocka_run_group_tests(tests, open_stage, close_stage);
    stage_done();
    return failed;
}
