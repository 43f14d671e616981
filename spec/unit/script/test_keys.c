/* Sets of scripts as other rooms use them: what is refused before the first hook, calls on many threads, what
 * is counted, and that nothing grows. What scripts may not do is in spec/lua/sandbox. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "script/keys.h"
#include "util/log.h"

enum { CALLS = 100000, THREADS = 4 };

struct fixture {
    char dir[64];
    struct scripts *scripts;
    struct arena *arena;
    struct envelope *envelope;
    struct error err;
};

static void write_file(const struct fixture *f, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", f->dir, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int setup(void **ctx)
{
    struct fixture *f = calloc(1, sizeof *f);
    *ctx = f;
    snprintf(f->dir, sizeof f->dir, "/tmp/lanegate-keys-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    f->arena = arena_new(1024);
    f->envelope = envelope_new(1024);
    f->envelope->tenant = f->envelope->source = BYTES("shop");
    f->envelope->method = BYTES("POST");
    f->envelope->path = BYTES("/");
    f->envelope->remote_ip = BYTES("127.0.0.1");
    f->envelope->body = BYTES("{\"shop\":{\"id\":\"42\"}}");
    return 0;
}

static int teardown(void **ctx)
{
    struct fixture *f = *ctx;
    char command[128];
    scripts_close(f->scripts);
    envelope_unref(f->envelope);
    arena_free(f->arena);
    snprintf(command, sizeof command, "rm -rf %s", f->dir);
    int code = system(command);
    free(f);
    return code;
}

static struct key_spec spec_of(const char *module, const char *function)
{
    return (struct key_spec){.kind = KEY_SCRIPT, .module = module, .function = function};
}

static void open_set(struct fixture *f)
{
    const struct scripts_options options = {.path = f->dir,
                                            .limits = {.max_result_bytes = 4096,
                                                       .max_instructions = 100000,
                                                       .max_memory_bytes = 32 << 20,
                                                       .max_pattern_steps = 100000},
                                            .json_max_bytes = 1 << 20};
    assert_int_equal(scripts_open(&options, &f->scripts, &f->err), STATUS_OK);
}

static void refused(struct fixture *f, const char *module, const char *function, const char *part)
{
    struct key_spec *spec = arena_alloc(f->arena, sizeof *spec);
    *spec = spec_of(module, function);
    f->err.text[0] = 0;
    assert_int_equal(scripts_add(f->scripts, spec, &f->err), STATUS_INVALID);
    if (!strstr(f->err.text, part) || strchr(f->err.text, '\n'))
        fail_msg("said: %s", f->err.text);
}

static void what_can_not_work_is_refused_with_file_and_line(void **ctx)
{
    struct fixture *f = *ctx;
    write_file(f, "good.lua", "return { key = function() return 'k' end, x = 1 }");
    write_file(f, "syntax.lua", "local M = {}\nfunction M.key(\nreturn M\n");
    write_file(f, "raises.lua", "local M = {}\nlocal x = nil .. 'x'\nreturn M\n");
    write_file(f, "spins.lua", "local M = {}\nwhile true do end\nreturn M\n");
    write_file(f, "grows.lua", "local s = 'x'\nwhile true do s = s .. s end\n");
    write_file(f, "object.lua", "error({})\n");
    write_file(f, "nothing.lua", "local M = {}\n");
    open_set(f);
    struct key_spec good = spec_of("good", "key");
    assert_int_equal(scripts_add(f->scripts, &good, &f->err), STATUS_OK);
    assert_int_equal(scripts_add(f->scripts, &good, &f->err), STATUS_OK);
    refused(f, "good", "kye", "good.lua: has no function kye");
    refused(f, "good", "x", "good.lua: has no function x");
    refused(f, "keys.none", "key", "there is no module keys.none: expected a file");
    refused(f, "keys.none", "key", "keys/none.lua");
    refused(f, "syntax", "key", "syntax.lua:3: ");
    refused(f, "raises", "key", "raises.lua:2: attempt to concatenate a nil value");
    refused(f, "spins", "key", "spins.lua:2: loading it ran too many instructions");
    refused(f, "grows", "key", "loading it");
    refused(f, "object", "key", "object.lua:1: loading it raised a table");
    refused(f, "nothing", "key", "nothing.lua: must return a table of functions, returned a boolean");
}

static void links_that_lead_out_are_not_followed(void **ctx)
{
    struct fixture *f = *ctx;
    char path[128];
    char outside[] = "/tmp/lanegate-outside-XXXXXX";
    int fd = mkstemp(outside);
    assert_true(fd >= 0 && write(fd, "return {}", 9) == 9);
    close(fd);
    write_file(f, "real.lua", "return { key = function() return 'k' end }");
    snprintf(path, sizeof path, "%s/out.lua", f->dir);
    assert_int_equal(symlink(outside, path), 0);
    snprintf(path, sizeof path, "%s/in.lua", f->dir);
    assert_int_equal(symlink("real.lua", path), 0);
    snprintf(path, sizeof path, "%s/ring", f->dir);
    assert_int_equal(symlink(".", path), 0);
    open_set(f);
    refused(f, "out", "key", "there is no module out");
    struct key_spec in = spec_of("in", "key");
    assert_int_equal(scripts_add(f->scripts, &in, &f->err), STATUS_OK);
    unlink(outside);
}

static void a_file_changed_later_is_not_seen(void **ctx)
{
    struct fixture *f = *ctx;
    struct script_result result;
    write_file(f, "m.lua", "return { key = function() return require('late').word end }");
    write_file(f, "late.lua", "return { word = 'before' }");
    open_set(f);
    struct key_spec spec = spec_of("m", "key");
    assert_int_equal(scripts_add(f->scripts, &spec, &f->err), STATUS_OK);
    write_file(f, "late.lua", "return { word = 'after' }");
    scripts_try(f->scripts, &spec, f->envelope, f->arena, &result);
    assert_true(bytes_eq(result.key, BYTES("before")));
}

static void a_folder_that_is_not_there_is_empty(void **ctx)
{
    struct fixture *f = *ctx;
    const struct scripts_options options = {.path = "/nonexistent/lua",
                                            .limits = {.max_memory_bytes = 1 << 20}};
    assert_int_equal(scripts_open(&options, &f->scripts, &f->err), STATUS_OK);
    refused(f, "keys.shop", "key",
            "there is no module keys.shop: expected a file /nonexistent/lua/keys/shop.lua");
}

static void an_answer_that_differs_between_states_is_found(void **ctx)
{
    struct fixture *f = *ctx;
    struct script_result result;
    write_file(f, "m.lua",
               "local n = 0\n"
               "return { good = function(hook) return hook:get('shop.id') end,\n"
               "         used = function() n = n + 1 return tostring(n) end,\n"
               "         once = function() n = n + 1 if n > 1 then return 'x' end end }");
    open_set(f);
    struct key_spec good = spec_of("m", "good"), used = spec_of("m", "used"), once = spec_of("m", "once");
    assert_int_equal(scripts_add(f->scripts, &good, &f->err), STATUS_OK);
    assert_int_equal(scripts_add(f->scripts, &used, &f->err), STATUS_OK);
    assert_int_equal(scripts_add(f->scripts, &once, &f->err), STATUS_OK);
    scripts_probe(f->scripts, &good, f->envelope, f->arena, &result);
    assert_false(result.nondeterministic);
    assert_true(bytes_eq(result.key, BYTES("42")));
    scripts_try(f->scripts, &used, f->envelope, f->arena, &result);
    scripts_probe(f->scripts, &used, f->envelope, f->arena, &result);
    assert_true(result.nondeterministic);
    assert_non_null(strstr(result.error, "gave \"1\" in a fresh state, and in a used one \"3\""));
    scripts_probe(f->scripts, &once, f->envelope, f->arena, &result);
    assert_true(result.nondeterministic);
    assert_non_null(strstr(result.error, "no key (script_type)"));
}

static void what_a_call_used_is_told_and_repeats(void **ctx)
{
    struct fixture *f = *ctx;
    struct script_result a, b;
    write_file(f, "m.lua",
               "return { key = function(hook) return (hook:get('shop.id'):gsub('%d', 'x')) end,\n"
               "         fails = function()\n  local x\n  return x.y end }");
    open_set(f);
    struct key_spec spec = spec_of("m", "key"), fails = spec_of("m", "fails");
    assert_int_equal(scripts_add(f->scripts, &spec, &f->err), STATUS_OK);
    assert_int_equal(scripts_add(f->scripts, &fails, &f->err), STATUS_OK);
    scripts_try(f->scripts, &spec, f->envelope, f->arena, &a); /* prepares the path */
    scripts_try(f->scripts, &spec, f->envelope, f->arena, &a);
    scripts_try(f->scripts, &spec, f->envelope, f->arena, &b);
    assert_true(bytes_eq(a.key, BYTES("xx")));
    assert_string_equal(a.error, "");
    assert_in_range(a.cost.instructions, 5, 100);
    assert_in_range(a.cost.pattern_steps, 2, 20);
    assert_in_range(a.cost.memory_bytes, 10000, 1 << 20);
    assert_int_equal(a.cost.instructions, b.cost.instructions);
    assert_int_equal(a.cost.pattern_steps, b.cost.pattern_steps);
    scripts_try(f->scripts, &fails, f->envelope, f->arena, &a);
    assert_int_equal(a.missing, MISSING_SCRIPT_ERROR);
    assert_non_null(strstr(a.error, "m.lua:4: attempt to index local 'x'"));
}

