/* What comes of an attempt, for each thing that a receiver can do to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deliver/deliver_priv.h"
#include "deliver/sinks/http_priv.h"
#include "receiver.h"
#include "trial.h"
#include "util/clock.h"

static struct deliver *deliver;

static bool say_text(struct exchange *x, const char *text)
{
    say(x, text);
    return false;
}

static struct outcome outcome_of(answer_fn answer, const char *text, int64_t timeout_ms)
{
    struct receiver *receiver = receiver_open(answer, text, NULL);
    struct sink_options options = trial_options(receiver_port(receiver));
    if (timeout_ms)
        options.timeout_ms = timeout_ms;
    struct outcome outcome = trial_once(deliver, &options);
    receiver_close(receiver);
    return outcome;
}

static void assert_outcome(struct outcome outcome, enum outcome_class cls, int status, const char *reason)
{
    if (outcome.cls != cls || outcome.http_status != status ||
        strncmp(outcome.reason, reason, strlen(reason)) != 0)
        fail_msg("expected %s, HTTP %d, \"%s\"; got %s, HTTP %d, \"%s\"", outcome_class_name(cls), status,
                 reason, outcome_class_name(outcome.cls), outcome.http_status, outcome.reason);
    assert_true(outcome.duration_us >= 0);
}

static void statuses(void **state)
{
    (void)state;
    static const struct {
        int status;
        enum outcome_class cls;
    } cases[] = {
        {200, OUTCOME_OK},        {201, OUTCOME_OK},        {202, OUTCOME_OK},
        {204, OUTCOME_OK},        {299, OUTCOME_OK},        {300, OUTCOME_TRANSIENT},
        {301, OUTCOME_TRANSIENT}, {302, OUTCOME_TRANSIENT}, {304, OUTCOME_TRANSIENT},
        {307, OUTCOME_TRANSIENT}, {308, OUTCOME_TRANSIENT}, {400, OUTCOME_REFUSED},
        {401, OUTCOME_TRANSIENT}, {403, OUTCOME_TRANSIENT}, {404, OUTCOME_TRANSIENT},
        {405, OUTCOME_TRANSIENT}, {408, OUTCOME_TRANSIENT}, {409, OUTCOME_TRANSIENT},
        {410, OUTCOME_REFUSED},   {413, OUTCOME_REFUSED},   {422, OUTCOME_REFUSED},
        {429, OUTCOME_TRANSIENT}, {499, OUTCOME_TRANSIENT}, {500, OUTCOME_TRANSIENT},
        {501, OUTCOME_TRANSIENT}, {503, OUTCOME_TRANSIENT}, {599, OUTCOME_TRANSIENT},
        {600, OUTCOME_TRANSIENT}, {999, OUTCOME_TRANSIENT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[128], reason[32] = "";
        snprintf(text, sizeof text, "HTTP/1.1 %d X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                 cases[i].status);
        if (cases[i].cls != OUTCOME_OK)
            snprintf(reason, sizeof reason, "HTTP %d", cases[i].status);
        struct outcome outcome = outcome_of(say_text, text, 0);
        assert_outcome(outcome, cases[i].cls, cases[i].status, reason);
        assert_false(outcome.timed_out || outcome.unreachable);
    }
}

static void retry_after_counts_where_it_means_something(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *value;
        enum outcome_class cls;
        int64_t ms;
    } cases[] = {
        {429, "30", OUTCOME_RETRY_AFTER, 30000}, {503, "7200", OUTCOME_RETRY_AFTER, 3600000},
        {408, "1", OUTCOME_RETRY_AFTER, 1000},   {500, "0", OUTCOME_RETRY_AFTER, 0},
        {429, "-1", OUTCOME_TRANSIENT, 0},       {429, "1.5", OUTCOME_TRANSIENT, 0},
        {429, "soon", OUTCOME_TRANSIENT, 0},     {503, "99999999999999999999", OUTCOME_TRANSIENT, 0},
        {404, "30", OUTCOME_TRANSIENT, 0},       {302, "30", OUTCOME_TRANSIENT, 0},
        {410, "30", OUTCOME_REFUSED, 0},         {200, "30", OUTCOME_OK, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "HTTP/1.1 103 Early\r\nRetry-After: 9\r\n\r\n"
                 "HTTP/1.1 %d X\r\nretry-AFTER:\t %s \r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                 cases[i].status, cases[i].value);
        struct outcome outcome = outcome_of(say_text, text, 0);
        assert_outcome(outcome, cases[i].cls, cases[i].status, "");
        assert_int_equal(outcome.retry_after_ms, cases[i].ms);
    }
}

static void a_retry_after_of_an_interim_answer_is_not_kept(void **state)
{
    (void)state;
    char text[] = "HTTP/1.1 103 Early\r\nRetry-After: 9\r\n\r\n"
                  "HTTP/1.1 503 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert_outcome(outcome_of(say_text, text, 0), OUTCOME_TRANSIENT, 503, "HTTP 503");
}

static void answers_in_other_shapes(void **state)
{
    (void)state;
    char chunked[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    assert_outcome(outcome_of(say_text, chunked, 0), OUTCOME_OK, 200, "");
    char until_close[] = "HTTP/1.0 200 OK\r\n\r\nabc";
    assert_outcome(outcome_of(say_text, until_close, 0), OUTCOME_OK, 200, "");
    char no_http[] = "SSH-2.0-OpenSSH_9.2\r\n";
    assert_outcome(outcome_of(say_text, no_http, 0), OUTCOME_TRANSIENT, 0, "the answer is not HTTP");
    char short_body[] = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
    assert_outcome(outcome_of(say_text, short_body, 0), OUTCOME_TRANSIENT, 200,
                   "the connection broke inside an HTTP 200 answer");
    char cut_chunk[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
    assert_outcome(outcome_of(say_text, cut_chunk, 0), OUTCOME_TRANSIENT, 200,
                   "the connection broke inside an HTTP 200 answer");
}

static bool say_endlessly(struct exchange *x, const char *text)
{
    if (say(x, text))
        while (say(x, "X-Filler: 0123456789012345678901234567890123456789012345678901234567890123456789\r\n"))
            ;
    return false;
}

static void an_endless_body_is_cut_and_its_status_stands(void **state)
{
    (void)state;
    assert_outcome(outcome_of(say_endlessly, "HTTP/1.1 200 OK\r\n\r\n", 0), OUTCOME_OK, 200, "");
    assert_outcome(outcome_of(say_endlessly, "HTTP/1.1 410 Gone\r\n\r\n", 0), OUTCOME_REFUSED, 410,
                   "HTTP 410");
    assert_outcome(outcome_of(say_endlessly,
                              "HTTP/1.1 503 X\r\nRetry-After: 5\r\nContent-Length: 99999999999\r\n\r\n", 0),
                   OUTCOME_RETRY_AFTER, 503, "HTTP 503, retry after 5 s");
}

static void an_endless_head_is_cut(void **state)
{
    (void)state;
    assert_outcome(outcome_of(say_endlessly, "HTTP/1.1 200 OK\r\n", 0), OUTCOME_TRANSIENT, 200,
                   "the head of the answer is larger than 64 KiB");
}

static bool say_and_hang(struct exchange *x, const char *text)
{
    if (text)
        say(x, text);
    hang(x);
    return false;
}

static void no_answer_in_time(void **state)
{
    (void)state;
    int64_t start_ms = clock_mono_ms();
    struct outcome outcome = outcome_of(say_and_hang, NULL, 100);
    assert_outcome(outcome, OUTCOME_TRANSIENT, 0, "no answer within 100 ms (a retry may be a duplicate)");
    assert_true(outcome.timed_out && outcome.unreachable && !outcome.unsent);
    assert_true(clock_mono_ms() - start_ms >= 100);
    assert_true(outcome.duration_us >= 100000);
}

static void an_answer_that_stops_half_way_is_none(void **state)
{
    (void)state;
    struct outcome outcome =
        outcome_of(say_and_hang, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", 100);
    assert_outcome(outcome, OUTCOME_TRANSIENT, 200, "timed out after 100 ms, inside an HTTP 200 answer");
    assert_true(outcome.timed_out);
}

static bool say_and_drip(struct exchange *x, const char *text)
{
    say(x, text);
    while (say(x, "x"))
        usleep(1000);
    return false;
}

static void a_dripping_answer_ends_at_the_timeout(void **state)
{
    (void)state;
    struct outcome outcome = outcome_of(say_and_drip, "HTTP/1.1 200 OK\r\n\r\n", 150);
    assert_outcome(outcome, OUTCOME_TRANSIENT, 200, "timed out after 150 ms, inside an HTTP 200 answer");
    outcome = outcome_of(say_and_drip, "HTTP/1.1 200 OK\r\nX: ", 150);
    assert_int_equal(outcome.cls, OUTCOME_TRANSIENT);
    assert_true(outcome.timed_out);
}

static void the_attempts_own_bound_is_the_outer_one(void **state)
{
    (void)state;
    struct receiver *receiver = receiver_open(say_and_hang, NULL, NULL);
    struct sink_options options = trial_options(receiver_port(receiver));
    struct sink *sink;
    assert_int_equal(sink_open(deliver, &options, &sink, NULL), STATUS_OK);
    struct trial trial;
    trial_init(&trial, sink, trial_envelope(NULL, 0, BYTES("x")));
    trial.attempt.timeout_ms = 80;
    trial_start(&trial, deliver);
    assert_outcome(*trial_wait(&trial), OUTCOME_TRANSIENT, 0, "no answer within 80 ms");
    trial_end(&trial);
    sink_close(sink);
    receiver_close(receiver);
}

static bool reset_now(struct exchange *x, const char *text)
{
    (void)text;
    reset(x);
    return false;
}

static void a_reset_behind_the_body_says_that_a_retry_may_be_a_duplicate(void **state)
{
    (void)state;
    static const char reason[] =
        "the connection broke after the request was sent, without an answer (a retry may be a "
        "duplicate)";
    struct outcome outcome = outcome_of(reset_now, NULL, 0);
    assert_outcome(outcome, OUTCOME_TRANSIENT, 0, reason);
    assert_false(outcome.unreachable || outcome.unsent); /* a poison hook may do that to its receiver */
    assert_outcome(outcome_of(say_text, "", 0), OUTCOME_TRANSIENT, 0, reason);
}

