/* A file becomes the options of every room, or a list of all that is wrong with it. */
#include "fixture.h"

static void the_shipped_file_runs_from_any_folder(void **ctx)
{
    struct fixture *f = *ctx;
    if (config_load(CONFIG_DIR "/config.lua", CONFIG_SERVE, &f->config, &f->faults) != STATUS_OK)
        fail_msg("%s", f->faults.at);
    const struct config *c = f->config;
    assert_string_equal(c->data_dir, CONFIG_DIR "/data");
    assert_string_equal(c->http.listen[0], "127.0.0.1:4000");
    assert_string_equal(c->admin.listen[0], "127.0.0.1:4002");
    const struct config_source *demo = config_source_find(c, BYTES("demo"));
    assert_non_null(demo);
    assert_null(config_source_find(c, BYTES("demos")));
    assert_int_equal(demo->sink_count, 2);
    assert_string_equal(verifier_type(demo->verifier), "none");
    assert_non_null(demo->plan);
    for (size_t i = 0; i < 2; i++) {
        assert_true(demo->sinks[i].order.ordered);
        assert_true(bytes_eq(demo->sinks[i].order.key->header, BYTES("x-entity-id")));
    }
    assert_string_equal(demo->sinks[1].transport.url, "http://127.0.0.1:4100/hooks");
}

static void every_section_reaches_its_room(void **ctx)
{
    struct fixture *f = *ctx;
    fixture_load_good(
        f, CONFIG_SERVE,
        "return {\n"
        "  data_dir = '/var/lib/lanegate', drain_timeout_ms = '3s', sink_header_prefix = 'ankusa',\n"
        "  log = { level = 'warn', format = 'text' },\n"
        "  http = { listen = { '127.0.0.1:0', '[::1]:0' }, threads = 3, max_body_bytes = '1MiB', prefix = "
        "'/in',\n"
        "           max_buffered_bytes = '2MiB', routing = 'tenant_path', header_timeout_ms = 1, "
        "body_timeout_ms = 2,\n"
        "           idle_timeout_ms = 3, max_connections = 4 },\n"
        "  admin = { listen = '0.0.0.0:1', tokens = { { hash = ('0a'):rep(32), scopes = { 'read', 'operate' "
        "} } } },\n"
        "  store = { max_batch = 1, max_batch_bytes = 2, max_queue = 3, max_queue_bytes = '1MiB', "
        "retention_ms = '1d',\n"
        "            commit_timeout_ms = 500, max_bytes = '1GiB', min_free_bytes = 0 },\n"
        "  dispatch = { concurrency = 7, sink_concurrency = 6, max_inflight_bytes = '1MiB', "
        "max_pending_bytes = '2MiB',\n"
        "               attempt_timeout_ms = '9s', breaker = { failures = 2, open_ms = 3, max_open_ms = 4 } "
        "},\n"
        "  egress = { allow_private = { '10.0.0.0/8', '::1/128' }, allow_http = true },\n"
        "  sources = { a = { tenant = 'acme', sinks = { { type = 'log' } } } },\n"
        "}");
    const struct config *c = f->config;
    assert_string_equal(c->data_dir, "/var/lib/lanegate");
    assert_string_equal(c->store.data_dir, "/var/lib/lanegate");
    assert_int_equal(c->drain_timeout_ms, 3000);
    assert_int_equal(c->log_level, LOG_WARN);
    assert_false(c->log_json);
    assert_int_equal(c->http.listen_count, 2);
    assert_string_equal(c->http.listen[1], "[::1]:0");
    assert_int_equal(c->http.threads, 3);
    assert_int_equal(c->http.max_body_bytes, 1 << 20);
    assert_int_equal(c->http.max_buffered_bytes, 2 << 20);
    assert_int_equal(c->http.header_timeout_ms, 1);
    assert_int_equal(c->http.body_timeout_ms, 2);
    assert_int_equal(c->http.idle_timeout_ms, 3);
    assert_int_equal(c->http.max_connections, 4);
    assert_string_equal(c->prefix, "/in");
    assert_int_equal(c->routing, ROUTING_TENANT_PATH);
    assert_string_equal(c->admin.listen[0], "0.0.0.0:1");
    assert_int_equal(c->token_count, 1);
    assert_string_equal(c->tokens[0].name, "token1");
    assert_int_equal(c->tokens[0].scopes, CONFIG_SCOPE_READ | CONFIG_SCOPE_OPERATE);
    assert_int_equal(c->tokens[0].hash.len, 32);
    assert_int_equal(c->tokens[0].hash.at[31], 0x0a);
    assert_int_equal(c->store.max_batch, 1);
    assert_int_equal(c->store.max_batch_bytes, 2);
    assert_int_equal(c->store.max_queue, 3);
    assert_int_equal(c->store.max_queue_bytes, 1 << 20);
    assert_int_equal(c->store.retention_ms, 86400000);
    assert_int_equal(c->store.commit_timeout_ms, 500);
    assert_int_equal(c->store.max_bytes, 1 << 30);
    assert_int_equal(c->store.min_free_bytes, 0);
    assert_int_equal(c->dispatch_concurrency, 7);
    assert_int_equal(c->max_inflight_bytes, 1 << 20);
    assert_int_equal(c->max_pending_bytes, 2 << 20);
    assert_int_equal(c->attempt_timeout_ms, 9000);
    assert_int_equal(c->egress.allow_private.len, 2);
    assert_int_equal(c->egress.allow_private.at[0].prefix_len, 104);
    assert_true(c->egress.allow_http);
    const struct config_source *a = config_source_find(c, BYTES("a"));
    assert_string_equal(a->tenant, "acme");
    assert_false(a->shared);
    assert_int_equal(a->sinks[0].policy.concurrency, 6);
    assert_int_equal(a->sinks[0].policy.breaker.failures, 2);
    assert_int_equal(a->sinks[0].policy.breaker.max_open_ms, 4);
    assert_string_equal(a->sinks[0].transport.header_prefix, "ankusa");
}

