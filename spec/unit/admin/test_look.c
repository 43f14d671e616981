/* The whole room over the wire, looking into rooms that are real: what is shown, filtered, paged and refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "house.h"

static struct house house;
static char ids[4][UUID_TEXT];

/* Lane "a" has two hooks, a key that must be encoded one, the keyless lane one. */
static int move_in(void **state)
{
    (void)state;
    house_open(&house, NULL, 0);
    house_take(&house, BYTES("a"), BYTES("one"), ids[0]);
    house_take(&house, BYTES("a"), BYTES("two"), ids[1]);
    house_take(&house, BYTES("50%/\xc3\xbc "), BYTES("three\0 with NUL"), ids[2]);
    house_take(&house, BYTES_NONE, BYTES(""), ids[3]);
    house_wait_total(&house, "/v1/lanes?sink=gone&state=retrying", 3);
    house_wait_total(&house, "/v1/dlq", 4);
    house_wait_total(&house, "/v1/lanes", 3); /* no snapshot from before the dead letters is shown any more */
    return 0;
}

static int move_out(void **state)
{
    (void)state;
    house_close(&house);
    return 0;
}

static const char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value ? value : "(none)";
}

static long long number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static bool is_null(const json_t *object, const char *name)
{
    return json_is_null(json_object_get(object, name));
}

static json_t *item(const json_t *answer, const char *array, size_t i)
{
    return json_array_get(json_object_get(answer, array), i);
}

static size_t count(const json_t *answer, const char *array)
{
    return json_array_size(json_object_get(answer, array));
}

static void refuses(const char *method, const char *target, const char *headers, int status,
                    const char *error)
{
    struct house_answer answer;
    house_ask(&house, method, target, headers, &answer);
    if (answer.status != status || strcmp(error, text(answer.json, "error")) != 0)
        fail_msg("%s: %d %s", target, answer.status, answer.body.at ? answer.body.at : "");
    house_answer_free(&answer);
}

static void health_and_readiness(void **state)
{
    (void)state;
    json_t *health = house_get(&house, "/health");
    assert_string_equal("ok", text(health, "status"));
    json_decref(health);
    json_t *ready = house_get(&house, "/ready");
    assert_string_equal("ready", text(ready, "status"));
    json_decref(ready);

    struct house_answer answer;
    house.reason = "draining";
    house_ask(&house, "GET", "/ready", NULL, &answer);
    house.reason = NULL;
    assert_int_equal(503, answer.status);
    assert_string_equal("not_ready", text(answer.json, "status"));
    assert_string_equal("draining", json_string_value(item(answer.json, "reasons", 0)));
    house_answer_free(&answer);
}

