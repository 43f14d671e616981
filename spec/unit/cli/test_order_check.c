/* What a receiver's log proves. Each play is a log; the report says what was wrong with it, and nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "cli/order_check.h"

/* One line of a log, in few words: what is left out is not said. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
struct row {
    const char *lane; /* NULL: unordered */
    unsigned seq;
    int status;
    int started_ms, finished_ms; /* 0: one after the other, by themselves */
    unsigned previous_seq;
    bool late;
    const char *replay, *epoch;
};

#define PLAY(...)                                                                                            \
    play((const struct row[]){__VA_ARGS__}, sizeof((const struct row[]){__VA_ARGS__}) / sizeof(struct row))

static struct order_report play(const struct row *rows, size_t count)
{
    struct order_check *check = order_check_new();
    struct bytes listening = BYTES("{\"event\":\"listening\",\"address\":\"127.0.0.1:4100\"}");
    order_check_line(check, listening);
    for (size_t i = 0; i < count; i++) {
        const struct row *r = &rows[i];
        char lane[64] = "null", replay[64] = "null", previous[32] = "null", line[1024];
        if (r->lane)
            snprintf(lane, sizeof lane, "\"%s\"", r->lane);
        if (r->replay)
            snprintf(replay, sizeof replay, "\"%s\"", r->replay);
        if (r->previous_seq)
            snprintf(previous, sizeof previous, "%u", r->previous_seq);
        int started_ms = r->started_ms ? r->started_ms : 1000 + (int)i * 10;
        int len = snprintf(
            line, sizeof line,
            "{\"event\":\"delivery\",\"tenant\":\"default\",\"source\":\"stripe\",\"key\":\"K\",\"lane\":%s,"
            "\"epoch\":\"%s\",\"seq\":%u,\"previous_seq\":%s,\"late\":%s,\"replay_id\":%s,\"status\":%d,"
            "\"started_ms\":%d,\"finished_ms\":%d}",
            lane, r->epoch ? r->epoch : "e1", r->seq, previous, r->late ? "true" : "false", replay,
            r->status ? r->status : 200, started_ms, r->finished_ms ? r->finished_ms : started_ms + 10);
        order_check_line(check, bytes_of(line, (size_t)len));
    }
    struct order_report report;
    order_check_finish(check, &report);
    order_check_free(check);
    return report;
}

static void assert_in_order(struct order_report report)
{
    if (report.problems)
        fail_msg("%s", report.problem);
}

static void assert_problem(struct order_report report, const char *part)
{
    if (!report.problems || !strstr(report.problem, part))
        fail_msg("expected \"%s\", got \"%s\"", part, report.problem);
}

static void two_lanes_in_order(void **state)
{
    (void)state;
    struct order_report report = PLAY({"a", 1}, {"b", 2}, {"a", 3, .previous_seq = 1},
                                      {"b", 5, .previous_seq = 2}, {"a", 4, .previous_seq = 3});
    assert_in_order(report);
    assert_int_equal(report.lanes, 2);
    assert_int_equal(report.first, 5);
    assert_int_equal(report.previous_right, 3);
}

static void an_inversion_is_named_with_its_lines(void **state)
{
    (void)state;
    struct order_report report = PLAY({"a", 1}, {"a", 3}, {"b", 2}, {"a", 2});
    assert_int_equal(report.problems, 1);
    assert_problem(
        report, "line 5: seq 2 is delivered for the first time behind seq 3 (line 3); tenant default, source "
                "stripe, key K (lane a, epoch e1)");
}

static void other_lanes_and_epochs_do_not_compare(void **state)
{
    (void)state;
    assert_in_order(PLAY({"a", 9}, {"b", 1}, {"a", 1, .epoch = "e2"}, {"a", 10}));
    assert_in_order(PLAY({NULL, 9}, {NULL, 1}));
    assert_int_equal(PLAY({NULL, 9}, {NULL, 1}).unordered, 2);
}

