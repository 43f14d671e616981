#include "util/form_fields.h"

#include <stdlib.h>

#include "util/check.h"
#include "util/mem.h"

/* A % that no two hex digits follow stands for itself. */
static void decode(struct bytes text, struct buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t byte;
        if (text.at[i] == '%' && i + 2 < text.len && hex_decode(bytes_of(text.at + i + 1, 2), &byte, 1)) {
            buf_putc(out, (char)byte);
            i += 2;
        } else {
            buf_putc(out, text.at[i] == '+' ? ' ' : text.at[i]);
        }
    }
}

/* The next field as it stands, name and value apart; false at the end. */
static bool next_field(struct bytes *text, struct bytes *name, struct bytes *value)
{
    while (text->len && text->at[0] == '&')
        *text = bytes_of(text->at + 1, text->len - 1);
    if (!text->len)
        return false;
    const char *end = memchr(text->at, '&', text->len);
    size_t len = end ? (size_t)(end - text->at) : text->len;
    const char *equals = memchr(text->at, '=', len);
    size_t split = equals ? (size_t)(equals - text->at) : len;
    *name = bytes_of(text->at, split);
    *value = equals ? bytes_of(equals + 1, len - split - 1) : bytes_of(text->at + len, 0);
    *text = bytes_of(text->at + len, text->len - len);
    return true;
}

bool form_field(struct bytes text, struct bytes wanted, struct buf *out)
{
    struct bytes name, value;
    struct buf plain = {0};
    bool found = false;
    while (!found && next_field(&text, &name, &value)) {
        buf_clear(&plain);
        decode(name, &plain);
        found = bytes_eq(buf_bytes(&plain), wanted);
    }
    buf_free(&plain);
    if (found)
        decode(value, out);
    return found;
}

struct field {
    struct bytes name, value; /* in one buffer */
};

static int by_name_and_value(const void *a, const void *b)
{
    const struct field *x = a, *y = b;
    int order = bytes_cmp(x->name, y->name);
    return order ? order : bytes_cmp(x->value, y->value);
}

bool form_fields_sorted(struct bytes text, struct buf *out)
{
    struct field *fields = mem_alloc(FORM_FIELDS_MAX * sizeof *fields);
    struct buf plain = {.max = text.len + 1}; /* decoding never makes a text longer */
    size_t count = 0;
    bool good = true;
    CHECK(buf_extend(&plain, text.len)); /* all of it at once: what the fields point to stays where it is */
    buf_clear(&plain);
    out->max = plain.max;
    for (struct bytes name, value; good && next_field(&text, &name, &value);) {
        good = count < FORM_FIELDS_MAX;
        if (!good)
            break;
        size_t at = plain.len;
        decode(name, &plain);
        size_t middle = plain.len;
        decode(value, &plain);
        fields[count++] = (struct field){bytes_of(plain.at + at, middle - at),
                                         bytes_of(plain.at + middle, plain.len - middle)};
    }
    if (good)
        qsort(fields, count, sizeof *fields, by_name_and_value);
    for (size_t i = 0; good && i < count; i++) {
        if (i && by_name_and_value(&fields[i - 1], &fields[i]) == 0)
            continue;
        buf_putb(out, fields[i].name);
        buf_putb(out, fields[i].value);
    }
    CHECK(!plain.overflow && !out->overflow);
    buf_free(&plain);
    free(fields);
    return good;
}
