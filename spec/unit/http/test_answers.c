/* An answer reaches the client once, whole and in order, whoever gives it and whenever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "stage.h"
#include "wire.h"

#define GET(target) "GET " target " HTTP/1.1\r\nHost: t\r\n\r\n"

static int set_up(void **state)
{
    struct stage *stage = malloc(sizeof *stage);
    stage_prepare(stage);
    stage->options.threads = 2;
    stage_open(stage);
    *state = stage;
    return 0;
}

static int tear_down(void **state)
{
    stage_close(*state);
    free(*state);
    return 0;
}

static void an_answer_is_json_by_default_and_keeps_the_connection(void **state)
{
    struct stage *stage = *state;
    int fd = wire_connect(stage->server);
    for (int i = 0; i < 3; i++) {
        struct wire_reply reply;
        WIRE_SEND(fd, GET("/json"));
        wire_read(fd, &reply, false);
        assert_int_equal(reply.status, 201);
        assert_false(reply.closes);
        assert_true(bytes_eq(buf_bytes(&reply.body), BYTES("{\"ok\":true}")));
        assert_true(bytes_eq(wire_header(&reply, "content-type"), BYTES("application/json")));
        assert_true(bytes_eq(wire_header(&reply, "content-length"), BYTES("11")));
        assert_null(wire_header(&reply, "server").at);
        wire_reply_free(&reply);
    }
    close(fd);
}

static void an_answer_can_close(void **state)
{
    struct stage *stage = *state;
    struct wire_reply reply;
    int fd = wire_connect(stage->server);
    WIRE_SEND(fd, GET("/close"));
    wire_read(fd, &reply, false);
    assert_int_equal(reply.status, 201);
    assert_true(reply.closes);
    assert_true(wire_ends(fd));
    wire_reply_free(&reply);
    close(fd);
}

static void head_and_204_have_no_body(void **state)
{
    struct stage *stage = *state;
    struct wire_reply reply;
    int fd = wire_connect(stage->server);
    WIRE_SEND(fd, "HEAD /json HTTP/1.1\r\nHost: t\r\n\r\n");
    wire_read(fd, &reply, true);
    assert_int_equal(reply.status, 201);
    assert_true(bytes_eq(wire_header(&reply, "content-length"), BYTES("11")));
    wire_reply_free(&reply);
    WIRE_SEND(fd, GET("/204"));
    wire_read(fd, &reply, false);
    assert_int_equal(reply.status, 204);
    assert_null(wire_header(&reply, "content-length").at);
    assert_null(wire_header(&reply, "content-type").at);
    wire_reply_free(&reply);
    WIRE_SEND(fd, GET("/json")); /* nothing of a body stood in the way */
    wire_read(fd, &reply, false);
    assert_int_equal(reply.status, 201);
    wire_reply_free(&reply);
    close(fd);
}

static void a_drop_ends_without_an_answer(void **state)
{
    struct stage *stage = *state;
    int fd = wire_connect(stage->server);
    WIRE_SEND(fd, GET("/drop"));
    assert_true(wire_ends(fd));
    close(fd);
}

static void a_large_answer_arrives_whole(void **state)
{
    struct stage *stage = *state;
    struct wire_reply reply;
    int fd = wire_connect(stage->server);
    WIRE_SEND(fd, GET("/big?5000000"));
    wire_read(fd, &reply, false);
    assert_int_equal(reply.body.len, 5000000);
    wire_reply_free(&reply);
    close(fd);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct stage *stage = *state;
    int fd = wire_connect(stage->server);
    WIRE_SEND(fd, GET("/1") "POST /2 HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nabc" GET("/3"));
    for (char c = '1'; c <= '3'; c++) {
        struct wire_reply reply;
        wire_read(fd, &reply, false);
        assert_int_equal(reply.status, 200);
        assert_non_null(strchr(reply.body.at, '/'));
        assert_int_equal(strchr(reply.body.at, '/')[1], c);
        wire_reply_free(&reply);
    }
    close(fd);
}

