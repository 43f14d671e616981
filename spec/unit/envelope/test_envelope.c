/* References and header look-up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "envelope/envelope.h"

static void a_new_envelope_is_empty_and_owned_once(void **state)
{
    (void)state;
    struct envelope *envelope = envelope_new(0);
    assert_int_equal(atomic_load(&envelope->refs), 1);
    assert_int_equal(envelope->seq, 0);
    assert_null(envelope->query.at);
    assert_int_equal(envelope->header_count, 0);
    assert_true(envelope_size(envelope) >= sizeof *envelope);
    envelope_unref(envelope);
    envelope_unref(NULL);
}

static void a_header_is_found_in_any_case_and_the_first_one_wins(void **state)
{
    (void)state;
    struct envelope *envelope = envelope_new(0);
    const struct header headers[] = {
        {BYTES("Content-Type"), BYTES("text/plain")},
        {BYTES("X-Shop"), BYTES("first")},
        {BYTES("x-shop"), BYTES("second")},
        {BYTES("X-Empty"), BYTES("")},
    };
    envelope->headers = headers;
    envelope->header_count = 4;
    assert_true(bytes_eq(envelope_header(envelope, BYTES("x-SHOP")), BYTES("first")));
    assert_true(bytes_eq(envelope_header(envelope, BYTES("content-type")), BYTES("text/plain")));
    assert_non_null(envelope_header(envelope, BYTES("x-empty")).at);
    assert_null(envelope_header(envelope, BYTES("x-sho")).at);
    envelope_unref(envelope);
}

static void *hold_and_drop(void *arg)
{
    struct envelope *envelope = arg;
    for (int i = 0; i < 2000; i++)
        envelope_unref(envelope_ref(envelope));
    envelope_unref(envelope);
    return NULL;
}

/* Under the address sanitizer a wrong count is a use after free or a leak. */
static void many_threads_share_one(void **state)
{
    (void)state;
    struct envelope *envelope = envelope_new(64);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hold_and_drop, envelope_ref(envelope)), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&envelope->refs), 1);
    envelope_unref(envelope);
}

static void verifications_have_names(void **state)
{
    (void)state;
    assert_string_equal(verification_name(VERIFICATION_SKIPPED), "skipped");
    assert_string_equal(verification_name(VERIFICATION_OK), "ok");
    assert_string_equal(verification_name(VERIFICATION_FAILED), "failed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_envelope_is_empty_and_owned_once),
        cmocka_unit_test(a_header_is_found_in_any_case_and_the_first_one_wins),
        cmocka_unit_test(many_threads_share_one),
        cmocka_unit_test(verifications_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
