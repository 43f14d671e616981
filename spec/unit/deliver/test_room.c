/* Attempts through the room: many at once, kept connections, hung ones beside quick ones, the way down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "metrics/metrics.h"
#include "receiver.h"
#include "trial.h"
#include "util/clock.h"
#include "util/mem.h"

static bool answer_ok(struct exchange *x, const char *text)
{
    (void)text;
    return say(x, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

static bool never_answer(struct exchange *x, const char *text)
{
    (void)text;
    hang(x);
    return false;
}

static struct sink *open_http(struct deliver *deliver, struct receiver *receiver)
{
    static char urls[8][64];
    static unsigned next;
    struct sink_options options = trial_options(receiver_port(receiver));
    char *url = urls[next++ % 8];
    snprintf(url, 64, "%s", options.url);
    options.url = url;
    struct sink *sink;
    struct error err = {""};
    if (sink_open(deliver, &options, &sink, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return sink;
}

static void start_all(struct deliver *deliver, struct trial *trials, size_t count)
{
    struct list attempts = LIST_INIT(attempts);
    for (size_t i = 0; i < count; i++) {
        trials[i].ended = false;
        list_append(&attempts, &trials[i].attempt.node);
    }
    deliver_start(deliver, &attempts);
    assert_true(list_empty(&attempts));
}

static void a_thousand_over_kept_connections(void **state)
{
    (void)state;
    enum { COUNT = 50, ROUNDS = 20 };
    struct deliver *deliver = trial_room();
    struct receiver *receiver = receiver_open(answer_ok, NULL, NULL);
    struct sink *sink = open_http(deliver, receiver);
    struct trial *trials = mem_alloc(COUNT * sizeof *trials);
    for (int i = 0; i < COUNT; i++)
        trial_init(&trials[i], sink, trial_envelope(NULL, 0, BYTES("{}")));
    for (int round = 0; round < ROUNDS; round++) {
        start_all(deliver, trials, COUNT);
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(trial_wait(&trials[i])->cls, OUTCOME_OK);
    }
    assert_int_equal(receiver_requests(receiver), COUNT * ROUNDS);
    assert_true(receiver_connections(receiver) <= COUNT);
    for (int i = 0; i < COUNT; i++)
        trial_end(&trials[i]);
    free(trials);
    sink_close(sink);
    deliver_close(deliver);
    receiver_close(receiver);
}

/* A server may close a kept connection at any time; that is nobody's failure. */
static bool answer_and_close(struct exchange *x, const char *text)
{
    answer_ok(x, text);
    return false;
}

static void a_connection_closed_while_idle_is_no_failure(void **state)
{
    (void)state;
    struct deliver *deliver = trial_room();
    struct receiver *receiver = receiver_open(answer_and_close, NULL, NULL);
    struct sink *sink = open_http(deliver, receiver);
    struct trial trial;
    trial_init(&trial, sink, trial_envelope(NULL, 0, BYTES("{}")));
    for (int i = 0; i < 100; i++) {
        trial_start(&trial, deliver);
        const struct outcome *outcome = trial_wait(&trial);
        if (outcome->cls != OUTCOME_OK)
            fail_msg("%s", outcome->reason);
    }
    trial_end(&trial);
    sink_close(sink);
    deliver_close(deliver);
    receiver_close(receiver);
}

static void receivers_that_hang_do_not_hold_up_others(void **state)
{
    (void)state;
    enum { HUNG = 200, QUICK = 100 };
    struct deliver *deliver = trial_room();
    struct receiver *deaf = receiver_open(never_answer, NULL, NULL),
                    *healthy = receiver_open(answer_ok, NULL, NULL);
    struct sink *hung_sink = open_http(deliver, deaf), *quick_sink = open_http(deliver, healthy);
    struct trial *trials = mem_alloc((HUNG + QUICK) * sizeof *trials);
    for (int i = 0; i < HUNG + QUICK; i++)
        trial_init(&trials[i], i < HUNG ? hung_sink : quick_sink, trial_envelope(NULL, 0, BYTES("{}")));
    start_all(deliver, trials, HUNG);
    start_all(deliver, trials + HUNG, QUICK);
    for (int i = HUNG; i < HUNG + QUICK; i++)
        assert_int_equal(trial_wait(&trials[i])->cls, OUTCOME_OK);
    for (int i = 0; i < HUNG; i++) {
        pthread_mutex_lock(&trials[i].lock);
        assert_false(trials[i].ended);
        pthread_mutex_unlock(&trials[i].lock);
    }

    deliver_stop(deliver, clock_mono_ms() + 50);
    for (int i = 0; i < HUNG; i++) {
        assert_true(trials[i].ended); /* when deliver_stop returns, not later */
        assert_int_equal(trials[i].attempt.outcome.cls, OUTCOME_TRANSIENT);
        assert_string_equal(trials[i].attempt.outcome.reason, "shutting down");
    }
    for (int i = 0; i < HUNG + QUICK; i++)
        trial_end(&trials[i]);
    free(trials);
    sink_close(hung_sink);
    sink_close(quick_sink);
    deliver_close(deliver);
    receiver_close(deaf);
    receiver_close(healthy);
}

