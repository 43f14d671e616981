/* From the raw target to a source, by bytes. */
#include "house.h"

#include <string.h>

static void leads_to(const struct house *house, const char *path, const char *source, const char *tenant)
{
    struct route route = route_of(house_table(house), bytes_str(path));
    if (route.kind != ROUTE_HOOK)
        fail_msg("%s is routed as %d", path, route.kind);
    assert_string_equal(route.entry->source->name, source);
    assert_true(bytes_eq(route.tenant, bytes_str(tenant)));
}

static void all_are(const struct house *house, enum route_kind kind, const char *const *paths)
{
    for (; *paths; paths++) {
        struct route route = route_of(house_table(house), bytes_str(*paths));
        if (route.kind != kind)
            fail_msg("%s is routed as %d, not %d", *paths, route.kind, kind);
    }
}

#define ALL_ARE(house, kind, ...) all_are(house, kind, (const char *const[]){__VA_ARGS__, NULL})

static void a_source_is_behind_the_prefix(void **state)
{
    (void)state;
    static const struct ingest_source sources[] = {{.name = "stripe", .tenant = "default"},
                                                   {.name = "shop", .tenant = "acme"},
                                                   {.name = "a", .tenant = "default"}};
    struct house house = house_open("/webhooks", false, sources, 3);
    leads_to(&house, "/webhooks/stripe", "stripe", "default");
    leads_to(&house, "/webhooks/shop", "shop", "acme");
    leads_to(&house, "/webhooks/a", "a", "default");
    ALL_ARE(&house, ROUTE_UNKNOWN_SOURCE, "/webhooks/strip", "/webhooks/stripes", "/webhooks/Stripe",
            "/webhooks/..", "/webhooks/%73hop", "/webhooks/shop%00");
    ALL_ARE(&house, ROUTE_NOT_FOUND, "/webhooks/shop/", "/webhooks/shop/x", "/webhooks//shop",
            "/webhooks/./shop", "/webhooks/", "/webhooks", "/webhooksshop", "/Webhooks/shop", "/shop", "/",
            "", "*", "http://127.0.0.1/webhooks/shop");
    house_close(&house);
}

static void probes_are_beside_the_prefix(void **state)
{
    (void)state;
    static const struct ingest_source sources[] = {{.name = "health", .tenant = "default"}};
    struct house house = house_open("", false, sources, 1);
    ALL_ARE(&house, ROUTE_HEALTH, "/health");
    ALL_ARE(&house, ROUTE_READY, "/ready");
    ALL_ARE(&house, ROUTE_NOT_FOUND, "/health/", "health");
    ALL_ARE(&house, ROUTE_UNKNOWN_SOURCE, "/readyz", "/Health");
    house_close(&house);
}

static void an_empty_prefix_is_one(void **state)
{
    (void)state;
    static const struct ingest_source sources[] = {{.name = "shop", .tenant = "default"}};
    struct house house = house_open("", false, sources, 1);
    leads_to(&house, "/shop", "shop", "default");
    ALL_ARE(&house, ROUTE_NOT_FOUND, "shop", "//shop", "/webhooks/shop");
    house_close(&house);
}

static void a_tenant_in_the_url_must_be_that_of_the_source(void **state)
{
    (void)state;
    static const struct ingest_source sources[] = {{.name = "shop", .tenant = "acme"},
                                                   {.name = "open", .tenant = "default", .shared = true}};
    struct house house = house_open("/in", true, sources, 2);
    leads_to(&house, "/in/acme/shop", "shop", "acme");
    leads_to(&house, "/in/acme/open", "open", "acme");
    leads_to(&house, "/in/other/open", "open", "other");
    ALL_ARE(&house, ROUTE_UNKNOWN_SOURCE, "/in/other/shop", "/in/ACME/shop", "/in/acm/shop",
            "/in/default/shop", "/in/a%20b/open", "/in/./open", "/in//open", "/in/acme/none");
    ALL_ARE(&house, ROUTE_NOT_FOUND, "/in/open", "/in/acme/", "/in/acme/shop/", "/in/acme/x/shop");
    house_close(&house);
}

static void a_name_is_of_plain_characters_only(void **state)
{
    (void)state;
    static const char plain[] = "-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char longest[65];
    memset(longest, 'x', sizeof longest);
    assert_true(route_name_ok(BYTES("a")));
    assert_true(route_name_ok(bytes_of(longest, 64)));
    assert_false(route_name_ok(bytes_of(longest, 65)));
    assert_false(route_name_ok(BYTES("")));
    assert_false(route_name_ok(BYTES_NONE));
    for (int c = 0; c < 256; c++) {
        char text[3] = {'a', (char)c, 'b'};
        assert_int_equal(route_name_ok(bytes_of(text, 3)), memchr(plain, c, sizeof plain - 1) != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_source_is_behind_the_prefix),
        cmocka_unit_test(probes_are_beside_the_prefix),
        cmocka_unit_test(an_empty_prefix_is_one),
        cmocka_unit_test(a_tenant_in_the_url_must_be_that_of_the_source),
        cmocka_unit_test(a_name_is_of_plain_characters_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
