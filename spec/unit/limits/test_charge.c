/* A hook is charged everywhere or nowhere; who forges is not verified again, and nobody pays for others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "limits/limits.h"

enum { SECOND = 1000000000 };
static const int64_t START = 10 * 86400LL * SECOND;
static const struct limit three = {.rate = 0.001, .burst = 3}, two = {.rate = 0.001, .burst = 2}, none = {0};

static struct limits *limits;

static int setup(void **state)
{
    (void)state;
    limits = limits_open();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    limits_close(limits);
    return 0;
}

static uint64_t address(const char *text)
{
    struct ip ip;
    assert_true(ip_parse(bytes_str(text), &ip));
    return limits_address_key(&ip);
}

static int64_t level(const char *tenant)
{
    struct limits_look look;
    limits_look(limits, bytes_str(tenant), START, &look);
    return look.available;
}

static void a_refused_hook_has_taken_nothing(void **state)
{
    (void)state;
    limits_configure(limits, three, NULL, 0);
    struct limits_hook hook = {.tenant = BYTES("acme"),
                               .source = limits_key(BYTES("shop")),
                               .address = address("192.0.2.1"),
                               .of_source = two,
                               .of_address = two};
    struct limits_charge charge;
    enum limit_kind which = LIMIT_KINDS;
    assert_int_equal(limits_charge(limits, &hook, START, &charge, &which), 0);
    assert_int_equal(limits_charge(limits, &hook, START, &charge, &which), 0);
    assert_int_equal(level("acme"), 1);

    assert_int_equal(limits_charge(limits, &hook, START, &charge, &which), 1000LL * SECOND);
    assert_int_equal(which, LIMIT_SOURCE);
    assert_int_equal(level("acme"), 1);
    hook.source = limits_key(BYTES("other"));
    assert_true(limits_charge(limits, &hook, START, &charge, &which) > 0);
    assert_int_equal(which, LIMIT_ADDRESS);
    assert_int_equal(level("acme"), 1);
    hook.address = address("192.0.2.2");
    assert_int_equal(limits_charge(limits, &hook, START, &charge, &which), 0); /* both of `other` are there */
    assert_int_equal(level("acme"), 0);
    assert_true(limits_charge(limits, &hook, START, &charge, &which) > 0);
    assert_int_equal(which, LIMIT_TENANT);

    limits_give_back(limits, &(struct limits_charge){0});
    hook.tenant = BYTES("third");
    assert_int_equal(limits_charge(limits, &hook, START, &charge, &which), 0);
    assert_int_equal(level("third"), 2);
    limits_give_back(limits, &charge);
    assert_int_equal(level("third"), 3);
    assert_int_equal(limits_charge(limits, &hook, START, &charge, &which), 0);
}

static void without_limits_nothing_is_taken(void **state)
{
    (void)state;
    const struct limits_hook hook = {.tenant = BYTES("acme")};
    struct limits_charge charge;
    enum limit_kind which;
    for (int i = 0; i < 100; i++)
        assert_int_equal(limits_charge(limits, &hook, START, &charge, &which), 0);
    for (int i = 0; i < LIMIT_SIGNATURES; i++)
        assert_int_equal(charge.of[i].every_ns, 0);
}

static void an_address_is_one_however_it_is_written(void **state)
{
    (void)state;
    assert_true(address("192.0.2.1") == address("::ffff:192.0.2.1"));
    assert_true(address("192.0.2.1") != address("192.0.2.2"));
    assert_true(address("::ffff:192.0.2.1") != address("::ffff:192.0.2.2"));
    /* A /64 is one customer's. */
    assert_true(address("2001:db8:1:2::1") == address("2001:db8:1:2:ffff::"));
    assert_true(address("2001:db8:1:2::1") != address("2001:db8:1:3::1"));
}

static struct limits_sender sender(const char *source, const char *ip)
{
    return (struct limits_sender){limits_key(bytes_str(source)), address(ip), two};
}