static void failed_attempts_are_no_deliveries(void **state)
{
    (void)state;
    struct order_report report = PLAY({"a", 1}, {"a", 2, 503}, {"a", 2, 500, .previous_seq = 1},
                                      {"a", 2, .previous_seq = 1}, {"a", 3});
    assert_in_order(report);
    assert_int_equal(report.failed, 2);
    assert_int_equal(report.first, 3);
    /* One that was given up on leaves a hole; coming back later without saying so is an inversion. */
    assert_in_order(PLAY({"a", 1}, {"a", 2, 410}, {"a", 3}));
    assert_problem(PLAY({"a", 1}, {"a", 2, 410}, {"a", 3}, {"a", 2}),
                   "seq 2 is delivered for the first time behind");
}

static void late_ones_say_so(void **state)
{
    (void)state;
    struct order_report report =
        PLAY({"a", 1}, {"a", 3}, {"a", 2, .late = true}, {"a", 4, .previous_seq = 2});
    assert_in_order(report);
    assert_int_equal(report.late, 1);
    /* One late delivery does not excuse the next. */
    assert_problem(PLAY({"a", 1}, {"a", 5}, {"a", 2, .late = true}, {"a", 3}), "seq 3");
}

static void a_crash_repeats_but_does_not_invert(void **state)
{
    (void)state;
    struct order_report report = PLAY({"a", 5}, {"a", 6}, {"a", 7}, {"a", 5}, {"a", 6}, {"a", 7}, {"a", 8});
    assert_in_order(report);
    assert_int_equal(report.repeats, 3);
    assert_int_equal(report.first, 4);
}

static void replays_ascend_among_themselves(void **state)
{
    (void)state;
    struct order_report report =
        PLAY({"a", 1}, {"a", 2}, {"a", 3}, {"a", 1, .replay = "r1"}, {"a", 2, .replay = "r1"}, {"a", 4});
    assert_in_order(report);
    assert_int_equal(report.replays, 2);
    assert_problem(PLAY({"a", 3}, {"a", 2, .replay = "r1"}, {"a", 1, .replay = "r1"}),
                   "replay r1 delivers seq 1 behind seq 2");
    assert_in_order(PLAY({"a", 3}, {"a", 2, .replay = "r1"}, {"a", 1, .replay = "r2"}));
    assert_in_order(PLAY({"a", 1}, {"a", 2}, {"a", 1, .replay = "r1"}, {"a", 2, .replay = "r1"}, /* killed */
                         {"a", 1, .replay = "r1"}, {"a", 2, .replay = "r1"}));
}

static void the_previous_one_was_seen(void **state)
{
    (void)state;
    assert_problem(PLAY({"a", 1}, {"a", 4, .previous_seq = 3}),
                   "seq 4 says that 3 was the delivery before it");
    /* A log that begins in the middle knows nothing of what was before. */
    assert_in_order(PLAY({"a", 8, .previous_seq = 7}, {"a", 9, .previous_seq = 8}));
    /* Our 200 to seq 2 came too late for the gateway, which then gave up on it. */
    struct order_report report = PLAY({"a", 1}, {"a", 2}, {"a", 2, 410}, {"a", 3, .previous_seq = 1});
    assert_in_order(report);
    assert_int_equal(report.previous_fits, 1);
    /* It tries 2 again, and still names the one before. */
    report = PLAY({"a", 1}, {"a", 2}, {"a", 2, .previous_seq = 1});
    assert_in_order(report);
    assert_int_equal(report.previous_right, 1);
}

