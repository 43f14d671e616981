/* A lane as people write it: source/sink/key, with the key percent-encoded as it is shown. The key may hold
 * slashes. */
#ifndef CLI_LANE_NAME_H
#define CLI_LANE_NAME_H

#include <stdbool.h>

#include "util/buf.h"

/* Everything is owned: lane_name_free. Parts that were not said are NULL, or false. */
struct lane_name {
    char *source, *sink;
    bool has_key;
    struct buf key; /* decoded; empty: the keyless lane */
};

/* "source", "source/sink" or "source/sink/key". False when source or sink is empty or a % is not followed by
 * two hex digits; nothing is owned then. */
bool lane_name_parse(const char *text, struct lane_name *out);
void lane_name_free(struct lane_name *name);

#endif