static void a_sink_has_all_that_was_written(void **ctx)
{
    struct fixture *f = *ctx;
    fixture_load_good(
        f, CONFIG_SERVE,
        "return { sources = { shop = {\n"
        "  verify = { type = 'standard_webhooks', secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' },\n"
        "  on_verify_failure = 'accept_flag', respond = 204, forward_headers = {},\n"
        "  sinks = {\n"
        "    { type = 'http', name = 'billing', url = 'https://billing.example/x', method = 'PUT',\n"
        "      secret = { 'whsec_AAEC', 'plain' }, headers = { ['x-team'] = 'billing' }, timeout_ms = '2s',\n"
        "      refused = { 410 }, ordered = true, on_missing_key = 'unordered', on_dead = 'hold', "
        "concurrency = 3,\n"
        "      only = { json = 'type', match = { 'invoice.*', 'x' } },\n"
        "      ordering_key = { first = { { json = { 'a.b', 'c' }, integers = true }, { header = 'X-Id' } } "
        "} },\n"
        "  } } } }");
    const struct config_source *shop = config_source_find(f->config, BYTES("shop"));
    const struct config_sink *sink = &shop->sinks[0];
    const struct sink_options *t = &sink->transport;
    assert_string_equal(verifier_type(shop->verifier), "standard_webhooks");
    assert_int_equal(shop->on_verify_failure, VERIFY_ACCEPT_FLAG);
    assert_int_equal(shop->respond, 204);
    assert_string_equal(sink->name, "billing");
    assert_string_equal(t->type, "http");
    assert_string_equal(t->source, "shop");
    assert_string_equal(t->url, "https://billing.example/x");
    assert_string_equal(t->method, "PUT");
    assert_int_equal(t->secret_count, 2);
    assert_true(bytes_eq(t->secrets[0], bytes_of("\0\1\2", 3)));
    assert_true(bytes_eq(t->secrets[1], BYTES("plain")));
    assert_int_equal(t->header_count, 1);
    assert_string_equal(t->headers[0].name, "x-team");
    assert_string_equal(t->headers[0].value, "billing");
    assert_int_equal(t->timeout_ms, 2000);
    assert_int_equal(t->refused_count, 1);
    assert_int_equal(t->refused[0], 410);
    assert_non_null(t->forward_headers);
    assert_int_equal(t->forward_count, 0);
    assert_null(t->proxy);

    assert_true(sink->order.ordered);
    assert_true(sink->order.missing_is_unordered);
    assert_false(sink->order.only->by_header);
    assert_int_equal(sink->order.only->path.segment_count, 1);
    assert_int_equal(sink->order.only->glob_count, 2);
    assert_true(bytes_eq(sink->order.only->globs[0], BYTES("invoice.*")));
    const struct key_spec *key = sink->order.key;
    assert_int_equal(key->kind, KEY_FIRST);
    assert_int_equal(key->item_count, 2);
    assert_int_equal(key->items[0].kind, KEY_JSON);
    assert_true(key->items[0].integers);
    assert_int_equal(key->items[0].path.segment_count, 2);
    assert_true(bytes_eq(key->items[0].path.segments[0], BYTES("a.b")));
    assert_int_equal(key->items[1].kind, KEY_HEADER);

    assert_int_equal(sink->policy.concurrency, 3);
    assert_int_equal(sink->policy.on_refused, ON_DEAD_HOLD);
    assert_int_equal(sink->policy.on_exhausted, ON_DEAD_HOLD);
}

