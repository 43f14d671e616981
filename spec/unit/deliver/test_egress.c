/* Where connections may go: every form of an address that leads inside is told apart from one that does not.
 * No packet is sent here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "deliver/egress.h"

static struct ip address_of(const char *text)
{
    struct ip ip;
    if (!ip_parse(bytes_str(text), &ip))
        fail_msg("%s is no address", text);
    return ip;
}

static void kinds_of_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *kind; /* NULL: public */
    } cases[] = {
        {"0.0.0.0", "this machine (0.0.0.0/8)"},
        {"0.255.255.255", "this machine (0.0.0.0/8)"},
        {"1.0.0.0", NULL},
        {"9.255.255.255", NULL},
        {"10.0.0.0", "private"},
        {"10.255.255.255", "private"},
        {"11.0.0.0", NULL},
        {"100.63.255.255", NULL},
        {"100.64.0.0", "carrier-grade NAT"},
        {"100.100.100.100", "carrier-grade NAT"},
        {"100.127.255.255", "carrier-grade NAT"},
        {"100.128.0.0", NULL},
        {"126.255.255.255", NULL},
        {"127.0.0.1", "loopback"},
        {"127.9.8.7", "loopback"},
        {"128.0.0.0", NULL},
        {"169.253.255.255", NULL},
        {"169.254.169.254", "link-local"},
        {"169.254.170.2", "link-local"},
        {"169.255.0.0", NULL},
        {"172.15.255.255", NULL},
        {"172.16.0.0", "private"},
        {"172.31.255.255", "private"},
        {"172.32.0.1", NULL},
        {"192.0.0.8", "reserved"},
        {"192.0.2.1", "documentation"},
        {"192.88.99.1", "a 6to4 relay"},
        {"192.167.255.255", NULL},
        {"192.168.1.1", "private"},
        {"192.169.0.0", NULL},
        {"198.17.255.255", NULL},
        {"198.18.0.1", "benchmarking"},
        {"198.19.255.255", "benchmarking"},
        {"198.20.0.0", NULL},
        {"198.51.100.1", "documentation"},
        {"203.0.113.1", "documentation"},
        {"223.255.255.255", NULL},
        {"224.0.0.1", "multicast"},
        {"239.255.255.255", "multicast"},
        {"240.0.0.1", "reserved"},
        {"255.255.255.255", "reserved"},
        {"93.184.216.34", NULL},
        {"::", "this machine (::)"},
        {"::1", "loopback"},
        {"::2", "v4-compatible"},
        {"::169.254.169.254", "v4-compatible"},
        {"::8.8.8.8", "v4-compatible"},
        {"::ffff:127.0.0.1", "loopback"},
        {"::ffff:7f00:1", "loopback"},
        {"::ffff:a9fe:a9fe", "link-local"},
        {"::ffff:8.8.8.8", NULL},
        {"::ffff:0:127.0.0.1", "reserved"}, /* SIIT */
        {"64:ff9b::7f00:1", "loopback"},
        {"64:ff9b::10.1.2.3", "private"},
        {"64:ff9b::8.8.8.8", NULL},
        {"64:ff9b:1::8.8.8.8", "local NAT64"},
        {"100::1", "discard-only"},
        {"2001::1", "Teredo"},
        {"2001:0:7f00:1::", "Teredo"},
        {"2001:10::1", "reserved"},
        {"2001:db8::1", "documentation"},
        {"2002:7f00:1::1", "6to4"},
        {"2002:808:808::1", "6to4"},
        {"2606:2800:220:1::1", NULL},
        {"2001:4860:4860::8888", NULL},
        {"3fff::1", "documentation"},
        {"4000::1", "reserved"},
        {"5f00::1", "reserved"},
        {"fc00::1", "private"},
        {"fd20:ce::254", "private"},
        {"fe80::1", "link-local"},
        {"fec0::1", "site-local"},
        {"ff02::1", "multicast"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ip address = address_of(cases[i].text);
        const char *kind = egress_kind(&address);
        if ((kind == NULL) != (cases[i].kind == NULL) || (kind && strcmp(kind, cases[i].kind) != 0))
            fail_msg("%s: expected %s, got %s", cases[i].text, cases[i].kind ? cases[i].kind : "public",
                     kind ? kind : "public");
        static const struct egress_rules closed = {0};
        assert_int_equal(egress_allows(&closed, &address), cases[i].kind == NULL);
    }
}

