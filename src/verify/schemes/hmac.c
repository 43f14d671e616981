/* A digest of the request under a shared secret: what most providers do. The facts are a row of schemes.c, or
 * (scheme `hmac`) what the options say. */
#include <stdlib.h>

#include "util/check.h"
#include "util/mem.h"
#include "verify/recipe.h"
#include "verify/schemes.h"

static const struct secret_form *text_form(const struct value *options)
{
    (void)options;
    return &secret_form_text;
}

static enum status open_recipe(const struct recipe *recipe, const struct value *options, void **key,
                               struct error *err)
{
    struct form *form = mem_zalloc(sizeof *form);
    enum status status = form_open(form, recipe, options, err);
    if (status == STATUS_OK)
        *key = form;
    else
        free(form);
    return status;
}

static enum status provider_open(const struct value *options, const struct recipe *facts,
                                 const struct verify_engine *engine, void **key, struct error *err)
{
    (void)engine;
    return open_recipe(facts, options, key, err);
}

static void hmac_close(void *key)
{
    form_close(key);
    free(key);
}

/* -- checking ------------------------------------------------------------------------------------------- */

/* What each secret gives, as the sender writes it; one text after the other, all of one size. */
struct expected {
    const struct form *form;
    const struct secrets *secrets;
    struct buf texts;
    size_t size;
};

static void hmac_start(void *ctx, const struct bytes *parts, size_t n)
{
    struct expected *expected = ctx;
    for (size_t i = 0; i < expected->secrets->count; i++) {
        uint8_t digest[MAC_SIZE_MAX];
        size_t size = mac(expected->form->digest, buf_bytes(&expected->secrets->at[i]), parts, n, digest);
        coding_write(expected->form->coding, bytes_of(digest, size), &expected->texts);
    }
    expected->size = expected->secrets->count ? expected->texts.len / expected->secrets->count : 0;
}

static size_t hmac_fits(void *ctx, struct bytes signature)
{
    const struct expected *expected = ctx;
    return which_fits(signature, &expected->texts, expected->size);
}

static struct verify_result hmac_check(const void *key, const struct attempt *attempt)
{
    struct expected expected = {.form = key, .secrets = attempt->secrets};
    struct verify_result result =
        form_check(key, attempt, &(struct judge){.ctx = &expected, .start = hmac_start, .fits = hmac_fits});
    buf_free(&expected.texts);
    return result;
}

const struct scheme scheme_provider_hmac = {
    .secret_form = text_form, .open = provider_open, .close = hmac_close, .check = hmac_check};

/* -- github: SHA-1 for who asks ---------------------------------------------------------------------------
 */

static enum status github_open(const struct value *options, const struct recipe *facts,
                               const struct verify_engine *engine, void **key, struct error *err)
{
    (void)engine;
    struct recipe recipe = *facts;
    const char *algorithm = value_str(options, "algorithm", "sha256");
    if (strcmp(algorithm, "sha1") == 0) {
        recipe.header = "x-hub-signature";
        recipe.prefix = "sha1=";
        recipe.digest = DIGEST_SHA1;
    } else if (strcmp(algorithm, "sha256") != 0) {
        return error_set(err, STATUS_INVALID, "algorithm: must be \"sha256\" or \"sha1\"");
    }
    return open_recipe(&recipe, options, key, err);
}

const struct scheme scheme_github = {
    .secret_form = text_form, .open = github_open, .close = hmac_close, .check = hmac_check};

/* -- hmac: what the options say ----------------------------------------------------------------------------
 */

static const struct secret_form *form_of_encoding(const struct value *options)
{
    const char *encoding = value_str(options, "secret_encoding", "raw");
    if (strcmp(encoding, "hex") == 0)
        return &secret_form_hex;
    return strcmp(encoding, "base64") == 0 ? &secret_form_base64 : &secret_form_text;
}

static enum status generic_open(const struct value *options, const struct recipe *facts,
                                const struct verify_engine *engine, void **key, struct error *err)
{
    (void)facts, (void)engine;
    const char *encoding = value_str(options, "secret_encoding", "raw");
    if (strcmp(encoding, "raw") != 0 && strcmp(encoding, "hex") != 0 && strcmp(encoding, "base64") != 0)
        return error_set(err, STATUS_INVALID, "secret_encoding: must be \"raw\", \"hex\" or \"base64\"");
    struct recipe recipe;
    struct recipe_scratch scratch;
    enum status status = recipe_read(options, &(struct recipe){.signs = "{body}"}, &recipe, &scratch, err);
    return status == STATUS_OK ? open_recipe(&recipe, options, key, err) : status;
}

const struct scheme scheme_hmac = {
    .secret_form = form_of_encoding, .open = generic_open, .close = hmac_close, .check = hmac_check};
