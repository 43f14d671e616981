/* lanegate verify: why does my signature fail? Judges a captured request with the very check that ingest
 * runs, and tells what it compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/config_file.h"
#include "cli/input.h"
#include "cli/show.h"
#include "envelope/raw.h"
#include "util/clock.h"
#include "util/jsonw.h"
#include "util/units.h"

/* Everything that is told, for people and as JSON. */
struct findings {
    const struct config_source *source;
    struct envelope *envelope;
    int64_t now_ms;
    struct verify_result result;
    struct verify_trace trace;
    struct verify_cause causes[VERIFY_CAUSES_MAX];
    size_t cause_count;
    const char *others[VERIFY_CAUSES_MAX]; /* sources whose verification takes it */
    size_t other_count;
};

static bool is_accepted(const struct findings *found)
{
    return found->result.verification != VERIFICATION_FAILED;
}

static void judge(const struct config *config, struct findings *found)
{
    found->result = verify_traced(found->source->verifier, found->envelope, found->now_ms, &found->trace);
    if (is_accepted(found))
        return;
    found->cause_count =
        verify_causes(found->source->verifier, found->envelope, found->now_ms, found->causes);
    int64_t then_ms = found->trace.has_timestamp ? found->trace.timestamp_ms : found->now_ms;
    for (size_t i = 0; i < config->source_count && found->other_count < VERIFY_CAUSES_MAX; i++) {
        const struct config_source *other = &config->sources[i];
        if (other != found->source &&
            verify(other->verifier, found->envelope, then_ms).verification == VERIFICATION_OK)
            found->others[found->other_count++] = other->name;
    }
}

/* -- for people ----------------------------------------------------------------------------------------- */

static void line(const char *name)
{
    printf("  %-11s", name);
}

static void print_header(const struct verify_trace *trace)
{
    if (!trace->header.at)
        return;
    line("header");
    printf("%.*s: ", BYTES_ARG(trace->header));
    if (trace->header_count == 0) {
        printf("not there\n");
    } else if (trace->header_count > 1) {
        printf("there %zu times\n", trace->header_count);
    } else {
        printf("found, %zu signature%s of the scheme's form", trace->signatures,
               trace->signatures == 1 ? "" : "s");
        printf(trace->strangers ? ", %zu of another\n" : "\n", trace->strangers);
    }
    if (trace->fault_header.at && !bytes_eq_nocase(trace->fault_header, trace->header)) {
        line("fault in");
        printf("%.*s\n", BYTES_ARG(trace->fault_header));
    }
}

static void print_time(const struct findings *found)
{
    const struct verify_trace *trace = &found->trace;
    int64_t apart_ms;
    if (!trace->has_timestamp || __builtin_sub_overflow(found->now_ms, trace->timestamp_ms, &apart_ms) ||
        apart_ms == INT64_MIN)
        return;
    char apart[32], tolerance[32];
    units_format_ms(apart_ms < 0 ? -apart_ms : apart_ms, apart);
    units_format_ms(trace->tolerance_ms, tolerance);
    line("time");
    printf("%lld, %s %s; tolerance_ms allows %s\n", (long long)(trace->timestamp_ms / 1000), apart,
           apart_ms < 0 ? "ahead" : "ago", tolerance);
}

static void print_people(const struct findings *found)
{
    const struct verify_trace *trace = &found->trace;
    const char *type = verifier_type(found->source->verifier);
    if (found->result.verification == VERIFICATION_SKIPPED)
        printf("accepted: source %s verifies nothing (type none)\n", found->source->name);
    else if (is_accepted(found))
        printf("accepted by source %s (type %s)\n", found->source->name, type);
    else
        printf("refused by source %s (type %s): %s\n", found->source->name, type, found->result.reason);
    print_header(trace);
    print_time(found);
    if (found->result.verification != VERIFICATION_SKIPPED) {
        line("body");
        printf("%zu bytes\n", found->envelope->body.len);
    }
    if (trace->secrets) {
        line("secret");
        if (trace->secret)
            printf("number %zu of %zu fits\n", trace->secret, trace->secrets);
        else
            printf("%zu configured, %s\n", trace->secrets, trace->signatures ? "none fits" : "none tried");
    }
    if (trace->said[0]) {
        line("it says");
        printf("%s\n", trace->said);
    }
    if (found->cause_count + found->other_count)
        printf("likely:\n");
    for (size_t i = 0; i < found->cause_count; i++)
        printf("  - %s\n", found->causes[i].text);
    for (size_t i = 0; i < found->other_count; i++)
        printf(
            "  - source %s would accept it: the request was meant for that one, or its secret was put here\n",
            found->others[i]);
    if (!is_accepted(found) && !found->cause_count && !found->other_count)
        printf(
            "no usual cause explains it: compare the secret with what the provider shows, and capture the\n"
            "request before anything parses its body\n");
}

/* -- as JSON -------------------------------------------------------------------------------------------- */

static void put_trace(struct jsonw *w, const struct findings *found)
{
    const struct verify_trace *trace = &found->trace;
    jsonw_bytes(w, "header", trace->header);
    jsonw_uint(w, "header_count", trace->header_count);
    jsonw_bytes(w, "fault_header", trace->fault_header);
    jsonw_uint(w, "signatures", trace->signatures);
    jsonw_uint(w, "other_signatures", trace->strangers);
    if (trace->has_timestamp) {
        jsonw_int(w, "timestamp_ms", trace->timestamp_ms);
        jsonw_int(w, "tolerance_ms", trace->tolerance_ms);
    } else {
        jsonw_null(w, "timestamp_ms");
        jsonw_null(w, "tolerance_ms");
    }
    jsonw_uint(w, "secrets", trace->secrets);
    if (trace->secret)
        jsonw_uint(w, "secret", trace->secret);
    else
        jsonw_null(w, "secret");
    jsonw_str(w, "said", trace->said[0] ? trace->said : NULL);
}

