/* Everything a stranger can make large or long has a bound. */
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
#include "util/clock.h"
#include "wire.h"

#define GET(target) "GET " target " HTTP/1.1\r\nHost: t\r\n\r\n"
#define MIB (1024 * 1024)

static struct stage stage;

static int prepare(void **state)
{
    (void)state;
    stage_prepare(&stage);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    stage_close(&stage);
    return 0;
}

static void expect_served(int fd)
{
    struct wire_reply reply;
    WIRE_SEND(fd, GET("/json"));
    wire_read(fd, &reply, false);
    assert_int_equal(reply.status, 201);
    wire_reply_free(&reply);
}

/* Sends byte after byte until the server has had enough. */
static void drip_until_shut(int fd)
{
    STAGE_WAIT(wire_has_ended(fd) || !wire_try_send(fd, BYTES("x")));
}

static void a_head_has_its_time_as_a_whole(void **state)
{
    (void)state;
    stage.options.header_timeout_ms = 100;
    stage_open(&stage);
    int other = wire_connect(stage.server), fd = wire_connect(stage.server);
    expect_served(other);
    WIRE_SEND(fd, "POST / HTTP/1.1\r\nX: ");
    drip_until_shut(fd);
    assert_int_equal(atomic_load(&stage.refused_timeout), 1);
    expect_served(other); /* idle all the while, which is another limit */
    close(fd);
    close(other);
}

static void a_body_has_its_time_as_a_whole(void **state)
{
    (void)state;
    stage.options.body_timeout_ms = 100;
    stage_open(&stage);
    int fd = wire_connect(stage.server);
    expect_served(fd); /* a kept connection has the same limits */
    WIRE_SEND(fd, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n");
    drip_until_shut(fd);
    assert_int_equal(atomic_load(&stage.refused_timeout), 1);
    assert_int_equal(atomic_load(&stage.handled), 1);
    close(fd);
}

static void an_idle_connection_is_closed(void **state)
{
    (void)state;
    stage.options.idle_timeout_ms = 100;
    stage_open(&stage);
    int fresh = wire_connect(stage.server), kept = wire_connect(stage.server);
    int64_t begun_ms = clock_mono_ms();
    expect_served(kept);
    assert_true(wire_ends(fresh));
    assert_true(wire_ends(kept));
    assert_true(clock_mono_ms() - begun_ms >= 90);
    assert_int_equal(atomic_load(&stage.refused_timeout), 0); /* nothing was refused */
    close(fresh);
    close(kept);
}

static void a_handler_has_all_the_time_it_wants(void **state)
{
    (void)state;
    struct http_exchange *exchange;
    struct wire_reply reply;
    stage.options.header_timeout_ms = stage.options.body_timeout_ms = stage.options.idle_timeout_ms = 50;
    stage_open(&stage);
    atomic_store(&stage.keep, true);
    int fd = wire_connect(stage.server), idle = wire_connect(stage.server);
    WIRE_SEND(fd, GET("/late"));
    stage_take(&stage, 1, &exchange);
    assert_true(wire_ends(idle)); /* the sweep has been by */
    close(idle);
    idle = wire_connect(stage.server);
    assert_true(wire_ends(idle));
    close(idle);
    http_answer(exchange, &(struct http_answer){.status = 201, .body = BYTES("{}")});
    wire_read(fd, &reply, false);
    assert_int_equal(reply.status, 201);
    wire_reply_free(&reply);
    close(fd);
}

static void a_client_that_does_not_take_its_answer_is_closed(void **state)
{
    (void)state;
    stage.options.idle_timeout_ms = 100;
    stage_open(&stage);
    int fd = wire_connect(stage.server);
    WIRE_SEND(fd, GET("/big?50000000"));
    STAGE_WAIT(atomic_load(&stage.refused_timeout) == 1);
    STAGE_WAIT(stage_gauge(&stage, "lanegate_http_connections") == 0);
    close(fd);
}

static void over_max_connections_the_newest_is_closed(void **state)
{
    (void)state;
    int fds[4];
    stage.options.max_connections = 3;
    stage_open(&stage);
    for (int i = 0; i < 3; i++) {
        fds[i] = wire_connect(stage.server);
        expect_served(fds[i]);
    }
    fds[3] = wire_connect(stage.server);
    assert_true(wire_ends(fds[3]));
    assert_int_equal(atomic_load(&stage.refused_connections), 1);
    for (int i = 0; i < 3; i++)
        expect_served(fds[i]);
    close(fds[3]);
    close(fds[0]);
    STAGE_WAIT(stage_gauge(&stage, "lanegate_http_connections") == 2);
    fds[0] = wire_connect(stage.server);
    expect_served(fds[0]);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
}

/* ---- the size of a body ---- */

#define LIMIT 100000

static int post(struct bytes body, bool chunked, size_t declared)
{
    struct buf raw = {0};
    struct wire_reply reply;
    int fd = wire_connect(stage.server);
    if (chunked)
        buf_putf(&raw, "POST /json HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n",
                 body.len);
    else
        buf_putf(&raw, "POST /json HTTP/1.1\r\nHost: t\r\nContent-Length: %zu\r\n\r\n", declared);
    buf_putb(&raw, body);
    if (chunked)
        buf_puts(&raw, "\r\n0\r\n\r\n");
    wire_send(fd, buf_bytes(&raw)); /* all of it, before the answer is looked at */
    wire_read(fd, &reply, false);
    int status = reply.status;
    if (status == 413) {
        assert_true(
            bytes_eq(buf_bytes(&reply.body), BYTES("{\"error\":\"payload_too_large\",\"limit\":100000}")));
        assert_true(bytes_eq(wire_header(&reply, "content-type"), BYTES("application/json")));
        assert_true(reply.closes);
        assert_true(wire_ends(fd));
    }
    wire_reply_free(&reply);
    buf_free(&raw);
    close(fd);
    return status;
}

static void a_body_may_be_as_large_as_the_limit_and_no_larger(void **state)
{
    (void)state;
    static char body[LIMIT + 2];
    memset(body, 'x', sizeof body);
    stage.options.max_body_bytes = LIMIT;
    stage_open(&stage);
    for (size_t over = 0; over <= 2; over++) {
        size_t len = LIMIT + over;
        assert_int_equal(post(bytes_of(body, len), false, len), over ? 413 : 201);
        assert_int_equal(post(bytes_of(body, len), true, 0), over ? 413 : 201);
    }
    assert_int_equal(atomic_load(&stage.handled), 2);
}

/* A client that reads only after it has sent everything gets the 413, not a reset. */
static void a_refused_client_may_finish_what_it_says(void **state)
{
    (void)state;
    size_t len = 4 * MIB;
    char *body = malloc(len);
    memset(body, 'x', len);
    stage.options.max_body_bytes = LIMIT;
    stage_open(&stage);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(post(bytes_of(body, len), false, len), 413);
        assert_int_equal(post(bytes_of(body, len), true, 0), 413);
    }
    free(body);
}

