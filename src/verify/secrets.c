#include "verify/secrets.h"

#include <string.h>

static enum status refuse(struct error *err, size_t number, const char *format, const char *found)
{
    if (number == 0)
        return error_set(err, STATUS_INVALID, "secret: must be %s; %s", format, found);
    return error_set(err, STATUS_INVALID, "secret[%zu]: must be %s; %s", number, format, found);
}

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

enum status secrets_open(struct secrets *out, const struct value *options, const char *format,
                         secret_decoder *decode, struct error *err)
{
    const struct value *option = value_get(options, "secret");
    bool list = option->kind == VALUE_LIST;
    size_t count = list ? option->len : 1;
    if (count == 0)
        return error_set(err, STATUS_INVALID, "secret: the list is empty; each element must be %s", format);
    if (count > SECRETS_MAX)
        return error_set(err, STATUS_INVALID, "secret: at most %d at a time, got %zu", SECRETS_MAX, count);
    for (size_t i = 0; i < count; i++) {
        const struct value *one = list ? &option->items[i] : option;
        const char *fault = fault_of(one);
        if (!fault)
            fault = decode(one->string, &out->at[out->count++]);
        if (fault)
            return refuse(err, list ? i + 1 : 0, format, fault);
    }
    return STATUS_OK;
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
