/* An address has one form inside, however it was written; a range is written in one way only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "util/ip.h"

static struct ip ip_of(const char *text)
{
    struct ip ip;
    if (!ip_parse(bytes_str(text), &ip))
        fail_msg("\"%s\" is no address", text);
    return ip;
}

static void addresses_have_one_form(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"10.0.0.1", "10.0.0.1"},
        {"::ffff:10.0.0.1", "10.0.0.1"},
        {"::FFFF:0a00:1", "10.0.0.1"},
        {"::", "::"},
        {"::1", "::1"},
        {"2001:DB8:0:0::1", "2001:db8::1"},
        {"0:0:0:0:0:ffff:1.2.3.4", "1.2.3.4"},
        {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
        {"1111:2222:3333:4444:5555:6666:255.255.255.255", "1111:2222:3333:4444:5555:6666:ffff:ffff"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ip ip = ip_of(cases[i].text);
        char text[IP_TEXT];
        assert_int_equal(ip_format(&ip, text), strlen(cases[i].shown));
        assert_string_equal(text, cases[i].shown);
        assert_int_equal(ip_is_v4(&ip), strchr(cases[i].shown, ':') == NULL);
    }
}

static void what_is_no_address(void **state)
{
    (void)state;
    static const struct bytes bad[] = {
        BYTES_NONE,
        BYTES(""),
        BYTES(" 10.0.0.1"),
        BYTES("10.0.0.1 "),
        BYTES("10.0.0"),
        BYTES("10.0.0.1.1"),
        BYTES("010.0.0.1"),
        BYTES("10.0.0.256"),
        BYTES("0x0a.0.0.1"),
        BYTES("167772161"),
        BYTES("10.0.0.1:80"),
        BYTES("[::1]"),
        BYTES("fe80::1%eth0"),
        BYTES("::1::"),
        BYTES("localhost"),
        BYTES("10.0.0.1\0"),
        BYTES("::1\0x"),
        BYTES("1111:2222:3333:4444:5555:6666:255.255.255.2555"),
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct ip ip;
        if (ip_parse(bad[i], &ip))
            fail_msg("\"%.*s\" is taken", BYTES_ARG(bad[i]));
    }
}

static void sockets(void **state)
{
    (void)state;
    struct ip ip;
    char text[IP_TEXT];
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000001)};
    assert_true(ip_of_socket((struct sockaddr *)&four, &ip));
    ip_format(&ip, text);
    assert_string_equal(text, "10.0.0.1");
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    inet_pton(AF_INET6, "::ffff:10.0.0.1", &six.sin6_addr);
    assert_true(ip_of_socket((struct sockaddr *)&six, &ip));
    assert_true(ip_is_v4(&ip));
    struct sockaddr other = {.sa_family = AF_UNIX};
    assert_false(ip_of_socket(&other, &ip));
}

static void a_range_holds_what_it_covers(void **state)
{
    (void)state;
    static const struct {
        const char *range, *address;
        bool held;
    } cases[] = {
        {"10.0.0.0/8", "10.255.255.255", true},
        {"10.0.0.0/8", "11.0.0.0", false},
        {"10.0.0.0/8", "::ffff:10.0.0.1", true}, /* the same address */
        {"10.0.0.0/8", "64:ff9b::10.0.0.1", false},
        {"127.0.0.1", "127.0.0.1", true},
        {"127.0.0.1", "127.0.0.2", false},
        {"127.0.0.1/32", "127.0.0.1", true},
        {"127.0.0.0/31", "127.0.0.1", true},
        {"127.0.0.0/31", "127.0.0.2", false},
        {"0.0.0.0/0", "255.255.255.255", true},
        {"0.0.0.0/0", "::1", false},
        {"::/0", "::1", true},
        {"::/0", "10.0.0.1", false},
        {"::/64", "10.0.0.1", false},
        {"::/64", "::ffff:0:0:1", true},
        {"::ffff:0:0/96", "10.0.0.1", true},
        {"::ffff:10.0.0.0/104", "10.1.2.3", true},
        {"fc00::/7", "fdff::1", true},
        {"fc00::/7", "fe80::1", false},
        {"2001:db8::/127", "2001:db8::1", true},
        {"2001:db8::/127", "2001:db8::2", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ip_range range;
        struct error err;
        if (ip_range_parse(cases[i].range, &range, &err) != STATUS_OK)
            fail_msg("%s: %s", cases[i].range, err.text);
        struct ip ip = ip_of(cases[i].address);
        if (ip_ranges_hold(&(struct ip_ranges){&range, 1}, &ip) != cases[i].held)
            fail_msg("%s and %s", cases[i].range, cases[i].address);
    }
}

