/* Where a list goes on: opaque to the client, hex on the wire. A cursor of one list is refused by another.
 * Pure. */
#ifndef ADMIN_CURSOR_H
#define ADMIN_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "util/bytes.h"

enum cursor_kind {
    CURSOR_LANES = 'l',
    CURSOR_HOOKS = 'h',
    CURSOR_DEAD = 'd',
    CURSOR_AUDIT = 'a',
    CURSOR_PEN = 'q',
    CURSOR_REPLAYS = 'r'
};

enum { CURSOR_SIZE = 1 + 8 + 4, CURSOR_TEXT = 2 * CURSOR_SIZE + 1 };

/* All zero: the start of the list. */
struct cursor {
    uint64_t seq;  /* of lanes: how many are behind us */
    uint32_t sink; /* CURSOR_DEAD only */
};

void cursor_format(enum cursor_kind kind, struct cursor cursor, char text[CURSOR_TEXT]);
/* False when it is not one that cursor_format made for this kind of list. */
bool cursor_parse(enum cursor_kind kind, struct bytes text, struct cursor *out);

#endif
