/* The verbs that look, and the acts on lanes and sinks, from argv to the screen, against a played gateway. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli.h"
#include "order/order.h"
#include "played.h"

#define ID "01890a5d-ac96-774b-bcce-b302099a8057"

static const char one_lane[] = "{\"lanes\":[{\"tenant\":\"default\",\"source\":\"demo\",\"sink\":"
                               "\"receiver\",\"key\":\"a b\",\"lane\":\"00ff\","
                               "\"state\":\"retrying\",\"depth\":12,\"oldest_at\":1,\"head\":{\"id\":\"" ID
                               "\",\"seq\":7,\"attempts\":3,\"due_at\":1,\"last_error\":\"HTTP "
                               "503\"}}],\"total\":9,\"next_cursor\":\"6c\"}";

static void lanes_as_a_table(void **state)
{
    (void)state;
    played_on("/v1/lanes?limit=1", 200, bytes_str(one_lane));
    const struct heard *heard = played_run(&verb_lanes, CLI_OK, "--limit", "1", NULL);
    assert_non_null(strstr(heard->out, "TENANT   LANE               STATE     DEPTH"));
    assert_non_null(strstr(heard->out, "default  demo/receiver/a b  retrying     12"));
    assert_non_null(strstr(heard->out, "       3      now  HTTP 503\n"));
    assert_string_equal("1 of 9 lanes; --cursor 6c goes on\n", heard->err);
}

/* A lane's id comes from its name, so that one can be named that nothing waits in. */
static void an_act_on_a_lane(void **state)
{
    (void)state;
    char target[256];
    struct lane_id id = lane_id_of(BYTES("demo"), BYTES("receiver"), BYTES("a"));
    char hex[2 * LANE_ID_SIZE + 1];
    hex_encode(id.bytes, sizeof id.bytes, hex);
    snprintf(target, sizeof target, "/v1/lanes/acme/%s/retry?expect_head=7&reason=it%%20is%%20well", hex);
    played_on(target, 200, BYTES("{\"status\":\"done\",\"state\":\"ready\",\"depth\":2}"));
    const struct heard *heard = played_run(&verb_lanes, CLI_OK, "retry", "demo/receiver/a", "--tenant",
                                           "acme", "--expect-head", "7", "--reason", "it is well", NULL);
    assert_string_equal("retrying demo/receiver/a: ready, 2 waiting\n", heard->out);
}

/* Nobody can be asked here: stdin is no terminal. */
static void what_destroys_needs_a_word(void **state)
{
    (void)state;
    char lane[128], skip[256];
    struct lane_id id = lane_id_of(BYTES("demo"), BYTES("receiver"), BYTES("a"));
    char hex[2 * LANE_ID_SIZE + 1];
    hex_encode(id.bytes, sizeof id.bytes, hex);
    snprintf(lane, sizeof lane, "/v1/lanes/default/%s", hex);
    snprintf(skip, sizeof skip, "%s/skip?expect_head=" ID, lane);
    played_on(lane, 200,
              BYTES("{\"depth\":2,\"head\":{\"id\":\"" ID "\",\"attempts\":3,\"last_error\":\"HTTP 503\"}}"));
    played_on(skip, 200, BYTES("{\"status\":\"done\",\"state\":null,\"depth\":1}"));
    const struct heard *heard = played_run(&verb_lanes, CLI_USAGE, "skip", "demo/receiver/a", NULL);
    assert_non_null(strstr(
        heard->err, "hook " ID ", the first of 2 in demo/receiver/a (3 attempts; last answer: HTTP 503)"));
    assert_non_null(strstr(heard->err, "needs --yes"));
    heard = played_run(&verb_lanes, CLI_OK, "skip", "demo/receiver/a", "--yes", NULL);
    played_was_asked(skip, ""); /* held to the head that was shown */
    assert_string_equal("skipped demo/receiver/a\n", heard->out);
}

static void a_sink_is_paused_for_a_while(void **state)
{
    (void)state;
    played_on("/v1/sinks/demo/receiver/pause?for=1800000ms", 200, BYTES("{\"status\":\"done\"}"));
    const struct heard *heard =
        played_run(&verb_sinks, CLI_OK, "pause", "demo/receiver", "--for", "30m", NULL);
    assert_string_equal("paused demo/receiver\n", heard->out);
    played_run(&verb_sinks, CLI_USAGE, "pause", "demo", NULL);
    played_run(&verb_sinks, CLI_USAGE, "pause", NULL);
    played_run(&verb_sinks, CLI_USAGE, "resume", "demo/receiver", "--for", "30m", NULL);
}

static void lanes_as_json(void **state)
{
    (void)state;
    played_on("/v1/lanes?limit=1", 200, bytes_str(one_lane));
    const struct heard *heard = played_run(&verb_lanes, CLI_OK, "--limit=1", "--json", NULL);
    assert_int_equal(strlen(one_lane) + 1, strlen(heard->out)); /* and a line feed */
    assert_true(strncmp(one_lane, heard->out, strlen(one_lane)) == 0);
    assert_string_equal("", heard->err);
}

