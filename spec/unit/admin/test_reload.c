/* POST /v1/reload: what the gateway says of it, as an answer. And rules that change between two requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <unistd.h>

#include "house.h"
#include "util/digest.h"

static struct house house;

static int move_in(void **state)
{
    (void)state;
    house_open(&house, NULL, 0);
    return 0;
}

static int move_out(void **state)
{
    (void)state;
    house_close(&house);
    return 0;
}

static void answers(const struct admin_reloaded *result, int status, const char *body)
{
    struct house_answer answer;
    house.reloaded = *result;
    house_ask(&house, "POST", "/v1/reload", NULL, &answer);
    assert_int_equal(answer.status, status);
    assert_string_equal(answer.body.at, body);
    house_answer_free(&answer);
}

static void each_outcome_has_its_answer(void **state)
{
    (void)state;
    static const char *const paths[] = {"http.listen", "store.max_batch"};
    const struct bytes faults = BYTES("config.lua:1: a: \"x\"\nconfig.lua:2: b\n");
    answers(&(struct admin_reloaded){.what = ADMIN_RELOADED, .generation = 2}, 200,
            "{\"reloaded\":true,\"generation\":2,\"changed\":[]}");
    answers(
        &(struct admin_reloaded){
            .what = ADMIN_RELOADED, .generation = 3, .changed = paths, .changed_count = 2},
        200, "{\"reloaded\":true,\"generation\":3,\"changed\":[\"http.listen\",\"store.max_batch\"]}");
    answers(&(struct admin_reloaded){.what = ADMIN_RELOAD_BAD_CONFIG, .generation = 3, .faults = faults}, 400,
            "{\"error\":\"bad_config\",\"generation\":3,"
            "\"faults\":[\"config.lua:1: a: \\\"x\\\"\",\"config.lua:2: b\"]}");
    answers(
        &(struct admin_reloaded){.what = ADMIN_RELOAD_HOOKS_OWED, .generation = 3, .faults = BYTES("f: x\n")},
        409, "{\"error\":\"hooks_owed\",\"generation\":3,\"faults\":[\"f: x\"]}");
    answers(&(struct admin_reloaded){.what = ADMIN_RELOAD_NEEDS_RESTART,
                                     .generation = 3,
                                     .changed = paths,
                                     .changed_count = 1,
                                     .faults = BYTES("f: x\n")},
            409,
            "{\"error\":\"needs_restart\",\"generation\":3,\"needs_restart\":[\"http.listen\"],"
            "\"faults\":[\"f: x\"]}");
    answers(&(struct admin_reloaded){.what = ADMIN_RELOAD_FAILED, .generation = 3, .faults = BYTES("f: x\n")},
            503, "{\"error\":\"reload_failed\",\"generation\":3,\"faults\":[\"f: x\"]}");
    answers(&(struct admin_reloaded){.what = ADMIN_RELOAD_BUSY}, 503, "{\"error\":\"busy\"}");
    answers(&(struct admin_reloaded){.what = ADMIN_RELOAD_DRAINING}, 503, "{\"error\":\"draining\"}");
}

static void a_reload_leaves_a_line_with_its_reason(void **state)
{
    (void)state;
    struct house_answer answer;
    house.reloaded = (struct admin_reloaded){.what = ADMIN_RELOADED, .generation = 2, .changed_count = 0};
    house_ask(&house, "POST", "/v1/reload?reason=rotated", NULL, &answer);
    assert_int_equal(answer.status, 200);
    house_answer_free(&answer);
    json_t *audit = house_get(&house, "/v1/audit?what=config.reload&limit=1");
    const json_t *line = json_array_get(json_object_get(audit, "lines"), 0);
    assert_string_equal(json_string_value(json_object_get(line, "reason")), "rotated");
    json_decref(audit);
}

static void released(void *of)
{
    ++*(atomic_int *)of;
}

static void the_next_request_goes_by_new_rules(void **state)
{
    (void)state;
    static atomic_int gone;
    uint8_t hash[SHA256_SIZE];
    struct house_answer answer;
    sha256(&BYTES("let-me"), 1, hash);
    const struct admin_token token = {bytes_of(hash, sizeof hash), "reader", ADMIN_SCOPE_READ};
    admin_set(house.admin, &(struct admin_rules){.tokens = &token,
                                                 .token_count = 1,
                                                 .sinks = house.admin_sinks,
                                                 .sink_count = 1,
                                                 .of = &gone,
                                                 .released = released});
    house_ask(&house, "GET", "/v1/sinks", NULL, &answer);
    assert_int_equal(answer.status, 401);
    house_answer_free(&answer);
    house_ask(&house, "GET", "/v1/sinks", "Host: x\r\nAuthorization: Bearer let-me\r\n", &answer);
    assert_int_equal(answer.status, 200);
    assert_int_equal(json_array_size(json_object_get(answer.json, "sinks")), 1);
    house_answer_free(&answer);
    assert_int_equal(gone, 0);
    admin_set(house.admin, &(struct admin_rules){.sinks = house.admin_sinks, .sink_count = HOUSE_SINKS});
    while (gone == 0) /* the loop gives back what the last request held behind its answer */
        usleep(1000);
    assert_int_equal(gone, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_outcome_has_its_answer),
        cmocka_unit_test(a_reload_leaves_a_line_with_its_reason),
        cmocka_unit_test(the_next_request_goes_by_new_rules),
    };
    return cmocka_run_group_tests(tests, move_in, move_out);
}
