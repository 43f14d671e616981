/* An answer that goes on: written from another thread, bounded, and over when either side says so. */
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

#define GET_STREAM "GET /stream HTTP/1.1\r\nHost: t\r\n\r\n"

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

static char read_one(int fd)
{
    char c;
    assert_int_equal(recv(fd, &c, 1, 0), 1);
    return c;
}

/* Text out of its chunks, wherever they are cut. One stream is read at a time. */
static size_t chunk_left;

static char next_of_text(int fd)
{
    if (chunk_left == 0) {
        char line[16] = {0};
        for (size_t i = 0; i < sizeof line - 1 && (line[i] = read_one(fd)) != '\n'; i++)
            ;
        chunk_left = strtoul(line, NULL, 16);
        assert_true(chunk_left > 0);
    }
    char c = read_one(fd);
    if (--chunk_left == 0) {
        assert_int_equal(read_one(fd), '\r');
        assert_int_equal(read_one(fd), '\n');
    }
    return c;
}

static void expect_text(int fd, const char *expected)
{
    for (const char *c = expected; *c; c++)
        assert_int_equal(next_of_text(fd), *c);
}

static void expect_end(int fd)
{
    const char *end = "0\r\n\r\n";
    for (const char *c = end; *c; c++)
        assert_int_equal(read_one(fd), *c);
    assert_true(wire_ends(fd));
}

static struct http_stream *open_stream(int *fd)
{
    struct wire_reply reply;
    struct http_stream *stream;
    *fd = wire_connect(stage.server);
    WIRE_SEND(*fd, GET_STREAM);
    wire_read(*fd, &reply, true);
    assert_int_equal(reply.status, 200);
    assert_true(reply.closes);
    assert_false(wire_header(&reply, "content-length").at != NULL);
    assert_true(bytes_eq(wire_header(&reply, "content-type"), BYTES("text/event-stream")));
    assert_true(bytes_eq(wire_header(&reply, "cache-control"), BYTES("no-store")));
    wire_reply_free(&reply);
    chunk_left = 0;
    expect_text(*fd, ":\n\n");
    STAGE_WAIT((stream = atomic_exchange(&stage.stream, NULL)));
    return stream;
}

static void what_is_written_arrives_in_order(void **state)
{
    (void)state;
    stage_open(&stage);
    int fd;
    struct http_stream *stream = open_stream(&fd);
    for (int i = 0; i < 200; i++) {
        char line[32];
        snprintf(line, sizeof line, "data: %d\n\n", i);
        assert_int_equal(http_stream_write(stream, bytes_str(line)), STATUS_OK);
        if (i % 3 == 0)
            expect_text(fd, line);
        else if (i % 3 == 2) {
            char both[64];
            snprintf(both, sizeof both, "data: %d\n\ndata: %d\n\n", i - 1, i);
            expect_text(fd, both);
        }
    }
    http_stream_end(stream);
    expect_text(fd, "data: 199\n\n");
    expect_end(fd);
    assert_int_equal(atomic_load(&stage.closed), 0); /* its owner knows */
    close(fd);
}

/* Both sides of the wire hold something; then the bound does, and the rest is the owner's to decide. */
static void a_client_that_takes_nothing_fills_its_own_buffer_only(void **state)
{
    (void)state;
    stage.options.idle_timeout_ms = 300;
    stage_open(&stage);
    int fd, other;
    struct http_stream *slow = open_stream(&fd), *quick = open_stream(&other);
    static char piece[1024];
    memset(piece, 'x', sizeof piece);
    enum status status = STATUS_OK;
    for (int i = 0; status == STATUS_OK; i++) {
        assert_true(i < 100000); /* 100 MiB are more than any socket holds */
        status = http_stream_write(slow, bytes_of(piece, sizeof piece));
        if (status == STATUS_FULL) /* the loop may just not have got to it */
            for (int wait = 0; status == STATUS_FULL && wait < 50; wait++) {
                stage_pause();
                status = http_stream_write(slow, bytes_of(piece, sizeof piece));
            }
    }
    assert_true(status == STATUS_FULL || status == STATUS_NOT_FOUND);
    assert_int_equal(http_stream_write(quick, BYTES("still here")), STATUS_OK);
    expect_text(other, "still here");

    /* Nothing taken for the idle time: over. */
    STAGE_WAIT(atomic_load(&stage.closed) == 1);
    assert_int_equal(atomic_load(&stage.refused_timeout), 1);
    STAGE_WAIT(http_stream_write(slow, BYTES("x")) == STATUS_NOT_FOUND);
    assert_int_equal(http_stream_write(quick, BYTES("and now")), STATUS_OK); /* silence is no fault of its */
    expect_text(other, "and now");
    http_stream_end(slow);
    http_stream_end(quick);
    close(fd);
    close(other);
}