static void names_values_and_bytes_come_as_sent(void **state)
{
    struct stage *stage = *state;
    struct wire_reply reply;
    int fd = wire_connect(stage->server);
    WIRE_SEND(fd, "POST /a/../b%00?c=d?e HTTP/1.1\r\nhOsT: t\r\nX-CaSe: \t v w \t\r\nContent-Type: a\r\n"
                  "Content-Length: 4\r\nx-case: 2\r\n\r\n\0\r\n\xff");
    wire_read(fd, &reply, false);
    assert_true(bytes_eq(buf_bytes(&reply.body),
                         BYTES("POST /a/../b%00?c=d?e\nHost: t\nX-CaSe: v w\nContent-Type: a\n"
                               "Content-Length: 4\nx-case: 2\n\n\0\r\n\xff")));
    wire_reply_free(&reply);
    close(fd);
}

static void a_half_closed_client_gets_its_answer(void **state)
{
    struct stage *stage = *state;
    struct wire_reply reply;
    struct http_exchange *exchange;
    int fd = wire_connect(stage->server);
    atomic_store(&stage->keep, true);
    WIRE_SEND(fd, GET("/late"));
    wire_no_more(fd);
    stage_take(stage, 1, &exchange);
    http_answer(exchange, &(struct http_answer){.status = 202, .body = BYTES("{}")});
    wire_read(fd, &reply, false);
    assert_int_equal(reply.status, 202);
    wire_reply_free(&reply);
    close(fd);
}

static void late_answers_from_another_thread_arrive(void **state)
{
    struct stage *stage = *state;
    enum { N = 200 };
    static int fds[N];
    static struct http_exchange *kept[N];
    const struct http_header extra = {BYTES("Retry-After"), BYTES("7")};
    char large[2000];

    memset(large, 'x', sizeof large);
    atomic_store(&stage->keep, true);
    for (int i = 0; i < N; i++) {
        fds[i] = wire_connect(stage->server);
        WIRE_SEND(fds[i], GET("/late"));
    }
    stage_take(stage, N, kept);
    for (int i = 0; i < N; i++)
        http_answer(kept[i], &(struct http_answer){.status = 503,
                                                   .body = bytes_of(large, i % 2 ? sizeof large : 10),
                                                   .headers = &extra,
                                                   .header_count = 1});
    memset(large, 'y', sizeof large); /* copied by then */
    for (int i = 0; i < N; i++) {
        struct wire_reply reply;
        wire_read(fds[i], &reply, false);
        assert_int_equal(reply.status, 503);
        assert_true(bytes_eq(wire_header(&reply, "retry-after"), BYTES("7")));
        assert_null(memchr(reply.body.at, 'y', reply.body.len));
        wire_reply_free(&reply);
        close(fds[i]);
    }
}

static void held_answers_arrive_when_they_are_released(void **state)
{
    struct stage *stage = *state;
    enum { N = 40 };
    int fds[N];
    struct http_exchange *kept[N];
    char byte;
    atomic_store(&stage->keep, true);
    for (int i = 0; i < N; i++) {
        fds[i] = wire_connect(stage->server);
        WIRE_SEND(fds[i], GET("/late"));
        stage_take(stage, 1, &kept[i]); /* two loops: one after the other, so that they go with the fds */
    }
    http_answers_hold();
    for (int i = 0; i < N; i++) {
        if (i % 4 == 3)
            http_drop(kept[i]);
        else
            http_answer(kept[i], &(struct http_answer){.status = 201, .body = BYTES("{}")});
        assert_int_equal(recv(fds[0], &byte, 1, MSG_DONTWAIT), -1);
    }
    http_answers_release();
    for (int i = 0; i < N; i++) {
        struct wire_reply reply;
        if (i % 4 == 3) {
            assert_true(wire_ends(fds[i]));
        } else {
            wire_read(fds[i], &reply, false);
            assert_int_equal(reply.status, 201);
            wire_reply_free(&reply);
        }
        close(fds[i]);
    }
    http_answers_hold(); /* nothing to release, and once more */
    http_answers_release();
}

/* The request at hand lives in the connection's input: what comes before its answer must not move it. HEAD,
 * because its method is looked at when the answer is sent. */