static void what_comes_after_the_stop_is_turned_away(void **state)
{
    (void)state;
    struct deliver *deliver = trial_room();
    struct receiver *receiver = receiver_open(answer_ok, NULL, NULL);
    struct sink *sink = open_http(deliver, receiver);
    deliver_stop(deliver, clock_mono_ms() + 60000); /* nothing runs: returns at once */
    struct trial trial;
    trial_init(&trial, sink, trial_envelope(NULL, 0, BYTES("{}")));
    trial_start(&trial, deliver);
    assert_true(trial.ended);
    assert_string_equal(trial.attempt.outcome.reason, "shutting down");
    assert_int_equal(receiver_connections(receiver), 0);
    trial_end(&trial);
    sink_close(sink);
    deliver_close(deliver);
    receiver_close(receiver);
}

/* A stop waits for what runs, up to its deadline. */
static bool answer_when_told(struct exchange *x, const char *path)
{
    char byte;
    FILE *told = fopen(path, "r"); /* a fifo: opens when the test opens it */
    size_t n = fread(&byte, 1, 1, told);
    fclose(told);
    return n == 1 && answer_ok(x, NULL);
}

static void *stop_it(void *ctx)
{
    deliver_stop(ctx, clock_mono_ms() + 60000);
    return NULL;
}

static void a_running_attempt_may_finish(void **state)
{
    (void)state;
    char folder[] = "/tmp/lanegate-room-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    struct deliver *deliver = trial_room();
    struct receiver *receiver = receiver_open(answer_when_told, path, NULL);
    struct sink *sink = open_http(deliver, receiver);
    struct trial trial;
    trial_init(&trial, sink, trial_envelope(NULL, 0, BYTES("{}")));
    trial_start(&trial, deliver);
    FILE *tell = fopen(path, "w"); /* returns when the receiver has the request */
    pthread_t stopper;
    pthread_create(&stopper, NULL, stop_it, deliver);
    fputc('x', tell);
    fclose(tell);
    pthread_join(stopper, NULL);
    assert_true(trial.ended);
    assert_int_equal(trial.attempt.outcome.cls, OUTCOME_OK);
    trial_end(&trial);
    sink_close(sink);
    deliver_close(deliver);
    receiver_close(receiver);
    unlink(path);
    rmdir(folder);
}

/* Attempts one after the other, each begun at the end of the round in which the one before it ended. */
struct chain {
    struct deliver *deliver;
    struct trial *trials;
    size_t begun, count;
    pthread_t loop;
    bool one_thread;
};

static bool is_over(struct trial *trial)
{
    pthread_mutex_lock(&trial->lock);
    bool ended = trial->ended;
    pthread_mutex_unlock(&trial->lock);
    return ended;
}

static void begin_next(void *ctx)
{
    struct chain *chain = ctx;
    if (chain->begun == chain->count || !is_over(&chain->trials[chain->begun - 1]))
        return; /* a round in which nothing ended */
    if (chain->begun == 1)
        chain->loop = pthread_self();
    chain->one_thread &= pthread_equal(chain->loop, pthread_self()) != 0;
    struct list attempts = LIST_INIT(attempts);
    list_append(&attempts, &chain->trials[chain->begun++].attempt.node);
    deliver_start(chain->deliver, &attempts);
}