static void metrics_are_text_and_nothing_is_cached(void **state)
{
    (void)state;
    struct house_answer answer;
    house_ask(&house, "GET", "/metrics", NULL, &answer);
    assert_int_equal(200, answer.status);
    assert_true(house_answer_has(&answer, "content-type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    assert_true(house_answer_has(&answer, "cache-control: no-store\r\n"));
    assert_non_null(strstr(answer.body.at, "# TYPE lanegate_"));
    house_answer_free(&answer);
}

static void the_configuration_is_what_config_writes(void **state)
{
    (void)state;
    json_t *config = house_get(&house, "/v1/config");
    assert_string_equal("data", text(config, "data_dir"));
    json_decref(config);
}

static void every_sink_in_the_order_of_the_file(void **state)
{
    (void)state;
    json_t *answer = house_get(&house, "/v1/sinks");
    assert_int_equal(HOUSE_SINKS, count(answer, "sinks"));
    const json_t *log = item(answer, "sinks", HOUSE_LOG), *gone = item(answer, "sinks", HOUSE_GONE);
    assert_string_equal("log", text(log, "sink"));
    assert_true(json_is_false(json_object_get(log, "ordered")));
    assert_string_equal("demo", text(gone, "source"));
    assert_string_equal("http", text(gone, "type"));
    assert_true(json_is_true(json_object_get(gone, "ordered")));
    assert_string_equal("closed", text(gone, "breaker"));
    assert_int_equal(4, number(gone, "pending"));
    assert_true(number(gone, "oldest_at") > 0);
    assert_int_equal(4, number(item(answer, "sinks", HOUSE_DEAD), "dead"));
    json_decref(answer);
}

static void a_lane_says_what_it_waits_for(void **state)
{
    (void)state;
    json_t *answer = house_get(&house, "/v1/lanes?source=demo&sink=gone&key=a");
    assert_int_equal(1, number(answer, "total"));
    const json_t *lane = item(answer, "lanes", 0), *head = json_object_get(lane, "head");
    assert_string_equal("default", text(lane, "tenant"));
    assert_string_equal("demo", text(lane, "source"));
    assert_string_equal("gone", text(lane, "sink"));
    assert_string_equal("a", text(lane, "key"));
    assert_int_equal(32, strlen(text(lane, "lane")));
    assert_string_equal("retrying", text(lane, "state"));
    assert_int_equal(2, number(lane, "depth"));
    assert_true(number(lane, "oldest_at") > 0);
    assert_string_equal(ids[0], text(head, "id"));
    assert_true(number(head, "seq") > 0);
    assert_int_equal(1, number(head, "attempts"));
    assert_true(number(head, "due_at") > number(lane, "oldest_at"));
    assert_true(is_null(answer, "next_cursor"));
    json_decref(answer);
}

/* Outcomes are written within 50 ms; then the head says why it failed. */
static void a_lane_by_its_id_says_more(void **state)
{
    (void)state;
    assert_true(store_flush(house.store));
    json_t *list = house_get(&house, "/v1/lanes?sink=gone&key=a");
    char target[128];
    snprintf(target, sizeof target, "/v1/lanes/default/%s", text(item(list, "lanes", 0), "lane"));
    json_decref(list);

    json_t *lane = house_get(&house, target);
    const json_t *head = json_object_get(lane, "head");
    assert_string_equal("a", text(lane, "key"));
    assert_string_equal(ids[0], text(head, "id"));
    assert_true(strlen(text(head, "last_error")) > 6);
    assert_string_equal("transient", text(head, "class"));
    assert_true(number(head, "first_attempt_at") > 0);
    assert_int_equal(3, number(head, "size"));
    json_decref(lane);

    refuses("GET", "/v1/lanes/default/00112233445566778899aabbccddeeff", NULL, 404, "not_found");
    refuses("GET", "/v1/lanes/default/0011", NULL, 404, "not_found");
    target[strlen("/v1/lanes/")] = 'D'; /* another tenant */
    refuses("GET", target, NULL, 404, "not_found");
}

static void keys_are_shown_and_asked_for_percent_encoded(void **state)
{
    (void)state;
    json_t *odd = house_get(&house, "/v1/lanes?sink=gone&key=50%25/%C3%BC%20");
    assert_int_equal(1, count(odd, "lanes"));
    assert_string_equal("50%25/%C3%BC%20", text(item(odd, "lanes", 0), "key"));
    json_decref(odd);
    json_t *keyless = house_get(&house, "/v1/lanes?sink=gone&key=");
    assert_int_equal(1, count(keyless, "lanes"));
    assert_true(is_null(item(keyless, "lanes", 0), "key"));
    assert_string_equal(ids[3], text(json_object_get(item(keyless, "lanes", 0), "head"), "id"));
    json_decref(keyless);
}

static void lanes_are_filtered(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        int total;
    } rows[] = {
        {"/v1/lanes", 3},
        {"/v1/lanes?tenant=default", 3},
        {"/v1/lanes?tenant=nobody", 0},
        {"/v1/lanes?source=demo", 3},
        {"/v1/lanes?sink=dead", 0},
        {"/v1/lanes?state=held", 0},
        {"/v1/lanes?key=a", 1},
        {"/v1/lanes?key=a&state=ready", 0},
        {"/v1/lanes?key=a&sink=dead", 0},
        {"/v1/lanes?key=nobody", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *answer = house_get(&house, rows[i].target);
        if (number(answer, "total") != rows[i].total || (int)count(answer, "lanes") != rows[i].total)
            fail_msg("%s: %lld", rows[i].target, number(answer, "total"));
        json_decref(answer);
    }
}

static void lanes_are_sorted(void **state)
{
    (void)state;
    json_t *by_depth = house_get(&house, "/v1/lanes?sort=depth&limit=1");
    assert_int_equal(2, number(item(by_depth, "lanes", 0), "depth"));
    json_decref(by_depth);
    json_t *by_age = house_get(&house, "/v1/lanes?sort=age");
    assert_true(number(item(by_age, "lanes", 0), "oldest_at") <=
                number(item(by_age, "lanes", 1), "oldest_at"));
    assert_true(number(item(by_age, "lanes", 1), "oldest_at") <=
                number(item(by_age, "lanes", 2), "oldest_at"));
    json_decref(by_age);
}

/* Walks a list one entry a page; gives the ids met, joined, to compare with the list in one piece. */
static void walk(const char *path, const char *array, const char *member, struct buf *met)
{
    char target[256], cursor[64] = "";
    for (int page = 0; page < 20; page++) {
        snprintf(target, sizeof target, "%s?limit=1%s%s", path, *cursor ? "&cursor=" : "", cursor);
        json_t *answer = house_get(&house, target);
        assert_true(count(answer, array) <= 1);
        if (count(answer, array))
            buf_putf(met, "%s ", text(item(answer, array, 0), member));
        bool end = is_null(answer, "next_cursor");
        snprintf(cursor, sizeof cursor, "%s", text(answer, "next_cursor"));
        json_decref(answer);
        if (end)
            return;
    }
    fail_msg("%s never ends", path);
}

static void pages_together_are_the_list(void **state)
{
    (void)state;
    static const struct {
        const char *path, *array, *member;
    } lists[] = {{"/v1/lanes", "lanes", "lane"}, {"/v1/hooks", "hooks", "id"}, {"/v1/dlq", "entries", "id"}};
    for (size_t l = 0; l < 3; l++) {
        struct buf met = {0}, whole = {0};
        walk(lists[l].path, lists[l].array, lists[l].member, &met);
        json_t *answer = house_get(&house, lists[l].path);
        assert_true(count(answer, lists[l].array) >= 3);
        for (size_t i = 0; i < count(answer, lists[l].array); i++)
            buf_putf(&whole, "%s ", text(item(answer, lists[l].array, i), lists[l].member));
        assert_string_equal(whole.at, met.at);
        json_decref(answer);
        buf_free(&met);
        buf_free(&whole);
    }
}

static void hooks_newest_first_without_bodies(void **state)
{
    (void)state;
    struct house_answer answer;
    house_ask(&house, "GET", "/v1/hooks", NULL, &answer);
    assert_int_equal(4, count(answer.json, "hooks"));
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(ids[3 - i], text(item(answer.json, "hooks", i), "id"));
    const json_t *oldest = item(answer.json, "hooks", 3);
    assert_string_equal("default", text(oldest, "tenant"));
    assert_string_equal("demo", text(oldest, "source"));
    assert_int_equal(3, number(oldest, "size"));
    assert_int_equal(3, number(oldest, "rows"));
    assert_int_equal(1, number(oldest, "dead"));
    assert_null(strstr(answer.body.at, "three"));
    house_answer_free(&answer);
}

static void hooks_are_filtered(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        size_t count;
    } rows[] = {
        {"/v1/hooks?dedupe_key=a", 2},
        {"/v1/hooks?dedupe_key=nobody", 0},
        {"/v1/hooks?state=dead", 4},
        {"/v1/hooks?state=held", 0},
        {"/v1/hooks?tenant=nobody", 0},
        {"/v1/hooks?source=demo&since=2020-01-01T00:00:00Z", 4},
        {"/v1/hooks?until=2020-01-01T00:00:00Z", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *answer = house_get(&house, rows[i].target);
        if (count(answer, "hooks") != rows[i].count)
            fail_msg("%s: %zu", rows[i].target, count(answer, "hooks"));
        json_decref(answer);
    }
}

static void one_hook_with_its_envelope_and_rows(void **state)
{
    (void)state;
    char target[128];
    snprintf(target, sizeof target, "/v1/hooks/%s", ids[0]);
    json_t *hook = house_get(&house, target);
    assert_string_equal(ids[0], text(hook, "id"));
    assert_string_equal("POST", text(hook, "method"));
    assert_string_equal("/webhooks/demo", text(hook, "path"));
    assert_string_equal("x=1", text(hook, "query"));
    assert_string_equal("text/html", text(hook, "content_type"));
    assert_string_equal("skipped", text(hook, "verification"));
    assert_string_equal("a", text(hook, "dedupe_key"));
    assert_int_equal(3, number(hook, "size"));
    assert_null(json_object_get(hook, "body"));
    const json_t *header = item(hook, "headers", 0);
    assert_string_equal("X-Entity-Id", json_string_value(json_array_get(header, 0)));
    assert_string_equal("as sent", json_string_value(json_array_get(header, 1)));

    assert_int_equal(HOUSE_SINKS, count(hook, "rows"));
    const json_t *gone = NULL, *dead = NULL, *log = NULL, *row;
    size_t i;
    json_array_foreach(json_object_get(hook, "rows"), i, row)
    {
        const char *sink = text(row, "sink");
        *(strcmp(sink, "gone") == 0 ? &gone : strcmp(sink, "dead") == 0 ? &dead : &log) = row;
    }
    assert_string_equal("pending", text(gone, "state"));
    assert_string_equal("a", text(gone, "key"));
    assert_int_equal(32, strlen(text(gone, "lane")));
    assert_string_equal("dead", text(dead, "state"));
    assert_string_equal("exhausted", text(dead, "class"));
    assert_true(is_null(log, "lane"));
    assert_true(is_null(log, "key"));
    json_decref(hook);

    refuses("GET", "/v1/hooks/01890a5d-ac96-774b-bcce-b302099a8057", NULL, 404, "not_found");
    refuses("GET", "/v1/hooks/nonsense", NULL, 404, "not_found");
    refuses("GET", "/v1/hooks/nonsense/body", NULL, 404, "not_found");
}

/* The provider said text/html: a browser must not believe it on this origin. */
static void a_body_is_bytes_and_nothing_else(void **state)
{
    (void)state;
    char target[128];
    struct house_answer answer;
    snprintf(target, sizeof target, "/v1/hooks/%s/body", ids[2]);
    house_ask(&house, "GET", target, NULL, &answer);
    assert_int_equal(200, answer.status);
    assert_true(bytes_eq(buf_bytes(&answer.body), BYTES("three\0 with NUL")));
    assert_true(house_answer_has(&answer, "content-type: application/octet-stream\r\n"));
    assert_true(house_answer_has(&answer, "x-content-type-options: nosniff\r\n"));
    house_answer_free(&answer);

    snprintf(target, sizeof target, "/v1/hooks/%s/body", ids[3]);
    house_ask(&house, "GET", target, NULL, &answer);
    assert_int_equal(200, answer.status);
    assert_int_equal(0, answer.body.len);
    house_answer_free(&answer);
}

static void dead_letters_oldest_first(void **state)
{
    (void)state;
    json_t *answer = house_get(&house, "/v1/dlq");
    assert_int_equal(4, number(answer, "total"));
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(ids[i], text(item(answer, "entries", i), "id"));
    const json_t *entry = item(answer, "entries", 2);
    assert_true(number(entry, "seq") > 0);
    assert_string_equal("default", text(entry, "tenant"));
    assert_string_equal("demo", text(entry, "source"));
    assert_string_equal("dead", text(entry, "sink"));
    assert_int_equal(32, strlen(text(entry, "lane")));
    assert_string_equal("50%25/%C3%BC%20", text(entry, "key"));
    assert_string_equal("dead", text(entry, "state"));
    assert_string_equal("exhausted", text(entry, "class"));
    assert_true(strlen(text(entry, "reason")) > 6);
    assert_int_equal(1, number(entry, "attempts"));
    assert_true(number(entry, "dead_at") >= number(entry, "received_at"));
    assert_int_equal(15, number(entry, "size"));
    json_decref(answer);
}

static void dead_letters_are_filtered(void **state)
{
    (void)state;
    char lane[128];
    json_t *all = house_get(&house, "/v1/dlq");
    snprintf(lane, sizeof lane, "/v1/dlq?lane=%s", text(item(all, "entries", 0), "lane"));
    json_decref(all);
    const struct {
        const char *target;
        size_t count;
    } rows[] = {
        {"/v1/dlq?source=demo&sink=dead", 4},
        {"/v1/dlq?sink=gone", 0},
        {"/v1/dlq?tenant=nobody", 0},
        {"/v1/dlq?class=exhausted", 4},
        {"/v1/dlq?class=refused", 0},
        {"/v1/dlq?since=2020-01-01T00:00:00Z", 4},
        {"/v1/dlq?until=2020-01-01T00:00:00Z", 0},
        {lane, 2},
        {"/v1/dlq?source=demo&sink=dead&key=a", 2},
        {"/v1/dlq?source=demo&sink=dead&key=", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *answer = house_get(&house, rows[i].target);
        if (count(answer, "entries") != rows[i].count || number(answer, "total") != (long long)rows[i].count)
            fail_msg("%s: %zu of %lld", rows[i].target, count(answer, "entries"), number(answer, "total"));
        json_decref(answer);
    }
    refuses("GET", "/v1/dlq?key=a", NULL, 400, "bad_filter");
    refuses("GET", "/v1/dlq?source=demo&sink=dead&key=a&lane=00112233445566778899aabbccddeeff", NULL, 400,
            "bad_filter");
}

static void what_cannot_be_meant_is_refused(void **state)
{
    (void)state;
    struct house_answer answer;
    house_ask(&house, "GET", "/v1/lanes?colour=red", NULL, &answer);
    assert_int_equal(400, answer.status);
    assert_string_equal("unknown_filter", text(answer.json, "error"));
    assert_string_equal("colour", text(answer.json, "filter"));
    assert_non_null(strstr(text(answer.json, "expected"), "tenant"));
    house_answer_free(&answer);

    house_ask(&house, "POST", "/v1/lanes", "Content-Length: 0\r\n", &answer);
    assert_int_equal(405, answer.status);
    assert_string_equal("method_not_allowed", text(answer.json, "error"));
    assert_true(house_answer_has(&answer, "allow: GET\r\n"));
    house_answer_free(&answer);

    house_ask(&house, "GET", "/v1/lanes?source=dmeo", NULL, &answer);
    assert_int_equal(400, answer.status);
    assert_string_equal("bad_filter", text(answer.json, "error"));
    assert_string_equal("source", text(answer.json, "filter"));
    assert_string_equal("one that there is: demo", text(answer.json, "expected"));
    house_answer_free(&answer);
    house_ask(&house, "GET", "/v1/dlq?source=demo&sink=ded", NULL, &answer);
    assert_int_equal(400, answer.status);
    assert_string_equal("sink", text(answer.json, "filter"));
    assert_string_equal("one that there is: log gone dead", text(answer.json, "expected"));
    house_answer_free(&answer);

    refuses("GET", "/v1/hooks?limit=1001", NULL, 400, "bad_filter");
    refuses("GET", "/v1/dlq?cursor=00", NULL, 400, "bad_filter");
    refuses("GET", "/v1/sinks?x=1", NULL, 400, "unknown_filter");
    refuses("GET", "/v1/nothing", NULL, 404, "not_found");
    refuses("GET", "/", NULL, 404, "not_found");
}

/* A page whose name was made to resolve to 127.0.0.1 sends its own name as Host. */
static void a_stranger_s_host_is_denied(void **state)
{
    (void)state;
    refuses("GET", "/v1/hooks", "Host: evil.example\r\n", 403, "host_denied");
    refuses("GET", "/health", "Host: evil.example:4002\r\n", 403, "host_denied");
    struct house_answer answer;
    house_ask(&house, "GET", "/health", "Host: [::1]:4002\r\n", &answer);
    assert_int_equal(200, answer.status);
    house_answer_free(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(health_and_readiness),
        cmocka_unit_test(metrics_are_text_and_nothing_is_cached),
        cmocka_unit_test(the_configuration_is_what_config_writes),
        cmocka_unit_test(every_sink_in_the_order_of_the_file),
        cmocka_unit_test(a_lane_says_what_it_waits_for),
        cmocka_unit_test(a_lane_by_its_id_says_more),
        cmocka_unit_test(keys_are_shown_and_asked_for_percent_encoded),
        cmocka_unit_test(lanes_are_filtered),
        cmocka_unit_test(lanes_are_sorted),
        cmocka_unit_test(pages_together_are_the_list),
        cmocka_unit_test(hooks_newest_first_without_bodies),
        cmocka_unit_test(hooks_are_filtered),
        cmocka_unit_test(one_hook_with_its_envelope_and_rows),
        cmocka_unit_test(a_body_is_bytes_and_nothing_else),
        cmocka_unit_test(dead_letters_oldest_first),
        cmocka_unit_test(dead_letters_are_filtered),
        cmocka_unit_test(what_cannot_be_meant_is_refused),
        cmocka_unit_test(a_stranger_s_host_is_denied),
    };
    return cmocka_run_group_tests(tests, move_in, move_out);
}
