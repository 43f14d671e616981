/* An envelope is a copy of the request, byte for byte; what of its headers is kept is the source's word. */
#include "house.h"

#include <stdlib.h>
#include <string.h>

#include "util/clock.h"

static const struct http_header sent[] = {
    {BYTES("Host"), BYTES("hooks.example")}, {BYTES("Content-Type"), BYTES("application/json")},
    {BYTES("X-Shop"), BYTES("7")},           {BYTES("x-kind"), BYTES("order")},
    {BYTES("X-SHOP"), BYTES("8")},           {BYTES("Authorization"), BYTES("Bearer hush")},
};

static const struct bytes shop_and_kind[] = {BYTES("x-shop"), BYTES("X-Kind")};
static const struct bytes nothing[1];

static struct ingest_source source;
static struct house house;

static int setup(void **state)
{
    (void)state;
    source = (struct ingest_source){.name = "shop", .tenant = "acme"};
    house = house_open("/in", false, &source, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    house_close(&house);
    return 0;
}

static struct envelope *envelope_of(const struct http_request *request)
{
    struct route route = route_of(house_table(&house), BYTES("/in/shop"));
    return hook_envelope(&route, request, 100);
}

static struct http_request request_with(const struct http_header *headers, size_t count)
{
    return (struct http_request){.method = BYTES("POST"),
                                 .path = BYTES("/in/shop"),
                                 .target = BYTES("/in/shop"),
                                 .headers = headers,
                                 .header_count = count,
                                 .body = BYTES("{}"),
                                 .remote_ip = BYTES("192.0.2.1")};
}

static void it_is_a_copy_of_the_request(void **state)
{
    (void)state;
    /* All on the heap and gone afterwards: what still pointed there would be found by the sanitizer. */
    char *memory = strdup("POST/in/shop?a=%20bX-A 1\0\r\n2192.0.2.1");
    const struct http_header header = {bytes_of(memory + 19, 3), bytes_of(memory + 23, 1)};
    struct http_request request = {.method = bytes_of(memory, 4),
                                   .path = bytes_of(memory + 4, 8),
                                   .query = bytes_of(memory + 13, 6),
                                   .target = bytes_of(memory + 4, 15),
                                   .headers = &header,
                                   .header_count = 1,
                                   .body = BYTES("1\0\r\n2"),
                                   .remote_ip = BYTES("192.0.2.1")};
    int64_t before_ms = clock_unix_ms();
    struct envelope *envelope = envelope_of(&request);
    memset(memory, '!', 24);
    free(memory);
    assert_true(envelope->received_at_ms >= before_ms && envelope->received_at_ms <= clock_unix_ms());
    assert_int_equal(envelope->seq, 0);
    assert_true(bytes_eq(envelope->tenant, BYTES("acme")));
    assert_true(bytes_eq(envelope->source, BYTES("shop")));
    assert_true(bytes_eq(envelope->method, BYTES("POST")));
    assert_true(bytes_eq(envelope->path, BYTES("/in/shop")));
    assert_true(bytes_eq(envelope->query, BYTES("a=%20b")));
    assert_true(bytes_eq(envelope->body, BYTES("1\0\r\n2")));
    assert_true(bytes_eq(envelope->remote_ip, BYTES("192.0.2.1")));
    assert_int_equal(envelope->header_count, 1);
    assert_true(bytes_eq(envelope->headers[0].name, BYTES("X-A")));
    assert_true(bytes_eq(envelope->headers[0].value, BYTES("1")));
    assert_null(envelope->content_type.at);
    assert_null(envelope->dedupe_key.at);
    envelope_unref(envelope);
}

static void what_is_absent_stays_absent(void **state)
{
    (void)state;
    struct http_request request = request_with(NULL, 0);
    request.body = BYTES("");
    struct envelope *envelope = envelope_of(&request);
    assert_null(envelope->query.at);
    assert_null(envelope->content_type.at);
    assert_non_null(envelope->body.at);
    assert_int_equal(envelope->body.len, 0);
    assert_int_equal(envelope->header_count, 0);
    hook_keep_stored(envelope, &source);
    assert_int_equal(envelope->header_count, 0);
    envelope_unref(envelope);
}

static void every_hook_has_an_id_of_its_own(void **state)
{
    (void)state;
    struct http_request request = request_with(sent, 6);
    struct envelope *a = envelope_of(&request), *b = envelope_of(&request);
    assert_memory_not_equal(a->id.bytes, b->id.bytes, sizeof a->id.bytes);
    envelope_unref(a);
    envelope_unref(b);
}

static void all_headers_are_kept_in_order_unless_there_is_a_list(void **state)
{
    (void)state;
    struct http_request request = request_with(sent, 6);
    struct envelope *envelope = envelope_of(&request);
    hook_keep_stored(envelope, &source);
    assert_int_equal(envelope->header_count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_true(bytes_eq(envelope->headers[i].name, sent[i].name));
        assert_true(bytes_eq(envelope->headers[i].value, sent[i].value));
    }
    envelope_unref(envelope);
}

static void a_list_keeps_its_headers_in_any_case_and_repeated(void **state)
{
    (void)state;
    source.store_headers = shop_and_kind;
    source.store_header_count = 2;
    struct http_request request = request_with(sent, 6);
    struct envelope *envelope = envelope_of(&request);
    assert_int_equal(envelope->header_count, 6); /* verification sees all of them */
    hook_keep_stored(envelope, &source);
    assert_int_equal(envelope->header_count, 3);
    assert_true(bytes_eq(envelope->headers[0].name, BYTES("X-Shop")));
    assert_true(bytes_eq(envelope->headers[1].name, BYTES("x-kind")));
    assert_true(bytes_eq(envelope->headers[2].value, BYTES("8")));
    assert_true(bytes_eq(envelope_header(envelope, BYTES("x-shop")), BYTES("7")));
    assert_null(envelope_header(envelope, BYTES("authorization")).at);
    assert_null(envelope_header(envelope, BYTES("content-type")).at);
    assert_true(bytes_eq(envelope->content_type, BYTES("application/json"))); /* in its own field */
    envelope_unref(envelope);
}

static void an_empty_list_keeps_none(void **state)
{
    (void)state;
    source.store_headers = nothing;
    struct http_request request = request_with(sent, 6);
    struct envelope *envelope = envelope_of(&request);
    hook_keep_stored(envelope, &source);
    assert_int_equal(envelope->header_count, 0);
    assert_true(bytes_eq(envelope->content_type, BYTES("application/json")));
    envelope_unref(envelope);
}

/* Rule 4: what is stored resolves as the hook itself did. */
static void what_is_kept_is_what_comes_back(void **state)
{
    (void)state;
    source.store_headers = shop_and_kind;
    source.store_header_count = 2;
    struct http_request request = request_with(sent, 6);
    struct envelope *envelope = envelope_of(&request), *stored;
    hook_keep_stored(envelope, &source);
    struct buf head = {0};
    envelope_encode(envelope, &head);
    struct envelope_parts parts = {.id = envelope->id,
                                   .received_at_ms = envelope->received_at_ms,
                                   .tenant = envelope->tenant,
                                   .source = envelope->source,
                                   .head = buf_bytes(&head),
                                   .body = envelope->body};
    assert_null(memmem(head.at, head.len, "hush", 4));
    assert_int_equal(envelope_decode(&parts, &stored), STATUS_OK);
    assert_int_equal(stored->header_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(bytes_eq(stored->headers[i].name, envelope->headers[i].name));
        assert_true(bytes_eq(stored->headers[i].value, envelope->headers[i].value));
    }
    buf_free(&head);
    envelope_unref(stored);
    envelope_unref(envelope);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_a_copy_of_the_request),
        TEST(what_is_absent_stays_absent),
        TEST(every_hook_has_an_id_of_its_own),
        TEST(all_headers_are_kept_in_order_unless_there_is_a_list),
        TEST(a_list_keeps_its_headers_in_any_case_and_repeated),
        TEST(an_empty_list_keeps_none),
        TEST(what_is_kept_is_what_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
