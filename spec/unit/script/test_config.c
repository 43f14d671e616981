/* A configuration file is a tree, or its faults. The table of faults is in spec/lua; here: the machine, the
 * bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "script/script.h"
#include "util/buf.h"
#include "util/value.h"

#define SOURCES "sources = { demo = { sinks = { { type = 'log' } } } }"

/* Other rooms, played: example.test is the one bad place. */
static enum status judge_url(const char *url, bool is_proxy, const char *const *allow_private,
                             bool allow_http, struct error *err)
{
    if (!strstr(url, "example.test"))
        return STATUS_OK;
    return error_set(err, STATUS_REFUSED, "is judged with %s and %d, proxy %d", *allow_private, allow_http,
                     is_proxy);
}

static enum status judge_range(const char *text, struct error *err)
{
    return strchr(text, '/') ? STATUS_OK : error_set(err, STATUS_INVALID, "is no range");
}

static enum status judge_secret(struct bytes text, struct error *err)
{
    return text.len > 3 ? STATUS_OK : error_set(err, STATUS_INVALID, "is too short");
}

static enum status judge_verify(const struct value *options, struct error *err)
{
    const struct value *secret = value_get(options, "secret");
    if (secret->kind == VALUE_NIL || secret->items[0].string.len > 3)
        return STATUS_OK;
    return error_set(err, STATUS_INVALID, "secret[1]: is too short");
}

static enum status judge_tls(const char *cert, const char *key, const char *client_ca, struct error *err)
{
    return error_set(err, STATUS_INVALID, "key: is judged with %s, %s and %s", cert, key,
                     client_ca ? client_ca : "none");
}

static const struct script_judges judges = {judge_url, judge_range, judge_secret, judge_verify, judge_tls};

struct fixture {
    char dir[64];
    char path[96];
    struct arena *arena;
    struct script_config config;
    struct error err;
};

