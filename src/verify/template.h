/* What a provider signs, as a text with places: "{ts}.{body}". The places:
 *
 *     {body}        as it arrived
 *     {ts}          the time stamp, as it was sent
 *     {method}      of the request
 *     {url}         the public `url` of the source, and the query of this request behind it
 *     {header:X}    the value of that header, which must be there once
 *
 * Everything else stands for itself; "{{" and "}}" for one brace. */
#ifndef VERIFY_TEMPLATE_H
#define VERIFY_TEMPLATE_H

#include "envelope/envelope.h"
#include "util/status.h"

enum { TEMPLATE_PARTS_MAX = 32, TEMPLATE_BYTES_MAX = 3 * TEMPLATE_PARTS_MAX };

enum place { PLACE_TEXT, PLACE_BODY, PLACE_TS, PLACE_METHOD, PLACE_URL, PLACE_HEADER };

struct template_part {
    enum place place;
    struct bytes text; /* PLACE_TEXT, and the name of a PLACE_HEADER */
};

struct template
{
    struct template_part parts[TEMPLATE_PARTS_MAX];
    size_t count;
    char *copy; /* what the texts point into */
};

/* INVALID with a sentence that goes on from "must be ...; ": `out` is empty then. */
enum status template_open(struct template *out, struct bytes text, struct error *err);
void template_close(struct template *template);
bool template_has(const struct template *template, enum place place);

/* The bytes that are signed, borrowed from the envelope, `url` and the template. A header that is not there
 * adds nothing: who calls has looked. Gives the count. */
size_t template_fill(const struct template *template, const struct envelope *envelope, struct bytes url,
                     struct bytes ts, struct bytes out[TEMPLATE_BYTES_MAX]);

#endif