static bool refuse_unread(struct exchange *x, const char *text)
{
    say(x, text);
    shutdown(x->fd, SHUT_WR);
    hang(x); /* reads on, so that the answer is not lost to a reset */
    return false;
}

static void an_answer_before_the_request_was_read(void **state)
{
    (void)state;
    struct receiver *receiver = receiver_open(
        refuse_unread, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", NULL);
    receiver_skip_bodies(receiver);
    struct sink_options options = trial_options(receiver_port(receiver));
    struct sink *sink;
    assert_int_equal(sink_open(deliver, &options, &sink, NULL), STATUS_OK);
    size_t size = 8 << 20;
    char *body = calloc(1, size);
    struct trial trial;
    trial_init(&trial, sink, trial_envelope(NULL, 0, bytes_of(body, size)));
    trial_start(&trial, deliver);
    assert_outcome(*trial_wait(&trial), OUTCOME_REFUSED, 413, "HTTP 413");
    trial_end(&trial);
    free(body);
    sink_close(sink);
    receiver_close(receiver);
}

static void the_start_of_a_failed_answer_is_kept(void **state)
{
    (void)state;
    char text[4096], *at = text;
    at += sprintf(at, "HTTP/1.1 500 X\r\nContent-Length: 2000\r\nConnection: close\r\n\r\n");
    memset(at, 'e', 2000);
    at[2000] = 0;
    struct receiver *receiver = receiver_open(say_text, text, NULL);
    struct sink_options options = trial_options(receiver_port(receiver));
    struct sink *sink;
    assert_int_equal(sink_open(deliver, &options, &sink, NULL), STATUS_OK);
    struct trial trial;
    trial_init(&trial, sink, trial_envelope(NULL, 0, BYTES("x")));
    trial_start(&trial, deliver);
    assert_outcome(*trial_wait(&trial), OUTCOME_TRANSIENT, 500, "HTTP 500");
    for (size_t i = 0; i < SINK_RESPONSE_KEPT; i++)
        assert_int_equal(trial.response[i], 'e');
    trial_end(&trial);
    sink_close(sink);
    receiver_close(receiver);
}

static void nobody_listens(void **state)
{
    (void)state;
    struct receiver *receiver = receiver_open(say_text, "", NULL);
    unsigned port = receiver_port(receiver);
    receiver_close(receiver);
    struct sink_options options = trial_options(port);
    char reason[64];
    snprintf(reason, sizeof reason, "connection refused by 127.0.0.1:%u", port);
    struct outcome outcome = trial_once(deliver, &options);
    assert_outcome(outcome, OUTCOME_TRANSIENT, 0, reason);
    assert_true(outcome.unreachable && !outcome.timed_out && outcome.unsent);
}

/* A listener whose queue is full drops what knocks: on loopback that is what a black hole looks like. */
static void nobody_accepts(void **state)
{
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), knocking[8];
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 0), 0);
    getsockname(listener, (struct sockaddr *)&at, &len);
    for (int i = 0; i < 8; i++) {
        knocking[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(knocking[i], (struct sockaddr *)&at, sizeof at);
    }
    struct sink_options options = trial_options(ntohs(at.sin_port));
    options.timeout_ms = 150;
    struct outcome outcome = trial_once(deliver, &options);
    assert_outcome(outcome, OUTCOME_TRANSIENT, 0, "timed out connecting to 127.0.0.1:");
    assert_true(outcome.unreachable && outcome.timed_out && outcome.unsent);
    for (int i = 0; i < 8; i++)
        close(knocking[i]);
    close(listener);
}

