/* Digests against the vectors of the standards: FIPS 180-4, RFC 4231, RFC 4648. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/digest.h"

static void sha(const struct bytes *parts, size_t n, char hex[65])
{
    uint8_t out[SHA256_SIZE];
    sha256(parts, n, out);
    hex_encode(out, sizeof out, hex);
}

static void sha256_of_the_standards_examples(void **state)
{
    (void)state;
    char hex[65];
    sha(&BYTES(""), 1, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha(NULL, 0, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha(&BYTES("abc"), 1, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha(&BYTES("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), 1, hex);
    assert_string_equal(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");

    char *million = malloc(1000000);
    memset(million, 'a', 1000000);
    sha(&(struct bytes){million, 1000000}, 1, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

static void parts_are_one_text(void **state)
{
    (void)state;
    char hex[65];
    struct bytes parts[] = {BYTES("a"), BYTES_NONE, BYTES("b"), BYTES(""), BYTES("c")};
    sha(parts, 5, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

struct hmac_case {
    const char *key, *data, *mac; /* hex, text, hex */
};

static void hmac_of_rfc_4231(void **state)
{
    (void)state;
    char long_key[2 * 131 + 1];
    for (int i = 0; i < 131; i++)
        memcpy(long_key + 2 * i, "aa", 3);
    char dd[51] = {0}, cd[51] = {0};
    memset(dd, 0xdd, 50);
    memset(cd, 0xcd, 50);
    const struct hmac_case cases[] = {
        {"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "Hi There",
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {"4a656665", "what do ya want for nothing?",
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", dd,
         "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {"0102030405060708090a0b0c0d0e0f10111213141516171819", cd,
         "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
        {long_key, "Test Using Larger Than Block-Size Key - Hash Key First",
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {long_key,
         "This is a test using a larger than block-size key and a larger than block-size data. The key needs "
         "to be hashed before being used by the HMAC algorithm.",
         "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t key[131], mac[SHA256_SIZE];
        size_t n = strlen(cases[i].key) / 2;
        char hex[65];
        assert_true(hex_decode(bytes_str(cases[i].key), key, n));
        struct bytes data = bytes_str(cases[i].data);
        hmac_sha256(bytes_of(key, n), &data, 1, mac);
        hex_encode(mac, sizeof mac, hex);
        assert_string_equal(hex, cases[i].mac);

        struct bytes halves[] = {bytes_of(data.at, data.len / 2),
                                 bytes_of(data.at + data.len / 2, data.len - data.len / 2)};
        hmac_sha256(bytes_of(key, n), halves, 2, mac);
        hex_encode(mac, sizeof mac, hex);
        assert_string_equal(hex, cases[i].mac);
    }
}

static void an_empty_secret_is_a_key_too(void **state)
{
    (void)state;
    uint8_t mac[SHA256_SIZE];
    char hex[65];
    hmac_sha256(BYTES_NONE, &BYTES(""), 1, mac);
    hex_encode(mac, sizeof mac, hex);
    assert_string_equal(hex, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

static const struct {
    const char *plain, *text;
} pairs[] = {{"", ""},
             {"f", "Zg=="},
             {"fo", "Zm8="},
             {"foo", "Zm9v"},
             {"foob", "Zm9vYg=="},
             {"fooba", "Zm9vYmE="},
             {"foobar", "Zm9vYmFy"},
             {"\xfb\xff", "+/8="}};

static void base64_of_rfc_4648(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct buf out = {0};
        base64_encode(&out, bytes_str(pairs[i].plain));
        assert_true(bytes_eq(buf_bytes(&out), bytes_str(pairs[i].text)));
        buf_clear(&out);
        assert_true(base64_decode(&out, bytes_str(pairs[i].text)));
        assert_true(bytes_eq(buf_bytes(&out), bytes_str(pairs[i].plain)));
        buf_free(&out);
    }
}

static void base64_of_every_length_reads_back(void **state)
{
    (void)state;
    uint8_t in[300];
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (uint8_t)(i * 37);
    for (size_t n = 0; n <= sizeof in; n++) {
        struct buf text = {0}, back = {0};
        base64_encode(&text, bytes_of(in, n));
        assert_true(base64_decode(&back, buf_bytes(&text)));
        assert_true(bytes_eq(buf_bytes(&back), bytes_of(in, n)));
        buf_free(&text);
        buf_free(&back);
    }
}

static void base64_takes_one_form_only(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "Z",     "Zg",   "Zg=",  "Zm8",  "Zm9v=", "====", "=Zm9", "Zg==Zg==", "Zm9v\n", "Zm9v\n\n\n\n",
        "Z m8=", "Zm8 ", "-_8=", "Zh==", "Zm9=",  "Z===", "Zg=a", "Zm\xff=",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct buf out = {0};
        if (base64_decode(&out, bytes_str(bad[i])))
            fail_msg("took \"%s\"", bad[i]);
        buf_free(&out);
    }
    struct buf out = {0};
    assert_false(base64_decode(&out, BYTES("Zm\0v"))); /* a NUL is no digit */
    buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_of_the_standards_examples),
        cmocka_unit_test(parts_are_one_text),
        cmocka_unit_test(hmac_of_rfc_4231),
        cmocka_unit_test(an_empty_secret_is_a_key_too),
        cmocka_unit_test(base64_of_rfc_4648),
        cmocka_unit_test(base64_of_every_length_reads_back),
        cmocka_unit_test(base64_takes_one_form_only),
    };
    return cmocka_run_group_tests_name("util: digest", tests, NULL, NULL);
}
