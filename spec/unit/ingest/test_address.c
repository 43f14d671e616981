/* Who sent this? What strangers write into X-Forwarded-For moves nothing; what our proxies wrote is believed.
 */
#include "house.h"

#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "util/buf.h"

/* Three proxies that we trust, one behind the other. */
static struct ip_range proxies[3];
static struct ip_ranges trusted;

static int setup(void **state)
{
    (void)state;
    assert_int_equal(ip_range_parse("10.0.0.0/8", &proxies[0], NULL), STATUS_OK);
    assert_int_equal(ip_range_parse("2001:db8:1::/48", &proxies[1], NULL), STATUS_OK);
    assert_int_equal(ip_range_parse("127.0.0.1", &proxies[2], NULL), STATUS_OK);
    trusted = (struct ip_ranges){proxies, 3};
    return 0;
}

/* `lines` ends with NULL. Gives the address, or "unreadable". */
static const char *caller_of(const char *peer, const char *const *lines)
{
    static struct caller caller;
    static char text[IP_TEXT];
    struct http_header headers[8] = {{BYTES("Host"), BYTES("127.0.0.1")}};
    size_t count = 1;
    for (size_t i = 0; lines[i]; i++)
        headers[count++] = (struct http_header){i % 2 ? BYTES("x-forwarded-for") : BYTES("X-Forwarded-For"),
                                                bytes_str(lines[i])};
    headers[count++] = (struct http_header){BYTES("X-Forwarded-Forth"), BYTES("9.9.9.9")};
    headers[count++] = (struct http_header){BYTES("Forwarded"), BYTES("for=9.9.9.9")};
    struct http_request request = {.headers = headers, .header_count = count, .remote_ip = bytes_str(peer)};
    caller_find(&trusted, &request, &caller);
    if (!caller.known)
        return "unreadable";
    ip_format(&caller.ip, text);
    assert_true(bytes_eq(caller.text, bytes_str(text))); /* what is stored is what is judged */
    return text;
}

