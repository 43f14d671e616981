/* What is shown of a configuration: what the schema allows, and never a secret. */
#include "fixture.h"

/* Every place that can hold one, each with a word of its own that begins with "hush". */
static const char full_of_secrets[] =
    "return {\n"
    "  admin = { listen = '0.0.0.0:1', tokens = { { hash = ('5e'):rep(32), scopes = { 'read' }, name = 'ci' "
    "} } },\n"
    "  sources = {\n"
    "    a = {\n"
    "      verify = { type = 'standard_webhooks', secret = { 'whsec_hushAAAA', 'whsec_hushBBBB' } },\n"
    "      sinks = {\n"
    "        { type = 'http', url = 'https://example.com/hush-path?token=hush-query', secret = "
    "'hush-signing',\n"
    "          headers = { authorization = 'Bearer hush-header', ['x-team'] = 'hush-team' },\n"
    "          proxy = 'http://hush-user:hush-password@proxy.example:3128' },\n"
    "        { type = 'http', name = 'two', url = 'https://example.com?hush-bare', secret = { "
    "'whsec_hushCCCC' } },\n"
    "      },\n"
    "    },\n"
    "  },\n"
    "}";

static void a_secret_never_comes_out(void **ctx)
{
    struct fixture *f = *ctx;
    struct buf json = {0};
    fixture_load_good(f, CONFIG_SERVE, full_of_secrets);
    config_write_json(f->config, &json);
    assert_null(strstr(json.at, "hush"));
    assert_null(strstr(json.at, "5e5e"));
    /* The control: they were all there, and what is public is shown. */
    assert_non_null(strstr(f->config->sources[0].sinks[0].transport.url, "hush-path"));
    assert_non_null(strstr(json.at, "\"url\":\"https://example.com/(set)\""));
    assert_non_null(strstr(json.at, "\"headers\":{\"authorization\":\"(set)\",\"x-team\":\"(set)\"}"));
    assert_non_null(strstr(json.at, "\"proxy\":\"(set)\""));
    assert_non_null(strstr(
        json.at, "\"verify\":{\"secret\":\"(set)\",\"tolerance_ms\":300000,\"type\":\"standard_webhooks\"}"));
    assert_non_null(
        strstr(json.at, "\"tokens\":[{\"hash\":\"(set)\",\"name\":\"ci\",\"scopes\":[\"read\"]}]"));
    assert_non_null(strstr(json.at, "\"listen\":\"0.0.0.0:1\""));
    buf_free(&json);
}

static void faults_hold_no_secret_either(void **ctx)
{
    struct fixture *f = *ctx;
    assert_int_equal(
        fixture_load(
            f, CONFIG_SERVE,
            "return { admin = { tokens = { { hash = 'hush', scopes = { 'read' } } } }, sources = { a = {\n"
            "verify = { type = 'standard_webhooks', secret = 'whsec_hush!' }, sinks = {\n"
            "{ type = 'http', url = 'https://hush:hush@example.com/hush', secret = ' hush',\n"
            "  headers = { a = 'hush\\1' }, proxy = 'ftp://hush' },\n"
            "{ type = 'http', name = 'b', url = 'https://example.com/\\1hush', secret = 'v1,hush',\n"
            "  proxy = 'http://hush:hush@127.0.0.1' } } } } }"),
        STATUS_INVALID);
    assert_null(strstr(f->faults.at, "hush"));
    static const char *const options[] = {
        "tokens[1].hash: ", "verify.secret: ", "http.url: ", "http.secret: ", "headers.a: ",
        "http.proxy: ",     "b.url: ",         "b.secret: ", "b.proxy: "};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (!strstr(f->faults.at, options[i]))
            fail_msg("no fault of %s in\n%s", options[i], f->faults.at);
}

static void the_output_is_the_same_every_time(void **ctx)
{
    struct fixture *f = *ctx;
    struct buf first = {0}, second = {0};
    fixture_load_good(f, CONFIG_SERVE, full_of_secrets);
    config_write_json(f->config, &first);
    fixture_load_good(f, CONFIG_SERVE, full_of_secrets);
    config_write_json(f->config, &second);
    assert_string_equal(first.at, second.at);
    buf_free(&first);
    buf_free(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_secret_never_comes_out, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(faults_hold_no_secret_either, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(the_output_is_the_same_every_time, fixture_open, fixture_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
