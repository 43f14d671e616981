/* `only`: does a sink want this hook at all? */
#include "order/order_priv.h"

/* The usual walk with one way back: to the last star, which then takes a byte more. */
bool glob_matches(struct bytes glob, struct bytes text)
{
    size_t g = 0, t = 0, star = SIZE_MAX, star_text = 0;
    while (t < text.len) {
        if (g < glob.len && glob.at[g] == '*') {
            star = g++;
            star_text = t;
        } else if (g < glob.len && glob.at[g] == text.at[t]) {
            g++;
            t++;
        } else if (star != SIZE_MAX) {
            g = star + 1;
            t = ++star_text;
        } else {
            return false;
        }
    }
    while (g < glob.len && glob.at[g] == '*')
        g++;
    return g == glob.len;
}

/* Absent when there is nothing that a glob could match. */
static struct bytes text_at(struct resolution *r, size_t slot)
{
    if (r->body != BODY_JSON)
        return BYTES_NONE;
    const struct json_found *found = &r->found[slot];
    switch (found->kind) {
    case JSON_KIND_STRING:
        return found->lone_surrogate ? BYTES_NONE : found_text(found, r->arena);
    case JSON_KIND_NUMBER:
    case JSON_KIND_TRUE:
    case JSON_KIND_FALSE:
        return found->raw;
    default:
        return BYTES_NONE;
    }
}

bool filter_takes(const struct filter *filter, struct resolution *r)
{
    const struct filter_spec *spec = filter->spec;
    struct bytes text;
    if (spec->by_header) {
        text = envelope_header(r->envelope, spec->header);
    } else {
        resolution_read_body(r);
        if (r->body == BODY_TOO_LARGE)
            return true; /* not read, so not judged: rather one hook too many than one lost */
        text = text_at(r, filter->slot);
    }
    if (!text.at)
        return false;
    for (size_t i = 0; i < spec->glob_count; i++)
        if (glob_matches(spec->globs[i], text))
            return true;
    return false;
}
