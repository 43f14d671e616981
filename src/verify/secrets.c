#include "verify/secrets.h"

#include <string.h>

#include "verify/coding.h"

static const char *fault_of(const struct value *value)
{
    if (value->kind == VALUE_NIL)
        return "there is none";
    if (value->kind != VALUE_STRING)
        return "this is not a string";
    if (value->string.len == 0)
        return "this is empty";
    struct bytes text = value->string;
    for (size_t i = 0; i < text.len; i++)
        if (!strchr(" \t\r\n\v\f", text.at[i]))
            return NULL;
    return "this is blank";
}

enum status secrets_each(const struct value *options, const char *name, const char *format,
                         const char *(*take)(void *ctx, struct bytes text), void *ctx, struct error *err)
{
    const struct value *option = value_get(options, name);
    bool list = option->kind == VALUE_LIST;
    size_t count = list ? option->len : 1;
    if (count == 0)
        return error_set(err, STATUS_INVALID, "%s: the list is empty; each element must be %s", name, format);
    if (count > SECRETS_MAX)
        return error_set(err, STATUS_INVALID, "%s: at most %d at a time, got %zu", name, SECRETS_MAX, count);
    for (size_t i = 0; i < count; i++) {
        const struct value *one = list ? &option->items[i] : option;
        const char *fault = fault_of(one);
        if (!fault)
            fault = take(ctx, one->string);
        if (fault && list)
            return error_set(err, STATUS_INVALID, "%s[%zu]: must be %s; %s", name, i + 1, format, fault);
        if (fault)
            return error_set(err, STATUS_INVALID, "%s: must be %s; %s", name, format, fault);
    }
    return STATUS_OK;
}

struct opening {
    struct secrets *out;
    const struct secret_form *form;
};

static const char *take_secret(void *ctx, struct bytes text)
{
    struct opening *opening = ctx;
    return opening->form->decode(text, &opening->out->at[opening->out->count++]);
}

enum status secrets_open(struct secrets *out, const struct value *options, const struct secret_form *form,
                         struct error *err)
{
    struct opening opening = {.out = out, .form = form};
    return secrets_each(options, "secret", form->format, take_secret, &opening, err);
}

void secrets_close(struct secrets *secrets)
{
    for (size_t i = 0; i < secrets->count; i++) {
        if (secrets->at[i].at)
            explicit_bzero(secrets->at[i].at, secrets->at[i].size);
        buf_free(&secrets->at[i]);
    }
    secrets->count = 0;
}

/* A line feed at its end is what an editor leaves in a file, and a blank what a paste brings along: no
 * provider makes a secret that ends so. */
static const char *decode_text(struct bytes text, struct buf *out)
{
    if (bytes_trim(text).len != text.len || strchr("\r\n", text.at[text.len - 1]) ||
        strchr("\r\n", text.at[0]))
        return "this has a blank or a line feed at an end";
    buf_putb(out, text);
    return NULL;
}
const struct secret_form secret_form_text = {"the text that the provider shows, without blanks around it",
                                             decode_text};

static const char *decode_hex(struct bytes text, struct buf *out)
{
    return coding_read_secret(CODING_HEX, text, out) ? NULL : "this is not an even number of hex digits";
}
const struct secret_form secret_form_hex = {"hex digits, two a byte", decode_hex};

static const char *decode_base64(struct bytes text, struct buf *out)
{
    return coding_read_secret(CODING_BASE64, text, out) ? NULL : "this is not base64";
}
const struct secret_form secret_form_base64 = {"base64", decode_base64};
