/* The client against a real HTTP server that plays the gateway: what it sends, what it makes of the answers,
 * and the exit code of each. What it says on stderr is read too: it is the only help that an operator gets.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/client.h"
#include "http/http.h"

static struct http_server *server;
static char url[64];
static const struct cli_verb verb = {.name = "test", .summary = "", .help = ""};

/* What the gateway answers next, and what it was asked last: of both threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int next_status;
static const char *next_body;
static char last_target[512], last_token[64];

static void will_answer(int status, const char *body)
{
    pthread_mutex_lock(&lock);
    next_status = status;
    next_body = body;
    pthread_mutex_unlock(&lock);
}

static void was_asked(const char *target, const char *token)
{
    pthread_mutex_lock(&lock);
    assert_string_equal(target, last_target);
    assert_string_equal(token, last_token);
    pthread_mutex_unlock(&lock);
}

static void answer(const struct http_request *request, int code, struct bytes text)
{
    http_answer(request->exchange, &(struct http_answer){.status = code, .body = text});
}

/* /list has seven entries, at most three a page. */
static void answer_page(const struct http_request *request)
{
    char query[256], page[256];
    snprintf(query, sizeof query, "%.*s", BYTES_ARG(request->query));
    const char *cursor = strstr(query, "cursor="), *limit_text = strstr(query, "limit=");
    int at = cursor ? atoi(cursor + 7) : 0, limit = limit_text ? atoi(limit_text + 6) : 3;
    int end = at + (limit < 3 ? limit : 3), len = snprintf(page, sizeof page, "{\"things\":[");
    for (int i = at; i < end && i < 7; i++)
        len += snprintf(page + len, sizeof page - (size_t)len, "%s%d", i > at ? "," : "", i);
    if (end < 7)
        snprintf(page + len, sizeof page - (size_t)len, "],\"total\":7,\"next_cursor\":\"%d\"}", end);
    else
        snprintf(page + len, sizeof page - (size_t)len, "],\"total\":7,\"next_cursor\":null}");
    answer(request, 200, bytes_str(page));
}

static void remember(const struct http_request *request)
{
    snprintf(last_target, sizeof last_target, "%.*s", BYTES_ARG(request->target));
    last_token[0] = 0;
    for (size_t i = 0; i < request->header_count; i++)
        if (bytes_eq_nocase(request->headers[i].name, BYTES("authorization")))
            snprintf(last_token, sizeof last_token, "%.*s", BYTES_ARG(request->headers[i].value));
}

static void play_gateway(void *ctx, const struct http_request *request)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    remember(request);
    if (bytes_eq(request->path, BYTES("/list")))
        answer_page(request);
    else
        answer(request, next_status, bytes_str(next_body));
    pthread_mutex_unlock(&lock);
}

