/* The table of routes: found by method and path, byte for byte, or told what there is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admin/admin.h"
#include "admin/routes.h"

static struct bytes parts[ROUTE_PARTS_MAX];
static char allow[ROUTE_ALLOW_MAX];

static const struct route *find(const char *method, const char *path)
{
    return route_find(bytes_str(method), bytes_str(path), parts, allow);
}

static void every_path_there_is(void **state)
{
    (void)state;
    static const struct {
        const char *path, *pattern;
        unsigned scope;
    } rows[] = {
        {"/health", "/health", 0},
        {"/ready", "/ready", 0},
        {"/metrics", "/metrics", ADMIN_SCOPE_READ},
        {"/v1/config", "/v1/config", ADMIN_SCOPE_READ},
        {"/v1/sinks", "/v1/sinks", ADMIN_SCOPE_READ},
        {"/v1/lanes", "/v1/lanes", ADMIN_SCOPE_READ},
        {"/v1/lanes/acme/00ff", "/v1/lanes/{tenant}/{lane}", ADMIN_SCOPE_READ},
        {"/v1/hooks", "/v1/hooks", ADMIN_SCOPE_READ},
        {"/v1/hooks/x", "/v1/hooks/{id}", ADMIN_SCOPE_READ},
        {"/v1/hooks/x/body", "/v1/hooks/{id}/body", ADMIN_SCOPE_PAYLOAD},
        {"/v1/dlq", "/v1/dlq", ADMIN_SCOPE_READ},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct route *route = find("GET", rows[i].path);
        assert_non_null(route);
        assert_string_equal(rows[i].pattern, route->pattern);
        assert_int_equal(rows[i].scope, route->scope);
    }
}

static void braces_give_their_parts(void **state)
{
    (void)state;
    assert_non_null(find("GET", "/v1/lanes/acme/00ff"));
    assert_true(bytes_eq(parts[0], BYTES("acme")));
    assert_true(bytes_eq(parts[1], BYTES("00ff")));
}

static void a_path_is_matched_byte_for_byte(void **state)
{
    (void)state;
    static const char *const strangers[] = {"",
                                            "/",
                                            "health",
                                            "/health/",
                                            "/healthy",
                                            "/Health",
                                            "//health",
                                            "/v1",
                                            "/v1/lane",
                                            "/v1/lanes/",
                                            "/v1/lanes/acme",
                                            "/v1/lanes//00ff",
                                            "/v1/hooks/",
                                            "/v1/hooks//body",
                                            "/v1/hooks/x/body/",
                                            "/v1/%68ooks"};
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        if (find("GET", strangers[i]))
            fail_msg("%s should be unknown", strangers[i]);
        assert_string_equal("", allow);
    }
}

static void a_wrong_method_is_told_the_right_ones(void **state)
{
    (void)state;
    assert_null(find("POST", "/v1/lanes"));
    assert_string_equal("GET", allow);
    assert_null(find("get", "/health"));
    assert_string_equal("GET", allow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_path_there_is),
        cmocka_unit_test(braces_give_their_parts),
        cmocka_unit_test(a_path_is_matched_byte_for_byte),
        cmocka_unit_test(a_wrong_method_is_told_the_right_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
