/* Published signatures: spec/fixtures/signatures.json. */
#include "verify_support.h"

#include "json/tree.h"

static struct bytes text_of(const json_t *item, const char *name)
{
    const json_t *text = json_object_get(item, name);
    return bytes_of(json_string_value(text), json_string_length(text));
}

static struct envelope *hook_of(const json_t *vector)
{
    struct envelope *e = hook(text_of(vector, "body"), NULL);
    json_t *headers = json_object_get(vector, "headers"), *value;
    struct header *list = arena_zalloc(e->arena, json_object_size(headers) * sizeof *list);
    const char *name;
    json_object_foreach(headers, name, value) list[e->header_count++] =
        (struct header){bytes_str(name), bytes_str(json_string_value(value))};
    e->headers = list;
    return e;
}

/* "accept", "reject" or "config-error". */
static const char *outcome_of(const json_t *vector)
{
    struct verifier *verifier;
    struct value tolerance = {.kind = VALUE_NUMBER,
                              .number = 1000.0 *
                                        (double)json_integer_value(json_object_get(vector, "tolerance_s"))};
    const struct value *options =
        options_of(text_of(vector, "scheme").at, string_value(text_of(vector, "secret")), tolerance);
    if (verifier_new(options, &verifier, NULL) != STATUS_OK)
        return "config-error";
    struct envelope *e = hook_of(vector);
    int64_t now_ms = 1000 * json_integer_value(json_object_get(vector, "now"));
    bool accepted = verify(verifier, e, now_ms).verification == VERIFICATION_OK;
    envelope_unref(e);
    verifier_free(verifier);
    return accepted ? "accept" : "reject";
}

static void every_vector_has_its_outcome(void **state)
{
    (void)state;
    json_error_t err;
    json_t *fixture = json_load_file(SPEC_DIR "/fixtures/signatures.json", 0, &err);
    if (!fixture)
        fail_msg("signatures.json:%d: %s", err.line, err.text);
    const json_t *vectors = json_object_get(fixture, "vectors");
    assert_true(json_array_size(vectors) >= 14);
    for (size_t i = 0; i < json_array_size(vectors); i++) {
        const json_t *vector = json_array_get(vectors, i);
        const char *outcome = outcome_of(vector);
        if (!bytes_eq(bytes_str(outcome), text_of(vector, "expected")))
            fail_msg("%s (%s): %s", text_of(vector, "id").at, text_of(vector, "title").at, outcome);
    }
    json_decref(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_vector_has_its_outcome)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