static void what_a_round_starts_goes_on_without_another_thread(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    struct receiver *receiver = receiver_open(answer_ok, NULL, NULL);
    static struct ip_range loopback;
    assert_int_equal(ip_range_parse("127.0.0.0/8", &loopback, NULL), STATUS_OK);
    struct deliver_options options = {.threads = 1,
                                      .egress = {.allow_private = {&loopback, 1}, .allow_http = true}};
    struct deliver *deliver;
    struct error err;
    assert_int_equal(deliver_open(&options, &deliver, &err), STATUS_OK);
    struct sink *sink = open_http(deliver, receiver);
    struct trial *trials = mem_zalloc(COUNT * sizeof *trials);
    for (size_t i = 0; i < COUNT; i++)
        trial_init(&trials[i], sink, trial_envelope(NULL, 0, BYTES("{}")));
    struct chain chain = {
        .deliver = deliver, .trials = trials, .begun = 1, .count = COUNT, .one_thread = true};
    deliver_on_round(deliver, begin_next, &chain);
    trial_start(&trials[0], deliver);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(trial_wait(&trials[i])->cls, OUTCOME_OK);
    deliver_stop(deliver, clock_mono_ms() + 5000);
    assert_true(chain.one_thread);
    assert_int_equal(chain.begun, COUNT);
    assert_int_equal(receiver_connections(receiver), 1);
    for (size_t i = 0; i < COUNT; i++)
        trial_end(&trials[i]);
    free(trials);
    sink_close(sink);
    deliver_close(deliver);
    receiver_close(receiver);
}

static void attempts_are_measured(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_new();
    struct deliver_options options = {.threads = 1, .metrics = metrics};
    struct deliver *deliver;
    assert_int_equal(deliver_open(&options, &deliver, NULL), STATUS_OK);
    struct sink_options log = {
        .type = "log", .source = "stripe", .name = "seen", .header_prefix = "lanegate"};
    assert_int_equal(trial_once(deliver, &log).cls, OUTCOME_OK);
    struct buf text = {0};
    metrics_write(metrics, &text);
    assert_non_null(strstr(text.at,
                           "lanegate_dispatch_attempt_duration_seconds_count{source=\"stripe\",sink=\"seen\","
                           "result=\"ok\"} 1\n"));
    buf_free(&text);
    deliver_close(deliver);
    metrics_free(metrics);
}

static void the_log_sink_tells_of_a_hook_but_not_what_is_in_it(void **state)
{
    (void)state;
    struct deliver *deliver = trial_room();
    struct sink_options options = {
        .type = "log", .source = "stripe", .name = "seen", .header_prefix = "lanegate"};
    struct sink *sink;
    assert_int_equal(sink_open(deliver, &options, &sink, NULL), STATUS_OK);
    struct trial trial;
    const struct header header = {BYTES("X-Secret"), BYTES("hidden-header")};
    trial_init(&trial, sink, trial_envelope(&header, 1, BYTES("hidden-body")));
    trial.attempt.ordered = true;
    trial.attempt.key = BYTES("k\n1");

    int pipe_ends[2], before = dup(STDERR_FILENO);
    assert_int_equal(pipe(pipe_ends), 0);
    dup2(pipe_ends[1], STDERR_FILENO);
    trial_start(&trial, deliver);
    assert_int_equal(trial_wait(&trial)->cls, OUTCOME_OK);
    dup2(before, STDERR_FILENO);
    close(pipe_ends[1]);
    char line[2048] = "";
    ssize_t n = read(pipe_ends[0], line, sizeof line - 1);
    close(pipe_ends[0]);
    close(before);

    assert_true(n > 0 && strchr(line, '\n') == line + n - 1);
    static const char *const parts[] = {"\"event\":\"delivery\"",
                                        "\"id\":\"01890a5d-ac96-774b-bcce-b302099a8057\"",
                                        "\"seq\":42",
                                        "\"tenant\":\"acme\"",
                                        "\"source\":\"stripe\"",
                                        "\"sink\":\"seen\"",
                                        "\"key\":\"k%0A1\"",
                                        "\"attempt\":1",
                                        "\"body_bytes\":11"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!strstr(line, parts[i]))
            fail_msg("no %s in %s", parts[i], line);
    assert_null(strstr(line, "hidden"));
    trial_end(&trial);
    sink_close(sink);
    deliver_close(deliver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_over_kept_connections),
        cmocka_unit_test(a_connection_closed_while_idle_is_no_failure),
        cmocka_unit_test(receivers_that_hang_do_not_hold_up_others),
        cmocka_unit_test(what_comes_after_the_stop_is_turned_away),
        cmocka_unit_test(a_running_attempt_may_finish),
        cmocka_unit_test(what_a_round_starts_goes_on_without_another_thread),
        cmocka_unit_test(attempts_are_measured),
        cmocka_unit_test(the_log_sink_tells_of_a_hook_but_not_what_is_in_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
