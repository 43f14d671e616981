/* verify-order --against, from argv to the screen, against a played gateway: what it calls delivered must be
 * in the log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cli.h"
#include "played.h"

#define ONE "01890a5d-ac96-774b-bcce-b302099a8051"
#define TWO "01890a5d-ac96-774b-bcce-b302099a8052"
#define THREE "01890a5d-ac96-774b-bcce-b302099a8053"
#define LANE "00000000000000000000000000000001" /* of no sink: only the hook itself says whose it is */

static char log_path[] = "/tmp/lanegate-order-XXXXXX";

static int start(void **state)
{
    (void)state;
    int fd = mkstemp(log_path);
    if (fd < 0)
        return -1;
    close(fd);
    played_start();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    played_stop();
    return unlink(log_path);
}

static int reset(void **state)
{
    (void)state;
    played_reset();
    played_on("/v1/sinks", 200,
              BYTES("{\"sinks\":[{\"source\":\"demo\",\"sink\":\"receiver\",\"type\":\"http\"},"
                    "{\"source\":\"quiet\",\"sink\":\"log\",\"type\":\"log\"}]}"));
    return 0;
}

/* Lines of a log: hook ids, delivered without a lane. */
static void write_log(const char *text)
{
    FILE *file = fopen(log_path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

#define TOOK(id) "{\"id\":\"" id "\",\"source\":\"demo\",\"status\":200}\n"
#define REFUSED(id) "{\"id\":\"" id "\",\"source\":\"demo\",\"status\":503}\n"
#define HOOK(id, seq, done, dead)                                                                            \
    "{\"id\":\"" id "\",\"seq\":" seq ",\"source\":\"demo\",\"rows\":1,\"done\":" done ",\"dead\":" dead "}"
#define ALONE(id, seq, state, lane)                                                                          \
    "{\"id\":\"" id "\",\"seq\":" seq                                                                        \
    ",\"source\":\"demo\",\"rows\":[{\"sink\":\"receiver\",\"state\":\"" state "\",\"lane\":" lane "}]}"

static const struct heard *run(int expected, ...)
{
    char *argv[16] = {(char *)(uintptr_t) "verify-order", log_path, (char *)(uintptr_t) "--against",
                      (char *)(uintptr_t)played_url()};
    int argc = 4;
    va_list words;
    va_start(words, expected);
    while ((argv[argc] = va_arg(words, char *)))
        assert_true(++argc < 16);
    va_end(words);
    played_listen();
    int code = verb_verify_order.run(argc, argv);
    const struct heard *heard = played_heard();
    if (code != expected)
        fail_msg("exit %d\n%s%s", code, heard->out, heard->err);
    return heard;
}

static void says(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("expected \"%s\" in:\n%s", part, text);
}

static void page_after_page(void **state)
{
    (void)state;
    write_log(TOOK(ONE) TOOK(TWO) REFUSED(THREE) TOOK(THREE));
    played_on("/v1/hooks?limit=1000", 200,
              BYTES("{\"hooks\":[" HOOK(THREE, "9", "1", "0") "],\"next_cursor\":\"abc\"}"));
    played_on("/v1/hooks?limit=1000&cursor=abc", 200, BYTES("{\"hooks\":[],\"next_cursor\":\"abd\"}"));
    played_on("/v1/hooks?limit=1000&cursor=abd", 200,
              BYTES("{\"hooks\":[" HOOK(TWO, "8", "1", "0") "," HOOK(ONE, "7", "1",
                                                                     "0") "],\"next_cursor\":null}"));
    const struct heard *heard = run(CLI_OK, NULL);
    says(heard->out, "         3  hooks that the gateway keeps\n");
    says(heard->out, "         3  deliveries that it calls done\n");
    says(heard->out, "complete: the log has every delivery that the gateway calls done\n");
    heard = run(CLI_OK, "--json", NULL);
    says(heard->out, "\"against\":{\"complete\":true,\"hooks\":3,\"delivered\":3,\"missing\":0,"
                     "\"missing_rows\":[],\"undelivered\":0,");
}

static void one_that_is_missing_is_named(void **state)
{
    (void)state;
    write_log(TOOK(ONE) REFUSED(TWO));
    played_on("/v1/hooks?limit=1000", 200,
              BYTES("{\"hooks\":[" HOOK(TWO, "8", "1", "0") "," HOOK(ONE, "7", "1", "0") "]}"));
    played_on("/v1/hooks/" TWO, 200, BYTES(ALONE(TWO, "8", "done", "\"" LANE "\"")));
    const struct heard *heard = run(CLI_FAILED, NULL);
    says(heard->out, "MISSING: 1 deliveries are not in this log:\n  " TWO "  seq 8  demo/receiver  done\n");
    heard = run(CLI_FAILED, "--json", NULL);
    says(heard->out, "\"in_order\":true");
    says(heard->out,
         "\"complete\":false,\"hooks\":2,\"delivered\":2,\"missing\":1,\"missing_rows\":[{\"id\":\"" TWO
         "\",\"seq\":8,\"source\":\"demo\",\"sink\":\"receiver\",\"state\":\"done\"}]");
}

static void what_is_owed_is_listed_and_not_missing(void **state)
{
    (void)state;
    write_log(TOOK(ONE));
    played_on("/v1/hooks?limit=1000", 200,
              BYTES("{\"hooks\":[" HOOK(THREE, "9", "0",
                                        "0") "," HOOK(TWO, "8", "0", "1") "," HOOK(ONE, "7", "1", "0") "]}"));
    played_on("/v1/hooks/" TWO, 200, BYTES(ALONE(TWO, "8", "held", "\"" LANE "\"")));
    played_on("/v1/hooks/" THREE, 200, BYTES(ALONE(THREE, "9", "pending", "\"" LANE "\"")));
    const struct heard *heard = run(CLI_OK, NULL);
    says(heard->out, "         2  not delivered yet\n         1  of them dead letters\n");
    says(heard->out, "  " THREE "  seq 9  demo/receiver  pending\n");
    says(heard->out, "  " TWO "  seq 8  demo/receiver  held\n");
}

/* A lane that the log has, of a sink that had another name then. */
static void a_delivery_is_known_by_its_lane(void **state)
{
    (void)state;
    write_log("{\"id\":\"" ONE "\",\"source\":\"demo\",\"status\":200,\"seq\":7,\"lane\":\"" LANE "\"}\n");
    played_on("/v1/hooks?limit=1000", 200, BYTES("{\"hooks\":[" HOOK(ONE, "7", "1", "0") "]}"));
    played_on("/v1/hooks/" ONE, 200, BYTES(ALONE(ONE, "7", "done", "\"" LANE "\"")));
    run(CLI_OK, NULL);
    played_on("/v1/hooks/" ONE, 200, BYTES(ALONE(ONE, "7", "done", "\"ff000000000000000000000000000001\"")));
    run(CLI_FAILED, NULL);
}

static void only_the_sinks_that_were_named(void **state)
{
    (void)state;
    write_log("");
    played_on("/v1/hooks?limit=1000", 200, BYTES("{\"hooks\":[" HOOK(ONE, "7", "1", "0") "]}"));
    says(run(CLI_OK, "--sink", "quiet/log", NULL)->out, "         0  hooks that the gateway keeps\n");
    says(run(CLI_USAGE, "--sink", "demo/billing", NULL)->err, "the gateway has no sink \"demo/billing\"");
    says(run(CLI_USAGE, "--sink", "demo/receiver/key", NULL)->err, "takes no key");
    says(run(CLI_USAGE, "--sink", "/", NULL)->err, "--sink must be SOURCE/SINK, got \"/\"");
}

static void a_gateway_that_fails_proves_nothing(void **state)
{
    (void)state;
    write_log(TOOK(ONE));
    played_on("/v1/hooks?limit=1000", 200,
              BYTES("{\"hooks\":[" HOOK(ONE, "7", "1", "0") "],\"next_cursor\":\"abc\"}"));
    played_on("/v1/hooks?limit=1000&cursor=abc", 503, BYTES("{\"error\":\"store_unavailable\"}"));
    const struct heard *heard = run(CLI_FAILED, NULL);
    assert_string_equal("", heard->out);
    says(heard->err, "the gateway can't read its store now");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(page_after_page, reset),
        cmocka_unit_test_setup(one_that_is_missing_is_named, reset),
        cmocka_unit_test_setup(what_is_owed_is_listed_and_not_missing, reset),
        cmocka_unit_test_setup(a_delivery_is_known_by_its_lane, reset),
        cmocka_unit_test_setup(only_the_sinks_that_were_named, reset),
        cmocka_unit_test_setup(a_gateway_that_fails_proves_nothing, reset),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
