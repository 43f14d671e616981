/* With tokens: who has none learns nothing, and each scope opens what it should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "house.h"
#include "util/digest.h"

static struct house house;
static char id[UUID_TEXT];
static uint8_t reader[SHA256_SIZE], payload[SHA256_SIZE], operator[SHA256_SIZE];
static struct admin_token tokens[3];

static int move_in(void **state)
{
    (void)state;
    sha256(&BYTES("read-me"), 1, reader);
    sha256(&BYTES("read-all"), 1, payload);
    sha256(&BYTES("act"), 1, operator);
    tokens[0] = (struct admin_token){bytes_of(reader, sizeof reader), "reader", ADMIN_SCOPE_READ};
    tokens[1] = (struct admin_token){bytes_of(payload, sizeof payload), "all",
                                     ADMIN_SCOPE_READ | ADMIN_SCOPE_PAYLOAD};
    tokens[2] = (struct admin_token){bytes_of(operator, sizeof operator), "operator", ADMIN_SCOPE_OPERATE};
    house_open(&house, tokens, 3);
    house_take(&house, BYTES("a"), BYTES("secret body"), id);
    return 0;
}

static int move_out(void **state)
{
    (void)state;
    house_close(&house);
    return 0;
}

static const char *target_of(const char *behind)
{
    static char target[128];
    snprintf(target, sizeof target, "/v1/hooks/%s%s", id, behind);
    return target;
}

static void answers(const char *target, const char *headers, int status)
{
    struct house_answer answer;
    house_ask(&house, "GET", target, headers, &answer);
    if (answer.status != status)
        fail_msg("%s: %d %s", target, answer.status, answer.body.at ? answer.body.at : "");
    house_answer_free(&answer);
}

static void health_is_open_to_everybody(void **state)
{
    (void)state;
    answers("/health", NULL, 200);
    answers("/ready", NULL, 200);
    answers("/health", "Authorization: Bearer wrong\r\n", 200);
}

static void without_a_known_token_nothing_is_said(void **state)
{
    (void)state;
    struct house_answer answer;
    house_ask(&house, "GET", "/v1/lanes", NULL, &answer);
    assert_int_equal(401, answer.status);
    assert_string_equal("unauthorized", json_string_value(json_object_get(answer.json, "error")));
    assert_true(house_answer_has(&answer, "www-authenticate: Bearer\r\n"));
    house_answer_free(&answer);

    answers("/metrics", NULL, 401);
    answers("/v1/lanes", "Authorization: Bearer wrong\r\n", 401);
    answers("/v1/lanes", "Authorization: Basic read-me\r\n", 401);
    answers("/v1/lanes?colour=red", NULL, 401);
    answers("/v1/nothing", NULL, 401);
    answers(target_of("/body"), NULL, 401);
    /* Two of them: which one would count? */
    answers("/v1/lanes", "Authorization: Bearer read-me\r\nAuthorization: Bearer read-me\r\n", 401);
    answers("/v1/lanes", "Authorization: Bearer read-me\r\n", 200); /* the control */
}

static void a_scope_that_is_lacking_is_named(void **state)
{
    (void)state;
    struct house_answer answer;
    house_ask(&house, "GET", target_of("/body"), "Authorization: Bearer read-me\r\n", &answer);
    assert_int_equal(403, answer.status);
    assert_string_equal("forbidden", json_string_value(json_object_get(answer.json, "error")));
    assert_string_equal("payload", json_string_value(json_object_get(answer.json, "scope")));
    house_answer_free(&answer);
    answers("/v1/lanes", "Authorization: Bearer act\r\n", 403);
    answers("/v1/nothing", "Authorization: Bearer act\r\n", 404);

    house_ask(&house, "GET", target_of("/body"), "Authorization: Bearer read-all\r\n", &answer);
    assert_int_equal(200, answer.status);
    assert_string_equal("secret body", answer.body.at);
    house_answer_free(&answer);
}

static void credentials_of_providers_are_payload(void **state)
{
    (void)state;
    struct house_answer answer;
    house_ask(&house, "GET", target_of(""), "Authorization: Bearer read-me\r\n", &answer);
    assert_int_equal(200, answer.status);
    assert_non_null(strstr(answer.body.at, "[\"X-Entity-Id\",\"as sent\"]"));
    assert_non_null(strstr(answer.body.at, "[\"Authorization\",null]"));
    house_answer_free(&answer);

    house_ask(&house, "GET", target_of(""), "Authorization: Bearer read-all\r\n", &answer);
    assert_non_null(strstr(answer.body.at, "[\"Authorization\",\"Bearer provider-secret\"]"));
    house_answer_free(&answer);
}

/* A token is what keeps strange pages out; the name of the host is then the operator's own. */
static void any_host_will_do(void **state)
{
    (void)state;
    answers("/v1/lanes", "Host: gate.example\r\nAuthorization: Bearer read-me\r\n", 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(health_is_open_to_everybody),
        cmocka_unit_test(without_a_known_token_nothing_is_said),
        cmocka_unit_test(a_scope_that_is_lacking_is_named),
        cmocka_unit_test(credentials_of_providers_are_payload),
        cmocka_unit_test(any_host_will_do),
    };
    return cmocka_run_group_tests(tests, move_in, move_out);
}