static void what_comes_before_an_answer_waits_behind_it(void **state)
{
    struct stage *stage = *state;
    struct wire_reply reply;
    struct http_exchange *exchange;
    struct buf next = {0};
    int fd = wire_connect(stage->server);
    buf_puts(&next, "POST /json HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\n");
    memset(buf_extend(&next, 100000), 'x', 100000);
    for (int round = 0; round < 3; round++) {
        atomic_store(&stage->keep, true);
        WIRE_SEND(fd, "HEAD /late HTTP/1.1\r\nHost: t\r\n\r\n");
        stage_take(stage, 1, &exchange);
        atomic_store(&stage->keep, false);
        wire_send(fd, buf_bytes(&next));
        http_answer(exchange, &(struct http_answer){.status = 202, .body = BYTES("{\"late\":true}")});
        wire_read(fd, &reply, true);
        assert_int_equal(reply.status, 202);
        wire_reply_free(&reply);
        wire_read(fd, &reply, false);
        assert_int_equal(reply.status, 201);
        wire_reply_free(&reply);
    }
    buf_free(&next);
    close(fd);
}

static void late_drops_end_their_connections(void **state)
{
    struct stage *stage = *state;
    struct http_exchange *exchange;
    int fd = wire_connect(stage->server);
    atomic_store(&stage->keep, true);
    WIRE_SEND(fd, GET("/late"));
    stage_take(stage, 1, &exchange);
    http_drop(exchange);
    assert_true(wire_ends(fd));
    close(fd);
}

/* A client that resets while its request is with the handler: the answer goes nowhere, and the next client is
 * served. */
static void an_answer_to_a_client_that_is_gone_is_nothing(void **state)
{
    struct stage *stage = *state;
    struct http_exchange *kept[50];
    atomic_store(&stage->keep, true);
    for (int i = 0; i < 50; i++) {
        struct linger at_once = {.l_onoff = 1, .l_linger = 0};
        int fd = wire_connect(stage->server);
        WIRE_SEND(fd, GET("/late"));
        stage_take(stage, 1, &kept[i]);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
        close(fd);
    }
    for (int i = 0; i < 50; i++) {
        if (i % 3)
            http_answer(kept[i], &(struct http_answer){.status = 201, .body = BYTES("{}")});
        else
            http_drop(kept[i]);
    }
    atomic_store(&stage->keep, false);
    struct wire_reply reply;
    int fd = wire_connect(stage->server);
    WIRE_SEND(fd, GET("/json"));
    wire_read(fd, &reply, false);
    assert_int_equal(reply.status, 201);
    wire_reply_free(&reply);
    close(fd);
}

static void chunked_requests_are_answered_and_closed(void **state)
{
    struct stage *stage = *state;
    struct wire_reply reply;
    int fd = wire_connect(stage->server);
    WIRE_SEND(fd,
              "POST /json HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" GET(
                  "/next"));
    wire_read(fd, &reply, false);
    assert_int_equal(reply.status, 201);
    assert_true(reply.closes);
    assert_true(wire_ends(fd));
    assert_int_equal(atomic_load(&stage->handled), 1);
    wire_reply_free(&reply);
    close(fd);
}

