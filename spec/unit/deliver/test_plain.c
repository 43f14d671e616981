/* The plain way: what a connection is used for, when it is used again, and when a request is sent twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "receiver.h"
#include "trial.h"
#include "util/clock.h"

static const char kept_answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/* A room with one loop, one receiver, and an attempt that can be made again and again. */
struct scene {
    struct deliver *deliver;
    struct receiver *receiver;
    struct sink_options options;
    struct sink *sink;
    struct trial trial;
};

static void scene_open(struct scene *scene, answer_fn answer, const char *text, struct bytes body)
{
    static struct ip_range loopback;
    assert_int_equal(ip_range_parse("127.0.0.0/8", &loopback, NULL), STATUS_OK);
    struct deliver_options one = {.threads = 1,
                                  .egress = {.allow_private = {&loopback, 1}, .allow_http = true}};
    assert_int_equal(deliver_open(&one, &scene->deliver, NULL), STATUS_OK);
    scene->receiver = receiver_open(answer, text, NULL);
    scene->options = trial_options(receiver_port(scene->receiver));
    assert_int_equal(sink_open(scene->deliver, &scene->options, &scene->sink, NULL), STATUS_OK);
    trial_init(&scene->trial, scene->sink, trial_envelope(NULL, 0, body));
}

static struct outcome scene_deliver(struct scene *scene)
{
    trial_start(&scene->trial, scene->deliver);
    return *trial_wait(&scene->trial);
}

static void assert_ok(struct outcome outcome)
{
    if (outcome.cls != OUTCOME_OK)
        fail_msg("%s: %s", outcome_class_name(outcome.cls), outcome.reason);
}

static void scene_close(struct scene *scene)
{
    trial_end(&scene->trial);
    sink_close(scene->sink);
    deliver_close(scene->deliver);
    receiver_close(scene->receiver);
}

static bool say_and_keep(struct exchange *x, const char *text)
{
    return say(x, text);
}

/* On one connection: the first request is answered, the second is met with an end. */
static bool answer_once(struct exchange *x, const char *text)
{
    if (x->number == 2) {
        if (text)
            say(x, text);
        else
            reset(x);
        return false;
    }
    return say(x, kept_answer);
}

static void a_kept_connection_that_breaks_before_an_answer_is_replaced_once(void **state)
{
    (void)state;
    struct scene scene;
    static const char *const ends[] = {NULL /* a reset */, ""};
    for (size_t i = 0; i < 2; i++) {
        scene_open(&scene, answer_once, ends[i], BYTES("{}"));
        assert_ok(scene_deliver(&scene));
        struct outcome outcome = scene_deliver(&scene);
        assert_ok(outcome);
        assert_int_equal(receiver_requests(scene.receiver), 3);
        assert_int_equal(receiver_connections(scene.receiver), 2);
        assert_string_equal(receiver_request(scene.receiver, 2)->head,
                            receiver_request(scene.receiver, 3)->head);
        scene_close(&scene);
    }
}

static bool work_on_the_second(struct exchange *x, const char *text)
{
    (void)text;
    if (x->number == 1)
        return say(x, kept_answer);
    sleep(2);
    return false;
}

/* It was read and worked on: a hook that crashes its receiver does so once an attempt. */
static void nor_one_that_breaks_after_a_while(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, work_on_the_second, NULL, BYTES("{}"));
    assert_ok(scene_deliver(&scene));
    assert_int_equal(scene_deliver(&scene).cls, OUTCOME_TRANSIENT);
    assert_int_equal(receiver_requests(scene.receiver), 2);
    scene_close(&scene);
}

/* A process without free descriptors has no bad receiver. */
static void no_socket_is_no_failure_of_the_receiver(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, say_and_keep, kept_answer, BYTES("{}"));
    struct rlimit before, none = {0};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){3, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct outcome outcome = scene_deliver(&scene);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(outcome.cls, OUTCOME_CONFIG);
    assert_false(outcome.unreachable);
    assert_true(outcome.unsent);
    assert_non_null(strstr(outcome.reason, "can't open a socket: Too many open files; see the limit"));
    scene_close(&scene);
}

static void one_that_breaks_inside_an_answer_is_not(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, answer_once, "HTTP/1.1 20", BYTES("{}"));
    assert_ok(scene_deliver(&scene));
    struct outcome outcome = scene_deliver(&scene);
    assert_int_equal(outcome.cls, OUTCOME_TRANSIENT);
    assert_int_equal(receiver_requests(scene.receiver), 2);
    assert_false(outcome.unsent);
    scene_close(&scene);
}

static bool reset_always(struct exchange *x, const char *text)
{
    (void)text;
    reset(x);
    return false;
}

static void nor_is_a_new_one(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, reset_always, NULL, BYTES("{}"));
    assert_int_equal(scene_deliver(&scene).cls, OUTCOME_TRANSIENT);
    assert_int_equal(receiver_requests(scene.receiver), 1);
    scene_close(&scene);
}

/* The receiver read the request on the kept connection; that nobody listens for the second try does not make
 * it unsent. */