static void a_lane_by_its_name(void **state)
{
    (void)state;
    static const char none[] = "{\"lanes\":[],\"total\":0,\"next_cursor\":null}";
    static const char *const rows[][2] = {
        {"demo", "/v1/lanes?source=demo&limit=100"},
        {"demo/receiver", "/v1/lanes?source=demo&sink=receiver&limit=100"},
        {"demo/receiver/", "/v1/lanes?source=demo&sink=receiver&key=&limit=100"},
        {"demo/receiver/eu/7%25 x", "/v1/lanes?source=demo&sink=receiver&key=eu%2F7%25%20x&limit=100"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        played_on(rows[i][1], 200, bytes_str(none));
        assert_string_equal("no lanes\n", played_run(&verb_lanes, CLI_OK, rows[i][0], NULL)->err);
        played_was_asked(rows[i][1], "");
    }
}

static void every_filter_of_lanes_is_sent(void **state)
{
    (void)state;
    const char *target = "/v1/lanes?tenant=t&source=a&sink=b&state=held&sort=depth&limit=5&cursor=c";
    played_on(target, 200, BYTES("{\"lanes\":[],\"total\":0,\"next_cursor\":null}"));
    played_run(&verb_lanes, CLI_OK, "--tenant", "t", "--source", "a", "--sink", "b", "--state", "held",
               "--sort=depth", "--limit", "5", "--cursor", "c", NULL);
}

static void wrong_words_are_usage_errors(void **state)
{
    (void)state;
    played_run(&verb_lanes, CLI_USAGE, "demo//x", NULL);
    played_run(&verb_lanes, CLI_USAGE, "demo", "more", NULL);
    played_run(&verb_lanes, CLI_USAGE, "demo", "--source", "demo", NULL);
    played_run(&verb_lanes, CLI_USAGE, "--limit", "0", NULL);
    played_run(&verb_sinks, CLI_USAGE, "demo", NULL);
    played_run(&verb_dlq, CLI_USAGE, NULL);
    played_run(&verb_dlq, CLI_USAGE, "burn", NULL);
    played_run(&verb_dlq, CLI_USAGE, "list", "demo/receiver", "--lane", "00", NULL);
    played_run(&verb_hooks, CLI_USAGE, NULL);
    played_run(&verb_hooks, CLI_USAGE, "list", "demo", NULL);
    played_run(&verb_hooks, CLI_USAGE, "list", "--dedupe-key", "%zz", NULL);
    played_run(&verb_hooks, CLI_USAGE, "show", NULL);
    played_run(&verb_hooks, CLI_USAGE, "show", "nonsense", NULL);
    played_run(&verb_hooks, CLI_USAGE, "show", ID, "--raw", "--json", NULL);
    played_run(&verb_version, CLI_USAGE, "--loud", NULL);
}

static void sinks_as_a_table(void **state)
{
    (void)state;
    played_on(
        "/v1/sinks", 200,
        BYTES("{\"sinks\":[{\"source\":\"demo\",\"sink\":\"receiver\",\"type\":\"http\",\"ordered\":true,"
              "\"pending\":5,\"running\":1,\"dead\":2,\"breaker\":\"open\",\"oldest_at\":null,"
              "\"last_error\":null},{\"source\":\"demo\",\"sink\":\"log\",\"type\":\"log\","
              "\"ordered\":false,\"breaker\":\"closed\",\"parked\":true}]}"));
    const struct heard *heard = played_run(&verb_sinks, CLI_OK, NULL);
    assert_string_equal("SINK           TYPE  ORDERED  PENDING  RUNNING  DEAD  BREAKER  OLDEST  LAST ERROR\n"
                        "demo/receiver  http  yes            5        1     2  open          -  -\n"
                        "demo/log       log   no             0        0     0  parked        -  -\n",
                        heard->out);
}

static void dead_letters_as_a_table(void **state)
{
    (void)state;
    const char *target =
        "/v1/dlq?source=demo&sink=receiver&key=a&class=refused&since=2026-07-01T12%3A00%3A00Z&limit=100";
    played_on(
        target, 200,
        BYTES("{\"entries\":[{\"id\":\"" ID "\",\"tenant\":\"default\",\"source\":\"demo\","
              "\"sink\":\"receiver\",\"key\":null,\"state\":\"held\",\"class\":\"refused\",\"attempts\":1,"
              "\"dead_at\":null,\"reason\":\"HTTP 422\"}],\"total\":1,\"next_cursor\":null}"));
    const struct heard *heard = played_run(&verb_dlq, CLI_OK, "list", "demo/receiver/a", "--class", "refused",
                                           "--since", "2026-07-01T12:00:00Z", NULL);
    assert_non_null(
        strstr(heard->out, "       -  default  demo/receiver  held   " ID "  refused         1  HTTP 422\n"));
    assert_string_equal("", heard->err);
}

static void hooks_as_a_table(void **state)
{
    (void)state;
    played_on("/v1/hooks?source=demo&dedupe_key=a%25%20b&state=dead&limit=100", 200,
              BYTES("{\"hooks\":[{\"id\":\"" ID "\",\"tenant\":\"default\",\"source\":\"demo\","
                    "\"received_at\":1782907200000,\"size\":2048,\"rows\":3,\"done\":2,\"dead\":1}],"
                    "\"next_cursor\":null}"));
    const struct heard *heard = played_run(&verb_hooks, CLI_OK, "list", "--source", "demo", "--dedupe-key",
                                           "a%25 b", "--state", "dead", NULL);
    assert_non_null(
        strstr(heard->out, "2026-07-01 12:00:00Z  default  demo    " ID "  2 KiB        2/3     1\n"));
}

static const char one_hook[] =
    "{\"id\":\"" ID "\",\"method\":\"POST\",\"path\":\"/webhooks/demo\",\"query\":null,"
    "\"headers\":[[\"Host\",\"x\"]],\"rows\":[]}";

static void a_hook_as_raw_http(void **state)
{
    (void)state;
    played_on("/v1/hooks/" ID, 200, bytes_str(one_hook));
    played_on("/v1/hooks/" ID "/body", 200, BYTES("a body\n"));
    assert_string_equal("POST /webhooks/demo HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\na body\n",
                        played_run(&verb_hooks, CLI_OK, "show", ID, "--raw", NULL)->out);
}

/* Nothing half is printed that a file could be made of. */
static void no_body_no_head(void **state)
{
    (void)state;
    played_on("/v1/hooks/" ID, 200, bytes_str(one_hook));
    played_on("/v1/hooks/" ID "/body", 403, BYTES("{\"error\":\"forbidden\",\"scope\":\"payload\"}"));
    const struct heard *heard = played_run(&verb_hooks, CLI_FAILED, "show", ID, "--raw", NULL);
    assert_string_equal("", heard->out);
    assert_non_null(strstr(heard->err, "payload"));
}

static void a_hook_that_is_not_there(void **state)
{
    (void)state;
    played_on("/v1/hooks/" ID, 404, BYTES("{\"error\":\"not_found\",\"what\":\"hook\"}"));
    assert_non_null(strstr(played_run(&verb_hooks, CLI_FAILED, "show", ID, NULL)->err, "no such hook"));
}

static void the_running_configuration(void **state)
{
    (void)state;
    played_on("/v1/config", 200, BYTES("{\"b\":{\"c\":1},\"a\":\"(set)\"}"));
    assert_string_equal("{\n  \"a\": \"(set)\",\n  \"b\": {\n    \"c\": 1\n  }\n}\n",
                        played_run(&verb_config, CLI_OK, "--running", NULL)->out);
    assert_string_equal("{\"a\":\"(set)\",\"b\":{\"c\":1}}\n",
                        played_run(&verb_config, CLI_OK, "--admin", played_url(), "--json", NULL)->out);
}

static void the_version(void **state)
{
    (void)state;
    assert_non_null(strstr(played_run(&verb_version, CLI_OK, NULL)->out, "lanegate  " LANEGATE_VERSION "\n"));
    assert_non_null(strstr(played_run(&verb_version, CLI_OK, "--json", NULL)->out,
                           "{\"lanegate\":\"" LANEGATE_VERSION "\","));
}

static void help_names_every_option(void **state)
{
    (void)state;
    static const char *const options[] = {"--tenant", "--source", "--sink",        "--state", "--sort",
                                          "--limit",  "--cursor", "--json",        "--admin", "--config",
                                          "examples", "usage:",   "LANEGATE_TOKEN"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (!strstr(verb_lanes.help, options[i]))
            fail_msg("lanes --help does not say %s", options[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(lanes_as_a_table, played_test_start),
        cmocka_unit_test_setup(lanes_as_json, played_test_start),
        cmocka_unit_test_setup(a_lane_by_its_name, played_test_start),
        cmocka_unit_test_setup(an_act_on_a_lane, played_test_start),
        cmocka_unit_test_setup(what_destroys_needs_a_word, played_test_start),
        cmocka_unit_test_setup(a_sink_is_paused_for_a_while, played_test_start),
        cmocka_unit_test_setup(every_filter_of_lanes_is_sent, played_test_start),
        cmocka_unit_test_setup(wrong_words_are_usage_errors, played_test_start),
        cmocka_unit_test_setup(sinks_as_a_table, played_test_start),
        cmocka_unit_test_setup(dead_letters_as_a_table, played_test_start),
        cmocka_unit_test_setup(hooks_as_a_table, played_test_start),
        cmocka_unit_test_setup(a_hook_as_raw_http, played_test_start),
        cmocka_unit_test_setup(no_body_no_head, played_test_start),
        cmocka_unit_test_setup(a_hook_that_is_not_there, played_test_start),
        cmocka_unit_test_setup(the_running_configuration, played_test_start),
        cmocka_unit_test_setup(the_version, played_test_start),
        cmocka_unit_test_setup(help_names_every_option, played_test_start),
    };
    return cmocka_run_group_tests(tests, played_group_start, played_group_stop);
}
