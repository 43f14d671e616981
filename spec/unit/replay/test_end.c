/* A job ends as its runner says, unless somebody asked for another state meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "replay/replay_priv.h"
#include "store_rig.h"
#include "util/mem.h"

static char *dir;
static struct store *store;
static struct store_reader *reader;
static struct replays replays;

static int setup(void **state)
{
    (void)state;
    struct error err = {""};
    dir = rig_make_dir();
    const struct store_options options = rig_options(dir);
    store = rig_start(&options);
    assert_int_equal(store_reader_open(store, &reader, &err), STATUS_OK);
    replays = (struct replays){.options = {.store = store}, .lock = PTHREAD_MUTEX_INITIALIZER};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_reader_close(reader);
    store_close(store);
    rig_remove_dir(dir);
    return 0;
}

static bool take(void *ctx, const struct store_replay *replay)
{
    *(struct store_replay *)ctx = *replay;
    return false;
}

static struct store_replay stored(void)
{
    struct store_replay found = {0};
    assert_true(store_flush(store));
    assert_int_equal(store_list_replays(reader, 1, 1, take, &found), STATUS_OK);
    assert_int_equal(found.number, 1);
    return found;
}

/* The runner has seen that 2 of 20 hooks went before it came to them, and that all others are delivered;
 * before it says so, somebody pauses the job. What it had seen was kept all the same, and counted again at
 * the end: 4. */
static void what_is_gone_is_counted_once_over_a_pause(void **state)
{
    (void)state;
    struct job *job = mem_zalloc(sizeof *job);
    job->is = (struct store_replay){.number = 1,
                                    .state = REPLAY_PAUSED,
                                    .planned = 20,
                                    .rate = 50,
                                    .last = 20,
                                    .created_ms = 1,
                                    .changed_ms = 1};
    job_end(&replays, job, REPLAY_DONE, "2 were gone", 2);
    assert_int_equal(job->is.state, REPLAY_PAUSED);
    assert_string_equal(job->is.why, "");

    job->is.state = REPLAY_RUNNING; /* resumed */
    store_put_replay(store, &job->is);
    assert_int_equal(stored().gone, 0);

    job_end(&replays, job, REPLAY_DONE, "2 were gone", stored().gone + 2);
    struct store_replay over = stored();
    assert_int_equal(over.state, REPLAY_DONE);
    assert_int_equal(over.gone, 2);
    assert_string_equal(over.why, "2 were gone");
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_gone_is_counted_once_over_a_pause, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