static void the_walk(void **state)
{
    (void)state;
    static const struct {
        const char *peer, *lines[4], *expected;
    } cases[] = {
        /* nobody in between, or nobody we know */
        {"203.0.113.9", {NULL}, "203.0.113.9"},
        {"203.0.113.9", {"192.0.2.1"}, "203.0.113.9"},
        {"203.0.113.9", {"garbage, more"}, "203.0.113.9"},
        {"2001:db8::9", {"192.0.2.1"}, "2001:db8::9"},
        /* one proxy */
        {"10.0.0.1", {NULL}, "10.0.0.1"},
        {"10.0.0.1", {"192.0.2.1"}, "192.0.2.1"},
        {"10.0.0.1", {" \t192.0.2.1 "}, "192.0.2.1"},
        {"::1", {"192.0.2.1"}, "::1"}, /* only 127.0.0.1 is trusted */
        {"2001:db8:1::5", {"192.0.2.1"}, "192.0.2.1"},
        /* the client wrote something too */
        {"10.0.0.1", {"127.0.0.1, 192.0.2.1"}, "192.0.2.1"},
        {"10.0.0.1", {"10.0.0.1,10.0.0.2,192.0.2.1"}, "192.0.2.1"},
        {"10.0.0.1", {"unknown, <script>, , 192.0.2.1"}, "192.0.2.1"},
        /* several proxies, the client's own word in front of theirs */
        {"127.0.0.1", {"9.9.9.9, 192.0.2.1, 10.0.0.3, 10.0.0.2"}, "192.0.2.1"},
        {"127.0.0.1", {"192.0.2.1, 10.0.0.3, 203.0.113.1, 10.0.0.2"}, "203.0.113.1"},
        /* several lines are one list */
        {"10.0.0.1", {"9.9.9.9", "192.0.2.1", "10.0.0.3, 10.0.0.2"}, "192.0.2.1"},
        {"10.0.0.1", {"192.0.2.1", "10.0.0.3"}, "192.0.2.1"},
        {"10.0.0.1", {"192.0.2.1, nonsense", "203.0.113.1", "10.0.0.3"}, "203.0.113.1"},
        /* only proxies: the one furthest away */
        {"10.0.0.1", {"10.0.0.4, 10.0.0.3", "10.0.0.2"}, "10.0.0.4"},
        {"10.0.0.1", {"10.0.0.2"}, "10.0.0.2"},
        /* empty elements are none */
        {"10.0.0.1", {""}, "10.0.0.1"},
        {"10.0.0.1", {" , ,,"}, "10.0.0.1"},
        {"10.0.0.1", {"192.0.2.1,", ","}, "192.0.2.1"},
        /* as proxies write them */
        {"10.0.0.1", {"192.0.2.1:5678"}, "192.0.2.1"},
        {"10.0.0.1", {"192.0.2.1:0"}, "192.0.2.1"},
        {"10.0.0.1", {"2001:db8::7"}, "2001:db8::7"},
        {"10.0.0.1", {"[2001:db8::7]"}, "2001:db8::7"},
        {"10.0.0.1", {"[2001:DB8::7]:443"}, "2001:db8::7"},
        {"10.0.0.1", {"192.0.2.1, 10.0.0.2:80, [2001:db8:1::1]:80"}, "192.0.2.1"},
        /* v4 in v6's clothes is v4 */
        {"10.0.0.1", {"::ffff:192.0.2.1"}, "192.0.2.1"},
        {"10.0.0.1", {"192.0.2.1, ::ffff:10.0.0.2"}, "192.0.2.1"},
        {"10.0.0.1", {"192.0.2.1, [::ffff:a00:2]:80"}, "192.0.2.1"},
        /* what can't be read, where it counts */
        {"10.0.0.1", {"unknown"}, "unreadable"},
        {"10.0.0.1", {"192.0.2.1, unknown"}, "unreadable"},
        {"10.0.0.1", {"192.0.2.1, _hidden, 10.0.0.2"}, "unreadable"},
        {"10.0.0.1", {"192.0.2.1", "x", "10.0.0.2"}, "unreadable"},
        {"10.0.0.1", {"192.0.2.1 10.0.0.2"}, "unreadable"},
        {"10.0.0.1", {"192.0.2.1;10.0.0.2"}, "unreadable"},
        {"10.0.0.1", {"\"192.0.2.1\""}, "unreadable"},
        {"10.0.0.1", {"192.0.2.1:"}, "unreadable"},
        {"10.0.0.1", {"192.0.2.1:65536"}, "unreadable"},
        {"10.0.0.1", {"192.0.2.1:-1"}, "unreadable"},
        {"10.0.0.1", {"192.0.2.1:80:80"}, "unreadable"},
        {"10.0.0.1", {"192.0.2.01"}, "unreadable"},
        {"10.0.0.1", {"192.0.2"}, "unreadable"},
        {"10.0.0.1", {"3221225985"}, "unreadable"},
        {"10.0.0.1", {"[192.0.2.1]"}, "unreadable"},
        {"10.0.0.1", {"[192.0.2.1]:80"}, "unreadable"},
        {"10.0.0.1", {"[2001:db8::7"}, "unreadable"},
        {"10.0.0.1", {"[2001:db8::7]80"}, "unreadable"},
        {"10.0.0.1", {"[2001:db8::7]:"}, "unreadable"},
        {"10.0.0.1", {"[]"}, "unreadable"},
        {"10.0.0.1", {"["}, "unreadable"},
        {"10.0.0.1", {":"}, "unreadable"},
        {"10.0.0.1", {"2001:db8::7]"}, "unreadable"},
        {"10.0.0.1", {"fe80::1%eth0"}, "unreadable"},
        {"10.0.0.1", {"for=192.0.2.1"}, "unreadable"},
        {"10.0.0.1", {"192.0.2.1\xc2\xa0"}, "unreadable"},
        /* a peer that the kernel did not name */
        {"", {"192.0.2.1"}, "unreadable"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = caller_of(cases[i].peer, cases[i].lines);
        if (strcmp(got, cases[i].expected) != 0)
            fail_msg("case %zu, %s behind %s: expected %s, got %s", i,
                     cases[i].lines[0] ? cases[i].lines[0] : "nobody", cases[i].peer, cases[i].expected, got);
    }
}

/* The same question asked in the slow way: everything joined, cut at the commas, walked from the right. */
static const char *slow_walk(const char *const *lines)
{
    static const char *const known[] = {"10.0.0.1", "10.9.9.9:80", "[2001:db8:1::1]:7"};
    static const char *const strange[] = {"192.0.2.1", "2001:db8::7"};
    static const char *const last[] = {"10.0.0.1", "10.9.9.9", "2001:db8:1::1"};
    struct buf joined = {0};
    for (size_t i = 0; lines[i]; i++)
        buf_putf(&joined, "%s,", lines[i]);
    const char *entries[64], *answer = "10.0.0.1"; /* the peer */
    size_t count = 0;
    for (char *rest = joined.at, *entry; joined.len && (entry = strsep(&rest, ","));) {
        entry += strspn(entry, " ");
        entry[strcspn(entry, " ")] = 0;
        if (*entry)
            entries[count++] = entry;
    }
    for (bool on = true; on && count-- > 0;) {
        on = false;
        answer = "unreadable";
        for (size_t k = 0; k < 3; k++)
            if (strcmp(entries[count], known[k]) == 0) {
                answer = last[k];
                on = true;
            }
        for (size_t k = 0; k < 2; k++)
            if (strcmp(entries[count], strange[k]) == 0)
                answer = strange[k];
    }
    buf_free(&joined);
    return answer;
}

static void any_lines_give_what_the_slow_walk_gives(void **state)
{
    (void)state;
    static const char *const words[] = {
        "10.0.0.1", "10.9.9.9:80", "[2001:db8:1::1]:7", "192.0.2.1", "2001:db8::7", "unknown", "", " ",
        "[",        ":",           "10.0.0.1:x"};
    enum { WORDS = sizeof words / sizeof *words };
    struct random chance = {20261201};
    for (int round = 0; round < 100000; round++) {
        struct buf text[3] = {0};
        const char *lines[4] = {NULL};
        size_t count = random_below(&chance, 4);
        for (size_t i = 0; i < count; i++) {
            for (size_t n = random_below(&chance, 6); n-- > 0;)
                /* mostly proxies, so that the walk goes far */
                buf_putf(&text[i], "%s%s%s", random_once_in(&chance, 3) ? " " : "",
                         words[random_below(&chance, random_once_in(&chance, 3) ? WORDS : 3)], n ? "," : "");
            lines[i] = text[i].len ? text[i].at : "";
        }
        const char *expected = slow_walk(lines), *got = caller_of("10.0.0.1", lines);
        if (strcmp(expected, got) != 0)
            fail_msg("round %d: expected %s, got %s", round, expected, got);
        for (size_t i = 0; i < 3; i++)
            buf_free(&text[i]);
    }
}

/* Nothing is read beyond an entry: each line stands alone at the end of its allocation (the sanitizer looks).
 */
static void any_bytes_do_no_harm(void **state)
{
    (void)state;
    static const char alphabet[] = "0123456789abcdef:.,[]% \t\0-/x";
    struct random chance = {7};
    for (int round = 0; round < 100000; round++) {
        size_t len = random_below(&chance, 40);
        char *line = malloc(len + 1);
        for (size_t i = 0; i < len; i++)
            line[i + 1] = alphabet[random_below(&chance, sizeof alphabet - 1)];
        struct http_header header = {BYTES("x-forwarded-for"), bytes_of(line + 1, len)};
        struct http_request request = {.headers = &header, .header_count = 1, .remote_ip = BYTES("10.0.0.1")};
        struct caller caller;
        caller_find(&trusted, &request, &caller);
        if (caller.known)
            assert_true(caller.text.len > 0 && caller.text.len < IP_TEXT);
        free(line);
    }
}

static void reasons(void **state)
{
    (void)state;
    struct ip_gate gate = {.deny = {proxies, 1}, .allow = {proxies, 2}};
    struct caller caller = {.known = true};
    assert_true(ip_parse(BYTES("10.0.0.1"), &caller.ip));
    assert_string_equal(caller_denied(&gate, &caller), "denied");
    assert_true(ip_parse(BYTES("192.0.2.1"), &caller.ip));
    assert_string_equal(caller_denied(&gate, &caller), "not_allowed");
    assert_true(ip_parse(BYTES("2001:db8:1::1"), &caller.ip));
    assert_null(caller_denied(&gate, &caller));
    caller.known = false;
    assert_string_equal(caller_denied(&gate, &caller), "unreadable_address");
    assert_string_equal(caller_denied(&(struct ip_gate){0}, &caller), "unreadable_address");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_walk),
        cmocka_unit_test(any_lines_give_what_the_slow_walk_gives),
        cmocka_unit_test(any_bytes_do_no_harm),
        cmocka_unit_test(reasons),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
