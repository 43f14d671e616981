/* One list makes every status; errors are cut, never overrun; and CHECK ends the process in release builds
 * too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/check.h"
#include "util/clock.h"
#include "util/mem.h"
#include "util/status.h"

static void every_status_has_its_name_and_sentence(void **state)
{
    (void)state;
    assert_string_equal(status_name(STATUS_OK), "OK");
    assert_string_equal(status_name(STATUS_BACKLOG_FULL), "BACKLOG_FULL");
    assert_string_equal(status_name(STATUS_REFUSED), "REFUSED");
    for (int s = STATUS_OK; s <= STATUS_REFUSED; s++)
        assert_true(strlen(status_text((enum status)s)) > 3);
}

static void an_error_is_filled_and_returned(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(error_set(&err, STATUS_INVALID, "line %d: %s", 14, "no"), STATUS_INVALID);
    assert_string_equal(err.text, "line 14: no");
    assert_int_equal(error_set(NULL, STATUS_IO, "nobody reads %s", "this"), STATUS_IO);
    error_set(&err, STATUS_IO, "%2000d", 7);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static void a_failed_check_ends_the_process_with_one_line_of_json(void **state)
{
    (void)state;
    int pipe_[2];
    assert_int_equal(pipe(pipe_), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(pipe_[1], STDERR_FILENO);
        CHECK(strcmp("a\\", "b") == 0);
        _exit(0);
    }
    close(pipe_[1]);
    char line[512] = {0};
    ssize_t n = read(pipe_[0], line, sizeof line - 1);
    close(pipe_[0]);
    assert_true(n > 0);
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT);
    assert_non_null(strstr(line, "\"event\":\"check_failed\""));
    assert_non_null(strstr(line, "test_status.c:"));
    assert_non_null(strstr(line, "strcmp(\\\"a\\\\\\\\\\\", \\\"b\\\")")); /* escaped as JSON */
    assert_int_equal(line[n - 1], '\n');
}

static void the_monotonic_clock_never_goes_back(void **state)
{
    (void)state;
    int64_t before = clock_mono_us();
    for (int i = 0; i < 10000; i++) {
        int64_t now = clock_mono_us();
        assert_true(now >= before);
        before = now;
    }
    int64_t ms = clock_mono_ms(), us = clock_mono_us();
    assert_true(us / 1000 >= ms && us / 1000 - ms < 60000);
    assert_true(clock_unix_ms() > 1700000000000); /* milliseconds, not seconds or microseconds */
    assert_true(clock_unix_ms() < 17000000000000);
}

static void memory_is_never_null(void **state)
{
    (void)state;
    void *p = mem_alloc(0);
    assert_non_null(p);
    p = mem_resize(p, 0);
    assert_non_null(p);
    free(p);
    unsigned char *zeros = mem_zalloc(100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(zeros[i], 0);
    free(zeros);
    char *copy = mem_strdup("lane"), *text = mem_format("%s/%d", copy, 7);
    assert_string_equal(text, "lane/7");
    free(copy);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_name_and_sentence),
        cmocka_unit_test(an_error_is_filled_and_returned),
        cmocka_unit_test(a_failed_check_ends_the_process_with_one_line_of_json),
        cmocka_unit_test(the_monotonic_clock_never_goes_back),
        cmocka_unit_test(memory_is_never_null),
    };
    return cmocka_run_group_tests_name("util: status, check, clock, mem", tests, NULL, NULL);
}
