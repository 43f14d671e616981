/* The same JSON as other programs write it: what a body looks like after something on its way has parsed it
 * and written it anew. Only blanks and escapes change, never the order of names or the digits of a number. */
#ifndef VERIFY_RESERIALISE_H
#define VERIFY_RESERIALISE_H

#include "util/buf.h"
#include "util/bytes.h"

enum json_blanks {
    BLANKS_NONE,     /* {"a":1,"b":2}: JavaScript, Go, and most providers */
    BLANKS_SPACED,   /* {"a": 1, "b": 2}: Python, Ruby's on_generate */
    BLANKS_INDENT_2, /* one member a line */
    BLANKS_INDENT_4,
    BLANKS_COUNT
};

enum json_escapes {
    ESCAPES_KEPT,
    ESCAPES_SLASH_PLAIN, /* "\/" to "/": undoes PHP */
    ESCAPES_SLASH,       /* "/" to "\/": PHP */
    ESCAPES_ASCII,       /* everything beyond ASCII as \uXXXX: Python */
    ESCAPES_UTF8,        /* and the reverse */
    ESCAPES_COUNT
};

/* False when `body` is not JSON. */
bool reserialise(struct bytes body, enum json_blanks blanks, enum json_escapes escapes, struct buf *out);

/* For people: goes on from "would match". */
const char *json_blanks_text(enum json_blanks blanks);
const char *json_escapes_text(enum json_escapes escapes);

#endif
