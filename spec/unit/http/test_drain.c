/* Going down loses nobody who was there in time, and leaves nothing behind. */
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "stage.h"
#include "tunnel.h"
#include "wire.h"

#define GET(target) "GET " target " HTTP/1.1\r\nHost: t\r\n\r\n"

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

static void expect_answer(int fd, int status, bool closes)
{
    struct wire_reply reply;
    wire_read(fd, &reply, false);
    assert_int_equal(reply.status, status);
    assert_int_equal(reply.closes, closes);
    wire_reply_free(&reply);
}

static bool is_refused(void)
{
    const char *colon = strrchr(http_address(stage.server, 0), ':');
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(colon + 1)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool refused = connect(fd, (struct sockaddr *)&to, sizeof to) != 0 && errno == ECONNREFUSED;
    close(fd);
    return refused;
}

static void open_exchanges_are_waited_for(void **state)
{
    (void)state;
    struct http_exchange *exchange;
    stage.options.threads = 2;
    stage_open(&stage);
    assert_false(http_drained(stage.server));
    int idle = wire_connect(stage.server), busy = wire_connect(stage.server);
    WIRE_SEND(idle, GET("/json"));
    expect_answer(idle, 201, false);
    atomic_store(&stage.keep, true);
    WIRE_SEND(busy, GET("/late"));
    stage_take(&stage, 1, &exchange);

    http_drain(stage.server);
    assert_true(wire_ends(idle));
    STAGE_WAIT(is_refused());
    for (int i = 0; i < 50; i++) { /* some turns of the loops */
        assert_false(http_drained(stage.server));
        stage_pause();
    }
    http_answer(exchange, &(struct http_answer){.status = 201, .body = BYTES("{}")});
    expect_answer(busy, 201, true);
    assert_true(wire_ends(busy));
    STAGE_WAIT(http_drained(stage.server));
    close(idle);
    close(busy);
}

/* The loop is kept busy, so that all of these wait in the backlog when draining begins. */
static void who_waits_in_the_backlog_is_served(void **state)
{
    (void)state;
    enum { N = 30 };
    int fds[N];
    stage_open(&stage);
    atomic_store(&stage.gate, true);
    int first = wire_connect(stage.server);
    WIRE_SEND(first, GET("/gate"));
    STAGE_WAIT(atomic_load(&stage.handled) == 1);
    for (int i = 0; i < N; i++) {
        fds[i] = wire_connect(stage.server);
        WIRE_SEND(fds[i], GET("/json"));
    }
    http_drain(stage.server);
    atomic_store(&stage.gate, false);
    expect_answer(first, 201, true);
    for (int i = 0; i < N; i++) {
        expect_answer(fds[i], 201, true);
        close(fds[i]);
    }
    STAGE_WAIT(http_drained(stage.server));
    close(first);
}

/* One of two loops is kept busy, so the other accepts all: it gives every second one away. */
static void connections_are_shared_out(bool drains)
{
    enum { N = 24 };
    int fds[N];
    stage.options.threads = 2;
    stage_open(&stage);
    atomic_store(&stage.gate, true);
    int first = wire_connect(stage.server);
    WIRE_SEND(first, GET("/gate"));
    STAGE_WAIT(atomic_load(&stage.handled) == 1);
    int busy = atomic_load(&stage.handled_by[1]);
    for (int i = 0; i < N; i++) {
        fds[i] = wire_connect(stage.server);
        WIRE_SEND(fds[i], GET("/json"));
    }
    STAGE_WAIT(atomic_load(&stage.handled_by[!busy]) >= N / 2 - 2);
    if (drains)
        http_drain(stage.server);
    atomic_store(&stage.gate, false);
    expect_answer(first, 201, drains);
    for (int i = 0; i < N; i++) {
        struct wire_reply reply;
        wire_read(fds[i], &reply, false);
        assert_int_equal(reply.status, 201);
        wire_reply_free(&reply);
    }
    assert_true(atomic_load(&stage.handled_by[busy]) >= N / 2 - 2);
    if (drains)
        STAGE_WAIT(http_drained(stage.server));
    for (int i = 0; i < N; i++)
        close(fds[i]);
    close(first);
}

static void a_loop_gives_connections_to_one_that_has_fewer(void **state)
{
    (void)state;
    connections_are_shared_out(false);
}

static void what_was_given_to_another_loop_is_served_before_a_drain_is_over(void **state)
{
    (void)state;
    connections_are_shared_out(true);
}

static void a_request_half_here_may_arrive(void **state)
{
    (void)state;
    stage_open(&stage);
    int head = wire_connect(stage.server), body = wire_connect(stage.server);
    WIRE_SEND(head, "GET /json HT");
    WIRE_SEND(body, "POST /json HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n\r\n{");
    STAGE_WAIT(stage_gauge(&stage, "lanegate_http_buffered_bytes") > 60);
    http_drain(stage.server);
    STAGE_WAIT(is_refused());
    assert_false(http_drained(stage.server));
    WIRE_SEND(head, "TP/1.1\r\nHost: t\r\n\r\n");
    WIRE_SEND(body, "}");
    expect_answer(head, 201, true);
    expect_answer(body, 201, true);
    STAGE_WAIT(http_drained(stage.server));
    close(head);
    close(body);
}

