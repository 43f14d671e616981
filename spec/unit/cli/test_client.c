/* The client against a played gateway: what it sends, what it makes of the answers, and the exit code of
 * each. What it says on stderr is read too: it is the only help that an operator gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/client.h"
#include "played.h"

static const struct cli_verb verb = {.name = "test", .summary = "", .help = ""};

static int reset(void **state)
{
    (void)state;
    played_reset();
    return 0;
}

static struct client *open_client(void)
{
    struct client *client = NULL;
    assert_int_equal(CLI_OK, client_open(&verb, &(struct client_where){.admin = played_url()}, &client));
    return client;
}

/* client_open with that; a usage error that says `part`. */
static void is_usage_error(const char *admin, const char *part)
{
    struct client *client = NULL;
    played_listen();
    int code = client_open(&verb, &(struct client_where){.admin = admin}, &client);
    const struct heard *heard = played_heard();
    assert_int_equal(CLI_USAGE, code);
    assert_non_null(strstr(heard->err, part));
}

/* Asks once while the gateway answers like that; the exit code, and a part of what is said. */
static void answered(int status, const char *body, int expected, const char *part)
{
    played_reset();
    played_on("/v1/x", status, bytes_str(body));
    struct client *client = open_client();
    json_t *json = NULL;
    played_listen();
    int code = client_get(client, "/v1/x", &json);
    const struct heard *heard = played_heard();
    if (code != expected || !strstr(heard->err, part))
        fail_msg("%d %s: exit %d, said: %s", status, body, code, heard->err);
    if (code == CLI_OK)
        json_decref(json);
    client_close(client);
}

static void asks_and_reads(void **state)
{
    (void)state;
    struct client *client = open_client();
    json_t *json;
    played_on("/v1/x?y=%20", 200, BYTES("{\"a\":[1,2]}"));
    assert_int_equal(CLI_OK, client_get(client, "/v1/x?y=%20", &json));
    played_was_asked("/v1/x?y=%20", "");
    assert_int_equal(2, json_array_size(json_object_get(json, "a")));
    json_decref(json);
    client_close(client);
}

static void sends_the_token(void **state)
{
    (void)state;
    setenv("LANEGATE_TOKEN", "t0ken", 1);
    struct client *client = open_client();
    json_t *json;
    played_on("/v1/x", 200, BYTES("{}"));
    assert_int_equal(CLI_OK, client_get(client, "/v1/x", &json));
    played_was_asked("/v1/x", "Bearer t0ken");
    json_decref(json);
    client_close(client);
}

static void a_token_that_would_break_the_header_is_refused(void **state)
{
    (void)state;
    setenv("LANEGATE_TOKEN", "t0ken\r\nX-Other: 1", 1);
    is_usage_error(played_url(), "LANEGATE_TOKEN");
}

static void the_environment_names_the_gateway(void **state)
{
    (void)state;
    struct client *client = NULL;
    json_t *json = NULL;
    setenv("LANEGATE_ADMIN", played_url(), 1);
    played_on("/env", 200, BYTES("{}"));
    assert_int_equal(CLI_OK, client_open(&verb, &(struct client_where){0}, &client));
    assert_int_equal(CLI_OK, client_get(client, "/env", &json));
    json_decref(json);
    client_close(client);
}

static void a_url_that_is_none_is_a_usage_error(void **state)
{
    (void)state;
    is_usage_error("ftp://x", "ftp://x");
    setenv("LANEGATE_ADMIN", "gate way", 1);
    is_usage_error(NULL, "LANEGATE_ADMIN");
}

static void every_refusal_says_what_to_do(void **state)
{
    (void)state;
    answered(400, "{\"error\":\"bad_filter\",\"filter\":\"state\",\"expected\":\"one of: ready\"}", CLI_USAGE,
             "state must be one of: ready");
    answered(401, "{\"error\":\"unauthorized\"}", CLI_FAILED, "LANEGATE_TOKEN");
    answered(403, "{\"error\":\"forbidden\",\"scope\":\"payload\"}", CLI_FAILED, "\"payload\"");
    answered(403, "{\"error\":\"host_denied\",\"expected\":\"a Host\"}", CLI_FAILED, "host_denied: a Host");
    answered(404, "{\"error\":\"not_found\",\"what\":\"hook\"}", CLI_FAILED, "no such hook");
    answered(503, "{\"error\":\"store_unavailable\"}", CLI_FAILED, "store_unavailable");
    answered(500, "{\"error\":\"store_corrupt\"}", CLI_FAILED, "500 store_corrupt");
}

static void another_program_on_the_port_is_told_apart(void **state)
{
    (void)state;
    answered(200, "<html>hello</html>", CLI_FAILED, "no gateway");
    answered(200, "[]", CLI_FAILED, "no gateway");
    answered(404, "not here", CLI_FAILED, "no gateway");
    answered(301, "", CLI_FAILED, "no gateway");
}

