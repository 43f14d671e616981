/* The stored form gives back what went in, and survives anything that did not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "envelope/envelope.h"

static uint64_t seed;

/* xorshift: the same run every time. */
static uint32_t rnd(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)((seed >> 16) % below);
}

static struct bytes random_text(struct arena *arena, uint32_t max)
{
    size_t len = rnd(8) == 0 ? rnd(max) : rnd(20);
    char *at = arena_alloc(arena, len + 1);
    for (size_t i = 0; i < len; i++)
        at[i] = (char)rnd(256);
    return bytes_of(at, len);
}

static struct envelope *random_envelope(void)
{
    struct envelope *envelope = envelope_new(256);
    struct arena *arena = envelope->arena;
    struct bytes *texts[] = {&envelope->method,       &envelope->path,      &envelope->query,
                             &envelope->content_type, &envelope->remote_ip, &envelope->dedupe_key};
    for (size_t i = 0; i < 6; i++) {
        if (rnd(3) > 0)
            *texts[i] = random_text(arena, 400);
    }
    envelope->verification = rnd(3);
    envelope->id = uuid_new(1700000000000);
    envelope->seq = rnd(1000000) + 1;
    envelope->received_at_ms = 1700000000000 + rnd(1000);
    envelope->tenant = BYTES("default");
    envelope->source = BYTES("stripe");
    envelope->header_count = rnd(12);
    struct header *headers = arena_alloc(arena, (envelope->header_count + 1) * sizeof *headers);
    for (size_t i = 0; i < envelope->header_count; i++)
        headers[i] = (struct header){random_text(arena, 50), random_text(arena, 20000)};
    envelope->headers = headers;
    envelope->body = random_text(arena, 3000);
    return envelope;
}

static struct envelope_parts parts_of(const struct envelope *envelope, struct bytes head)
{
    return (struct envelope_parts){.id = envelope->id,
                                   .seq = envelope->seq,
                                   .received_at_ms = envelope->received_at_ms,
                                   .tenant = envelope->tenant,
                                   .source = envelope->source,
                                   .head = head,
                                   .body = envelope->body};
}

static void assert_same_text(struct bytes a, struct bytes b)
{
    assert_true((a.at == NULL) == (b.at == NULL));
    assert_true(bytes_eq(a, b));
}

static void assert_same(const struct envelope *a, const struct envelope *b)
{
    assert_memory_equal(&a->id, &b->id, sizeof a->id);
    assert_int_equal(a->seq, b->seq);
    assert_int_equal(a->received_at_ms, b->received_at_ms);
    assert_same_text(a->tenant, b->tenant);
    assert_same_text(a->source, b->source);
    assert_same_text(a->method, b->method);
    assert_same_text(a->path, b->path);
    assert_same_text(a->query, b->query);
    assert_same_text(a->content_type, b->content_type);
    assert_same_text(a->remote_ip, b->remote_ip);
    assert_same_text(a->dedupe_key, b->dedupe_key);
    assert_int_equal(a->verification, b->verification);
    assert_int_equal(a->header_count, b->header_count);
    for (size_t i = 0; i < a->header_count; i++) {
        assert_same_text(a->headers[i].name, b->headers[i].name);
        assert_same_text(a->headers[i].value, b->headers[i].value);
    }
    assert_same_text(a->body, b->body);
}

static void what_goes_in_comes_out(void **state)
{
    (void)state;
    seed = 42;
    for (int round = 0; round < 500; round++) {
        struct envelope *envelope = random_envelope();
        struct buf head = {0};
        buf_puts(&head, "before"); /* the codec appends */
        envelope_encode(envelope, &head);
        struct envelope_parts parts = parts_of(envelope, bytes_of(head.at + 6, head.len - 6));
        struct envelope *back;
        assert_int_equal(envelope_decode(&parts, &back), STATUS_OK);
        assert_same(envelope, back);
        struct bytes same = envelope_encode_in(envelope, envelope->arena);
        assert_true(bytes_eq(same, parts.head));
        envelope_unref(back);
        envelope_unref(envelope);
        buf_free(&head);
    }
}

/* The decoded envelope owns its bytes: what it was made from may go. */
static void a_decoded_envelope_stands_alone(void **state)
{
    (void)state;
    seed = 7;
    struct envelope *envelope = random_envelope();
    struct buf head = {0};
    envelope_encode(envelope, &head);
    struct envelope_parts parts = parts_of(envelope, buf_bytes(&head));
    struct envelope *first, *second;
    assert_int_equal(envelope_decode(&parts, &first), STATUS_OK);
    assert_int_equal(envelope_decode(&parts, &second), STATUS_OK);
    buf_free(&head);
    envelope_unref(envelope);
    assert_same(first, second);
    envelope_unref(first);
    envelope_unref(second);
}