static void a_range_opens_what_it_covers_and_nothing_else(void **state)
{
    (void)state;
    static const struct {
        const char *range, *address;
        bool allowed;
    } cases[] = {
        {"10.0.0.0/8", "10.1.2.3", true},
        {"10.0.0.0/8", "11.1.2.3", true}, /* public anyway */
        {"10.1.0.0/16", "10.2.0.1", false},
        {"127.0.0.1", "127.0.0.1", true},
        {"127.0.0.1", "127.0.0.2", false},
        {"127.0.0.0/31", "127.0.0.1", true},
        {"127.0.0.0/31", "127.0.0.2", false},
        {"0.0.0.0/0", "192.168.0.1", true},
        {"0.0.0.0/0", "::1", false},
        {"::/0", "::1", true},
        {"::/0", "192.168.0.1", false},
        {"::ffff:0:0/96", "192.168.0.1", true},
        {"10.0.0.0/8", "::ffff:10.0.0.1", true},    /* the same address */
        {"10.0.0.0/8", "64:ff9b::10.0.0.1", false}, /* another one: what is connected to counts */
        {"64:ff9b::/96", "64:ff9b::10.0.0.1", true},
        {"fc00::/7", "fd00::1", true},
        {"fc00::/7", "fe80::1", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ip_range range;
        assert_int_equal(ip_range_parse(cases[i].range, &range, NULL), STATUS_OK);
        struct ip address = address_of(cases[i].address);
        struct egress_rules rules = {.allow_private = {&range, 1}};
        if (egress_allows(&rules, &address) != cases[i].allowed)
            fail_msg("%s and %s", cases[i].range, cases[i].address);
    }
}

/* Forms that have led other guards astray. With http allowed, so that the scheme is not what refuses them. */
static void urls_that_lead_inside_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "http://127.0.0.1/h",
        "http://127.9.8.7/h",
        "http://localhost/h",
        "http://LOCALHOST:80/h",
        "http://localhost./h",
        "http://a.b.localhost/h",
        "http://a.localhost./h",
        "http://localhost.localdomain/h",
        /* decimal, octal, hexadecimal, short */
        "http://2130706433/h",
        "http://0x7f000001/h",
        "http://0x7f.0.0.1/h",
        "http://0177.0.0.1/h",
        "http://017700000001/h",
        "http://127.1/h",
        "http://127.0.1/h",
        "http://0/h",
        "http://0.0.0.0/h",
        "http://127.0.0.1./h",
        "http://127.0.0.01/h",
        "http://1.1.1.1.1/h",
        "http://example.0x7f/h",
        "http://4294967296/h",
        /* v6 */
        "http://[::]/h",
        "http://[::1]/h",
        "http://[0:0:0:0:0:0:0:1]/h",
        "http://[::ffff:127.0.0.1]/h",
        "http://[::ffff:7f00:1]/h",
        "http://[0:0:0:0:0:ffff:a9fe:a9fe]/h",
        "http://[::169.254.169.254]/h",
        "http://[::a9fe:a9fe]/h",
        "http://[64:ff9b::7f00:1]/h",
        "http://[fe80::1%25lo]/h",
        "http://[fe80::1%lo]/h",
        "http://[fc00::1]/h",
        "http://[ff02::1]/h",
        "http://[2002:7f00:1::]/h",
        "http://[2001:0:7f00:1::]/h",
        "http://[::1]evil.com/h",
        "http://[::1/h",
        "http://[]/h",
        "http://[127.0.0.1]/h",
        "http://[v1.fe80::a]/h",
        "http://[::1]:/h",
        /* v4 */
        "http://10.0.0.5/h",
        "http://172.31.255.255/h",
        "http://192.168.1.1/h",
        "http://100.100.100.100/h",
        "http://169.254.169.254/latest",
        "http://169.254.170.2/h",
        "http://198.18.0.1/h",
        "http://224.0.0.1/h",
        "http://240.0.0.1/h",
        "http://255.255.255.255/h",
        /* userinfo, backslashes, blanks, other alphabets */
        "http://example.com@127.0.0.1/h",
        "http://127.0.0.1@example.com/h",
        "http://u:p@example.com/h",
        "http://example.com\\@127.0.0.1/h",
        "http://127.0.0.1\\.example.com/h",
        "http:\\\\127.0.0.1\\h",
        "http:127.0.0.1/h",
        "http:/127.0.0.1/h",
        "http:///127.0.0.1/h",
        "http:////127.0.0.1/h",
        "http://127\xe3\x80\x82"
        "0\xe3\x80\x82"
        "0\xe3\x80\x82"
        "1/h",
        "http://\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.\xe2\x93\xaa.\xe2\x93\xaa.\xe2\x91\xa0/h",
        "http://%31%32%37.0.0.1/h",
        "http://ex%61mple.com/h",
        "http://b\xc3\xbc"
        "cher.example/h",
        "http:// 127.0.0.1/h",
        "http://example.com /h",
        " http://example.com/h",
        "http://example.com/a b",
        "http://example.com/h\t",
        "http://example.com\r\nX: y/h",
        "http://example.com/h\r\nHost: internal",
        "http://example.com/h#fragment",
        "http://example.com#@127.0.0.1/",
        /* ports */
        "http://example.com:0/h",
        "http://example.com:99999/h",
        "http://example.com:/h",
        "http://example.com:80a/h",
        "http://example.com:-1/h",
        "http://example.com:80:80/h",
        "http://127.0.0.1:0/h",
        "http://127.0.0.1:99999/h",
        /* schemes */
        "gopher://127.0.0.1:6379/_PING",
        "dict://127.0.0.1:11211/stat",
        "ftp://example.com/h",
        "file:///etc/passwd",
        "unix:/run/x.sock",
        "javascript:alert(1)",
        "example.com/h",
        "//example.com/h",
        "",
        "http",
        "http://",
        "https://",
        "https:///h",
        "https://?x",
        "https://:443/h",
        /* names */
        "http://metadata.google.internal/x",
        "http://METADATA.google.internal./x",
        "http://.example.com/h",
        "http://example..com/h",
        "http://../h",
        "http://./h",
        "http://exa,mple.com/h",
        "http://example.com;x/h",
        "http://*.example.com/h",
    };
    static const struct egress_rules rules = {.allow_http = true};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct error err = {""};
        enum status status = egress_url_check(bad[i], &rules, &err);
        if (status != STATUS_REFUSED && status != STATUS_INVALID)
            fail_msg("\"%s\" is taken", bad[i]);
        assert_true(strlen(err.text) > 10);
    }
}

