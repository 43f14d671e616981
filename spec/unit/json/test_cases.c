/* Bodies that broke other readers: spec/fixtures/json_paths.json. Those of its list "with_npm_payloads" need
 * packages and are tried by the flows that have them. */
#include "json_support.h"

#include "json/tree.h"

static json_t *fixture;

static int load(void **state)
{
    (void)state;
    json_error_t err;
    fixture = json_load_file(SPEC_DIR "/fixtures/json_paths.json", JSON_ALLOW_NUL, &err);
    if (!fixture)
        print_error("json_paths.json:%d: %s\n", err.line, err.text);
    return fixture ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    json_decref(fixture);
    return 0;
}

static struct bytes text_of(const json_t *item, const char *name)
{
    const json_t *text = json_object_get(item, name);
    return bytes_of(json_string_value(text), json_string_length(text));
}

static void every_case_gives_its_key(void **state)
{
    (void)state;
    const json_t *cases = json_object_get(fixture, "cases");
    assert_true(json_array_size(cases) >= 37);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *item = json_array_get(cases, i);
        const char *id = text_of(item, "id").at;
        struct bytes body = text_of(item, "body"), path = text_of(item, "path"), key = text_of(item, "key");
        struct bytes segments[JSON_PATH_SEGMENTS_MAX];
        struct json_path one = {.segments = segments};
        bool refused = json_path_split(path, segments, &one.segment_count, NULL) != STATUS_OK;
        if (refused != json_is_true(json_object_get(item, "refused")))
            fail_msg("%s: the path is %s", id, refused ? "refused" : "accepted");
        if (refused)
            continue;

        struct json_paths *paths = json_paths_new(&one, 1);
        struct json_found found;
        json_walk(body, paths, &found);
        char *out = mem_alloc(body.len);
        struct bytes got = BYTES_NONE;
        if (found.kind == JSON_KIND_STRING && !found.lone_surrogate)
            got = bytes_of(out, json_string_decode(&found, out));
        if (!bytes_eq(got, key) || !got.at != !key.at)
            fail_msg("%s: got %.*s, expected %.*s", id, BYTES_ARG(got), BYTES_ARG(key));
        free(out);
        json_paths_free(paths);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_case_gives_its_key)};
    return cmocka_run_group_tests(tests, load, unload);
}
