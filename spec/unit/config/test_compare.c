/* What two configurations do not agree on: by path, never by value, and what of it needs a restart. */
#include "fixture.h"

/* Gives the changed paths in a line, those that need a restart with a '!'. `from` and `to` are the inside of
 * the table. */
static const char *between(struct fixture *f, const char *from, const char *to)
{
    static char line[1024];
    char text[2048];
    snprintf(text, sizeof text, "return { %s }", from);
    fixture_load_good(f, CONFIG_SERVE, text);
    struct config *before = config_ref(f->config);
    snprintf(text, sizeof text, "return { %s }", to);
    fixture_load_good(f, CONFIG_SERVE, text);

    struct arena *arena = arena_new(1024);
    const struct config_change *changes;
    size_t count = config_compare(before, f->config, arena, &changes), len = 0;
    line[0] = 0;
    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(line + len, sizeof line - len, "%s%s%s", i ? " " : "", changes[i].path,
                                changes[i].needs_restart ? "!" : "");
    arena_free(arena);
    config_unref(before);
    return line;
}

#define SINKS(text) "sources = { shop = { sinks = { " text " } } }"
#define LOG SINKS("{ type = 'log' }")
#define HTTP(more) SINKS("{ type = 'http', name = 'billing', url = 'https://example.com/a', " more " }")

static void what_means_the_same_is_no_change(void **ctx)
{
    struct fixture *f = *ctx;
    assert_string_equal(between(f, LOG, LOG), "");
    assert_string_equal(between(f, LOG, "drain_timeout_ms = 25000, " LOG), "");
    assert_string_equal(between(f, "drain_timeout_ms = '5s', " LOG, "drain_timeout_ms = 5000, " LOG), "");
    assert_string_equal(between(f, SINKS("{ type = 'log', name = 'a' }, { type = 'log', name = 'b' }"),
                                SINKS("{ type = 'log', name = 'b' }, { type = 'log', name = 'a' }")),
                        "");
}

static void a_change_has_the_path_of_its_option(void **ctx)
{
    struct fixture *f = *ctx;
    assert_string_equal(between(f, HTTP(""), HTTP("timeout_ms = '1s', concurrency = 3")),
                        "sources.shop.sinks.billing.concurrency sources.shop.sinks.billing.timeout_ms");
    assert_string_equal(between(f, HTTP("headers = { ['x-a'] = '1' }"), HTTP("headers = { ['x-a'] = '2' }")),
                        "sources.shop.sinks.billing.headers.x-a");
    assert_string_equal(between(f, HTTP("retry = { max_attempts = 3 }"), HTTP("")),
                        "sources.shop.sinks.billing.retry.max_attempts");
    assert_string_equal(between(f, HTTP("retry = { '1s' }"), HTTP("retry = { '1s', '2s' }")),
                        "sources.shop.sinks.billing.retry.schedule_ms");
}

static void what_comes_and_goes_is_one_change(void **ctx)
{
    struct fixture *f = *ctx;
    assert_string_equal(between(f, LOG, SINKS("{ type = 'log' }, { type = 'log', name = 'b' }")),
                        "sources.shop.sinks.b");
    assert_string_equal(between(f, LOG, "sources = { news = { sinks = { { type = 'log' } } } }"),
                        "sources.news sources.shop");
}

static void a_secret_is_compared_and_never_told(void **ctx)
{
    struct fixture *f = *ctx;
    const char *line = between(f, HTTP("secret = 'hush-one'"), HTTP("secret = 'hush-two'"));
    assert_string_equal(line, "sources.shop.sinks.billing.secret");
}

static void what_only_a_start_can_do_is_marked(void **ctx)
{
    struct fixture *f = *ctx;
    assert_string_equal(between(f, LOG,
                                "data_dir = 'elsewhere', store = { max_batch = 3, max_bytes = '1GiB' }, "
                                "http = { listen = '127.0.0.1:1', threads = 77, prefix = '/in' }, "
                                "admin = { listen = '127.0.0.1:2', auth = 'none' }, " LOG),
                        "admin.auth admin.listen! data_dir! http.listen! http.prefix http.threads! "
                        "store.max_batch! store.max_bytes!");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_means_the_same_is_no_change),   TEST(a_change_has_the_path_of_its_option),
        TEST(what_comes_and_goes_is_one_change),  TEST(a_secret_is_compared_and_never_told),
        TEST(what_only_a_start_can_do_is_marked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