static void public_urls_pass(void **state)
{
    (void)state;
    static const char *const good[] = {
        "http://93.184.216.34/h",
        "http://[2606:2800:220:1::1]/h",
        "http://172.32.0.1/h",
        "http://xn--bcher-kva.example/h",
        "https://hooks.example.com",
        "https://hooks.example.com:8443/a/b?c=d&e=%20",
        "HTTPS://Hooks.Example.com./x@y",
        "https://a_b.example.com/",
        "https://hooks.example.com?x=1",
        "http://[64:ff9b::8.8.8.8]:80/h",
        "http://internal/h",
        "http://localhost.example.com/h",
        "http://notlocalhost/h",
        "http://1.example/h",
        "http://0x7f.example/h",
    };
    static const struct egress_rules rules = {.allow_http = true};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct error err = {""};
        if (egress_url_check(good[i], &rules, &err) != STATUS_OK)
            fail_msg("\"%s\": %s", good[i], err.text);
    }
}

static void a_refusal_shows_the_line_that_opens(void **state)
{
    (void)state;
    static const struct egress_rules closed = {0}, http = {.allow_http = true};
    struct error err;
    assert_int_equal(egress_url_check("https://10.1.2.3/h", &closed, &err), STATUS_REFUSED);
    assert_string_equal(err.text,
                        "leads to 10.1.2.3, which is private; to allow it: egress = { allow_private = { "
                        "\"10.1.2.3/32\" } }");
    assert_int_equal(egress_url_check("http://[::1]:8080/h", &http, &err), STATUS_REFUSED);
    assert_non_null(strstr(err.text, "allow_private = { \"::1/128\" }"));
    assert_int_equal(egress_url_check("http://hooks.example.com/h", &closed, &err), STATUS_REFUSED);
    assert_non_null(strstr(err.text, "egress = { allow_http = true }"));
}

static void what_is_opened_passes(void **state)
{
    (void)state;
    struct ip_range ranges[3];
    ip_range_parse("127.0.0.0/8", &ranges[0], NULL);
    ip_range_parse("fd00::/8", &ranges[1], NULL);
    ip_range_parse("169.254.169.254", &ranges[2], NULL);
    struct egress_rules rules = {.allow_private = {ranges, 3}, .allow_http = true};
    static const char *const good[] = {"http://127.0.0.1:4100/h", "http://localhost:4100/",
                                       "http://x.localhost/", "https://[fd00::7]/h",
                                       "http://metadata.google.internal/h"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(egress_url_check(good[i], &rules, NULL), STATUS_OK);
    assert_int_equal(egress_url_check("http://10.0.0.1/h", &rules, NULL), STATUS_REFUSED);
    assert_int_equal(egress_url_check("https://[::1]/h", &rules, NULL), STATUS_REFUSED);
}

static void proxies_are_judged_too(void **state)
{
    (void)state;
    static const struct egress_rules closed = {0};
    assert_int_equal(egress_proxy_check("http://user:pw@proxy.example.com:3128", &closed, NULL), STATUS_OK);
    assert_int_equal(egress_proxy_check("socks5h://proxy.example.com:1080", &closed, NULL), STATUS_OK);
    assert_int_equal(egress_proxy_check("http://127.0.0.1:3128", &closed, NULL), STATUS_REFUSED);
    assert_int_equal(egress_proxy_check("http://u@127.0.0.1:3128", &closed, NULL), STATUS_REFUSED);
    assert_int_equal(egress_proxy_check("socks4://proxy.example.com", &closed, NULL), STATUS_INVALID);
    assert_int_equal(egress_proxy_check("proxy.example.com:3128", &closed, NULL), STATUS_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_of_addresses),
        cmocka_unit_test(a_range_opens_what_it_covers_and_nothing_else),
        cmocka_unit_test(urls_that_lead_inside_are_refused),
        cmocka_unit_test(public_urls_pass),
        cmocka_unit_test(a_refusal_shows_the_line_that_opens),
        cmocka_unit_test(what_is_opened_passes),
        cmocka_unit_test(proxies_are_judged_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