static void two_of_one_lane_at_once(void **state)
{
    (void)state;
    assert_problem(PLAY({"a", 1, 200, 1000, 1050}, {"a", 2, 200, 1049, 1060}),
                   "line 3: seq 2 began 1 ms before seq 1 (line 2) had its answer");
    assert_problem(PLAY({"a", 1, 503, 1000, 1050}, {"a", 2, 200, 1020, 1060}), "two of one lane at once");
    assert_in_order(PLAY({"a", 1, 200, 1000, 1050}, {"a", 2, 200, 1050, 1060}));
    assert_in_order(PLAY({"a", 1, 200, 1000, 1050}, {"b", 2, 200, 1020, 1060}));
    /* A long one hides behind a short one that ended before it. */
    assert_problem(PLAY({"a", 2, 200, 1010, 1020}, {"a", 3, 200, 1030, 1040}, {"a", 1, 200, 1000, 2000}),
                   "seq 2 began 990 ms before seq 1");
}

/* Lines are written when an attempt ends; what counts is when it began. */
static void an_attempt_that_was_given_up_on_may_end_late(void **state)
{
    (void)state;
    struct order_report report =
        PLAY({"a", 5, 503, 1500, 1510}, {"a", 5, 200, 1600, 1610}, {"a", 6, 200, 1620, 1630},
             {"a", 5, 200, 1000, 9000}, {"a", 7, 200, 9100, 9200});
    assert_in_order(report);
    assert_int_equal(report.cut_off, 1);
    assert_int_equal(report.repeats, 1);
    assert_int_equal(report.first, 3);
}

static void a_log_with_holes_proves_nothing(void **state)
{
    (void)state;
    static const char *const bad[] = {"{\"event\":\"deliv", "nonsense", "[]",
                                      "{\"lane\":\"a\",\"status\":200}",
                                      /* whole, but of another log: the gateway's own, or anybody's */
                                      "{\"event\":\"delivery\",\"seq\":1,\"key\":\"a\"}", "{}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct order_check *check = order_check_new();
        struct order_report report;
        order_check_line(check, bytes_str(bad[i]));
        order_check_line(check, BYTES(""));
        order_check_finish(check, &report);
        assert_problem(report, "line 1: ");
        order_check_free(check);
    }
}

static void an_empty_log_is_in_order(void **state)
{
    (void)state;
    struct order_report report = play(NULL, 0);
    assert_in_order(report);
    assert_int_equal(report.attempts, 0);
    assert_int_equal(report.lanes, 0);
}

static void many_lanes(void **state)
{
    (void)state;
    enum { LANES = 500, EACH = 20 };
    struct order_check *check = order_check_new();
    for (int round = 0; round < EACH; round++) {
        for (int lane = 0; lane < LANES; lane++) {
            char line[256];
            bool turned = lane == 77 && (round == 10 || round == 11);
            int seq = (turned ? 21 - round : round) * LANES + lane + 1;
            int len = snprintf(line, sizeof line,
                               "{\"lane\":\"%d\",\"epoch\":\"e\",\"seq\":%d,\"status\":200}", lane, seq);
            order_check_line(check, bytes_of(line, (size_t)len));
        }
    }
    struct order_report report;
    order_check_finish(check, &report);
    assert_int_equal(report.lanes, LANES);
    assert_int_equal(report.problems, 1);
    assert_problem(report, "(lane 77, epoch e)");
    order_check_free(check);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_lanes_in_order),
        cmocka_unit_test(an_inversion_is_named_with_its_lines),
        cmocka_unit_test(other_lanes_and_epochs_do_not_compare),
        cmocka_unit_test(failed_attempts_are_no_deliveries),
        cmocka_unit_test(late_ones_say_so),
        cmocka_unit_test(a_crash_repeats_but_does_not_invert),
        cmocka_unit_test(replays_ascend_among_themselves),
        cmocka_unit_test(the_previous_one_was_seen),
        cmocka_unit_test(two_of_one_lane_at_once),
        cmocka_unit_test(an_attempt_that_was_given_up_on_may_end_late),
        cmocka_unit_test(a_log_with_holes_proves_nothing),
        cmocka_unit_test(an_empty_log_is_in_order),
        cmocka_unit_test(many_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
