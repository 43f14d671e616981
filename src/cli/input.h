/* Files that people name on the command line: whole, and never more than a bound of them. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include <stddef.h>

#include "util/buf.h"
#include "util/status.h"

enum { INPUT_REQUEST_MAX = 64 << 20 }; /* a captured request */

/* All of a file, or ("-") of the standard input, behind what `out` has. NOT_FOUND: it can't be opened. IO, or
 * TOO_LARGE beyond `max` bytes. `err` says "can't read NAME: why". */
enum status input_read(const char *path, size_t max, struct buf *out, struct error *err);

#endif
