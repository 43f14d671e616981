/* What people do through the API: dead letters replayed and discarded, a hook erased, and the lines that all
 * of it leaves behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "house.h"
#include "util/clock.h"

static struct house house;
static char ids[3][UUID_TEXT];

static int move_in(void **state)
{
    (void)state;
    house_open(&house, NULL, 0);
    house_take(&house, BYTES("a"), BYTES("one"), ids[0]);
    house_take(&house, BYTES("a"), BYTES("two"), ids[1]);
    house_take(&house, BYTES("b"), BYTES("three"), ids[2]);
    house_wait_total(&house, "/v1/dlq?sink=dead", 3);
    return 0;
}

static int move_out(void **state)
{
    (void)state;
    house_close(&house);
    return 0;
}

static json_t *ask(const char *method, const char *target, int status)
{
    struct house_answer answer;
    house_ask(&house, method, target, NULL, &answer);
    if (answer.status != status)
        fail_msg("%s %s: %d %s", method, target, answer.status, answer.body.at ? answer.body.at : "");
    json_t *json = json_incref(answer.json);
    house_answer_free(&answer);
    return json;
}

static long long number(const json_t *object, const char *name)
{
    return json_is_integer(json_object_get(object, name)) ? json_integer_value(json_object_get(object, name))
                                                          : -1;
}

static const char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value ? value : "(none)";
}

static json_t *first(const json_t *answer, const char *array)
{
    return json_array_get(json_object_get(answer, array), 0);
}

static void refuses(const char *method, const char *target, int status, const char *error)
{
    json_t *answer = ask(method, target, status);
    assert_string_equal(error, text(answer, "error"));
    json_decref(answer);
}

static void acts(const char *target, long long matched, long long done)
{
    json_t *answer = ask("POST", target, 200);
    if (number(answer, "matched") != matched || number(answer, "done") != done)
        fail_msg("%s: matched %lld, done %lld", target, number(answer, "matched"), number(answer, "done"));
    json_decref(answer);
}

static void failures_are_shown(void **state)
{
    (void)state;
    char target[96];
    snprintf(target, sizeof target, "/v1/hooks/%s/attempts", ids[0]);
    json_t *answer = house_get(&house, target);
    bool found = false;
    size_t i;
    json_t *attempt;
    json_array_foreach(json_object_get(answer, "attempts"), i, attempt)
    {
        if (strcmp(text(attempt, "sink"), "dead") != 0)
            continue;
        found = true;
        assert_int_equal(1, number(attempt, "attempt"));
        assert_int_equal(0, number(attempt, "http_status"));
        assert_true(number(attempt, "at") > 0);
        assert_true(strlen(text(attempt, "reason")) > 6);
        assert_true(json_is_null(json_object_get(attempt, "response"))); /* nobody answered */
        assert_true(json_is_null(json_object_get(attempt, "response_encoding")));
    }
    assert_true(found);
    json_decref(answer);
    refuses("GET", "/v1/hooks/01890a5d-ac96-774b-bcce-b302099a8057/attempts", 404, "not_found");
}

static void a_dry_run_changes_nothing(void **state)
{
    (void)state;
    json_t *answer = ask("POST", "/v1/dlq/replay?source=demo&sink=dead&key=a&dry_run=true", 200);
    assert_int_equal(2, number(answer, "matched"));
    assert_int_equal(0, number(answer, "done"));
    assert_int_equal(0, number(answer, "late"));
    assert_int_equal(0, number(answer, "delivered_after"));
    json_decref(answer);
    answer = ask("POST", "/v1/dlq/discard?dry_run=true", 200); /* a count needs no filter */
    assert_int_equal(3, number(answer, "matched"));
    assert_null(json_object_get(answer, "late"));
    json_decref(answer);
    house_wait_total(&house, "/v1/dlq", 3);
    answer = house_get(&house, "/v1/audit");
    assert_int_equal(0, json_array_size(json_object_get(answer, "lines")));
    json_decref(answer);
}

static void filters_are_judged(void **state)
{
    (void)state;
    refuses("POST", "/v1/dlq/discard", 400, "bad_filter");
    refuses("POST", "/v1/dlq/discard?reason=because", 400, "bad_filter");
    refuses("POST", "/v1/dlq/discard?all=false", 400, "bad_filter");
    refuses("POST", "/v1/dlq/replay?limit=5", 400, "unknown_filter");
    refuses("POST", "/v1/dlq/replay?hook=nonsense", 400, "bad_filter");
    refuses("POST", "/v1/dlq/replay?key=a", 400, "bad_filter");
    refuses("POST", "/v1/dlq/replay?hook=01890a5d-ac96-774b-bcce-b302099a8057", 404, "not_found");
    refuses("GET", "/v1/dlq/replay?all=true", 405, "method_not_allowed");
    refuses("POST", "/v1/dlq?all=true", 405, "method_not_allowed");
    refuses("POST", "/v1/dlq/discard?class=nothing-of-the-kind", 400, "bad_filter");
    acts("/v1/dlq/discard?class=source_gone", 0, 0);
    house_wait_total(&house, "/v1/dlq", 3);
}

