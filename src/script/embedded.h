/* The Lua modules of lua/lanegate, in the binary. The table is written by embed.cmake at build time. */
#ifndef SCRIPT_EMBEDDED_H
#define SCRIPT_EMBEDDED_H

#include <stddef.h>

struct script_embedded {
    const char *module; /* "lanegate.check"; NULL behind the last */
    const char *text;
    size_t len;
};

extern const struct script_embedded script_embedded[];

#endif