/* "localhost" is ::1 and 127.0.0.1: the rules let only one of them through, and that one is used. */
static void of_mixed_addresses_the_allowed_one_is_used(void **state)
{
    (void)state;
    char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    struct receiver *receiver = receiver_open(say_text, text, NULL);
    struct sink_options options = trial_options(receiver_port(receiver));
    char url[64];
    snprintf(url, sizeof url, "http://localhost:%u/", receiver_port(receiver));
    options.url = url;
    assert_outcome(trial_once(deliver, &options), OUTCOME_OK, 200, "");
    receiver_close(receiver);
}

static bool answer_and_keep(struct exchange *x, const char *text)
{
    return say(x, text);
}

/* A name passes at load, since only its addresses tell. Here the rules close between load and connection,
 * which is the same to the code that connects. Nothing is connected to, and it is this side that is wrong. */
static void the_address_is_judged_at_every_connection_and_request(void **state)
{
    (void)state;
    static const struct egress_rules closed = {.allow_http = true};
    static const char refused[] = "egress refused: 127.0.0.1 is loopback; see egress.allow_private";
    struct receiver *kept =
        receiver_open(answer_and_keep, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", NULL);
    struct receiver *fresh = receiver_open(say_text, "", NULL);
    struct deliver_options one_loop = {.threads = 1};
    struct deliver *room, *lax = trial_room();
    assert_int_equal(deliver_open(&one_loop, &room, NULL), STATUS_OK);
    deliver_set_egress(room, &atomic_load(&lax->egress)->rules);

    struct sink_options options = trial_options(receiver_port(kept));
    struct sink *sink;
    assert_int_equal(sink_open(room, &options, &sink, NULL), STATUS_OK);
    struct trial trial;
    trial_init(&trial, sink, trial_envelope(NULL, 0, BYTES("x")));
    trial_start(&trial, room);
    assert_outcome(*trial_wait(&trial), OUTCOME_OK, 200, "");
    trial_start(&trial, room);
    assert_outcome(*trial_wait(&trial), OUTCOME_OK, 200, "");
    assert_int_equal(receiver_connections(kept), 1);

    deliver_set_egress(room, &closed);
    trial_start(&trial, room); /* the connection is there, and is not used */
    assert_outcome(*trial_wait(&trial), OUTCOME_CONFIG, 0, refused);
    assert_false(trial_wait(&trial)->unreachable);
    trial_start(&trial, room); /* it is gone, and no other is made */
    assert_outcome(*trial_wait(&trial), OUTCOME_CONFIG, 0, refused);
    assert_int_equal(receiver_requests(kept), 2);
    assert_int_equal(receiver_connections(kept), 1);
    trial_end(&trial);
    sink_close(sink);

    deliver_set_egress(room, &atomic_load(&lax->egress)->rules);
    options = trial_options(receiver_port(fresh));
    assert_int_equal(sink_open(room, &options, &sink, NULL), STATUS_OK);
    deliver_set_egress(room, &closed);
    trial_init(&trial, sink, trial_envelope(NULL, 0, BYTES("x")));
    trial_start(&trial, room);
    assert_outcome(*trial_wait(&trial), OUTCOME_CONFIG, 0, refused);
    assert_int_equal(receiver_connections(fresh), 0);
    trial_end(&trial);
    sink_close(sink);
    deliver_close(room);
    deliver_close(lax);
    receiver_close(kept);
    receiver_close(fresh);
}

static void redirects_are_not_followed(void **state)
{
    (void)state;
    struct receiver *inside = receiver_open(say_text, "", NULL);
    char text[256];
    snprintf(
        text, sizeof text,
        "HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:%u/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        receiver_port(inside));
    assert_outcome(outcome_of(say_text, text, 0), OUTCOME_TRANSIENT, 307,
                   "HTTP 307 (redirects are not followed)");
    assert_int_equal(receiver_connections(inside), 0);
    receiver_close(inside);
}

static void a_proxy_of_the_environment_is_not_used(void **state)
{
    (void)state;
    struct receiver *proxy = receiver_open(say_text, "", NULL);
    char url[64], text[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    snprintf(url, sizeof url, "http://127.0.0.1:%u", receiver_port(proxy));
    setenv("http_proxy", url, 1);
    setenv("ALL_PROXY", url, 1);
    assert_outcome(outcome_of(say_text, text, 0), OUTCOME_OK, 200, "");
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
    assert_int_equal(receiver_connections(proxy), 0);

    struct sink_options options = trial_options(9);
    options.url = "http://hooks.example/x"; /* never looked up: the proxy does that */
    options.proxy = url;
    trial_once(deliver, &options);
    assert_int_equal(receiver_requests(proxy), 1);
    assert_true(strncmp(receiver_request(proxy, 1)->head, "POST http://hooks.example/x HTTP/1.1\n", 37) == 0);
    receiver_close(proxy);
}

/* What can't be brought about without a network: the mapping alone. */
static void codes_of_the_library(void **state)
{
    (void)state;
    static const struct {
        CURLcode code;
        enum outcome_class cls;
        bool unreachable;
        const char *reason;
    } cases[] = {
        {CURLE_COULDNT_RESOLVE_HOST, OUTCOME_TRANSIENT, true, "name look-up failed: detail"},
        {CURLE_OPERATION_TIMEDOUT, OUTCOME_TRANSIENT, true, "timed out looking up the host's name"},
        {CURLE_SSL_CACERT_BADFILE, OUTCOME_CONFIG, false, "TLS files: detail"},
        {CURLE_SSL_CERTPROBLEM, OUTCOME_CONFIG, false, "TLS files: detail"},
        {CURLE_SSL_CONNECT_ERROR, OUTCOME_TRANSIENT, true, "TLS: detail"},
        {CURLE_URL_MALFORMAT, OUTCOME_CONFIG, false, "url: detail"},
        {CURLE_OUT_OF_MEMORY, OUTCOME_TRANSIENT, false, "a line of the answer's head is too large"},
        {CURLE_FAILED_INIT, OUTCOME_TRANSIENT, false, "detail"},
        {CURLE_ABORTED_BY_CALLBACK, OUTCOME_TRANSIENT, false, "shutting down"},
    };
    struct sink_options options = trial_options(80);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct http_seen seen = {.error = "detail"};
        struct http_end end = {.code = cases[i].code};
        struct outcome outcome = {0};
        http_outcome(&options, &end, &seen, 100, &outcome);
        assert_outcome(outcome, cases[i].cls, 0, cases[i].reason);
        assert_int_equal(outcome.unreachable, cases[i].unreachable);
    }
    struct http_seen seen = {.forbidden = true,
                             .forbidden_address.at = {[10] = 0xff, 0xff, 169, 254, 169, 254}};
    struct outcome outcome = {0};
    http_outcome(&options, &(struct http_end){.code = CURLE_COULDNT_CONNECT}, &seen, 100, &outcome);
    assert_outcome(outcome, OUTCOME_CONFIG, 0,
                   "egress refused: 169.254.169.254 is link-local; see egress.allow_private");
}

static int open_room(void **state)
{
    (void)state;
    deliver = trial_room();
    return 0;
}

static int close_room(void **state)
{
    (void)state;
    deliver_close(deliver);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses),
        cmocka_unit_test(retry_after_counts_where_it_means_something),
        cmocka_unit_test(a_retry_after_of_an_interim_answer_is_not_kept),
        cmocka_unit_test(answers_in_other_shapes),
        cmocka_unit_test(an_endless_body_is_cut_and_its_status_stands),
        cmocka_unit_test(an_endless_head_is_cut),
        cmocka_unit_test(no_answer_in_time),
        cmocka_unit_test(an_answer_that_stops_half_way_is_none),
        cmocka_unit_test(a_dripping_answer_ends_at_the_timeout),
        cmocka_unit_test(the_attempts_own_bound_is_the_outer_one),
        cmocka_unit_test(a_reset_behind_the_body_says_that_a_retry_may_be_a_duplicate),
        cmocka_unit_test(an_answer_before_the_request_was_read),
        cmocka_unit_test(the_start_of_a_failed_answer_is_kept),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(nobody_accepts),
        cmocka_unit_test(of_mixed_addresses_the_allowed_one_is_used),
        cmocka_unit_test(the_address_is_judged_at_every_connection_and_request),
        cmocka_unit_test(redirects_are_not_followed),
        cmocka_unit_test(a_proxy_of_the_environment_is_not_used),
        cmocka_unit_test(codes_of_the_library),
    };
    return cmocka_run_group_tests(tests, open_room, close_room);
}