/* In a block of exactly its size, so that the address sanitizer sees one byte too far. */
static enum status decode_exact(const char *at, size_t len, struct envelope **out)
{
    char *copy = malloc(len ? len : 1);
    memcpy(copy, at, len);
    struct envelope_parts parts = {.head = bytes_of(copy, len), .body = BYTES("")};
    enum status status = envelope_decode(&parts, out);
    free(copy);
    return status;
}

static void every_cut_is_corrupt(void **state)
{
    (void)state;
    seed = 99;
    for (int round = 0; round < 20; round++) {
        struct envelope *envelope = random_envelope();
        struct buf head = {0};
        envelope_encode(envelope, &head);
        struct envelope *back;
        for (size_t len = 0; len < head.len; len += len < 300 ? 1 : 97) {
            assert_int_equal(decode_exact(head.at, len, &back), STATUS_CORRUPT);
            assert_null(back);
        }
        assert_int_equal(decode_exact(head.at, head.len, &back), STATUS_OK); /* the control */
        envelope_unref(back);
        buf_putc(&head, 0);
        assert_int_equal(decode_exact(head.at, head.len, &back), STATUS_CORRUPT);
        buf_free(&head);
        envelope_unref(envelope);
    }
}

/* Whatever a broken disk makes of it: an answer, no crash; and what decodes encodes to the same bytes, since
 * every value has one form. */
static void changed_bytes_never_crash(void **state)
{
    (void)state;
    seed = 1234;
    unsigned decoded = 0, refused = 0;
    for (int round = 0; round < 300; round++) {
        struct envelope *envelope = random_envelope();
        struct buf head = {0};
        envelope_encode(envelope, &head);
        for (int i = 0; i < 60; i++) {
            char *copy = malloc(head.len);
            memcpy(copy, head.at, head.len);
            for (uint32_t n = rnd(3) + 1; n > 0; n--)
                copy[rnd(2) ? rnd((uint32_t)head.len) : rnd(head.len < 40 ? (uint32_t)head.len : 40)] =
                    (char)rnd(256);
            struct envelope *back;
            if (decode_exact(copy, head.len, &back) == STATUS_OK) {
                struct buf again = {0};
                envelope_encode(back, &again);
                assert_int_equal(again.len, head.len);
                assert_memory_equal(again.at, copy, head.len);
                buf_free(&again);
                envelope_unref(back);
                decoded++;
            } else {
                refused++;
            }
            free(copy);
        }
        buf_free(&head);
        envelope_unref(envelope);
    }
    assert_true(decoded > 1000);
    assert_true(refused > 1000);
}

static void odd_forms_are_corrupt(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct bytes head;
        enum status status;
    } cases[] = {
        {"control", BYTES("\1\1\0\0"), STATUS_OK},
        {"control with a method", BYTES("\1\0\1\4POST\0"), STATUS_OK},
        {"no bytes", BYTES(""), STATUS_CORRUPT},
        {"version 0", BYTES("\0\1\0\0"), STATUS_CORRUPT},
        {"version 2", BYTES("\2\1\0\0"), STATUS_CORRUPT},
        {"unknown verification", BYTES("\1\3\0\0"), STATUS_CORRUPT},
        {"control with a fingerprint", BYTES("\1\1\x40\2ab\0"), STATUS_OK},
        {"unknown text", BYTES("\1\1\x80\0"), STATUS_CORRUPT},
        {"a length that is not as short as it can be", BYTES("\1\0\1\x84\0POST\0"), STATUS_CORRUPT},
        {"a length of six bytes", BYTES("\1\0\1\xff\xff\xff\xff\xff\1"), STATUS_CORRUPT},
        {"a length over 32 bits", BYTES("\1\0\1\xff\xff\xff\xff\x7f"), STATUS_CORRUPT},
        {"a length over the end", BYTES("\1\0\1\5POST"), STATUS_CORRUPT},
        {"more headers than bytes", BYTES("\1\0\0\xff\xff\xff\xff\xf"), STATUS_CORRUPT},
        {"a header without a value", BYTES("\1\0\0\1\1a"), STATUS_CORRUPT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct envelope *back;
        enum status status = decode_exact(cases[i].head.at, cases[i].head.len, &back);
        if (status != cases[i].status)
            fail_msg("%s: %s", cases[i].what, status_name(status));
        envelope_unref(back);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_in_comes_out), cmocka_unit_test(a_decoded_envelope_stands_alone),
        cmocka_unit_test(every_cut_is_corrupt),   cmocka_unit_test(changed_bytes_never_crash),
        cmocka_unit_test(odd_forms_are_corrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