static void print_json(const struct findings *found)
{
    struct buf text = {0};
    struct jsonw w = jsonw_on(&text);
    jsonw_object(&w, NULL);
    jsonw_bool(&w, "accepted", is_accepted(found));
    jsonw_str(&w, "source", found->source->name);
    jsonw_str(&w, "type", verifier_type(found->source->verifier));
    jsonw_str(&w, "verification", verification_name(found->result.verification));
    jsonw_str(&w, "reason", found->result.reason);
    jsonw_int(&w, "at_ms", found->now_ms);
    jsonw_uint(&w, "body_bytes", found->envelope->body.len);
    put_trace(&w, found);
    jsonw_array(&w, "causes");
    for (size_t i = 0; i < found->cause_count; i++) {
        jsonw_object(&w, NULL);
        jsonw_str(&w, "code", found->causes[i].code);
        jsonw_str(&w, "text", found->causes[i].text);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_array(&w, "accepted_by");
    for (size_t i = 0; i < found->other_count; i++)
        jsonw_str(&w, NULL, found->others[i]);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    puts(text.at);
    buf_free(&text);
}

/* -- the verb ------------------------------------------------------------------------------------------- */

static struct envelope *read_request(const char *path)
{
    struct buf raw = {0};
    struct envelope *envelope = NULL;
    struct error err;
    if (input_read(path, INPUT_REQUEST_MAX, &raw, &err) != STATUS_OK)
        fprintf(stderr, "lanegate verify: %s\n", err.text);
    else if (envelope_from_raw(buf_bytes(&raw), &envelope, &err) != STATUS_OK)
        fprintf(stderr, "lanegate verify: %s: %s\n", path, err.text);
    buf_free(&raw);
    return envelope;
}

static const struct config_source *find_source(const struct config *config, const char *name)
{
    const struct config_source *source = config_source_find(config, bytes_str(name));
    if (source)
        return source;
    fprintf(stderr, "lanegate verify: no source \"%s\" in %s; there are:", name, config->path);
    for (size_t i = 0; i < config->source_count; i++)
        fprintf(stderr, " %s", config->sources[i].name);
    fputc('\n', stderr);
    return NULL;
}

static int verify_file(const struct config *config, const char *source, const char *path,
                       const char *client_cert, int64_t now_ms, bool json)
{
    struct findings *found = calloc(1, sizeof *found);
    int code = CLI_USAGE;
    found->now_ms = now_ms;
    found->source = find_source(config, source);
    if (found->source)
        found->envelope = read_request(path);
    if (found->envelope) {
        found->envelope->client_cert = bytes_str(client_cert);
        found->envelope->source = bytes_str(found->source->name);
        found->envelope->tenant = bytes_str(found->source->tenant);
        found->envelope->received_at_ms = now_ms; /* a function in Lua has no other clock */
        judge(config, found);
        if (json)
            print_json(found);
        else
            print_people(found);
        code = is_accepted(found) ? CLI_OK : CLI_FAILED;
        envelope_unref(found->envelope);
    }
    free(found);
    return code;
}

static int run(int argc, char **argv)
{
    const char *config_path = NULL, *source = NULL, *client_cert = NULL, *path = NULL;
    int64_t at = -1;
    bool json = false;
    const struct arg args[] = {
        {"config", ARG_TEXT, {.text = &config_path}}, {"source", ARG_TEXT, {.text = &source}},
        {"at", ARG_COUNT, {.number = &at}},           {"client-cert", ARG_TEXT, {.text = &client_cert}},
        {"json", ARG_FLAG, {.flag = &json}},          {0}};
    size_t count;
    int code = cli_args(&verb_verify, argc, argv, args, &path, 1, &count);
    if (code != CLI_OK)
        return code;
    if (!source)
        return cli_usage(&verb_verify, "which source? --source NAME says whose verification to use");
    if (count == 0)
        return cli_usage(&verb_verify,
                         "which request? a FILE with the raw HTTP request; \"-\" reads it from the "
                         "standard input");
    if (at > INT64_MAX / 1000)
        return cli_usage(&verb_verify, "--at: must be unix time in seconds");
    struct config *config;
    code = config_file_load(config_path, CONFIG_SERVE, &config);
    if (code != CLI_OK)
        return code;
    code = verify_file(config, source, path, client_cert, at < 0 ? clock_unix_ms() : at * 1000, json);
    config_unref(config);
    return code;
}

const struct cli_verb verb_verify = {
    .name = "verify",
    .summary = "why does my signature fail? judges a captured request",
    .help =
        "usage: lanegate verify --source NAME [--at UNIX_SECONDS] [--json] [--config FILE] FILE\n"
        "\n"
        "FILE holds a raw HTTP request: request line, headers, an empty line, and the body byte for byte "
        "(\"-\": the\n"
        "standard input). It is judged by the same check that the gateway runs. Prints accepted, or the "
        "reason with\n"
        "what was compared, and the likely causes: each usual mistake is undone and the check asked again. "
        "Never\n"
        "prints a secret or the signature that was expected.\n"
        "\n"
        "  --source NAME       whose verification\n"
        "  --at UNIX_SECONDS   judge time stamps as if it were then; for a capture, when it was received\n"
        "  --client-cert HEX   SHA-256 of the client's certificate, for verify = { type = \"mtls\" }\n"
        "  --config FILE       default: ./config.lua, then /etc/lanegate/config.lua\n"
        "  --json              the findings as one JSON object\n"
        "\n"
        "exit codes: 0 accepted, 1 refused, 2 usage or no such request or source, 78 bad configuration\n",
    .run = run,
};
