#include "verify_support.h"

static void none_takes_everything_and_says_so(void **state)
{
    (void)state;
    struct verifier *verifier = open_with("none", (struct value){0});
    struct envelope *e = hook(BYTES("anything"), NULL);
    struct verify_result result = verify(verifier, e, 0);
    assert_int_equal(result.verification, VERIFICATION_SKIPPED);
    assert_null(result.reason);
    assert_string_equal(verifier_type(verifier), "none");
    envelope_unref(e);
    verifier_free(verifier);
    verifier_free(NULL);
}

static void the_table_has_each_scheme_once(void **state)
{
    (void)state;
    const char *const *names = verify_scheme_names();
    assert_string_equal(names[0], "none");
    assert_string_equal(names[1], "standard_webhooks");
    for (size_t i = 0; names[i]; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(names[i], names[k]);
}

static void an_alias_keeps_its_name(void **state)
{
    (void)state;
    struct verifier *verifier = open_with("svix", string_value(BYTES("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")));
    assert_string_equal(verifier_type(verifier), "svix");
    verifier_free(verifier);
}

static void an_unknown_type_is_refused_with_the_known_ones(void **state)
{
    (void)state;
    is_refused("standard-webhooks", (struct value){0},
               "type: must be one of none, standard_webhooks, svix, stripe, github");
    is_refused("", (struct value){0}, "type: must be one of");
    const struct value empty = {.kind = VALUE_MAP};
    struct verifier *verifier;
    assert_int_equal(verifier_new(&empty, NULL, &verifier, NULL), STATUS_INVALID);
}

static void reasons_are_listed_for_metrics(void **state)
{
    (void)state;
    static const char *const expected[] = {"missing_header", "repeated_header", "malformed",
                                           "timestamp",      "bad_signature",   "no_certificate",
                                           "script_refused", "script_error"};
    const char *const *reasons = verify_reasons();
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_string_equal(reasons[i], expected[i]);
    assert_null(reasons[sizeof expected / sizeof *expected]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_takes_everything_and_says_so),
        cmocka_unit_test(the_table_has_each_scheme_once),
        cmocka_unit_test(an_alias_keeps_its_name),
        cmocka_unit_test(an_unknown_type_is_refused_with_the_known_ones),
        cmocka_unit_test(reasons_are_listed_for_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