static const struct config_sink *only_sink(const struct fixture *f)
{
    return &f->config->sources[0].sinks[0];
}

static void stored_headers_are_all_or_a_list(void **ctx)
{
    struct fixture *f = *ctx;
    fixture_load_good(
        f, CONFIG_SERVE,
        "local sinks = { { type = 'log' } }\n"
        "return { sources = { a = { sinks = sinks }, b = { store_headers = 'all', sinks = sinks },\n"
        "  c = { store_headers = { 'X-Shop', 'x-kind' }, sinks = sinks },\n"
        "  d = { store_headers = {}, sinks = sinks } } }");
    const struct config_source *sources = f->config->sources;
    assert_null(sources[0].store_headers);
    assert_null(sources[1].store_headers);
    assert_int_equal(sources[2].store_header_count, 2);
    assert_true(bytes_eq(sources[2].store_headers[0], BYTES("X-Shop")));
    assert_true(bytes_eq(sources[2].store_headers[1], BYTES("x-kind")));
    assert_non_null(sources[3].store_headers);
    assert_int_equal(sources[3].store_header_count, 0);
}

static void sinks_with_a_past_are_named(void **ctx)
{
    struct fixture *f = *ctx;
    fixture_load_good(f, CONFIG_SERVE,
                      "return { retire = { 'shop/mail', 'gone/x' }, sources = { shop = { sinks = {\n"
                      "  { type = 'log', name = 'invoices', was = 'billing' }, { type = 'log' } } } } }");
    const struct config *c = f->config;
    assert_string_equal(c->sources[0].sinks[0].was, "billing");
    assert_null(c->sources[0].sinks[1].was);
    assert_int_equal(c->retired_count, 2);
    assert_string_equal(c->retired[0].source, "shop");
    assert_string_equal(c->retired[0].sink, "mail");
    assert_string_equal(c->retired[1].source, "gone");
    assert_string_equal(c->retired[1].sink, "x");

    fixture_load_good(
        f, CONFIG_OFFLINE,
        "return { retire = { env 'NOT_SET' }, sources = { shop = { sinks = { { type = 'log' } } } } }");
    assert_int_equal(f->config->retired_count, 0);
}

static void retry_merges_key_by_key(void **ctx)
{
    struct fixture *f = *ctx;
    fixture_load_good(
        f, CONFIG_SERVE,
        "return { dispatch = { retry = { base_ms = 7, max_attempts = 9, jitter = false } }, sources = { a =\n"
        "{ retry = { base_ms = 8, give_up_after_ms = '1h' }, sinks = { { type = 'log', ordered = true,\n"
        "  retry = { base_ms = 9 } } } } } }");
    const struct retry_policy *retry = &only_sink(f)->policy.retry;
    assert_int_equal(retry->base_ms, 9);
    assert_int_equal(retry->max_ms, 60000);
    assert_int_equal(retry->give_up_after_ms, 3600000);
    assert_int_equal(retry->max_attempts, 9);
    assert_false(retry->jitter);
    assert_null(retry->schedule_ms);

    fixture_load_good(f, CONFIG_SERVE, "return { sources = { a = { sinks = { { type = 'log' } } } } }");
    retry = &only_sink(f)->policy.retry;
    assert_int_equal(retry->base_ms, 100);
    assert_int_equal(retry->max_ms, 300000);
    assert_int_equal(retry->give_up_after_ms, 259200000);
    assert_int_equal(retry->max_attempts, 0);
    assert_true(retry->jitter);

    fixture_load_good(f, CONFIG_SERVE,
                      "return { dispatch = { retry = { base_ms = 7, max_attempts = 9 } }, sources = { a =\n"
                      "{ retry = { '5s', '5m', 1800000 }, sinks = { { type = 'log' } } } } }");
    retry = &only_sink(f)->policy.retry;
    assert_int_equal(retry->schedule_count, 3);
    assert_int_equal(retry->schedule_ms[0], 5000);
    assert_int_equal(retry->schedule_ms[2], 1800000);
    assert_int_equal(retry->max_attempts, 9);
}

