/* Who may ask: the Host rule against DNS rebinding, and tokens with their scopes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admin/access.h"
#include "util/digest.h"

static bool loopback(const char *host)
{
    return access_host_is_loopback(bytes_str(host));
}

static void this_machine_by_any_of_its_names(void **state)
{
    (void)state;
    static const char *const hosts[] = {"localhost", "localhost:4002", "LOCALHOST:1",
                                        "127.0.0.1", "127.0.0.1:4002", "127.8.9.10:80",
                                        "[::1]",     "[::1]:4002",     "[0:0:0:0:0:0:0:1]:4002"};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
        if (!loopback(hosts[i]))
            fail_msg("%s should be loopback", hosts[i]);
}

static void every_other_name_is_a_stranger(void **state)
{
    (void)state;
    static const char *const hosts[] = {"",
                                        "evil.example",
                                        "evil.example:4002",
                                        "localhost.evil.example",
                                        "localhost@evil.example",
                                        "localhost:",
                                        "localhost:x",
                                        "localhost:123456",
                                        "localhost:80:80",
                                        "localhost.",
                                        "127.0.0.1.evil.example",
                                        "127.1",
                                        "0x7f.0.0.1",
                                        "2130706433",
                                        "128.0.0.1",
                                        "0.0.0.0",
                                        "10.0.0.1",
                                        "::1",
                                        "[::1",
                                        "[::1]x",
                                        "[::2]",
                                        "[::]",
                                        "[localhost]",
                                        "[::ffff:127.0.0.1]",
                                        " localhost",
                                        "localhost 127.0.0.1"};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
        if (loopback(hosts[i]))
            fail_msg("\"%s\" should be a stranger", hosts[i]);
    assert_false(access_host_is_loopback(BYTES_NONE));
    assert_false(access_host_is_loopback(BYTES("127.0.0.1\0.evil.example")));
}

static void listening_on_loopback_means_every_address(void **state)
{
    (void)state;
    const char *const both[] = {"127.0.0.1:0", "[::1]:4002"};
    const char *const open[] = {"127.0.0.1:0", "0.0.0.0:4002"};
    assert_true(access_listens_on_loopback(both, 2));
    assert_false(access_listens_on_loopback(open, 2));
    assert_true(access_listens_on_loopback(NULL, 0));
}

static void an_origin_is_the_host_it_was_asked_by(void **state)
{
    (void)state;
    assert_true(access_origin_is_own(BYTES("http://127.0.0.1:4002"), BYTES("127.0.0.1:4002")));
    assert_true(access_origin_is_own(BYTES("https://LOCALHOST"), BYTES("localhost")));
    assert_false(access_origin_is_own(BYTES("http://localhost:3000"), BYTES("localhost:4002")));
    assert_false(access_origin_is_own(BYTES("http://evil.example"), BYTES("127.0.0.1:4002")));
    assert_false(access_origin_is_own(BYTES("null"), BYTES("127.0.0.1:4002")));
    assert_false(access_origin_is_own(BYTES("http://"), BYTES("")));
    assert_false(access_origin_is_own(BYTES_NONE, BYTES_NONE));
}

static void a_token_is_known_by_its_hash(void **state)
{
    (void)state;
    uint8_t reader[SHA256_SIZE], chief[SHA256_SIZE];
    sha256(&BYTES("reader-token"), 1, reader);
    sha256(&BYTES("chief-token"), 1, chief);
    const struct admin_token tokens[] = {
        {bytes_of(reader, sizeof reader), "reader", ADMIN_SCOPE_READ},
        {bytes_of(chief, sizeof chief), "chief",
         ADMIN_SCOPE_READ | ADMIN_SCOPE_PAYLOAD | ADMIN_SCOPE_OPERATE},
    };
    const char *name = "nobody";
    assert_int_equal(0, access_scopes(tokens, 2, BYTES("Bearer stranger"), &name));
    assert_string_equal("nobody", name);
    assert_int_equal(ADMIN_SCOPE_READ, access_scopes(tokens, 2, BYTES("Bearer reader-token"), &name));
    assert_string_equal("reader", name);
    assert_int_equal(ADMIN_SCOPE_READ | ADMIN_SCOPE_PAYLOAD | ADMIN_SCOPE_OPERATE,
                     access_scopes(tokens, 2, BYTES("bearer  chief-token"), &name));

    assert_int_equal(0, access_scopes(tokens, 2, BYTES("Bearer reader-toke"), &name));
    assert_int_equal(0, access_scopes(tokens, 2, BYTES("Bearer reader-tokens"), &name));
    assert_int_equal(0, access_scopes(tokens, 2, BYTES("Bearer READER-TOKEN"), &name));
    assert_int_equal(0, access_scopes(tokens, 2, BYTES("Basic reader-token"), &name));
    assert_int_equal(0, access_scopes(tokens, 2, BYTES("reader-token"), &name));
    assert_int_equal(0, access_scopes(tokens, 2, BYTES("Bearer "), &name));
    assert_int_equal(0, access_scopes(tokens, 2, BYTES("Bearer"), &name));
    assert_int_equal(0, access_scopes(tokens, 2, BYTES_NONE, &name));
}

static void a_hash_of_the_wrong_size_matches_nothing(void **state)
{
    (void)state;
    uint8_t hash[SHA256_SIZE];
    sha256(&BYTES("t"), 1, hash);
    const struct admin_token cut[] = {{bytes_of(hash, 0), "empty", SCOPES_ALL},
                                      {bytes_of(hash, 31), "cut", SCOPES_ALL}};
    const char *name;
    assert_int_equal(0, access_scopes(cut, 2, BYTES("Bearer t"), &name));
}

static void scopes_have_names(void **state)
{
    (void)state;
    assert_string_equal("read", access_scope_name(ADMIN_SCOPE_READ));
    assert_string_equal("payload", access_scope_name(ADMIN_SCOPE_PAYLOAD));
    assert_string_equal("operate", access_scope_name(ADMIN_SCOPE_OPERATE));
    assert_string_equal("config", access_scope_name(ADMIN_SCOPE_CONFIG));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(this_machine_by_any_of_its_names),
        cmocka_unit_test(every_other_name_is_a_stranger),
        cmocka_unit_test(listening_on_loopback_means_every_address),
        cmocka_unit_test(an_origin_is_the_host_it_was_asked_by),
        cmocka_unit_test(a_token_is_known_by_its_hash),
        cmocka_unit_test(a_hash_of_the_wrong_size_matches_nothing),
        cmocka_unit_test(scopes_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
