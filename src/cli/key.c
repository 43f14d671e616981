/* lanegate key: which lane would this hook take, and why? And the same of all that is stored (key_history.c).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/hook_fetch.h"
#include "cli/input.h"
#include "cli/key_gate.h"
#include "cli/key_history.h"
#include "cli/key_subject.h"
#include "cli/show.h"
#include "envelope/raw.h"
#include "util/clock.h"
#include "util/jsonw.h"

/* ---- the hook ---- */

/* A raw request, in a file or ("-") on the standard input. */
static int hook_of_file(const char *path, const char *source, struct envelope **out)
{
    struct buf raw = {0};
    struct error err;
    int code = CLI_OK;
    enum status status = input_read(path, INPUT_REQUEST_MAX, &raw, &err);
    if (status == STATUS_NOT_FOUND) {
        code = cli_usage(&verb_key, "%s (a hook is a file with a raw request, an id, or -)", err.text);
    } else if (status != STATUS_OK) {
        fprintf(stderr, "lanegate key: %s\n", err.text);
        code = CLI_FAILED;
    } else if (envelope_from_raw(buf_bytes(&raw), out, &err) != STATUS_OK) {
        fprintf(stderr, "lanegate key: %s: %s\n", strcmp(path, "-") == 0 ? "the standard input" : path,
                err.text);
        code = CLI_FAILED;
    }
    buf_free(&raw);
    if (code != CLI_OK)
        return code;
    (*out)->received_at_ms = clock_unix_ms();
    (*out)->id = uuid_new((*out)->received_at_ms);
    (*out)->tenant = BYTES("default");
    (*out)->source = arena_copy((*out)->arena, bytes_str(source));
    (*out)->remote_ip = BYTES("127.0.0.1");
    return CLI_OK;
}

static int hook_of_id(const char *id, const struct client_where *where, struct envelope **out)
{
    struct client *client = NULL;
    int code = client_open(&verb_key, where, &client);
    if (code == CLI_OK)
        code = hook_fetch(client, id, out, NULL);
    client_close(client);
    return code;
}

/* ---- what is printed ---- */

static const char *lane_word(const struct order_lane *lane)
{
    return lane->filtered            ? "filtered: the sink's `only` leaves it out"
           : lane->unordered_by_word ? "unordered: it takes no lane"
           : !lane->key.at           ? "keyless: it shares one lane with all that have no key"
                                     : "";
}

static void print_text(const struct key_finding *found)
{
    struct buf key = {0};
    char hex[2 * LANE_ID_SIZE + 1];
    const struct order_lane *lane = &found->lane;
    percent_encode(&key, lane->key);
    hex_encode(lane->lane.bytes, LANE_ID_SIZE, hex);
    printf("key      %s\n", lane->key.at ? key.at : "-");
    printf("lane     %s\n", lane->ordered ? hex : "-");
    if (*lane_word(lane))
        printf("         %s\n", lane_word(lane));
    if (lane->missing != MISSING_NOTHING)
        printf("reason   %s (found %s)\n", missing_reason_name(lane->missing), order_lane_instead(lane));
    if (found->script.breach != SCRIPT_BREACH_NONE)
        printf("breach   %s\n", script_breach_name(found->script.breach));
    if (found->scripted)
        printf("cost     %lld instructions, %lld pattern steps, %zu KiB, %.1f us\n",
               (long long)found->script.cost.instructions, (long long)found->script.cost.pattern_steps,
               found->script.cost.memory_bytes / 1024, (double)found->script.cost.time_ns / 1000);
    if (found->script.error && *found->script.error) {
        fflush(stdout);
        print_harmless(stderr, found->script.error);
        fputc('\n', stderr);
    }
    buf_free(&key);
}

static void print_json(const struct key_subject *subject, const struct key_finding *found)
{
    struct buf out = {0};
    struct jsonw json = jsonw_on(&out);
    jsonw_object(&json, NULL);
    jsonw_str(&json, "source", subject->source->name);
    jsonw_str(&json, "sink", subject->source->sinks[subject->sink].name);
    scripts_write_found(&found->lane, &found->script, &json);
    jsonw_end_object(&json);
    puts(out.at);
    buf_free(&out);
}