static void a_default_source_is_shared_where_urls_name_tenants(void **ctx)
{
    struct fixture *f = *ctx;
    fixture_load_good(
        f, CONFIG_SERVE,
        "return { http = { routing = 'tenant_path' }, sources = { a = { trust_url_tenant = true,\n"
        "sinks = { { type = 'log' } } } } }");
    assert_true(f->config->sources[0].shared);
    fixture_load_good(f, CONFIG_SERVE, "return { sources = { a = { sinks = { { type = 'log' } } } } }");
    assert_false(f->config->sources[0].shared);
}

static void clients_need_no_secrets(void **ctx)
{
    struct fixture *f = *ctx;
    static const char text[] =
        "return { admin = { listen = env('LANEGATE_SPEC_UNSET', '127.0.0.1:9') }, http = { threads = env "
        "'LANEGATE_SPEC_UNSET' },\n"
        "sources = { a = { verify = { type = 'standard_webhooks',\n"
        "secret = env 'LANEGATE_SPEC_UNSET' }, sinks = { { type = 'http', url = env 'LANEGATE_SPEC_UNSET',\n"
        "secret = file '/nonexistent', headers = { authorization = 'Bearer ' .. env 'LANEGATE_SPEC_UNSET' } "
        "} } } } }";
    fixture_load_good(f, CONFIG_CLIENT, text);
    assert_string_equal(f->config->admin.listen[0], "127.0.0.1:9");
    assert_null(f->config->sources[0].verifier);
    assert_null(f->config->sources[0].plan);
    fixture_load_good(f, CONFIG_OFFLINE, text);
    assert_non_null(f->config->sources[0].plan);

    fixture_load_bad(
        f, CONFIG_SERVE, text,
        ":1: http.threads: env \"LANEGATE_SPEC_UNSET\" is not set, and no default is given\n"
        ":3: sources.a.verify.secret: env \"LANEGATE_SPEC_UNSET\" is not set, and no default is given\n"
        ":3: sources.a.sinks.http.url: env \"LANEGATE_SPEC_UNSET\" is not set, and no default is given\n"
        ":4: sources.a.sinks.http.secret: file \"/nonexistent\" can't be read: No such file or directory\n"
        ":4: sources.a.sinks.http.headers.authorization: env \"LANEGATE_SPEC_UNSET\" is not set, and no "
        "default is given\n");
}

static void faults_of_other_rooms_come_with_their_lines(void **ctx)
{
    fixture_load_bad(
        *ctx, CONFIG_SERVE,
        "return {\n"
        "  egress = { allow_private = { '10.0.0.0/8', 'ten' } },\n"
        "  sources = { a = {\n"
        "    verify = { type = 'standard_webhooks', secret = 'v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' },\n"
        "    sinks = {\n"
        "      { type = 'http', url = 'https://example.com', secret = ' x' },\n"
        "    },\n"
        "  } },\n"
        "}",
        ":2: egress.allow_private[2]: must be an address range such as \"10.0.0.0/8\" or \"::1/128\", got "
        "\"ten\"\n"
        ":4: sources.a.verify.secret: must be base64, with or without \"whsec_\" in front; take away the "
        "\"v1,\" in front of this "
        "one\n"
        ":6: sources.a.sinks.http.secret: must be \"whsec_\" and base64, or any other text of at least one "
        "character "
        "without blanks or line breaks at its ends; it has some\n");
}