static void ranges_are_strict(void **state)
{
    (void)state;
    static const char *const bad[] = {"",       "10",         "10.0.0.0/",   "10.0.0.0/33", "10.0.0.0/8/8",
                                      "::/129", "10.0.0/8",   "/8",          "10.0.0.0/ 8", "a.b.c.d",
                                      "::1/-1", "fe80::1%lo", "10.0.0.0/+8", "0x0a.0.0.0/8"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct ip_range range;
        struct error err;
        if (ip_range_parse(bad[i], &range, &err) != STATUS_INVALID)
            fail_msg("\"%s\" is taken", bad[i]);
        assert_non_null(strstr(err.text, "must be an address range such as \"10.0.0.0/8\""));
    }
}

/* "10.1.2.3/8" is a slip in either half: both readings are offered. */
static void bits_behind_the_length_are_told_with_what_was_meant(void **state)
{
    (void)state;
    static const struct {
        const char *text, *range, *address;
    } cases[] = {
        {"10.1.2.3/8", "\"10.0.0.0/8\"", "\"10.1.2.3\""},
        {"192.168.1.255/25", "\"192.168.1.128/25\"", "\"192.168.1.255\""},
        {"1.0.0.0/0", "\"0.0.0.0/0\"", "\"1.0.0.0\""},
        {"2001:db8::1/32", "\"2001:db8::/32\"", "\"2001:db8::1\""},
        {"::ffff:10.0.0.1/104", "\"10.0.0.0/8\"", "\"::ffff:10.0.0.1\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ip_range range;
        struct error err;
        assert_int_equal(ip_range_parse(cases[i].text, &range, &err), STATUS_INVALID);
        if (!strstr(err.text, cases[i].range) || !strstr(err.text, cases[i].address))
            fail_msg("%s: %s", cases[i].text, err.text);
    }
}

static void deny_wins_and_an_empty_list_says_nothing(void **state)
{
    (void)state;
    struct ip_range ten, one;
    ip_range_parse("10.0.0.0/8", &ten, NULL);
    ip_range_parse("10.0.0.1", &one, NULL);
    struct ip inside = ip_of("10.0.0.2"), at = ip_of("10.0.0.1"), outside = ip_of("11.0.0.1");

    struct ip_gate open = {0};
    assert_int_equal(ip_gate_judge(&open, &outside), IP_PASSES);
    struct ip_gate both = {.deny = {&one, 1}, .allow = {&ten, 1}};
    assert_int_equal(ip_gate_judge(&both, &inside), IP_PASSES);
    assert_int_equal(ip_gate_judge(&both, &at), IP_DENIED);
    assert_int_equal(ip_gate_judge(&both, &outside), IP_NOT_ALLOWED);
    struct ip_gate same = {.deny = {&one, 1}, .allow = {&one, 1}};
    assert_int_equal(ip_gate_judge(&same, &at), IP_DENIED);
    struct ip_gate but_one = {.deny = {&one, 1}};
    assert_int_equal(ip_gate_judge(&but_one, &at), IP_DENIED);
    assert_int_equal(ip_gate_judge(&but_one, &outside), IP_PASSES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_have_one_form),
        cmocka_unit_test(what_is_no_address),
        cmocka_unit_test(sockets),
        cmocka_unit_test(a_range_holds_what_it_covers),
        cmocka_unit_test(ranges_are_strict),
        cmocka_unit_test(bits_behind_the_length_are_told_with_what_was_meant),
        cmocka_unit_test(deny_wins_and_an_empty_list_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
