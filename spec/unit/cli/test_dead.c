/* What is done to dead letters and hooks by the command line, against a played gateway: counted first, asked
 * about, and gone on with until nothing is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli.h"
#include "played.h"

#define ID "01890a5d-ac96-774b-bcce-b302099a8057"

static void says(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no \"%s\" in:\n%s", part, text);
}

static const char two_late[] =
    "{\"dry_run\":true,\"matched\":3,\"done\":0,\"late\":2,\"delivered_after\":41}";

static void a_dry_run_counts_and_does_nothing(void **state)
{
    (void)state;
    played_on("/v1/dlq/replay?source=shop&sink=billing&class=refused&dry_run=true", 200, bytes_str(two_late));
    const struct heard *heard =
        played_run(&verb_dlq, CLI_OK, "replay", "shop/billing", "--class", "refused", "--dry-run", NULL);
    assert_string_equal("would replay 3 dead letters, 2 of them late: 41 later hooks of their lanes were "
                        "delivered already\n",
                        heard->out);
    played_was_asked("/v1/dlq/replay?source=shop&sink=billing&class=refused&dry_run=true", "");
    heard = played_run(&verb_dlq, CLI_OK, "replay", "shop/billing", "--class", "refused", "--dry-run",
                       "--json", NULL);
    says(heard->out, "\"delivered_after\":41");
}

static void nothing_is_done_unasked(void **state)
{
    (void)state;
    played_on("/v1/dlq/replay?all=true&dry_run=true", 200, bytes_str(two_late));
    const struct heard *heard = played_run(&verb_dlq, CLI_USAGE, "replay", "--all", NULL);
    says(heard->err, "this would replay 3 dead letters, 2 of them late");
    says(heard->err, "--yes");
    played_was_asked("/v1/dlq/replay?all=true&dry_run=true", "");
    heard = played_run(&verb_dlq, CLI_USAGE, "discard", NULL);
    says(heard->err, "say which");
    played_run(&verb_dlq, CLI_USAGE, "replay", "--yes", NULL);
    played_run(&verb_dlq, CLI_USAGE, "replay", "shop/billing", "--sink", "x", "--yes", NULL);
    played_run(&verb_dlq, CLI_USAGE, "show", NULL);
    played_run(&verb_dlq, CLI_USAGE, "show", "shop/billing", NULL);
    played_run(&verb_dlq, CLI_USAGE, "revive", NULL);
}

static void it_goes_on_until_nothing_is_left(void **state)
{
    (void)state;
    played_on("/v1/dlq/discard?tenant=acme&dry_run=true", 200, BYTES("{\"matched\":12000,\"done\":0}"));
    played_on("/v1/dlq/discard?tenant=acme&reason=too%20old", 200,
              BYTES("{\"matched\":10000,\"done\":9999,\"stopped\":null,\"next_cursor\":\"6401\"}"));
    played_on("/v1/dlq/discard?tenant=acme&reason=too%20old&cursor=6401", 200,
              BYTES("{\"matched\":2000,\"done\":2000,\"stopped\":null,\"next_cursor\":null}"));
    const struct heard *heard =
        played_run(&verb_dlq, CLI_OK, "discard", "--tenant", "acme", "--reason", "too old", "--yes", NULL);
    assert_string_equal("discarded 11999 of 12000 dead letters\n", heard->out);
    heard = played_run(&verb_dlq, CLI_OK, "discard", "--tenant", "acme", "--reason", "too old", "--yes",
                       "--json", NULL);
    assert_string_equal("{\"matched\":12000,\"done\":11999}\n", heard->out);
}

static void a_gateway_that_stops_is_heard(void **state)
{
    (void)state;
    played_on("/v1/dlq/replay?hook=" ID "&dry_run=true", 200, BYTES("{\"matched\":9,\"late\":0}"));
    played_on("/v1/dlq/replay?hook=" ID, 200,
              BYTES("{\"matched\":5,\"done\":5,\"stopped\":\"backlog_full\",\"next_cursor\":\"6401\"}"));
    const struct heard *heard = played_run(&verb_dlq, CLI_FAILED, "replay", ID, "--yes", NULL);
    assert_string_equal("replayed 5 of 5 dead letters\n", heard->out);
    says(heard->err, "backlog_full");
    played_on("/v1/dlq/replay?hook=" ID, 503, BYTES("{\"error\":\"backlog_full\"}"));
    says(played_run(&verb_dlq, CLI_FAILED, "replay", ID, "--yes", NULL)->err, "more to deliver");
}

static void none_is_no_failure(void **state)
{
    (void)state;
    played_on("/v1/dlq/replay?source=shop&dry_run=true", 200, BYTES("{\"matched\":0,\"late\":0}"));
    assert_string_equal("replayed 0 of 0 dead letters\n",
                        played_run(&verb_dlq, CLI_OK, "replay", "--source", "shop", NULL)->out);
}

static const char attempts[] =
    "{\"attempts\":[{\"sink\":\"billing\",\"attempt\":4,\"at\":1782907200000,\"class\":\"transient\","
    "\"http_status\":503,\"duration_us\":12999,\"reason\":\"HTTP 503\",\"response\":\"try\\u001b[2J later\","
    "\"response_encoding\":\"text\"},{\"sink\":\"billing\",\"attempt\":5,\"at\":1782907200000,\"class\":"
    "\"refused\",\"http_status\":410,\"duration_us\":1000,\"reason\":\"HTTP 410\",\"response\":\"/w==\","
    "\"response_encoding\":\"base64\"}]}";

static void a_dead_letter_is_shown_with_its_failures(void **state)
{
    (void)state;
    played_on("/v1/dlq?hook=" ID "&limit=1000", 200,
              BYTES("{\"entries\":[{\"id\":\"" ID "\",\"tenant\":\"default\",\"source\":\"shop\",\"sink\":"
                    "\"billing\",\"key\":\"a\",\"state\":\"held\",\"class\":\"refused\",\"attempts\":5,"
                    "\"dead_at\":1782907200000,\"received_at\":1782907200000,\"late\":true,\"reason\":"
                    "\"HTTP 410\"}],\"total\":1}"));
    played_on("/v1/hooks/" ID "/attempts", 200, bytes_str(attempts));
    const struct heard *heard = played_run(&verb_dlq, CLI_OK, "show", ID, NULL);
    says(heard->out, "shop/billing/a  default  held   refused         5  2026-07-01 12:00:00Z  "
                     "2026-07-01 12:00:00Z  yes   HTTP 410\n");
    says(heard->out, "last failures\n");
    says(heard->out, "billing        4  2026-07-01 12:00:00Z  transient  12 ms  HTTP 503  try?[2J later\n");
    says(heard->out, "(no text; base64 /w==)");
    says(played_run(&verb_dlq, CLI_OK, "show", ID, "--json", NULL)->out,
         "\"attempts\":[{\"sink\":\"billing\"");

    played_on("/v1/hooks/" ID, 200, BYTES("{\"id\":\"" ID "\",\"headers\":[],\"rows\":[]}"));
    says(played_run(&verb_hooks, CLI_OK, "show", ID, NULL)->out, "last failures\n");
    says(played_run(&verb_hooks, CLI_OK, "show", ID, "--json", NULL)->out, "\"failures\":[{");
}

static void a_hook_that_is_no_dead_letter(void **state)
{
    (void)state;
    played_on("/v1/dlq?hook=" ID "&limit=1000", 200, BYTES("{\"entries\":[],\"total\":0}"));
    played_on("/v1/hooks/" ID "/attempts", 200, BYTES("{\"attempts\":[]}"));
    says(played_run(&verb_dlq, CLI_FAILED, "show", ID, NULL)->err, "is no dead letter");
}

static void a_hook_is_erased_on_a_yes(void **state)
{
    (void)state;
    says(played_run(&verb_hooks, CLI_USAGE, "erase", ID, NULL)->err, "erase hook " ID " for good");
    played_run(&verb_hooks, CLI_USAGE, "erase", "--yes", NULL);
    played_on("/v1/hooks/" ID "?reason=asked", 200,
              BYTES("{\"status\":\"erased\",\"rows\":2,\"log_emptied\":true}"));
    assert_string_equal(
        "erased hook " ID " and its 2 deliveries\n",
        played_run(&verb_hooks, CLI_OK, "erase", ID, "--yes", "--reason", "asked", NULL)->out);
    played_on("/v1/hooks/" ID, 409, BYTES("{\"error\":\"in_flight\",\"expected\":\"patience\"}"));
    says(played_run(&verb_hooks, CLI_FAILED, "erase", ID, "--yes", NULL)->err, "an attempt is running");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_dry_run_counts_and_does_nothing, played_test_start),
        cmocka_unit_test_setup(nothing_is_done_unasked, played_test_start),
        cmocka_unit_test_setup(it_goes_on_until_nothing_is_left, played_test_start),
        cmocka_unit_test_setup(a_gateway_that_stops_is_heard, played_test_start),
        cmocka_unit_test_setup(none_is_no_failure, played_test_start),
        cmocka_unit_test_setup(a_dead_letter_is_shown_with_its_failures, played_test_start),
        cmocka_unit_test_setup(a_hook_that_is_no_dead_letter, played_test_start),
        cmocka_unit_test_setup(a_hook_is_erased_on_a_yes, played_test_start),
    };
    return cmocka_run_group_tests(tests, played_group_start, played_group_stop);
}
