/* Runs functions of scripts on one hook, for the specs beside it: a process of its own for every attack, so
 * that one that crashes or hangs is seen.
 *
 *     sandbox_try [options] MODULE.FUNCTION...
 *
 * Each function is called in turn, by the engine that ingest uses, in one set of scripts: what the first does
 * to its state is there for the second. One line of JSON for each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "script/keys.h"
#include "util/check.h"
#include "util/jsonw.h"

struct options {
    const char *path;
    struct script_limits limits;
    size_t body_zeros; /* a body of so many bytes, instead of `body` */
    const char *body, *args;
    long repeat;
    bool probe, verify, inspect;
};

static struct envelope *make_hook(const struct options *options)
{
    static const struct header headers[] = {
        {{"Content-Type", 12}, {"application/json", 16}},
        {{"X-Shop", 6}, {"7", 1}},
        {{"X-Many", 6}, {"a", 1}},
        {{"x-many", 6}, {"b", 1}},
    };
    struct envelope *envelope = envelope_new(4096);
    CHECK(uuid_parse(BYTES("01890a5d-ac96-774b-bcce-b302099a8057"), &envelope->id));
    envelope->tenant = BYTES("acme");
    envelope->source = BYTES("shop");
    envelope->method = BYTES("POST");
    envelope->path = BYTES("/webhooks/shop");
    envelope->query = BYTES("a=1&b=x%20y+z&a=2&empty=&flag&%62ad=%zz");
    envelope->content_type = headers[0].value;
    envelope->received_at_ms = 1700000000123;
    envelope->remote_ip = BYTES("192.0.2.1");
    envelope->verification = VERIFICATION_OK;
    envelope->headers = headers;
    envelope->header_count = sizeof headers / sizeof *headers;
    envelope->body = bytes_str(options->body);
    if (options->body_zeros) {
        char *body = arena_alloc(envelope->arena, options->body_zeros);
        memset(body, '0', options->body_zeros);
        envelope->body = bytes_of(body, options->body_zeros);
    }
    return envelope;
}

static int64_t cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void print(const struct script_result *result, const char *name, int64_t us, const char *reason)
{
    struct buf text = {0};
    struct jsonw w = jsonw_on(&text);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "function", name);
    jsonw_str(&w, "missing", missing_reason_name(result->missing));
    jsonw_str(&w, "breach", script_breach_name(result->breach));
    jsonw_bytes_percent(&w, "key", result->key);
    jsonw_bool(&w, "unordered", result->unordered);
    jsonw_bool(&w, "nondeterministic", result->nondeterministic);
    jsonw_str(&w, "reason", reason);
    jsonw_str(&w, "error", result->error);
    jsonw_int(&w, "cpu_us", us);
    jsonw_int(&w, "instructions", result->cost.instructions);
    jsonw_int(&w, "pattern_steps", result->cost.pattern_steps);
    jsonw_int(&w, "memory_bytes", (int64_t)result->cost.memory_bytes);
    jsonw_end_object(&w);
    puts(text.at);
    fflush(stdout);
    buf_free(&text);
}

static void call(struct scripts *scripts, const struct options *options, const struct key_spec *spec,
                 struct envelope *envelope)
{
    struct arena *arena = arena_new(1024);
    struct script_result result = {.error = ""};
    const char *reason = NULL;
    int64_t from = cpu_us();
    if (options->verify) {
        result.missing =
            scripts_verify(scripts, spec, envelope, arena, &reason) ? MISSING_NOTHING : MISSING_SCRIPT_ERROR;
    } else if (options->probe) {
        scripts_probe(scripts, spec, envelope, arena, &result);
    } else if (options->inspect) {
        scripts_try(scripts, spec, envelope, arena, &result);
    } else {
        const struct key_engine *engine = scripts_engine(scripts);
        result.key = BYTES_NONE;
        result.missing = engine->resolve(engine->ctx, spec, envelope, arena, &result.key, &result.unordered);
    }
    int64_t us = cpu_us() - from;
    /* Once more where only that tells the breach and the words; the state may be another one then. */
    if (!options->inspect && !options->probe && !options->verify && result.missing) {
        struct script_result told;
        scripts_try(scripts, spec, envelope, arena, &told);
        result.breach = told.breach;
        result.error = told.error;
    }
    print(&result, spec->function, us, reason);
    arena_free(arena);
}

static struct key_spec *spec_of(char *name, const struct value *args)
{
    struct key_spec *spec = calloc(1, sizeof *spec);
    char *dot = strrchr(name, '.');
    CHECK(dot);
    *dot = 0;
    *spec = (struct key_spec){.kind = KEY_SCRIPT, .module = name, .function = dot + 1, .args = args};
    return spec;
}

static bool option(struct options *o, const char *name, const char *value)
{
    if (strcmp(name, "--path") == 0)
        o->path = value;
    else if (strcmp(name, "--body") == 0)
        o->body = value;
    else if (strcmp(name, "--body-zeros") == 0)
        o->body_zeros = strtoull(value, NULL, 10);
    else if (strcmp(name, "--instructions") == 0)
        o->limits.max_instructions = atoll(value);
    else if (strcmp(name, "--memory") == 0)
        o->limits.max_memory_bytes = strtoull(value, NULL, 10);
    else if (strcmp(name, "--steps") == 0)
        o->limits.max_pattern_steps = atoll(value);
    else if (strcmp(name, "--repeat") == 0)
        o->repeat = atol(value);
    else if (strcmp(name, "--mode") == 0)
        (strcmp(value, "probe") == 0    ? (o->probe = true)
         : strcmp(value, "verify") == 0 ? (o->verify = true)
                                        : (o->inspect = true));
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    struct options o = {.path = "lua",
                        .body = "{\"shop\":{\"id\":\"42\"},\"n\":17,\"list\":[{\"id\":\"first\"}]}",
                        .repeat = 1,
                        .limits = {.max_result_bytes = 4096,
                                   .max_instructions = 100000,
                                   .max_memory_bytes = 32 << 20,
                                   .max_pattern_steps = 100000}};
    int at = 1;
    while (at + 1 < argc && option(&o, argv[at], argv[at + 1]))
        at += 2;
    const struct value words[] = {
        {.kind = VALUE_STRING, .string = BYTES("eu")},
        {.kind = VALUE_MAP,
         .len = 1,
         .names = &(struct bytes){"n", 1},
         .items = &(struct value){.kind = VALUE_NUMBER, .number = 1}},
    };
    const struct value args = {.kind = VALUE_LIST, .len = 2, .items = words};
    struct scripts_options options = {.path = o.path, .limits = o.limits, .json_max_bytes = 1 << 20};
    struct scripts *scripts;
    struct error err;
    if (scripts_open(&options, &scripts, &err) != STATUS_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    struct key_spec *specs[32];
    int count = 0;
    for (; at < argc && count < 32; at++) {
        specs[count] = spec_of(argv[at], &args);
        if (scripts_add(scripts, specs[count++], &err) != STATUS_OK) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
    }
    struct envelope *envelope = make_hook(&o);
    for (long i = 0; i < o.repeat; i++)
        for (int k = 0; k < count; k++)
            call(scripts, &o, specs[k], envelope);
    scripts_close(scripts);
    envelope_unref(envelope);
    for (int k = 0; k < count; k++)
        free(specs[k]);
    return 0;
}
