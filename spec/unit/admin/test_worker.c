/* What takes long has a thread of its own: a rekey stands at the house's gate, and whoever asks for something
 * else is answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "admin/worker.h"
#include "house.h"
#include "util/check.h"

#define REKEY "/v1/sinks/demo/gone/rekey"

static struct house house;

static int move_in(void **state)
{
    (void)state;
    char id[UUID_TEXT];
    house_open(&house, NULL, 0);
    house_take(&house, BYTES("was"), BYTES("is"), id);
    house_wait_total(&house, "/v1/lanes?sink=gone&state=retrying", 1);
    return 0;
}

static int move_out(void **state)
{
    (void)state;
    house_gate(&house, false);
    house_close(&house);
    return 0;
}

/* ---- who waits for an answer ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static size_t answered;

struct asker {
    pthread_t thread;
    const char *method, *target;
    struct house_answer answer;
};

static void *ask(void *ctx)
{
    struct asker *asker = ctx;
    house_ask(&house, asker->method, asker->target, NULL, &asker->answer);
    pthread_mutex_lock(&lock);
    answered++;
    pthread_cond_broadcast(&news);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void asks(struct asker *asker, const char *method, const char *target)
{
    *asker = (struct asker){.method = method, .target = target};
    CHECK(pthread_create(&asker->thread, NULL, ask, asker) == 0);
}

/* Its status; the answer is gone. */
static int is_answered(struct asker *asker, const char *name, long long value)
{
    CHECK(pthread_join(asker->thread, NULL) == 0);
    int status = asker->answer.status;
    if (name)
        assert_int_equal(json_integer_value(json_object_get(asker->answer.json, name)), value);
    house_answer_free(&asker->answer);
    return status;
}

static int status_of(const char *method, const char *target, const char *error)
{
    struct house_answer answer;
    house_ask(&house, method, target, NULL, &answer);
    int status = answer.status;
    if (error)
        assert_string_equal(json_string_value(json_object_get(answer.json, "error")), error);
    house_answer_free(&answer);
    return status;
}

/* ---- the plays ---- */

static void the_loop_answers_while_a_dry_run_is_under_way(void **state)
{
    (void)state;
    struct asker dry_run;
    house_gate(&house, true);
    asks(&dry_run, "POST", REKEY "?dry_run=true");
    house_wait_at_gate(&house);
    assert_int_equal(status_of("GET", "/health", NULL), 200);
    assert_int_equal(status_of("GET", "/metrics", NULL), 200);
    assert_int_equal(status_of("GET", "/v1/lanes", NULL), 200);
    assert_int_equal(status_of("GET", "/v1/hooks", NULL), 200);
    assert_int_equal(status_of("GET", "/v1/dlq?sink=dead", NULL), 200);
    assert_int_equal(status_of("POST", "/v1/dlq/discard?all=true&dry_run=true", NULL), 200);
    assert_int_equal(status_of("POST", "/v1/sinks/demo/gone/resume", NULL), 200);
    house_gate(&house, false);
    assert_int_equal(is_answered(&dry_run, "matched", 1), 200);
}

static void one_more_than_may_wait_is_told_so(void **state)
{
    (void)state;
    struct asker dry_run, more[WORKER_WAITING_MAX + 1];
    size_t done = 0;
    house_gate(&house, true);
    asks(&dry_run, "POST", REKEY "?dry_run=true");
    house_wait_at_gate(&house);
    answered = 0;
    for (size_t i = 0; i <= WORKER_WAITING_MAX; i++)
        asks(&more[i], "POST", REKEY "?dry_run=true");
    pthread_mutex_lock(&lock);
    while (answered == 0)
        pthread_cond_wait(&news, &lock);
    assert_int_equal(answered, 1);
    pthread_mutex_unlock(&lock);
    assert_int_equal(status_of("POST", REKEY "?dry_run=true", "busy"), 503);
    house_gate(&house, false);
    assert_int_equal(is_answered(&dry_run, NULL, 0), 200);
    for (size_t i = 0; i <= WORKER_WAITING_MAX; i++)
        done += is_answered(&more[i], NULL, 0) == 200;
    assert_int_equal(done, WORKER_WAITING_MAX);
}

/* Before, the loop was the rekey's alone. Were the sink resumed now, a later hook of a key could go out from
 * its new lane while an earlier one is in the old lane still. */
static void nobody_resumes_a_sink_whose_rows_are_being_moved(void **state)
{
    (void)state;
    struct asker rekey;
    house_gate(&house, true);
    asks(&rekey, "POST", REKEY);
    house_wait_at_gate(&house);
    assert_int_equal(status_of("POST", "/v1/sinks/demo/gone/resume", "rekey_running"), 409);
    assert_int_equal(status_of("POST", "/v1/sinks/demo/log/resume", NULL), 200);
    house_gate(&house, false);
    assert_int_equal(is_answered(&rekey, "done", 1), 200);
    assert_int_equal(status_of("POST", "/v1/sinks/demo/gone/pause", NULL), 200);
    assert_int_equal(status_of("POST", "/v1/sinks/demo/gone/resume", NULL), 200);
}

/* Last: it does not come back. */
static void a_drain_ends_what_is_under_way_and_begins_nothing(void **state)
{
    (void)state;
    struct asker dry_run, second;
    house_gate(&house, true);
    asks(&dry_run, "POST", REKEY "?dry_run=true");
    house_wait_at_gate(&house);
    asks(&second, "POST", REKEY "?dry_run=true");
    admin_drain(house.admin);
    assert_int_equal(status_of("GET", "/v1/dlq", "draining"), 503);
    assert_int_equal(status_of("GET", "/health", NULL), 200);
    house_gate(&house, false);
    assert_int_equal(is_answered(&dry_run, "matched", 1), 200);
    assert_int_equal(is_answered(&second, NULL, 0), 503);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loop_answers_while_a_dry_run_is_under_way),
        cmocka_unit_test(one_more_than_may_wait_is_told_so),
        cmocka_unit_test(nobody_resumes_a_sink_whose_rows_are_being_moved),
        cmocka_unit_test(a_drain_ends_what_is_under_way_and_begins_nothing),
    };
    return cmocka_run_group_tests(tests, move_in, move_out);
}
