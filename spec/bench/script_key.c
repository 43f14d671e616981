/* What a typical Lua key costs a hook: two headers, one JSON path, a concatenation; the whole call, as ingest
 * makes it. Beside it the same key read natively: the JSON path alone. A body of 1 KB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "script/keys.h"
#include "util/check.h"
#include "util/log.h"

enum { CALLS = 1000 * 1000, ROUNDS = 5, BODY = 1024 };

static const char module_text[] =
    "local M = {}\n"
    "function M.key(hook)\n"
    "  return hook:header('x-region') .. ':' .. hook:header('x-shop') .. ':' ..\n"
    "    hook:get('data.object.customer')\n"
    "end\n"
    "return M\n";

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static struct envelope *make_hook(void)
{
    static const struct header headers[] = {
        {{"Host", 4}, {"hooks.example", 13}},
        {{"User-Agent", 10}, {"provider/1", 10}},
        {{"Content-Type", 12}, {"application/json", 16}},
        {{"X-Region", 8}, {"eu", 2}},
        {{"X-Shop", 6}, {"shop-17", 7}},
        {{"X-Request-Id", 12}, {"1234567890", 10}},
    };
    struct envelope *envelope = envelope_new(4096);
    envelope->tenant = envelope->source = BYTES("shop");
    envelope->headers = headers;
    envelope->header_count = sizeof headers / sizeof *headers;
    char *body = arena_alloc(envelope->arena, BODY);
    int len =
        snprintf(body, BODY, "{\"id\":\"evt_1\",\"data\":{\"object\":{\"customer\":\"cus_42\",\"pad\":\"");
    memset(body + len, 'x', (size_t)(BODY - len));
    memcpy(body + BODY - 4, "\"}}}", 4);
    envelope->body = bytes_of(body, BODY);
    return envelope;
}

/* Nanoseconds of one hook through a plan. */
static double measure(const struct order_options *options, const struct envelope *envelope, struct bytes key)
{
    struct order_plan *plan;
    struct error err;
    CHECK(order_plan_new(options, &plan, &err) == STATUS_OK);
    double best = 1e12;
    for (int round = 0; round < ROUNDS; round++) {
        struct arena *arena = arena_new(64 * 1024);
        double from = now_ns();
        for (int i = 0; i < CALLS; i++) {
            struct order_lane lane;
            if (i % 500 == 0) {
                arena_free(arena);
                arena = arena_new(64 * 1024);
            }
            order_resolve(plan, envelope, arena, &lane, NULL);
            CHECK(bytes_eq(lane.key, key));
        }
        double each = (now_ns() - from) / CALLS;
        best = each < best ? each : best;
        arena_free(arena);
    }
    order_plan_free(plan);
    return best;
}

int main(void)
{
    char dir[] = "/tmp/lanegate-bench-XXXXXX", path[64];
    CHECK(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/m.lua", dir);
    FILE *file = fopen(path, "w");
    CHECK(file);
    fputs(module_text, file);
    fclose(file);

    struct scripts *scripts;
    struct error err;
    const struct scripts_options options = {.path = dir,
                                            .limits = {.max_result_bytes = 4096,
                                                       .max_instructions = 100000,
                                                       .max_memory_bytes = 32 << 20,
                                                       .max_pattern_steps = 100000},
                                            .json_max_bytes = 1 << 20};
    CHECK(scripts_open(&options, &scripts, &err) == STATUS_OK);
    const struct key_spec lua = {.kind = KEY_SCRIPT, .module = "m", .function = "key"};
    CHECK(scripts_add(scripts, &lua, &err) == STATUS_OK);
    struct metrics *metrics = metrics_new();
    scripts_meter(scripts, metrics);

    const struct bytes segments[] = {BYTES("data"), BYTES("object"), BYTES("customer")};
    const struct key_spec json = {.kind = KEY_JSON, .path = {segments, 3}};
    struct envelope *envelope = make_hook();
    const struct order_sink lua_sink = {.name = BYTES("sink"), .ordered = true, .key = &lua},
                            json_sink = {.name = BYTES("sink"), .ordered = true, .key = &json};
    struct order_options order = {.source = BYTES("shop"),
                                  .sinks = &json_sink,
                                  .sink_count = 1,
                                  .json_max_bytes = 1 << 20,
                                  .engine = scripts_engine(scripts)};
    double native_ns = measure(&order, envelope, BYTES("cus_42"));
    order.sinks = &lua_sink;
    double lua_ns = measure(&order, envelope, BYTES("eu:shop-17:cus_42"));
    printf("lane of a hook, best of %d rounds of %d: JSON key %.0f ns, Lua key %.0f ns\n", ROUNDS, CALLS,
           native_ns, lua_ns);

    scripts_close(scripts);
    metrics_free(metrics);
    envelope_unref(envelope);
    unlink(path);
    rmdir(dir);
    return 0;
}
