/* A log line is one JSON object, whatever is put into it, and it is one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "util/log.h"
#include "util/log_out.h"

/* What is written to stderr meanwhile goes to a file. */
static int kept_stderr;
static FILE *caught;

static void catch_stderr(void)
{
    caught = tmpfile();
    assert_non_null(caught);
    kept_stderr = dup(STDERR_FILENO);
    dup2(fileno(caught), STDERR_FILENO);
}

/* Everything written; free() it. */
static char *release_stderr(void)
{
    dup2(kept_stderr, STDERR_FILENO);
    close(kept_stderr);
    long size = lseek(fileno(caught), 0, SEEK_END);
    char *text = calloc(1, (size_t)size + 1);
    assert_int_equal(pread(fileno(caught), text, (size_t)size, 0), size);
    fclose(caught);
    return text;
}

/* One object and one line feed, at the end. */
static json_t *one_line(const char *text)
{
    size_t len = strlen(text);
    assert_true(len > 0);
    assert_ptr_equal(strchr(text, '\n'), text + len - 1);
    json_error_t error;
    json_t *line = json_loads(text, 0, &error);
    if (!line)
        fail_msg("%s in %.300s", error.text, text);
    return line;
}

static const char *field(json_t *line, const char *name)
{
    const char *text = json_string_value(json_object_get(line, name));
    assert_non_null(text);
    return text;
}

static void a_line_is_an_object_with_its_fields(void **state)
{
    (void)state;
    log_setup(LOG_INFO, true);
    catch_stderr();
    log_event(LOG_WARN, "lane_blocked", LOG_STR("sink", "billing"), LOG_BYTES("key", BYTES("a\0\n")),
              LOG_INT("depth", 1LL << 40), LOG_BOOL("held", true), LOG_STR("nothing", NULL));
    char *text = release_stderr();
    json_t *line = one_line(text);
    assert_string_equal(field(line, "level"), "warn");
    assert_string_equal(field(line, "event"), "lane_blocked");
    assert_string_equal(field(line, "sink"), "billing");
    assert_string_equal(field(line, "key"), "a%00%0A");
    assert_true(json_integer_value(json_object_get(line, "depth")) == 1LL << 40);
    assert_true(json_is_true(json_object_get(line, "held")));
    assert_true(json_is_null(json_object_get(line, "nothing")));
    const char *ts = field(line, "ts");
    assert_int_equal(strlen(ts), strlen("2026-01-02T03:04:05.678Z"));
    assert_int_equal(ts[10], 'T');
    assert_int_equal(ts[23], 'Z');
    json_decref(line);
    free(text);
}

static void an_event_needs_no_fields(void **state)
{
    (void)state;
    log_setup(LOG_INFO, true);
    catch_stderr();
    log_event(LOG_ERROR, "stopped");
    char *text = release_stderr();
    json_t *line = one_line(text);
    assert_int_equal(json_object_size(line), 3);
    json_decref(line);
    free(text);
}

static void a_line_feed_in_a_field_makes_no_second_line(void **state)
{
    (void)state;
    log_setup(LOG_INFO, true);
    catch_stderr();
    log_event(LOG_INFO, "x", LOG_STR("forged", "a\n{\"level\":\"error\"}\xff"));
    char *text = release_stderr();
    json_decref(one_line(text));
    free(text);

    log_setup(LOG_INFO, false);
    catch_stderr();
    log_event(LOG_INFO, "x", LOG_STR("forged", "a\nerror"), LOG_BYTES("b", BYTES("\x1b[31m")));
    text = release_stderr();
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    assert_null(strchr(text, 0x1b));
    free(text);
}

static void a_line_too_long_is_cut_and_still_an_object(void **state)
{
    (void)state;
    size_t size = 200 << 10;
    char *huge = malloc(size + 1);
    memset(huge, 'x', size);
    huge[size] = 0;
    for (int json = 0; json < 2; json++) {
        log_setup(LOG_INFO, json);
        catch_stderr();
        log_event(LOG_INFO, "huge_one", LOG_STR("a", "kept"), LOG_STR("b", huge), LOG_STR("c", "after"));
        char *text = release_stderr();
        assert_true(strlen(text) <= 64 << 10);
        assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
        assert_non_null(strstr(text, "huge_one"));
        if (json) {
            json_t *line = one_line(text);
            assert_string_equal(field(line, "event"), "huge_one");
            assert_true(json_is_true(json_object_get(line, "cut")));
            json_decref(line);
        }
        free(text);
    }
    free(huge);
}