static void verifiers_say_true_or_why_not(void **ctx)
{
    struct fixture *f = *ctx;
    static const struct {
        const char *body, *reason;
    } cases[] = {
        {"return true", ""},
        {"return false, 'bad_signature'", "bad_signature"},
        {"return false", "failed"},
        {"return false, 'Not A Word'", "failed"},
        {"return nil", "script_type"},
        {"return 'yes'", "script_type"},
        {"error 'x'", "script_error"},
        {"while true do end", "script_breach"},
        {"return hook:header('x') == nil", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        const char *reason;
        snprintf(text, sizeof text, "return { verify = function(hook) %s end }", cases[i].body);
        write_file(f, "v.lua", text);
        open_set(f);
        struct key_spec spec = spec_of("v", "verify");
        assert_int_equal(scripts_add(f->scripts, &spec, &f->err), STATUS_OK);
        assert_int_equal(scripts_verify(f->scripts, &spec, f->envelope, f->arena, &reason),
                         *cases[i].reason == 0);
        assert_string_equal(reason, cases[i].reason);
        scripts_close(f->scripts);
        f->scripts = NULL;
    }
}

/* What one thread of several does. */
struct worker {
    struct fixture *f;
    const struct key_spec *spec, *breaks;
    pthread_t thread;
    int wrong;
};

static void *work(void *ctx)
{
    struct worker *worker = ctx;
    const struct key_engine *engine = scripts_engine(worker->f->scripts);
    for (int i = 0; i < CALLS / THREADS; i++) {
        struct arena *arena = arena_new(256);
        struct bytes key = BYTES_NONE;
        bool unordered = false;
        const struct key_spec *spec = i % 1000 == 999 ? worker->breaks : worker->spec;
        enum missing_reason missing =
            engine->resolve(engine->ctx, spec, worker->f->envelope, arena, &key, &unordered);
        if (spec == worker->breaks ? missing != MISSING_SCRIPT_BREACH : !bytes_eq(key, BYTES("shop:42")))
            worker->wrong++;
        arena_free(arena);
    }
    return NULL;
}

static void many_threads_call_the_same_function(void **ctx)
{
    struct fixture *f = *ctx;
    struct worker workers[THREADS];
    write_file(f, "m.lua",
               "return { key = function(hook) return hook.source .. ':' .. hook:get('shop.id') end,\n"
               "         breaks = function(hook) while true do end end }");
    open_set(f);
    struct key_spec spec = spec_of("m", "key"), breaks = spec_of("m", "breaks");
    assert_int_equal(scripts_add(f->scripts, &spec, &f->err), STATUS_OK);
    assert_int_equal(scripts_add(f->scripts, &breaks, &f->err), STATUS_OK);
    struct metrics *metrics = metrics_new();
    scripts_meter(f->scripts, metrics);
    log_setup(LOG_ERROR, true);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.f = f, .spec = &spec, .breaks = &breaks};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].wrong, 0);
    }
    const char *const labels[] = {"m", "breaks", "instructions", NULL};
    assert_int_equal(counter_read(metrics_series(metrics, METRIC_SCRIPT_BREACHES, labels)), CALLS / 1000);
    scripts_close(f->scripts);
    f->scripts = NULL;
    metrics_free(metrics);
}

