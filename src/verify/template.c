#include "verify/template.h"

#include <stdlib.h>

#include "util/mem.h"

static const struct {
    const char *name;
    enum place place;
} places[] = {{"body", PLACE_BODY}, {"ts", PLACE_TS}, {"method", PLACE_METHOD}, {"url", PLACE_URL}};

static bool add(struct template *template, enum place place, struct bytes text)
{
    if (template->count == TEMPLATE_PARTS_MAX)
        return false;
    template->parts[template->count++] = (struct template_part){.place = place, .text = text};
    return true;
}

/* What stands between braces; NULL, or what is wrong with it. */
static const char *add_place(struct template *template, struct bytes name)
{
    static const char many[] = "it has too many places";
    if (bytes_starts(name, BYTES("header:"))) {
        struct bytes header = bytes_of(name.at + 7, name.len - 7);
        if (!bytes_is_token(header))
            return "{header:X} needs the name of a header";
        return add(template, PLACE_HEADER, header) ? NULL : many;
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (!bytes_eq(name, bytes_str(places[i].name)))
            continue;
        return add(template, places[i].place, BYTES_NONE) ? NULL : many;
    }
    return "a place is one of {body}, {ts}, {method}, {url} and {header:X}; a brace itself is written twice";
}

static const char *parse(struct template *template, struct bytes text)
{
    while (text.len) {
        char c = text.at[0];
        size_t taken;
        const char *fault = NULL;
        if ((c == '{' || c == '}') && text.len > 1 && text.at[1] == c) {
            taken = 2;
            fault = add(template, PLACE_TEXT, bytes_of(text.at, 1)) ? NULL : "it has too many places";
        } else if (c == '{') {
            const char *end = memchr(text.at, '}', text.len);
            taken = end ? (size_t)(end - text.at) + 1 : text.len;
            fault = end ? add_place(template, bytes_of(text.at + 1, taken - 2)) : "a brace is not closed";
        } else if (c == '}') {
            return "a brace is closed that was not opened";
        } else {
            for (taken = 1; taken < text.len && text.at[taken] != '{' && text.at[taken] != '}';)
                taken++;
            fault = add(template, PLACE_TEXT, bytes_of(text.at, taken)) ? NULL : "it has too many places";
        }
        if (fault)
            return fault;
        text = bytes_of(text.at + taken, text.len - taken);
    }
    return template_has(template, PLACE_BODY) ? NULL : "without {body} anybody could change the body";
}

enum status template_open(struct template *out, struct bytes text, struct error *err)
{
    *out = (struct template){0};
    out->copy = mem_alloc(text.len + 1);
    if (text.len)
        memcpy(out->copy, text.at, text.len);
    out->copy[text.len] = 0;
    const char *fault = parse(out, bytes_of(out->copy, text.len));
    if (!fault)
        return STATUS_OK;
    template_close(out);
    return error_set(err, STATUS_INVALID, "%s", fault);
}

void template_close(struct template *template)
{
    free(template->copy);
    *template = (struct template){0};
}

bool template_has(const struct template *template, enum place place)
{
    for (size_t i = 0; i < template->count; i++)
        if (template->parts[i].place == place)
            return true;
    return false;
}

size_t template_fill(const struct template *template, const struct envelope *envelope, struct bytes url,
                     struct bytes ts, struct bytes out[TEMPLATE_BYTES_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < template->count; i++) {
        const struct template_part *part = &template->parts[i];
        switch (part->place) {
        case PLACE_TEXT:
            out[count++] = part->text;
            break;
        case PLACE_BODY:
            out[count++] = envelope->body;
            break;
        case PLACE_TS:
            out[count++] = ts;
            break;
        case PLACE_METHOD:
            out[count++] = envelope->method;
            break;
        case PLACE_URL:
            out[count++] = url;
            if (envelope->query.at) {
                out[count++] = BYTES("?");
                out[count++] = envelope->query;
            }
            break;
        case PLACE_HEADER:
            out[count++] = envelope_header(envelope, part->text);
            break;
        }
    }
    return count;
}