static void more_than_the_bound_is_refused_whole(void **state)
{
    (void)state;
    stage_open(&stage);
    int fd;
    struct http_stream *stream = open_stream(&fd);
    static char large[STAGE_STREAM_MAX + 1];
    memset(large, 'x', sizeof large);
    assert_int_equal(http_stream_write(stream, bytes_of(large, sizeof large)), STATUS_FULL);
    assert_int_equal(http_stream_write(stream, BYTES("small")), STATUS_OK);
    expect_text(fd, "small");
    http_stream_end(stream);
    close(fd);
}

static void a_client_that_leaves_is_noticed_in_silence(void **state)
{
    (void)state;
    stage_open(&stage);
    int fd;
    struct http_stream *stream = open_stream(&fd);
    close(fd);
    STAGE_WAIT(atomic_load(&stage.closed) == 1);
    STAGE_WAIT(http_stream_write(stream, BYTES("x")) == STATUS_NOT_FOUND);
    STAGE_WAIT(stage_gauge(&stage, "lanegate_http_connections") == 0);
    http_stream_end(stream);
    assert_int_equal(atomic_load(&stage.closed), 1);
}

static void a_drain_ends_it_behind_what_was_written(void **state)
{
    (void)state;
    stage_open(&stage);
    int fd;
    struct http_stream *stream = open_stream(&fd);
    assert_int_equal(http_stream_write(stream, BYTES("the last")), STATUS_OK);
    http_drain(stage.server);
    expect_text(fd, "the last");
    expect_end(fd);
    STAGE_WAIT(http_drained(stage.server));
    assert_int_equal(atomic_load(&stage.closed), 1);
    assert_int_equal(http_stream_write(stream, BYTES("x")), STATUS_NOT_FOUND);
    http_stream_end(stream);
    close(fd);
}

static void the_handle_outlives_the_server(void **state)
{
    (void)state;
    stage_open(&stage);
    int fd;
    struct http_stream *stream = open_stream(&fd);
    stage_shut(&stage);
    assert_int_equal(atomic_load(&stage.closed), 1);
    assert_int_equal(http_stream_write(stream, BYTES("x")), STATUS_NOT_FOUND);
    http_stream_end(stream);
    close(fd);
}

static void a_stream_outlasts_every_timeout(void **state)
{
    (void)state;
    stage.options.idle_timeout_ms = stage.options.body_timeout_ms = stage.options.header_timeout_ms = 500;
    stage_open(&stage);
    int fd, idle = wire_connect(stage.server);
    struct http_stream *stream = open_stream(&fd);
    STAGE_WAIT(wire_has_ended(idle)); /* the control: its time has passed */
    int later = wire_connect(stage.server);
    STAGE_WAIT(wire_has_ended(later));
    assert_int_equal(http_stream_write(stream, BYTES("still here")), STATUS_OK);
    expect_text(fd, "still here");
    http_stream_end(stream);
    close(later);
    close(idle);
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, prepare, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_arrives_in_order),
        TEST(a_client_that_takes_nothing_fills_its_own_buffer_only),
        TEST(more_than_the_bound_is_refused_whole),
        TEST(a_client_that_leaves_is_noticed_in_silence),
        TEST(a_drain_ends_it_behind_what_was_written),
        TEST(the_handle_outlives_the_server),
        TEST(a_stream_outlasts_every_timeout),
    };
    stage_arguments(argc, argv);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    stage_done();
    return failed;
}
