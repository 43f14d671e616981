/* A secret that is sent along as it is, in a header: gitlab's token, a bearer token, user and password. They
 * prove who posts, but nothing about the body. */
#include <stdlib.h>

#include "util/digest.h"
#include "util/mem.h"
#include "verify/schemes.h"
#include "verify/verify_priv.h"

struct key {
    struct bytes header; /* static, or borrowed from the options */
    const char *word;    /* "Bearer ", in any case; NULL: the secret stands alone */
    struct bytes user;   /* basic: borrowed from the options */
    bool encoded;        /* basic: base64 of "user:secret" */
};

static const struct secret_form *text_form(const struct value *options)
{
    (void)options;
    return &secret_form_text;
}

static enum status keep(struct key made, void **out)
{
    struct key *key = mem_alloc(sizeof *key);
    *key = made;
    *out = key;
    return STATUS_OK;
}

/* docs.gitlab.com/user/project/integrations/webhooks: the secret token, as it is. */
static enum status gitlab_open(const struct value *options, const struct recipe *facts,
                               const struct verify_engine *engine, void **key, struct error *err)
{
    (void)options, (void)facts, (void)engine, (void)err;
    return keep((struct key){.header = BYTES("x-gitlab-token")}, key);
}

/* RFC 6750, section 2.1. With `header`, a token that stands alone in a header of the provider's own. */
static enum status bearer_open(const struct value *options, const struct recipe *facts,
                               const struct verify_engine *engine, void **key, struct error *err)
{
    (void)facts, (void)engine, (void)err;
    const struct value *header = value_get(options, "header");
    if (header->kind == VALUE_STRING && !bytes_eq_nocase(header->string, BYTES("authorization")))
        return keep((struct key){.header = header->string}, key);
    return keep((struct key){.header = BYTES("authorization"), .word = "Bearer "}, key);
}

/* RFC 7617. */
static enum status basic_open(const struct value *options, const struct recipe *facts,
                              const struct verify_engine *engine, void **key, struct error *err)
{
    (void)facts, (void)engine;
    const struct value *user = value_get(options, "username");
    if (user->kind != VALUE_STRING || user->string.len == 0 || memchr(user->string.at, ':', user->string.len))
        return error_set(err, STATUS_INVALID, "username: must be a name without a colon");
    return keep(
        (struct key){
            .header = BYTES("authorization"), .word = "Basic ", .user = user->string, .encoded = true},
        key);
}

static void token_close(void *key)
{
    free(key);
}

/* What the header would hold with this secret. */
static void put_expected(const struct key *key, struct bytes secret, struct buf *out)
{
    if (!key->encoded) {
        buf_putb(out, secret);
        return;
    }
    struct buf plain = {0};
    buf_putb(&plain, key->user);
    buf_putc(&plain, ':');
    buf_putb(&plain, secret);
    base64_encode(out, buf_bytes(&plain));
    explicit_bzero(plain.at, plain.size);
    buf_free(&plain);
}

/* Compared by digest, so that not even the length of a secret shows in the time it takes. */
static size_t which_token(const struct key *key, const struct secrets *secrets, struct bytes given)
{
    uint8_t mine[SHA256_SIZE], theirs[SHA256_SIZE];
    size_t first = 0;
    sha256(&given, 1, theirs);
    for (size_t i = 0; i < secrets->count; i++) {
        struct buf expected = {0};
        put_expected(key, buf_bytes(&secrets->at[i]), &expected);
        struct bytes text = buf_bytes(&expected);
        sha256(&text, 1, mine);
        if (bytes_eq_constant_time(bytes_of(mine, sizeof mine), bytes_of(theirs, sizeof theirs)) && !first)
            first = i + 1;
        explicit_bzero(expected.at, expected.size);
        buf_free(&expected);
    }
    return first;
}

static struct verify_result token_check(const void *opaque, const struct attempt *attempt)
{
    const struct key *key = opaque;
    struct bytes value;
    struct verify_result result;
    if (!signature_header(attempt, key->header, &value, &result))
        return result;
    if (key->word) {
        struct bytes word = bytes_str(key->word);
        if (!bytes_starts_nocase(value, word)) {
            attempt->trace->fault_header = key->header;
            attempt->trace->strangers = 1;
            return verify_failed(REASON_MALFORMED);
        }
        value = bytes_trim(bytes_of(value.at + word.len, value.len - word.len));
    }
    attempt->trace->signatures = 1;
    attempt->trace->secret = which_token(key, attempt->secrets, value);
    return attempt->trace->secret ? verify_passed() : verify_failed(REASON_BAD_SIGNATURE);
}

static struct bytes token_header(const void *opaque)
{
    const struct key *key = opaque;
    return key->header;
}

const struct scheme scheme_gitlab = {.secret_form = text_form,
                                     .open = gitlab_open,
                                     .close = token_close,
                                     .check = token_check,
                                     .secret_header = token_header};
const struct scheme scheme_bearer = {.secret_form = text_form,
                                     .open = bearer_open,
                                     .close = token_close,
                                     .check = token_check,
                                     .secret_header = token_header};
const struct scheme scheme_basic = {.secret_form = text_form,
                                    .open = basic_open,
                                    .close = token_close,
                                    .check = token_check,
                                    .secret_header = token_header};
