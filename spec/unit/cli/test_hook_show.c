/* One hook on a screen, and as the request it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/hook_show.h"
#include "cli/show.h"
#include "cli_support.h"
#include "util/clock.h"

static json_t *hook_with(const char *headers)
{
    char *text = NULL;
    assert_true(asprintf(&text,
                         "{\"id\":\"01890a5d-ac96-774b-bcce-b302099a8057\",\"seq\":7,\"tenant\":\"default\","
                         "\"source\":\"demo\",\"received_at\":1782907200000,\"method\":\"POST\","
                         "\"path\":\"/webhooks/demo\",\"query\":\"a=1\",\"headers\":%s,\"content_type\":null,"
                         "\"remote_ip\":\"127.0.0.1\",\"verification\":\"ok\",\"dedupe_key\":null,\"size\":5,"
                         "\"rows\":[{\"sink\":\"receiver\",\"ordered\":true,\"lane\":\"00ff\",\"key\":\"a\","
                         "\"state\":\"pending\",\"attempts\":3,\"due_at\":1,\"last_error\":\"HTTP 503\"}]}",
                         headers) > 0);
    json_t *hook = json_loads(text, 0, NULL);
    assert_non_null(hook);
    free(text);
    return hook;
}

static void head_is(const char *headers, size_t body_len, const char *expected)
{
    json_t *hook = hook_with(headers);
    struct caught caught;
    hook_show_head(hook, body_len, caught_open(&caught));
    assert_string_equal(expected, caught_text(&caught));
    caught_free(&caught);
    json_decref(hook);
}

static void the_request_as_it_was(void **state)
{
    (void)state;
    head_is("[[\"Host\",\"x\"],[\"X-A\",\"1\"],[\"x-a\",\"2\"],[\"content-LENGTH\",\"5\"]]", 5,
            "POST /webhooks/demo?a=1 HTTP/1.1\r\nHost: x\r\nX-A: 1\r\nx-a: 2\r\ncontent-LENGTH: 5\r\n\r\n");
}

/* The stored body is the decoded one: sent again with its chunked framing named, it would not be readable. */
static void a_chunked_request_gets_a_length(void **state)
{
    (void)state;
    head_is("[[\"Host\",\"x\"],[\"Transfer-Encoding\",\"chunked\"]]", 5,
            "POST /webhooks/demo?a=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n");
}

static void a_block_for_people(void **state)
{
    (void)state;
    json_t *hook = hook_with("[[\"X-A\",\"1\"],[\"Cookie\",null]]");
    struct caught caught;
    hook_show(hook, caught_open(&caught));
    const char *text = caught_text(&caught);
    assert_non_null(strstr(text, "id            01890a5d-ac96-774b-bcce-b302099a8057\n"));
    assert_non_null(strstr(text, "received      2026-07-01 12:00:00Z\n"));
    assert_non_null(strstr(text, "request       POST /webhooks/demo?a=1\n"));
    assert_non_null(strstr(text, "dedupe key    -\n"));
    assert_non_null(strstr(text, "  X-A: 1\n"));
    assert_non_null(strstr(text, "  Cookie: (hidden: needs the scope payload)\n"));
    assert_non_null(strstr(text,
                           "SINK      KEY  LANE  STATE    CLASS  ATTEMPTS  DUE IN  CHANGED  LAST ERROR\n"
                           "receiver  a    00ff  pending  -             3     now        -  HTTP 503\n"));
    caught_free(&caught);
    json_decref(hook);
}

static void an_age_becomes_a_moment(void **state)
{
    (void)state;
    char digits[24];
    int64_t before = clock_unix_ms();
    long long at = atoll(show_moment("30m", digits));
    assert_true(at >= before - 1800000 && at <= clock_unix_ms() - 1800000);
    assert_string_equal("2026-07-01T12:00:00Z", show_moment("2026-07-01T12:00:00Z", digits));
    assert_string_equal("1782907200000", show_moment("1782907200000", digits));
    assert_null(show_moment(NULL, digits));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_request_as_it_was),
        cmocka_unit_test(a_chunked_request_gets_a_length),
        cmocka_unit_test(a_block_for_people),
        cmocka_unit_test(an_age_becomes_a_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