/* ... for a second: who goes on for ever is cut off. */
static void a_refused_client_can_not_go_on_for_ever(void **state)
{
    (void)state;
    stage.options.max_body_bytes = LIMIT;
    stage_open(&stage);
    int fd = wire_connect(stage.server);
    WIRE_SEND(fd, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000000\r\n\r\n");
    STAGE_WAIT(!wire_try_send(fd, BYTES("x")));
    close(fd);
}

/* ---- all bodies together ---- */

#define STALLED 200
#define BOUND (16 * MIB)

static long resident_bytes(void)
{
    long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%*s %ld", &pages), 1);
    fclose(statm);
    return pages * sysconf(_SC_PAGESIZE);
}

static bool note_peak(long *most)
{
    long now = resident_bytes();
    *most = now > *most ? now : *most;
    return true;
}

static char piece[128 * 1024];

/* One post of 8 MiB, sent as fast as it goes; the status, 0 when it was cut off. */
static int honest_post(void)
{
    struct wire_reply reply;
    int fd = wire_connect(stage.server);
    WIRE_SEND(fd, "POST /json HTTP/1.1\r\nHost: t\r\nContent-Length: 8388608\r\n\r\n");
    for (size_t sent = 0; sent < 8388608 && wire_try_send(fd, bytes_of(piece, sizeof piece));
         sent += sizeof piece)
        ;
    wire_read(fd, &reply, false);
    int status = reply.status;
    wire_reply_free(&reply);
    close(fd);
    return status;
}

static void stalled_posts_stay_within_the_bound(void **state)
{
    (void)state;
    static int fds[STALLED];
    const int stalled = wire_through ? STALLED / 3 : STALLED; /* the tunnels take their time */
    stage.options.max_body_bytes = 10 * MIB;
    stage.options.max_buffered_bytes = BOUND;
    stage.options.threads = 2;
    stage_open(&stage);
    long before = resident_bytes();

    for (int i = 0; i < stalled; i++) {
        fds[i] = wire_connect(stage.server);
        WIRE_SEND(fds[i], "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 8388608\r\n\r\n");
    }
    /* Each sends 4 MiB of its 8, all at the same pace, and then says nothing more. When all of it has come,
     * no more than the bound can be left of them. */
    for (int round = 0; round < 32; round++)
        for (int i = 0; i < stalled; i++)
            if (fds[i] >= 0 && !wire_try_send(fds[i], bytes_of(piece, sizeof piece))) {
                close(fds[i]);
                fds[i] = -1;
            }
    long most = 0;
    STAGE_WAIT(note_peak(&most) && atomic_load(&stage.refused_memory) >= stalled - BOUND / (4 * MIB));
    STAGE_WAIT(stage_gauge(&stage, "lanegate_http_buffered_bytes") <= BOUND);
    print_message("resident +%ld KiB\n", (most - before) / 1024);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(most - before <
                200L * MIB); /* of 800 that were sent: buffers double, and come faster than here */
#endif

    /* The slowest go first: what goes on sending gets by. */
    STAGE_WAIT(honest_post() == 201);
    for (int i = 0; i < stalled; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, prepare, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_head_has_its_time_as_a_whole),
        TEST(a_body_has_its_time_as_a_whole),
        TEST(an_idle_connection_is_closed),
        TEST(a_handler_has_all_the_time_it_wants),
        TEST(a_client_that_does_not_take_its_answer_is_closed),
        TEST(over_max_connections_the_newest_is_closed),
        TEST(a_body_may_be_as_large_as_the_limit_and_no_larger),
        TEST(a_refused_client_may_finish_what_it_says),
        TEST(a_refused_client_can_not_go_on_for_ever),
        TEST(stalled_posts_stay_within_the_bound),
    };
    stage_arguments(argc, argv);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    stage_done();
    return failed;
}