static int show_one(const struct key_subject *subject, const char *hook, const struct client_where *where,
                    bool json)
{
    struct envelope *envelope = NULL;
    struct uuid id;
    int code = uuid_parse(bytes_str(hook), &id) ? hook_of_id(hook, where, &envelope)
                                                : hook_of_file(hook, subject->source->name, &envelope);
    if (code != CLI_OK)
        return code;
    struct key_finding found;
    key_subject_find(subject, envelope, true, &found);
    if (json)
        print_json(subject, &found);
    else
        print_text(&found);
    bool failed = found.script.nondeterministic || found.script.missing == MISSING_SCRIPT_ERROR ||
                  found.script.missing == MISSING_SCRIPT_BREACH;
    envelope_unref(envelope);
    return failed ? CLI_FAILED : CLI_OK;
}

static int run(int argc, char **argv)
{
    struct client_where where = {0};
    const char *source = NULL, *sink = NULL, *hook = NULL, *key = NULL, *gate = NULL;
    int64_t history_ms = 0, limit = KEY_HISTORY_MAX;
    bool json = false;
    const struct arg args[] = {CLIENT_ARGS(where),
                               {"source", ARG_TEXT, {.text = &source}},
                               {"sink", ARG_TEXT, {.text = &sink}},
                               {"hook", ARG_TEXT, {.text = &hook}},
                               {"key", ARG_TEXT, {.text = &key}},
                               {"history", ARG_DURATION, {.number = &history_ms}},
                               {"fail-if", ARG_TEXT, {.text = &gate}},
                               {"limit", ARG_COUNT, {.number = &limit}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    size_t count;
    struct error err;
    int code = cli_args(&verb_key, argc, argv, args, NULL, 0, &count);
    if (code != CLI_OK)
        return code;
    if (!source)
        return cli_usage(&verb_key, "whose key? --source NAME");
    if (hook && history_ms)
        return cli_usage(&verb_key, "either --hook or --history");
    if (gate && !history_ms)
        return cli_usage(&verb_key, "--fail-if is for --history");
    if (gate && key_gate_check(gate, &err) != STATUS_OK)
        return cli_usage(&verb_key, "--fail-if: %s", err.text);

    struct key_subject subject;
    code = key_subject_open(where.config, source, sink, key, &subject);
    if (code != CLI_OK)
        return code;
    if (history_ms)
        code = key_history(&(struct key_history){.subject = &subject,
                                                 .where = &where,
                                                 .since_ms = clock_unix_ms() - history_ms,
                                                 .limit = limit,
                                                 .gate = gate,
                                                 .json = json});
    else
        code = show_one(&subject, hook ? hook : "-", &where, json);
    key_subject_close(&subject);
    return code;
}

const struct cli_verb verb_key = {
    .name = "key",
    .summary = "which lane a hook takes, and why; what a key would do with all that is stored",
    .help =
        "usage: lanegate key --source S [--sink N] [--hook FILE|ID|-] [--key KEY] [options]\n"
        "       lanegate key --source S [--sink N] --history 7d [--key KEY] [--fail-if BOUNDS] [options]\n"
        "\n"
        "Shows key, lane, reason and cost of one hook: a file with a raw request (as hooks show --raw prints "
        "it), the\n"
        "id of a stored one, or the standard input. A script is called in two fresh states and in a used "
        "one; when its\n"
        "answers differ it is nondeterministic, and that, an error or a broken budget is exit code 1.\n"
        "\n"
        "With --history it takes every stored hook of the source, asked of the running gateway and resolved "
        "here, and\n"
        "says how many lanes they make, the largest ones, what has no key and why, what it cost, and how "
        "many hooks\n"
        "would be in another lane than the one they were given.\n"
        "\n"
        "  --source NAME    the source\n"
        "  --sink NAME      the sink; needed where the source has several ordered ones\n"
        "  --hook WHAT      default: -\n"
        "  --key KEY        a key to try in place of the configured one, as it would stand in config.lua:\n"
        "                   --key '{ json = \"data.object.customer\" }'\n"
        "  --history AGE    hooks received since then: 24h, 7d\n"
        "  --limit N        at most the newest N of them (100000)\n"
        "  --fail-if TEXT   exit code 1 when a bound is passed: 'missing>1% or largest>20%'. Names: "
        "missing,\n"
        "                   largest (hooks in the largest lane), unordered, changed, errors, breaches, "
        "lanes\n"
        "  --json           one document\n" CLIENT_HELP "\n"
        "example:\n"
        "  lanegate hooks show --raw ID | lanegate key --source shop --sink regions\n"
        "  lanegate key --source shop --sink regions --history 7d --fail-if 'missing>1% or largest>20%'\n",
    .run = run,
};