static void expect_100_is_met(void **state)
{
    struct stage *stage = *state;
    struct wire_reply reply;
    int fd = wire_connect(stage->server);
    WIRE_SEND(fd, "POST /json HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    wire_read(fd, &reply, true);
    assert_int_equal(reply.status, 100);
    wire_reply_free(&reply);
    WIRE_SEND(fd, "{}");
    wire_read(fd, &reply, false);
    assert_int_equal(reply.status, 201);
    assert_false(reply.closes);
    wire_reply_free(&reply);
    close(fd);
}

static void other_expectations_are_refused_as_json(void **state)
{
    static const char *const bodies[] = {"Content-Length: 2\r\n", ""};
    struct stage *stage = *state;
    for (size_t i = 0; i < 2; i++) {
        char text[256];
        struct wire_reply reply;
        int fd = wire_connect(stage->server);
        snprintf(text, sizeof text, "POST /json HTTP/1.1\r\nHost: t\r\n%sExpect: tea\r\n\r\n", bodies[i]);
        wire_send(fd, bytes_str(text));
        wire_read(fd, &reply, false);
        assert_int_equal(reply.status, 417);
        assert_true(bytes_eq(buf_bytes(&reply.body), BYTES("{\"error\":\"expectation_failed\"}")));
        assert_true(bytes_eq(wire_header(&reply, "content-type"), BYTES("application/json")));
        assert_true(wire_ends(fd));
        wire_reply_free(&reply);
        close(fd);
    }
    assert_int_equal(atomic_load(&stage->handled), 0);
}

static void a_bad_header_byte_is_refused_by_name(void **state)
{
    struct stage *stage = *state;
    struct wire_reply reply;
    int fd = wire_connect(stage->server);
    WIRE_SEND(fd, "POST /json HTTP/1.1\r\nHost: t\r\nX-100%: \xe9\r\nContent-Length: 2\r\n\r\n{}");
    wire_read(fd, &reply, false);
    assert_int_equal(reply.status, 400);
    assert_true(
        bytes_eq(buf_bytes(&reply.body), BYTES("{\"error\":\"invalid_header\",\"header\":\"X-100%25\"}")));
    assert_true(wire_ends(fd));
    assert_int_equal(atomic_load(&stage->refused_other), 1);
    wire_reply_free(&reply);
    close(fd);
}

static void an_upgrade_to_h2c_is_not_taken(void **state)
{
    struct stage *stage = *state;
    struct wire_reply reply;
    int fd = wire_connect(stage->server);
    WIRE_SEND(fd, "POST /json HTTP/1.1\r\nHost: t\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                  "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\nContent-Length: 2\r\n\r\n{}");
    wire_read(fd, &reply, false);
    assert_int_equal(reply.status, 201); /* as HTTP/1.1 */
    wire_reply_free(&reply);
    close(fd);
    fd = wire_connect(stage->server);
    WIRE_SEND(fd, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    wire_read(fd, &reply, false);
    assert_int_equal(reply.status, 400);
    assert_true(wire_ends(fd));
    wire_reply_free(&reply);
    close(fd);
}

static void requests_tell_who_sent_them(void **state)
{
    static const char *const expected[] = {"127.0.0.1 new", "127.0.0.1 kept", "127.0.0.1 kept"};
    struct stage *stage = *state;
    int fd = wire_connect(stage->server);
    for (size_t i = 0; i < 3; i++) {
        struct wire_reply reply;
        WIRE_SEND(fd, GET("/who"));
        wire_read(fd, &reply, false);
        assert_string_equal(reply.body.at, expected[i]);
        wire_reply_free(&reply);
    }
    close(fd);
}

static void statuses_have_their_sentences(void **state)
{
    (void)state;
    assert_string_equal(http_reason(201), "Created");
    assert_string_equal(http_reason(503), "Service Unavailable");
}

static void listening_twice_names_the_address(void **state)
{
    struct stage *stage = *state;
    struct error err = {{0}};
    struct http_server *second = NULL;
    struct http_options options = stage->options;
    const char *listen[] = {http_address(stage->server, 0)};
    options.listen = listen;
    assert_int_equal(http_open(&options, &second, &err), STATUS_BUSY);
    assert_non_null(strstr(err.text, listen[0]));
    listen[0] = "127.0.0.1";
    assert_int_equal(http_open(&options, &second, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "ADDRESS:PORT"));
    assert_null(second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(an_answer_is_json_by_default_and_keeps_the_connection),
        TEST(an_answer_can_close),
        TEST(head_and_204_have_no_body),
        TEST(a_drop_ends_without_an_answer),
        TEST(a_large_answer_arrives_whole),
        TEST(pipelined_requests_are_answered_in_order),
        TEST(names_values_and_bytes_come_as_sent),
        TEST(a_half_closed_client_gets_its_answer),
        TEST(late_answers_from_another_thread_arrive),
        TEST(held_answers_arrive_when_they_are_released),
        TEST(what_comes_before_an_answer_waits_behind_it),
        TEST(late_drops_end_their_connections),
        TEST(an_answer_to_a_client_that_is_gone_is_nothing),
        TEST(chunked_requests_are_answered_and_closed),
        TEST(expect_100_is_met),
        TEST(other_expectations_are_refused_as_json),
        TEST(a_bad_header_byte_is_refused_by_name),
        TEST(an_upgrade_to_h2c_is_not_taken),
        TEST(requests_tell_who_sent_them),
        cmocka_unit_test(statuses_have_their_sentences),
        TEST(listening_twice_names_the_address),
    };
    stage_arguments(argc, argv);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    stage_done();
    return failed;
}