/* Such as the receiver of a drill, which answers 200 to everything. "no lanes" of it would be believed. */
static void an_answer_without_the_list_is_no_empty_list(void **state)
{
    (void)state;
    struct client *client = open_client();
    json_t *json = NULL;
    played_on("/list?limit=100", 200, BYTES("{\"ok\":true}"));
    played_listen();
    int code = client_list(client, "/list", "things", 100, NULL, &json);
    const struct heard *heard = played_heard();
    assert_int_equal(CLI_FAILED, code);
    assert_non_null(strstr(heard->err, "is no gateway's admin API"));
    client_close(client);
}

static void nobody_there_is_69(void **state)
{
    (void)state;
    struct client *client = NULL;
    json_t *json = NULL;
    assert_int_equal(CLI_OK,
                     client_open(&verb, &(struct client_where){.admin = "http://127.0.0.1:1"}, &client));
    played_listen();
    int code = client_get(client, "/health", &json);
    const struct heard *heard = played_heard();
    assert_int_equal(CLI_UNREACHABLE, code);
    assert_non_null(strstr(heard->err, "http://127.0.0.1:1"));
    assert_non_null(strstr(heard->err, "--admin"));
    client_close(client);
}

static void bytes_come_as_they_are(void **state)
{
    (void)state;
    struct client *client = open_client();
    struct buf out = {0};
    played_on("/body", 200, BYTES("not json \xff\0."));
    assert_int_equal(CLI_OK, client_get_bytes(client, "/body", &out));
    assert_true(bytes_eq(buf_bytes(&out), BYTES("not json \xff\0.")));
    buf_free(&out);
    client_close(client);
}

static void lists(int64_t limit, const char *cursor, const char *expected)
{
    struct client *client = open_client();
    json_t *json = NULL;
    assert_int_equal(CLI_OK, client_list(client, "/list?x=1", "things", limit, cursor, &json));
    char *text = json_dumps(json, JSON_COMPACT);
    assert_string_equal(expected, text);
    free(text);
    json_decref(json);
    client_close(client);
}

/* The gateway gives three a page, or fewer: a page may be empty and still have a next one. */
static void a_list_is_gathered_page_by_page(void **state)
{
    (void)state;
    played_on("/list?x=1&limit=100", 200, BYTES("{\"things\":[0,1,2],\"total\":5,\"next_cursor\":\"c3\"}"));
    played_on("/list?x=1&limit=97&cursor=c3", 200,
              BYTES("{\"things\":[],\"total\":5,\"next_cursor\":\"c4\"}"));
    played_on("/list?x=1&limit=97&cursor=c4", 200,
              BYTES("{\"things\":[3,4],\"total\":5,\"next_cursor\":null}"));
    lists(100, NULL, "{\"things\":[0,1,2,3,4],\"total\":5,\"next_cursor\":null}");
}

static void a_list_ends_at_its_limit_with_a_cursor(void **state)
{
    (void)state;
    played_on("/list?x=1&limit=2&cursor=c1", 200, BYTES("{\"things\":[1],\"next_cursor\":\"c2\"}"));
    played_on("/list?x=1&limit=1&cursor=c2", 200, BYTES("{\"things\":[2],\"next_cursor\":\"c3\"}"));
    lists(2, "c1", "{\"things\":[1,2],\"next_cursor\":\"c3\"}");
}

static void more_than_a_page_is_asked_for_in_pages(void **state)
{
    (void)state;
    played_on("/list?x=1&limit=1000", 200, BYTES("{\"things\":[1],\"next_cursor\":null}"));
    lists(5000, NULL, "{\"things\":[1],\"next_cursor\":null}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(asks_and_reads, reset),
        cmocka_unit_test_setup(sends_the_token, reset),
        cmocka_unit_test_setup(a_token_that_would_break_the_header_is_refused, reset),
        cmocka_unit_test_setup(the_environment_names_the_gateway, reset),
        cmocka_unit_test_setup(a_url_that_is_none_is_a_usage_error, reset),
        cmocka_unit_test_setup(every_refusal_says_what_to_do, reset),
        cmocka_unit_test_setup(another_program_on_the_port_is_told_apart, reset),
        cmocka_unit_test_setup(an_answer_without_the_list_is_no_empty_list, reset),
        cmocka_unit_test_setup(nobody_there_is_69, reset),
        cmocka_unit_test_setup(bytes_come_as_they_are, reset),
        cmocka_unit_test_setup(a_list_is_gathered_page_by_page, reset),
        cmocka_unit_test_setup(a_list_ends_at_its_limit_with_a_cursor, reset),
        cmocka_unit_test_setup(more_than_a_page_is_asked_for_in_pages, reset),
    };
    return cmocka_run_group_tests(tests, played_group_start, played_group_stop);
}