/* Nobody answers yet: what is replayed dies again, with a failure more. */
static void a_replay_is_owed_again(void **state)
{
    (void)state;
    char target[128];
    snprintf(target, sizeof target, "/v1/dlq/replay?hook=%s&sink=dead&reason=once%%20more", ids[0]);
    acts(target, 1, 1);
    snprintf(target, sizeof target, "/v1/hooks/%s/attempts", ids[0]);
    int64_t until_ms = clock_mono_ms() + 10000;
    for (int tries = 0; tries < 2 && clock_mono_ms() < until_ms; usleep(1000)) {
        json_t *answer = house_get(&house, target), *attempt;
        size_t i;
        tries = 0;
        json_array_foreach(json_object_get(answer, "attempts"), i, attempt) tries +=
            strcmp(text(attempt, "sink"), "dead") == 0;
        json_decref(answer);
        if (tries == 2)
            break;
    }
    house_wait_total(&house, "/v1/dlq?sink=dead", 3);
    json_t *audit = house_get(&house, "/v1/audit?what=dlq.replay");
    json_t *line = first(audit, "lines");
    assert_string_equal("local", text(line, "who"));
    assert_string_equal("once more", text(line, "reason"));
    assert_non_null(strstr(text(line, "target"), "sink=dead hook="));
    assert_int_equal(1, number(line, "matched"));
    assert_int_equal(1, number(line, "done"));
    json_decref(audit);
}

static void a_discard_is_for_good(void **state)
{
    (void)state;
    acts("/v1/dlq/discard?source=demo&sink=dead&key=a", 2, 2);
    house_wait_total(&house, "/v1/dlq?sink=dead", 1);
    acts("/v1/dlq/discard?source=demo&sink=dead&key=a", 0, 0);
    acts("/v1/dlq/discard?all=true", 1, 1);
    house_wait_total(&house, "/v1/dlq", 0);
    char target[64];
    snprintf(target, sizeof target, "/v1/hooks/%s", ids[0]);
    json_t *hook = house_get(&house, target), *row;
    size_t i;
    json_array_foreach(json_object_get(hook, "rows"), i, row) if (strcmp(text(row, "sink"), "dead") == 0)
        assert_string_equal("discarded", text(row, "state"));
    json_decref(hook);
}

/* Its row for the sink that keeps trying may be under way at any moment. */
static void an_erased_hook_is_not_found(void **state)
{
    (void)state;
    char target[64];
    snprintf(target, sizeof target, "/v1/hooks/%s", ids[1]);
    struct house_answer answer;
    int status = 409;
    for (int64_t until_ms = clock_mono_ms() + 10000; status == 409 && clock_mono_ms() < until_ms;) {
        house_ask(&house, "DELETE", target, NULL, &answer);
        status = answer.status;
        house_answer_free(&answer);
    }
    assert_int_equal(200, status);
    refuses("GET", target, 404, "not_found");
    refuses("DELETE", target, 404, "not_found");
    refuses("DELETE", "/v1/hooks/nonsense", 404, "not_found");
    json_t *audit = house_get(&house, "/v1/audit?limit=1");
    assert_string_equal("hook.erase", text(first(audit, "lines"), "what"));
    assert_string_equal(ids[1], text(first(audit, "lines"), "target"));
    json_decref(audit);
}

static void audit_lines_go_on_from_a_cursor(void **state)
{
    (void)state;
    json_t *all = house_get(&house, "/v1/audit");
    size_t count = json_array_size(json_object_get(all, "lines"));
    assert_true(count >= 3);
    json_t *page = house_get(&house, "/v1/audit?limit=2");
    char target[128];
    snprintf(target, sizeof target, "/v1/audit?cursor=%s", text(page, "next_cursor"));
    json_t *rest = house_get(&house, target);
    assert_int_equal(count - 2, json_array_size(json_object_get(rest, "lines")));
    assert_true(json_is_null(json_object_get(rest, "next_cursor")));
    json_decref(rest);
    json_decref(page);
    json_decref(all);
    json_t *none = house_get(&house, "/v1/audit?who=somebody-else");
    assert_int_equal(0, json_array_size(json_object_get(none, "lines")));
    json_decref(none);
    refuses("GET", "/v1/audit?tenant=default", 400, "unknown_filter");
    refuses("GET", "/v1/audit?who=", 400, "bad_filter");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* In this order: each leaves behind what the next one finds. */
        cmocka_unit_test(failures_are_shown),
        cmocka_unit_test(a_dry_run_changes_nothing),
        cmocka_unit_test(filters_are_judged),
        cmocka_unit_test(a_replay_is_owed_again),
        cmocka_unit_test(a_discard_is_for_good),
        cmocka_unit_test(an_erased_hook_is_not_found),
        cmocka_unit_test(audit_lines_go_on_from_a_cursor),
    };
    return cmocka_run_group_tests(tests, move_in, move_out);
}