static void who_fails_too_often_is_not_verified_again(void **state)
{
    (void)state;
    struct limits_sender forger = sender("shop", "192.0.2.1"), other = sender("shop", "192.0.2.2"),
                         elsewhere = sender("news", "192.0.2.1");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(limits_may_verify(limits, &forger, START), 0);
        limits_failed(limits, &forger, START);
    }
    assert_int_equal(limits_may_verify(limits, &forger, START), 1000LL * SECOND);
    assert_int_equal(limits_may_verify(limits, &forger, START + 1000LL * SECOND), 0);
    assert_int_equal(limits_may_verify(limits, &other, START), 0);
    assert_int_equal(limits_may_verify(limits, &elsewhere, START), 0);

    forger.limit = none;
    limits_failed(limits, &forger, START);
    assert_int_equal(limits_may_verify(limits, &forger, START), 0);
}

/* A proxy that nobody told us of, or a provider's own address: a forger there must not shut the provider out.
 */
static void where_good_ones_come_from_is_not_shut_out_for_a_day(void **state)
{
    (void)state;
    struct limits_sender proxy = sender("shop", "192.0.2.1"), elsewhere = sender("news", "192.0.2.1");
    limits_proved(limits, &proxy, START);
    for (int i = 0; i < 10; i++) {
        limits_failed(limits, &proxy, START);
        limits_failed(limits, &elsewhere, START);
    }
    assert_int_equal(limits_may_verify(limits, &proxy, START), 0);
    assert_true(limits_may_verify(limits, &elsewhere, START) > 0);
    int64_t later = START + LIMITS_KNOWN_NS;
    limits_failed(limits, &proxy, later);
    limits_failed(limits, &proxy, later);
    assert_true(limits_may_verify(limits, &proxy, later) > 0);
    limits_proved(limits, &proxy, later);
    assert_int_equal(limits_may_verify(limits, &proxy, later), 0);
}

static void the_quarantine_has_a_bucket_of_its_own(void **state)
{
    (void)state;
    uint64_t shop = limits_key(BYTES("shop"));
    struct limits_charge charge, refused, other;
    assert_int_equal(limits_pen(limits, shop, two, START, &charge), 0);
    assert_int_equal(limits_pen(limits, shop, two, START, &charge), 0);
    assert_true(limits_pen(limits, shop, two, START, &refused) > 0);
    assert_int_equal(limits_pen(limits, limits_key(BYTES("news")), two, START, &other), 0);
    limits_give_back(limits, &refused); /* it has nothing */
    assert_true(limits_pen(limits, shop, two, START, &refused) > 0);
    limits_give_back(limits, &charge);
    assert_int_equal(limits_pen(limits, shop, two, START, &charge), 0);
}

static void news_once_a_minute_and_kind(void **state)
{
    (void)state;
    int64_t count = 0;
    assert_true(limits_news(limits, LIMIT_TENANT, START, &count));
    assert_int_equal(count, 1);
    for (int i = 1; i < 60; i++)
        assert_false(limits_news(limits, LIMIT_TENANT, START + i * (int64_t)SECOND, &count));
    assert_true(limits_news(limits, LIMIT_KINDS, START, &count));
    assert_true(limits_news(limits, LIMIT_TENANT, START + 60LL * SECOND, &count));
    assert_int_equal(count, 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_refused_hook_has_taken_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(without_limits_nothing_is_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(an_address_is_one_however_it_is_written, setup, teardown),
        cmocka_unit_test_setup_teardown(who_fails_too_often_is_not_verified_again, setup, teardown),
        cmocka_unit_test_setup_teardown(where_good_ones_come_from_is_not_shut_out_for_a_day, setup, teardown),
        cmocka_unit_test_setup_teardown(the_quarantine_has_a_bucket_of_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(news_once_a_minute_and_kind, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
