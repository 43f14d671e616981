/* A hook out of a raw HTTP/1.x request in a file: what `lanegate hooks show --raw` prints, what a person
 * captured or wrote by hand. Pure. */
#ifndef ENVELOPE_RAW_H
#define ENVELOPE_RAW_H

#include "envelope/envelope.h"

/* Lines may end in CR LF or in LF alone. The body has as many bytes as its Content-Length says, or goes to
 * the end where there is none; a line end that an editor added behind it is no part of it. The envelope (one
 * reference, the caller's) has method, path, query, headers, content_type and body; all else is for the
 * caller to fill, before it is shared. Names and values are copied. INVALID with what was expected and what
 * was found, by line. */
enum status envelope_from_raw(struct bytes raw, struct envelope **out, struct error *err);

#endif
