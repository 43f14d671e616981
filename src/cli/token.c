/* lanegate config token: a new token for the admin API. Only its hash goes into the configuration. */
#include "cli/token.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "cli/args.h"
#include "util/buf.h"
#include "util/digest.h"
#include "json/tree.h"

enum { RANDOM_BYTES = 32, TOKEN_TEXT = 3 + 2 * RANDOM_BYTES + 1, HASH_TEXT = 2 * SHA256_SIZE + 1 };

static const char *const scope_names[] = {"read", "payload", "operate", "config"};
enum { SCOPE_COUNT = sizeof scope_names / sizeof scope_names[0] };

/* "read,operate" to a bit a name. */
static bool read_scopes(struct bytes text, bool scopes[SCOPE_COUNT])
{
    struct bytes item;
    bool any = false;
    while (bytes_next_item(&text, &item)) {
        bool known = false;
        for (size_t i = 0; i < SCOPE_COUNT; i++)
            if (bytes_eq(bytes_trim(item), bytes_str(scope_names[i])))
                scopes[i] = known = any = true;
        if (!known)
            return false;
    }
    return any;
}

static bool is_name(const char *text)
{
    size_t len = strlen(text);
    return len >= 1 && len <= 64 &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == len;
}

static bool make(char token[TOKEN_TEXT], char hash[HASH_TEXT])
{
    uint8_t random[RANDOM_BYTES], digest[SHA256_SIZE];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    memcpy(token, "lg_", 3); /* so that scanners of leaked secrets can tell what it is */
    hex_encode(random, sizeof random, token + 3);
    struct bytes text = bytes_str(token);
    sha256(&text, 1, digest);
    hex_encode(digest, sizeof digest, hash);
    return true;
}

static void write_line(struct buf *out, const char *name, const char *hash, const bool scopes[SCOPE_COUNT])
{
    const char *between = "";
    buf_putf(out, "{ name = \"%s\", hash = \"%s\", scopes = { ", name, hash);
    for (size_t i = 0; i < SCOPE_COUNT; i++)
        if (scopes[i]) {
            buf_putf(out, "%s\"%s\"", between, scope_names[i]);
            between = ", ";
        }
    buf_puts(out, " } },");
}

static void print_json(const char *token, const char *name, const char *hash, const char *line,
                       const bool scopes[SCOPE_COUNT])
{
    json_t *list = json_array();
    for (size_t i = 0; i < SCOPE_COUNT; i++)
        if (scopes[i])
            json_array_append_new(list, json_string(scope_names[i]));
    json_t *document = json_pack("{s:s, s:s, s:s, s:o, s:s}", "token", token, "name", name, "hash", hash,
                                 "scopes", list, "line", line);
    json_dumpf(document, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(document);
}

int token_run(const struct cli_verb *verb, int argc, char **argv)
{
    const char *scopes_text = "read", *name = "operator";
    bool json = false, scopes[SCOPE_COUNT] = {false};
    const struct arg args[] = {{"scopes", ARG_TEXT, {.text = &scopes_text}},
                               {"name", ARG_TEXT, {.text = &name}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    size_t count;
    int code = cli_args(verb, argc, argv, args, NULL, 0, &count);
    if (code != CLI_OK)
        return code;
    if (!read_scopes(bytes_str(scopes_text), scopes))
        return cli_usage(verb, "--scopes must be a list out of read,payload,operate,config, got \"%s\"",
                         scopes_text);
    if (!is_name(name))
        return cli_usage(verb, "--name must be 1 to 64 letters, digits, _ and -, got \"%s\"", name);

    char token[TOKEN_TEXT], hash[HASH_TEXT];
    if (!make(token, hash)) {
        fprintf(stderr, "lanegate config: the system gives no random bytes: %s\n", strerror(errno));
        return CLI_FAILED;
    }
    struct buf line = {0};
    write_line(&line, name, hash, scopes);
    if (json)
        print_json(token, name, hash, line.at, scopes);
    else
        printf("%s\n\n"
               "That is the token: keep it, it is shown once. Clients send it as LANEGATE_TOKEN, or as\n"
               "\"Authorization: Bearer\". The line for the configuration holds only its hash:\n\n"
               "  admin = { tokens = {\n    %s\n  } },\n",
               token, line.at);
    buf_free(&line);
    explicit_bzero(token, sizeof token);
    return CLI_OK;
}