static int start(void **state)
{
    (void)state;
    static const char *const listen[] = {"127.0.0.1:0"};
    const struct http_options options = {.listen = listen,
                                         .listen_count = 1,
                                         .threads = 1,
                                         .name = "played",
                                         .max_body_bytes = 1 << 20,
                                         .max_buffered_bytes = 8 << 20,
                                         .header_timeout_ms = 10000,
                                         .body_timeout_ms = 10000,
                                         .idle_timeout_ms = 10000,
                                         .max_connections = 10,
                                         .handler = play_gateway};
    struct error err = {""};
    if (http_open(&options, &server, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    snprintf(url, sizeof url, "http://%s", http_address(server, 0));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    http_close(server);
    return 0;
}

static int clean_environment(void **state)
{
    (void)state;
    unsetenv("LANEGATE_ADMIN");
    unsetenv("LANEGATE_TOKEN");
    return 0;
}

/* stderr into a file, for as long as something is said. */
static FILE *said;
static int saved_stderr;

static void listen_to_stderr(void)
{
    said = tmpfile();
    assert_non_null(said);
    fflush(stderr);
    saved_stderr = dup(STDERR_FILENO);
    assert_true(dup2(fileno(said), STDERR_FILENO) >= 0);
}

static const char *what_was_said(void)
{
    static char text[2048];
    fflush(stderr);
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    rewind(said);
    text[fread(text, 1, sizeof text - 1, said)] = 0;
    fclose(said);
    return text;
}

static struct client *open_client(void)
{
    struct client *client = NULL;
    assert_int_equal(CLI_OK, client_open(&verb, &(struct client_where){.admin = url}, &client));
    return client;
}

/* Asks once while the gateway answers like that; the exit code, and a part of what is said. */
static void answered(int code, const char *text, int expected, const char *part)
{
    struct client *client = open_client();
    json_t *json = NULL;
    will_answer(code, text);
    listen_to_stderr();
    int exit_code = client_get(client, "/v1/x", &json);
    const char *words = what_was_said();
    if (exit_code != expected || !strstr(words, part))
        fail_msg("%d %s: exit %d, said: %s", code, text, exit_code, words);
    if (exit_code == CLI_OK)
        json_decref(json);
    client_close(client);
}

static void asks_and_reads(void **state)
{
    (void)state;
    struct client *client = open_client();
    json_t *json;
    will_answer(200, "{\"a\":[1,2]}");
    assert_int_equal(CLI_OK, client_get(client, "/v1/x?y=%20", &json));
    was_asked("/v1/x?y=%20", "");
    assert_int_equal(2, json_array_size(json_object_get(json, "a")));
    json_decref(json);
    client_close(client);
}

static void sends_the_token(void **state)
{
    (void)state;
    setenv("LANEGATE_TOKEN", "t0ken", 1);
    answered(200, "{}", CLI_OK, "");
    was_asked("/v1/x", "Bearer t0ken");
}

static void a_token_that_would_break_the_header_is_refused(void **state)
{
    (void)state;
    struct client *client = NULL;
    setenv("LANEGATE_TOKEN", "t0ken\r\nX-Other: 1", 1);
    listen_to_stderr();
    assert_int_equal(CLI_USAGE, client_open(&verb, &(struct client_where){.admin = url}, &client));
    assert_non_null(strstr(what_was_said(), "LANEGATE_TOKEN"));
}

static void the_environment_names_the_gateway(void **state)
{
    (void)state;
    struct client *client = NULL;
    json_t *json = NULL;
    setenv("LANEGATE_ADMIN", url, 1);
    assert_int_equal(CLI_OK, client_open(&verb, &(struct client_where){0}, &client));
    will_answer(200, "{}");
    assert_int_equal(CLI_OK, client_get(client, "/env", &json));
    was_asked("/env", "");
    json_decref(json);
    client_close(client);
}

static void a_url_that_is_none_is_a_usage_error(void **state)
{
    (void)state;
    struct client *client = NULL;
    listen_to_stderr();
    assert_int_equal(CLI_USAGE, client_open(&verb, &(struct client_where){.admin = "ftp://x"}, &client));
    assert_non_null(strstr(what_was_said(), "ftp://x"));
    setenv("LANEGATE_ADMIN", "gate way", 1);
    listen_to_stderr();
    assert_int_equal(CLI_USAGE, client_open(&verb, &(struct client_where){0}, &client));
    assert_non_null(strstr(what_was_said(), "LANEGATE_ADMIN"));
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

static void nobody_there_is_69(void **state)
{
    (void)state;
    struct client *client = NULL;
    json_t *json = NULL;
    assert_int_equal(CLI_OK,
                     client_open(&verb, &(struct client_where){.admin = "http://127.0.0.1:1"}, &client));
    listen_to_stderr();
    assert_int_equal(CLI_UNREACHABLE, client_get(client, "/health", &json));
    const char *words = what_was_said();
    assert_non_null(strstr(words, "http://127.0.0.1:1"));
    assert_non_null(strstr(words, "--admin"));
    client_close(client);
}

static void bytes_come_as_they_are(void **state)
{
    (void)state;
    struct client *client = open_client();
    struct buf out = {0};
    will_answer(200, "not json \xff");
    assert_int_equal(CLI_OK, client_get_bytes(client, "/body", &out));
    assert_string_equal("not json \xff", out.at);
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

static void a_list_is_gathered_page_by_page(void **state)
{
    (void)state;
    lists(100, NULL, "{\"things\":[0,1,2,3,4,5,6],\"total\":7,\"next_cursor\":null}");
    lists(4, NULL, "{\"things\":[0,1,2,3],\"total\":7,\"next_cursor\":\"4\"}");
    lists(2, "5", "{\"things\":[5,6],\"total\":7,\"next_cursor\":null}");
    lists(5000, "6", "{\"things\":[6],\"total\":7,\"next_cursor\":null}");
    was_asked("/list?x=1&limit=1000&cursor=6", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(asks_and_reads, clean_environment),
        cmocka_unit_test_setup(sends_the_token, clean_environment),
        cmocka_unit_test_setup(a_token_that_would_break_the_header_is_refused, clean_environment),
        cmocka_unit_test_setup(the_environment_names_the_gateway, clean_environment),
        cmocka_unit_test_setup(a_url_that_is_none_is_a_usage_error, clean_environment),
        cmocka_unit_test_setup(every_refusal_says_what_to_do, clean_environment),
        cmocka_unit_test_setup(another_program_on_the_port_is_told_apart, clean_environment),
        cmocka_unit_test_setup(nobody_there_is_69, clean_environment),
        cmocka_unit_test_setup(bytes_come_as_they_are, clean_environment),
        cmocka_unit_test_setup(a_list_is_gathered_page_by_page, clean_environment),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