static void below_the_level_nothing_is_written(void **state)
{
    (void)state;
    log_setup(LOG_WARN, true);
    catch_stderr();
    log_event(LOG_DEBUG, "a");
    log_event(LOG_INFO, "b");
    char *text = release_stderr();
    assert_string_equal(text, "");
    free(text);
    log_setup(LOG_DEBUG, true);
    catch_stderr();
    log_event(LOG_DEBUG, "a");
    text = release_stderr();
    assert_non_null(strstr(text, "\"debug\""));
    free(text);
}

static void text_lines_are_for_eyes(void **state)
{
    (void)state;
    log_setup(LOG_INFO, false);
    catch_stderr();
    log_event(LOG_INFO, "listening", LOG_STR("at", "127.0.0.1:4000"), LOG_INT("threads", 2),
              LOG_BOOL("tls", false));
    char *text = release_stderr();
    assert_non_null(strstr(text, " info  listening at=127.0.0.1:4000 threads=2 tls=false\n"));
    free(text);
}

static int full_pipe[2];

/* Everything that comes before `end` does, as text; free() it. */
static char *read_until(const char *end)
{
    size_t len = 0, size = 8 << 20;
    char *text = calloc(1, size);
    while (!strstr(text + (len > 4096 ? len - 4096 : 0), end)) {
        ssize_t n = read(full_pipe[0], text + len, size - 1 - len > 2048 ? 2048 : size - 1 - len);
        assert_true(n > 0);
        len += (size_t)n;
    }
    return text;
}

/* This call would not come back if it waited. What is lost is counted, and told when somebody reads again. */
static void a_pipe_that_nobody_reads_stops_nobody(void **state)
{
    (void)state;
    enum { LINES = 20000 };
    log_setup(LOG_INFO, true);
    assert_int_equal(pipe(full_pipe), 0);
    kept_stderr = dup(STDERR_FILENO);
    dup2(full_pipe[1], STDERR_FILENO);
    assert_true(log_out_start());
    for (int i = 0; i < LINES; i++)
        log_event(LOG_INFO, "line", LOG_INT("number", i),
                  LOG_STR("filling", "0123456789012345678901234567890"));
    assert_false(log_out_drain(0));

    char *text = read_until("log_lines_dropped");
    assert_true(log_out_drain(10000));
    log_event(LOG_INFO, "again");
    char *later = read_until("\"again\"");
    dup2(kept_stderr, STDERR_FILENO);
    close(kept_stderr);
    long long dropped = -1;
    int came = 0;
    char *all = malloc(strlen(text) + strlen(later) + 1), *rest = NULL;
    strcat(strcpy(all, text), later);
    for (char *at = strtok_r(all, "\n", &rest); at; at = strtok_r(NULL, "\n", &rest)) {
        json_t *line = json_loads(at, 0, NULL);
        if (!line)
            fail_msg("not a line: %s", at);
        if (strcmp(field(line, "event"), "line") == 0)
            assert_int_equal(json_integer_value(json_object_get(line, "number")), came++);
        else if (strcmp(field(line, "event"), "log_lines_dropped") == 0)
            dropped = json_integer_value(json_object_get(line, "lines"));
        json_decref(line);
    }
    assert_true(dropped > 0);
    assert_int_equal(came + dropped, LINES);
    free(all);
    free(text);
    free(later);
}

static void level_names(void **state)
{
    (void)state;
    enum log_level level;
    assert_true(log_level_parse("debug", &level) && level == LOG_DEBUG);
    assert_true(log_level_parse("error", &level) && level == LOG_ERROR);
    assert_false(log_level_parse("Error", &level));
    assert_false(log_level_parse("", &level));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_an_object_with_its_fields),
        cmocka_unit_test(an_event_needs_no_fields),
        cmocka_unit_test(a_line_feed_in_a_field_makes_no_second_line),
        cmocka_unit_test(a_line_too_long_is_cut_and_still_an_object),
        cmocka_unit_test(below_the_level_nothing_is_written),
        cmocka_unit_test(text_lines_are_for_eyes),
        cmocka_unit_test(level_names),
        cmocka_unit_test(a_pipe_that_nobody_reads_stops_nobody), /* the last: the thread stays */
    };
    return cmocka_run_group_tests_name("util: log", tests, NULL, NULL);
}
