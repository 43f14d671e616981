/* Published signatures of many providers: spec/fixtures/signatures.json. */
#include "verify_support.h"

#include "json/tree.h"

static struct bytes text_of(const json_t *item, const char *name)
{
    const json_t *text = json_object_get(item, name);
    return bytes_of(json_string_value(text), json_string_length(text));
}

static const struct value *options_from(const json_t *given, struct arena *arena)
{
    struct value *map = arena_zalloc(arena, sizeof *map);
    struct value *items = arena_zalloc(arena, json_object_size(given) * sizeof *items);
    struct bytes *names = arena_zalloc(arena, json_object_size(given) * sizeof *names);
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)given, name, value)
    {
        names[map->len] = bytes_str(name);
        items[map->len++] = json_is_string(value)
                                ? string_value(bytes_of(json_string_value(value), json_string_length(value)))
                                : (struct value){.kind = VALUE_NUMBER, .number = json_number_value(value)};
    }
    map->kind = VALUE_MAP;
    map->items = items;
    map->names = names;
    return map;
}

static struct bytes body_of(const json_t *vector, struct arena *arena)
{
    struct bytes hex = text_of(vector, "body_hex");
    if (!hex.at)
        return text_of(vector, "body");
    uint8_t *bytes = arena_alloc(arena, hex.len / 2 + 1);
    assert_true(hex_decode(hex, bytes, hex.len / 2));
    return bytes_of(bytes, hex.len / 2);
}

static struct envelope *hook_of(const json_t *vector)
{
    struct envelope *e = hook(BYTES(""), NULL);
    e->body = body_of(vector, e->arena);
    e->method = BYTES("POST");
    e->query = text_of(vector, "query");
    json_t *headers = json_object_get(vector, "headers"), *value;
    struct header *list = arena_zalloc(e->arena, (json_object_size(headers) + 1) * sizeof *list);
    const char *name;
    json_object_foreach(headers, name, value) list[e->header_count++] =
        (struct header){bytes_str(name), bytes_str(json_string_value(value))};
    e->headers = list;
    e->content_type = envelope_header(e, BYTES("content-type"));
    return e;
}

/* "accept", "reject" or "config-error". */
static const char *outcome_of(const json_t *vector)
{
    struct verifier *verifier;
    struct arena *arena = arena_new(1024);
    const struct value *options = options_from(json_object_get(vector, "options"), arena);
    const char *outcome = "config-error";
    if (verifier_new(options, NULL, &verifier, NULL) == STATUS_OK) {
        struct envelope *e = hook_of(vector);
        int64_t now_ms = 1000 * json_integer_value(json_object_get(vector, "now"));
        outcome = verify(verifier, e, now_ms).verification == VERIFICATION_OK ? "accept" : "reject";
        envelope_unref(e);
        verifier_free(verifier);
    }
    arena_free(arena);
    return outcome;
}

static void every_vector_has_its_outcome(void **state)
{
    (void)state;
    json_error_t err;
    json_t *fixture = json_load_file(SPEC_DIR "/fixtures/signatures.json", 0, &err);
    if (!fixture)
        fail_msg("signatures.json:%d: %s", err.line, err.text);
    const json_t *vectors = json_object_get(fixture, "vectors");
    assert_true(json_array_size(vectors) >= 100);
    size_t wrong = 0;
    for (size_t i = 0; i < json_array_size(vectors); i++) {
        const json_t *vector = json_array_get(vectors, i);
        const char *outcome = outcome_of(vector);
        if (bytes_eq(bytes_str(outcome), text_of(vector, "expected")))
            continue;
        print_message("%s (%s): %s\n", text_of(vector, "id").at, text_of(vector, "title").at, outcome);
        wrong++;
    }
    assert_int_equal(wrong, 0);
    json_decref(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_vector_has_its_outcome)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