/* Ten million calls do not grow a state (spec/README.md names the long run); these show the slope. */
static void calls_leave_nothing_behind(void **ctx)
{
    struct fixture *f = *ctx;
    write_file(f, "m.lua",
               "return { key = function(hook)\n"
               "  shared = (shared or '') .. 'x'\n"
               "  local t = hook:json() local co = coroutine.wrap(function() return t.shop.id end)\n"
               "  pcall(error, t)\n"
               "  return (co():gsub('%d', function(d) return d end)) .. #hook.body end }");
    open_set(f);
    struct key_spec spec = spec_of("m", "key");
    assert_int_equal(scripts_add(f->scripts, &spec, &f->err), STATUS_OK);
    const char *wanted = getenv("LANEGATE_SCRIPT_CALLS");
    long calls = wanted ? atol(wanted) : CALLS;
    const struct key_engine *engine = scripts_engine(f->scripts);
    size_t most = 0;
    for (long i = 0; i < calls; i++) {
        struct arena *arena = arena_new(256);
        struct bytes key = BYTES_NONE;
        bool unordered;
        assert_int_equal(engine->resolve(engine->ctx, &spec, f->envelope, arena, &key, &unordered),
                         MISSING_NOTHING);
        if (i % 10000 == 9999) {
            struct script_result result;
            scripts_try(f->scripts, &spec, f->envelope, arena, &result);
            most = result.cost.memory_bytes > most ? result.cost.memory_bytes : most;
        }
        arena_free(arena);
    }
    assert_in_range(most, 1, 1 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_can_not_work_is_refused_with_file_and_line, setup, teardown),
        cmocka_unit_test_setup_teardown(links_that_lead_out_are_not_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_changed_later_is_not_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(a_folder_that_is_not_there_is_empty, setup, teardown),
        cmocka_unit_test_setup_teardown(an_answer_that_differs_between_states_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_call_used_is_told_and_repeats, setup, teardown),
        cmocka_unit_test_setup_teardown(verifiers_say_true_or_why_not, setup, teardown),
        cmocka_unit_test_setup_teardown(many_threads_call_the_same_function, setup, teardown),
        cmocka_unit_test_setup_teardown(calls_leave_nothing_behind, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