static int setup(void **ctx)
{
    struct fixture *f = calloc(1, sizeof *f);
    strcpy(f->dir, "/tmp/lanegate-script-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    snprintf(f->path, sizeof f->path, "%s/config.lua", f->dir);
    f->arena = arena_new(4096);
    *ctx = f;
    return 0;
}

static int teardown(void **ctx)
{
    struct fixture *f = *ctx;
    unlink(f->path);
    rmdir(f->dir);
    arena_free(f->arena);
    free(f);
    return 0;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void load(struct fixture *f, const char *text, bool resolve)
{
    write_file(f->path, text);
    const struct script_config_options options = {.path = f->path, .resolve = resolve, .judges = &judges};
    assert_int_equal(script_load_config(&options, f->arena, &f->config, &f->err), STATUS_OK);
    assert_true((f->config.root != NULL) == (f->config.fault_count == 0));
}

static void assert_only_fault(struct fixture *f, const char *text, const char *fault)
{
    char line[512];
    load(f, text, true);
    assert_int_equal(f->config.fault_count, 1);
    snprintf(line, sizeof line, "%s:%s", f->path, fault);
    assert_string_equal(f->config.faults[0], line);
}

static const struct value *in(const struct value *map, const char *section, const char *name)
{
    return value_get(value_get(map, section), name);
}

static void a_small_file_has_every_default(void **ctx)
{
    struct fixture *f = *ctx;
    char data_dir[128];
    load(f, "return { http = { idle_timeout_ms = '5m' }, " SOURCES " }", true);
    snprintf(data_dir, sizeof data_dir, "%s/data", f->dir);
    assert_string_equal(value_str(f->config.root, "data_dir", ""), data_dir);
    assert_int_equal(in(f->config.root, "http", "idle_timeout_ms")->number, 300000);
    assert_int_equal(in(f->config.root, "http", "max_body_bytes")->number, 25 << 20);
    assert_true(in(f->config.root, "http", "threads")->number >= 1);
    assert_true(in(f->config.root, "dispatch", "max_pending_bytes")->number >= 1 << 20);
    assert_int_equal(value_int(f->config.lines, "sources.demo.sinks.log", 0), 1);
}

static void the_environment_is_read_only_when_wanted(void **ctx)
{
    struct fixture *f = *ctx;
    const char *text = "return { sink_header_prefix = env 'LANEGATE_SPEC_PREFIX', " SOURCES " }";
    setenv("LANEGATE_SPEC_PREFIX", "from-env", 1);
    load(f, text, true);
    assert_string_equal(value_str(f->config.root, "sink_header_prefix", ""), "from-env");
    load(f, text, false);
    assert_string_equal(value_str(f->config.root, "sink_header_prefix", ""), "(env LANEGATE_SPEC_PREFIX)");
    unsetenv("LANEGATE_SPEC_PREFIX");
    assert_only_fault(
        f, text, "1: sink_header_prefix: env \"LANEGATE_SPEC_PREFIX\" is not set, and no default is given");
}

static void a_file_is_read_without_its_last_line_feed(void **ctx)
{
    struct fixture *f = *ctx;
    char secret[128], text[512];
    snprintf(secret, sizeof secret, "%s/prefix", f->dir);
    write_file(secret, "from-file\n");
    snprintf(text, sizeof text, "return { sink_header_prefix = file '%s', " SOURCES " }", secret);
    load(f, text, true);
    assert_string_equal(value_str(f->config.root, "sink_header_prefix", ""), "from-file");
    unlink(secret);

    char fault[256];
    snprintf(fault, sizeof fault,
             "1: sink_header_prefix: file \"%s\" can't be read: No such file or directory", secret);
    assert_only_fault(f, text, fault);
}

static void code_that_never_ends_is_a_fault_with_its_line(void **ctx)
{
    assert_only_fault(*ctx, "local n = 0\nwhile true do n = n + 1 end",
                      "2: ran too long and was stopped; does a loop never end?");
}

static void code_that_eats_memory_is_a_fault(void **ctx)
{
    assert_only_fault(*ctx, "return ('x'):rep(1e9)", " needs more memory than a configuration may have");
}

static void nested_callbacks_do_not_overrun_the_stack(void **ctx)
{
    assert_only_fault(*ctx, "local f\nf = function() local s = ('x'):gsub('.', f) return s end\nf()",
                      "2: string.gsub can't be called inside its own callback here");
}

static void what_other_rooms_find_is_reported_with_the_rest(void **ctx)
{
    struct fixture *f = *ctx;
    load(f,
         "return { egress = { allow_private = { '10.0.0.0/8' } }, data_dir = 1,\n"
         "sources = { a = {\n"
         "  verify = { type = 'standard_webhooks',\n"
         "    secret = { 'ab' } },\n"
         "  sinks = { { type = 'http', url = 'https://example.test',\n"
         "    secret = { 'long enough', 'b' } } } } } }",
         true);
    static const char *const expected[] = {
        ":1: data_dir: must be a path, got 1",
        ":4: sources.a.verify.secret[1]: is too short",
        ":5: sources.a.sinks.http.url: is judged with 10.0.0.0/8 and 0, proxy 0",
        ":6: sources.a.sinks.http.secret[2]: is too short",
    };
    assert_int_equal(f->config.fault_count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(f->config.faults[i] + strlen(f->path), expected[i]);
}

static void bytecode_is_refused(void **ctx)
{
    struct fixture *f = *ctx;
    load(f, "\x1bLJ\x02", true);
    assert_int_equal(f->config.fault_count, 1);
    assert_non_null(strstr(f->config.faults[0], "attempt to load chunk with wrong mode"));
}

static void a_file_that_can_not_be_read_is_an_error(void **ctx)
{
    struct fixture *f = *ctx;
    struct script_config_options options = {.path = f->path, .resolve = true, .judges = &judges};
    assert_int_equal(script_load_config(&options, f->arena, &f->config, &f->err), STATUS_IO);
    assert_non_null(strstr(f->err.text, "config.lua: No such file or directory"));
    options.path = f->dir;
    assert_int_equal(script_load_config(&options, f->arena, &f->config, &f->err), STATUS_IO);
    assert_non_null(strstr(f->err.text, "is a directory"));
}

/* When this fails, the schema was changed: the head of lua/lanegate/reference.lua says how to write the page
 * anew. */
static void the_reference_in_the_repository_is_up_to_date(void **ctx)
{
    struct fixture *f = *ctx;
    struct bytes markdown;
    struct buf page = {0};
    char part[4096];
    size_t n;
    assert_int_equal(script_config_reference(f->arena, &markdown, &f->err), STATUS_OK);
    FILE *file = fopen(CONFIG_DIR "/README.md", "r");
    assert_non_null(file);
    while ((n = fread(part, 1, sizeof part, file)) > 0)
        buf_put(&page, part, n);
    fclose(file);
    assert_true(bytes_eq(markdown, buf_bytes(&page)));
    buf_free(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_small_file_has_every_default, setup, teardown),
        cmocka_unit_test_setup_teardown(the_environment_is_read_only_when_wanted, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_is_read_without_its_last_line_feed, setup, teardown),
        cmocka_unit_test_setup_teardown(code_that_never_ends_is_a_fault_with_its_line, setup, teardown),
        cmocka_unit_test_setup_teardown(code_that_eats_memory_is_a_fault, setup, teardown),
        cmocka_unit_test_setup_teardown(nested_callbacks_do_not_overrun_the_stack, setup, teardown),
        cmocka_unit_test_setup_teardown(what_other_rooms_find_is_reported_with_the_rest, setup, teardown),
        cmocka_unit_test_setup_teardown(bytecode_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_can_not_be_read_is_an_error, setup, teardown),
        cmocka_unit_test_setup_teardown(the_reference_in_the_repository_is_up_to_date, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