static void one_that_never_arrives_holds_nobody_up(void **state)
{
    (void)state;
    stage_open(&stage);
    int fd = wire_connect(stage.server);
    WIRE_SEND(fd, "GET /json HT");
    http_drain(stage.server);
    STAGE_WAIT(http_drained(stage.server));
    close(fd);
}

/* Clients in every phase; http_close ends them all without being asked to drain first. */
static void closing_ends_every_connection(void **state)
{
    (void)state;
    static const char *const said[] = {
        "", "GET / HT", "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\nab", GET("/big?50000000"),
        "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 999999999\r\n\r\n"};
    enum { N = sizeof said / sizeof *said };
    int fds[N];
    stage_open(&stage);
    for (int i = 0; i < N; i++) {
        fds[i] = wire_connect(stage.server);
        wire_send(fds[i], bytes_str(said[i]));
    }
    STAGE_WAIT(atomic_load(&stage.handled) == 1 && atomic_load(&stage.refused_other) == 1);
    stage_shut(&stage);
    for (int i = 0; i < 3; i++)
        assert_true(wire_ends(fds[i]));
    for (int i = 0; i < N; i++)
        close(fds[i]);
}

static int open_descriptors(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void nothing_is_left_behind(void **state)
{
    (void)state;
    int before = 0;
    stage.options.threads = 3;
    for (int i = 0; i < 10; i++) {
        stage_open(&stage);
        int fd = wire_connect(stage.server);
        WIRE_SEND(fd, GET("/json"));
        expect_answer(fd, 201, false);
        stage_shut(&stage);
        close(fd);
        tunnel_join_all(); /* they have descriptors, too */
        if (i == 0)
            before = open_descriptors(); /* the first run may open what the process keeps */
    }
    assert_int_equal(open_descriptors(), before);
}

/* ---- the last answer and the close, at the same moment ---- */

static void *answer_all(void *arg)
{
    struct http_exchange **kept = arg;
    for (int i = 0; i < 20; i++)
        http_answer(kept[i], &(struct http_answer){.status = 201, .body = BYTES("{}")});
    return NULL;
}

static void an_answer_may_race_with_the_close(void **state)
{
    (void)state;
    stage.options.threads = 2;
    atomic_store(&stage.keep, true);
    for (int round = 0; round < 30; round++) {
        struct http_exchange *kept[20];
        int fds[20];
        pthread_t thread;
        stage_open(&stage);
        for (int i = 0; i < 20; i++) {
            fds[i] = wire_connect(stage.server);
            WIRE_SEND(fds[i], GET("/late"));
        }
        stage_take(&stage, 20, kept);
        http_drain(stage.server);
        assert_int_equal(pthread_create(&thread, NULL, answer_all, kept), 0);
        while (!http_drained(stage.server))
            ;
        stage_shut(&stage);
        pthread_join(thread, NULL);
        for (int i = 0; i < 20; i++) {
            expect_answer(fds[i], 201, true);
            close(fds[i]);
        }
    }
}

/* Whoever should have answered is stuck. The client is let go, the close ends all the same, and the answer
 * that comes after everything does no harm. */
static void a_forgotten_exchange_does_not_stop_the_close(void **state)
{
    (void)state;
    static struct http_exchange *kept[2]; /* static: what is left in memory on purpose is still known */
    stage.options.threads = 2;
    stage.options.close_timeout_ms = 100;
    stage_open(&stage);
    atomic_store(&stage.keep, true);
    int late = wire_connect(stage.server), never = wire_connect(stage.server);
    WIRE_SEND(late, GET("/late"));
    WIRE_SEND(never, GET("/late"));
    stage_take(&stage, 2, kept);
    stage_shut(&stage);
    assert_true(wire_ends(late));
    assert_true(wire_ends(never));
    http_answer(kept[0], &(struct http_answer){.status = 201, .body = BYTES("{}")});
    http_drop(kept[1]);
    close(late);
    close(never);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, prepare, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(open_exchanges_are_waited_for),
        TEST(who_waits_in_the_backlog_is_served),
        TEST(a_loop_gives_connections_to_one_that_has_fewer),
        TEST(what_was_given_to_another_loop_is_served_before_a_drain_is_over),
        TEST(a_request_half_here_may_arrive),
        TEST(one_that_never_arrives_holds_nobody_up),
        TEST(closing_ends_every_connection),
        TEST(nothing_is_left_behind),
        TEST(an_answer_may_race_with_the_close),
        TEST(a_forgotten_exchange_does_not_stop_the_close),
    };
    stage_arguments(argc, argv);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    stage_done();
    return failed;
}
