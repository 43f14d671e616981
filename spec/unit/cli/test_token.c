/* lanegate config token: what is printed lets its bearer in, and nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli.h"
#include "played.h"
#include "util/digest.h"
#include "json/tree.h"

static const struct heard *run(int expected, int argc, const char *const *words)
{
    char *argv[8];
    for (int i = 0; i < argc; i++)
        argv[i] = (char *)(uintptr_t)words[i];
    played_listen();
    int code = verb_config.run(argc, argv);
    const struct heard *heard = played_heard();
    if (code != expected)
        fail_msg("exit %d\n%s%s", code, heard->out, heard->err);
    return heard;
}

static void expect_hash(const char *token, const char *hash)
{
    struct bytes text = bytes_str(token);
    uint8_t digest[SHA256_SIZE];
    char hex[2 * SHA256_SIZE + 1];
    sha256(&text, 1, digest);
    hex_encode(digest, sizeof digest, hex);
    assert_string_equal(hash, hex);
}

static void the_hash_is_the_token_s(void **state)
{
    (void)state;
    static const char *const words[] = {"config", "token", "--json", "--name=ci", "--scopes", "operate,read"};
    char first[128] = "";
    for (int i = 0; i < 2; i++) {
        json_t *document = json_loads(run(CLI_OK, 6, words)->out, 0, NULL);
        const char *token, *hash, *name, *line;
        json_t *scopes;
        assert_int_equal(json_unpack(document, "{s:s, s:s, s:s, s:s, s:o !}", "token", &token, "hash", &hash,
                                     "name", &name, "line", &line, "scopes", &scopes),
                         0);
        expect_hash(token, hash);
        assert_string_equal(name, "ci");
        assert_int_equal(json_array_size(scopes), 2);
        assert_non_null(strstr(line, hash));
        assert_non_null(strstr(line, "{ \"read\", \"operate\" }"));
        assert_null(strstr(line, token));
        assert_string_not_equal(token, first); /* never the same twice */
        strcpy(first, token);
        json_decref(document);
    }
}

static void the_token_stands_on_the_first_line(void **state)
{
    (void)state;
    static const char *const words[] = {"config", "token"};
    const struct heard *heard = run(CLI_OK, 2, words);
    assert_memory_equal(heard->out, "lg_", 3);
    assert_int_equal(strcspn(heard->out, "\n"), 67);
    assert_non_null(strstr(heard->out, "name = \"operator\""));
    assert_non_null(strstr(heard->out, "scopes = { \"read\" }"));
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"--scopes", "read,all"}, {"--scopes", ""}, {"--scopes", "read,"}, {"--name", ""}, {"--name", "a b"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *words[] = {"config", "token", wrong[i][0], wrong[i][1]};
        assert_string_equal(run(CLI_USAGE, 4, words)->out, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hash_is_the_token_s),
        cmocka_unit_test(the_token_stands_on_the_first_line),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