static bool answer_then_leave(struct exchange *x, const char *text)
{
    (void)text;
    if (x->number == 1)
        return say(x, kept_answer);
    stop_listening(x);
    reset(x);
    return false;
}

static void what_was_sent_once_is_not_unsent(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, answer_then_leave, NULL, BYTES("{}"));
    assert_ok(scene_deliver(&scene));
    struct outcome outcome = scene_deliver(&scene);
    assert_int_equal(outcome.cls, OUTCOME_TRANSIENT);
    assert_true(outcome.unreachable);
    assert_false(outcome.unsent);
    assert_true(strncmp(outcome.reason, "connection refused by 127.0.0.1:", 32) == 0);
    scene_close(&scene);
}

static unsigned connections_for(const char *text, unsigned attempts)
{
    struct scene scene;
    scene_open(&scene, say_and_keep, text, BYTES("{}"));
    for (unsigned i = 0; i < attempts; i++)
        assert_ok(scene_deliver(&scene));
    unsigned count = receiver_connections(scene.receiver);
    scene_close(&scene);
    return count;
}

static void a_connection_is_used_again_when_its_answer_allows_it(void **state)
{
    (void)state;
    assert_int_equal(connections_for(kept_answer, 20), 1);
    assert_int_equal(connections_for("HTTP/1.1 204 X\r\n\r\n", 20), 1);
    assert_int_equal(
        connections_for("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 20), 1);
    assert_int_equal(
        connections_for("HTTP/1.0 200 X\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", 20), 1);
    assert_int_equal(connections_for("HTTP/1.0 200 X\r\nContent-Length: 0\r\n\r\n", 20), 20);
    assert_int_equal(connections_for("HTTP/1.1 200 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 20),
                     20);
    assert_int_equal(connections_for("HTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\nHTTP/1.1 500 X\r\n\r\n", 20),
                     20);
}

/* The whole body is in the other's hands although its answer came first. */
static bool answer_then_read(struct exchange *x, const char *text)
{
    bool said = say(x, text);
    read_body(x);
    return said;
}

static void an_early_yes_gets_the_rest_of_the_body(void **state)
{
    (void)state;
    struct scene scene;
    size_t size = 8 << 20;
    char *body = calloc(1, size);
    scene_open(&scene, answer_then_read, kept_answer, bytes_of(body, size));
    receiver_skip_bodies(scene.receiver);
    for (unsigned i = 1; i <= 3; i++) {
        assert_ok(scene_deliver(&scene));
        assert_int_equal(receiver_requests(scene.receiver), i);
    }
    assert_int_equal(receiver_connections(scene.receiver), 1);
    scene_close(&scene);
    free(body);
}

/* The request was not sent in full, so nobody can have taken it, whatever was said before. */
static bool say_and_reset(struct exchange *x, const char *text)
{
    say(x, text);
    reset(x);
    return false;
}

static bool say_and_stop_reading(struct exchange *x, const char *text)
{
    (void)text;
    say(x, kept_answer);
    wait_for_end(x);
    return false;
}

static void an_early_yes_without_the_rest_of_the_body_is_none(void **state)
{
    (void)state;
    struct scene scene;
    size_t size = 64 << 20;
    char *body = calloc(1, size);
    scene_open(&scene, say_and_reset, kept_answer, bytes_of(body, size));
    receiver_skip_bodies(scene.receiver);
    struct outcome outcome = scene_deliver(&scene);
    assert_int_equal(outcome.cls, OUTCOME_TRANSIENT);
    assert_string_equal(outcome.reason, "the connection broke while the request was sent");
    scene_close(&scene);

    scene_open(&scene, say_and_stop_reading, NULL, bytes_of(body, size));
    receiver_skip_bodies(scene.receiver);
    scene.trial.attempt.timeout_ms = 2000;
    outcome = scene_deliver(&scene);
    assert_int_equal(outcome.cls, OUTCOME_TRANSIENT);
    assert_string_equal(outcome.reason, "timed out after 2000 ms while the request was sent");
    scene_close(&scene);
    free(body);
}

/* An orderly end is the end of an answer that has no length; a reset is the end of nothing. */
static void a_reset_ends_no_answer(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, say_and_reset, "HTTP/1.1 200 OK\r\n\r\nhalf of it", BYTES("{}"));
    struct outcome outcome = scene_deliver(&scene);
    assert_int_equal(outcome.cls, OUTCOME_TRANSIENT);
    scene_close(&scene);
}

/* What comes on a kept connection before the next request is not the answer to it. */
static atomic_uint strays_said;

static bool say_twice(struct exchange *x, const char *text)
{
    bool said = say(x, kept_answer) && say(x, text);
    strays_said++;
    return said;
}

/* An attempt at another receiver: when it is over, the loop has waited for news since it began. */
static void pass_a_round(struct deliver *deliver, struct receiver *other)
{
    struct sink_options options = trial_options(receiver_port(other));
    assert_ok(trial_once(deliver, &options));
}

static void what_a_receiver_says_unasked_answers_nothing(void **state)
{
    (void)state;
    static const char *const strays[] = {kept_answer,
                                         "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n", "ok"};
    struct receiver *other = receiver_open(say_and_keep, kept_answer, NULL);
    struct scene scene;
    for (size_t i = 0; i < 3; i++) {
        scene_open(&scene, say_twice, strays[i], BYTES("{}"));
        strays_said = 0;
        for (unsigned n = 1; n <= 50; n++) {
            assert_ok(scene_deliver(&scene));
            assert_int_equal(receiver_requests(scene.receiver), n);
            while (strays_said < n)
                usleep(100);
            pass_a_round(scene.deliver, other);
        }
        scene_close(&scene);
    }
    receiver_close(other);
}

static bool answer_and_close(struct exchange *x, const char *text)
{
    say(x, text);
    return false;
}

static int open_files(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Not at the next request only: a receiver that closes hundreds of connections at night would leave us with
 * them. */
static void a_connection_that_the_peer_closes_is_closed_here_too(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, answer_and_close, kept_answer, BYTES("{}"));
    int before = open_files();
    for (int i = 0; i < 10; i++)
        assert_ok(scene_deliver(&scene));
    while (open_files() > before)
        usleep(1000); /* the test's own timeout is the bound */
    scene_close(&scene);
}

/* A reload makes new sinks; their receivers see no new connections. */
static void connections_outlive_their_sinks_and_are_shared(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, say_and_keep, kept_answer, BYTES("{}"));
    assert_ok(scene_deliver(&scene));
    for (int i = 0; i < 3; i++) {
        struct sink *next;
        assert_int_equal(sink_open(scene.deliver, &scene.options, &next, NULL), STATUS_OK);
        sink_close(scene.sink);
        scene.sink = scene.trial.attempt.sink = next;
        assert_ok(scene_deliver(&scene));
    }
    assert_int_equal(receiver_connections(scene.receiver), 1);
    scene_close(&scene);
}

static const struct received *asked_of(const char *path, struct scene *scene)
{
    char url[128];
    struct sink *sink;
    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", receiver_port(scene->receiver), path);
    scene->options.url = url;
    assert_int_equal(sink_open(scene->deliver, &scene->options, &sink, NULL), STATUS_OK);
    sink_close(scene->sink);
    scene->sink = scene->trial.attempt.sink = sink;
    assert_ok(scene_deliver(scene));
    return receiver_request(scene->receiver, receiver_requests(scene->receiver));
}

static void the_request_line_and_host(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, say_and_keep, kept_answer, BYTES("{}"));
    static const struct {
        const char *path, *line;
    } cases[] = {
        {"", "POST / HTTP/1.1\n"},         {"/", "POST / HTTP/1.1\n"},
        {"?a=b", "POST /?a=b HTTP/1.1\n"}, {"/a/b?c=d&e=%20", "POST /a/b?c=d&e=%20 HTTP/1.1\n"},
        {"/a/../b", "POST /b HTTP/1.1\n"},
    };
    char host[32];
    snprintf(host, sizeof host, "127.0.0.1:%u", receiver_port(scene.receiver));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct received *request = asked_of(cases[i].path, &scene);
        assert_true(strncmp(request->head, cases[i].line, strlen(cases[i].line)) == 0);
        assert_string_equal(received_header(request, "host"), host);
        assert_string_equal(received_header(request, "user-agent"), "lanegate/" LANEGATE_VERSION);
        assert_null(received_header(request, "accept"));
    }
    static const struct sink_header own[] = {
        {"Host", "hooks.internal"}, {"User-Agent", "shop/1"}, {"X-Empty", ""}};
    scene.options.headers = own;
    scene.options.header_count = 3;
    scene.options.method = "PUT";
    const struct received *request = asked_of("/h", &scene);
    assert_true(strncmp(request->head, "PUT /h HTTP/1.1\n", 16) == 0);
    assert_string_equal(received_header(request, "host"), "hooks.internal");
    assert_string_equal(received_header(request, "user-agent"), "shop/1");
    assert_string_equal(received_header(request, "x-empty"), "");
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kept_connection_that_breaks_before_an_answer_is_replaced_once),
        cmocka_unit_test(one_that_breaks_inside_an_answer_is_not),
        cmocka_unit_test(nor_is_a_new_one),
        cmocka_unit_test(nor_one_that_breaks_after_a_while),
        cmocka_unit_test(no_socket_is_no_failure_of_the_receiver),
        cmocka_unit_test(what_was_sent_once_is_not_unsent),
        cmocka_unit_test(a_connection_is_used_again_when_its_answer_allows_it),
        cmocka_unit_test(an_early_yes_gets_the_rest_of_the_body),
        cmocka_unit_test(an_early_yes_without_the_rest_of_the_body_is_none),
        cmocka_unit_test(a_reset_ends_no_answer),
        cmocka_unit_test(what_a_receiver_says_unasked_answers_nothing),
        cmocka_unit_test(a_connection_that_the_peer_closes_is_closed_here_too),
        cmocka_unit_test(connections_outlive_their_sinks_and_are_shared),
        cmocka_unit_test(the_request_line_and_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