static void each_scheme_says_what_it_takes(void **ctx)
{
    fixture_load_bad(
        *ctx, CONFIG_SERVE,
        "local sinks = { { type = 'log' } }\n"
        "return { sources = {\n"
        "a = { verify = { type = 'stripe', secret = { 'whsec_x', 'x ' } }, sinks = sinks },\n"
        "b = { verify = { type = 'hmac', secret = 'x', header = 'x-sig', template = '{ts}.{body}' }, sinks = "
        "sinks },\n"
        "c = { verify = { type = 'hmac', secret = 'xyz', secret_encoding = 'hex', header = 'x-sig' }, sinks "
        "= sinks },\n"
        "d = { verify = { type = 'discord', public_key = '00' }, sinks = sinks },\n"
        "e = { verify = { type = 'basic', username = 'a:b', secret = 'x' }, sinks = sinks },\n"
        "f = { verify = { type = 'hmac', secret = 'x', header = 'x-sig', template = '{method}' }, sinks = "
        "sinks },\n"
        "g = { verify = { type = 'hmac', secret = 'x', header = 'x-sig', tolerance_ms = '5m' }, sinks = "
        "sinks },\n"
        "} }",
        ":3: sources.a.verify.secret[2]: must be the text that the provider shows, without blanks around it; "
        "this "
        "has a blank or a line feed at an end\n"
        ":4: sources.b.verify.template: holds {ts}, which needs ts_header or ts_field\n"
        ":5: sources.c.verify.secret: must be hex digits, two a byte; this is not an even number of hex "
        "digits\n"
        ":6: sources.d.verify.public_key: must be an Ed25519 public key: 64 hex digits, or PEM (\"-----BEGIN "
        "PUBLIC "
        "KEY-----\"); this can't be read as one\n"
        ":7: sources.e.verify.username: must be a name without a colon\n"
        ":8: sources.f.verify.template: must be a text such as \"{ts}.{body}\"; without {body} anybody could "
        "change "
        "the body\n"
        ":9: sources.g.verify.tolerance_ms: needs a time stamp to judge, but there is none here\n");
}

static void a_closed_destination_shows_the_line_that_opens_it(void **ctx)
{
    fixture_load_bad(
        *ctx, CONFIG_SERVE,
        "return { sources = { a = { sinks = {\n"
        "  { type = 'http', name = 'literal', url = 'https://10.1.2.3/x' },\n"
        "  { type = 'http', name = 'name', url = 'https://localhost/x' },\n"
        "  { type = 'http', name = 'good', url = 'https://example.com/x' },\n"
        "} } } }",
        ":2: sources.a.sinks.literal.url: leads to 10.1.2.3, which is private; to allow it: egress = { "
        "allow_private = { \"10.1.2.3/32\" } }\n"
        ":3: sources.a.sinks.name.url: names \"localhost\", which leads to 127.0.0.1; to allow it: egress = "
        "{ allow_private = { \"127.0.0.1/32\" } }\n");
}

static void a_file_that_is_not_there_is_named(void **ctx)
{
    struct fixture *f = *ctx;
    char text[512], line[512];
    snprintf(text, sizeof text,
             "return { sources = { a = { sinks = {\n"
             "  { type = 'http', url = 'https://example.com/x', tls = {\n"
             "      ca = '%s/none.pem' } },\n"
             "} } } }",
             f->dir);
    snprintf(line, sizeof line,
             ":3: sources.a.sinks.http.tls.ca: must be a file that can be read, got \"%s/none.pem\": No such "
             "file or "
             "directory\n",
             f->dir);
    fixture_load_bad(f, CONFIG_SERVE, text, line);
}

static void no_file_is_not_found(void **ctx)
{
    struct fixture *f = *ctx;
    assert_int_equal(config_load(f->path, CONFIG_SERVE, &f->config, &f->faults), STATUS_NOT_FOUND);
    assert_non_null(strstr(f->faults.at, "config.lua: there is no such file\n"));
}

static void the_last_reference_frees(void **ctx)
{
    struct fixture *f = *ctx;
    fixture_load_good(f, CONFIG_SERVE, "return { sources = { a = { sinks = { { type = 'log' } } } } }");
    struct config *second = config_ref(f->config);
    config_unref(f->config);
    f->config = NULL;
    assert_string_equal(second->sources[0].name, "a");
    config_unref(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_shipped_file_runs_from_any_folder, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(every_section_reaches_its_room, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(a_sink_has_all_that_was_written, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(stored_headers_are_all_or_a_list, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(sinks_with_a_past_are_named, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(retry_merges_key_by_key, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(a_default_source_is_shared_where_urls_name_tenants, fixture_open,
                                        fixture_close),
        cmocka_unit_test_setup_teardown(clients_need_no_secrets, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(faults_of_other_rooms_come_with_their_lines, fixture_open,
                                        fixture_close),
        cmocka_unit_test_setup_teardown(each_scheme_says_what_it_takes, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(a_closed_destination_shows_the_line_that_opens_it, fixture_open,
                                        fixture_close),
        cmocka_unit_test_setup_teardown(a_file_that_is_not_there_is_named, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(no_file_is_not_found, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(the_last_reference_frees, fixture_open, fixture_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
