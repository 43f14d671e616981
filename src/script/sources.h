/* Every .lua file under one folder, read once: what `require` can find. Immutable; any thread. Private to
 * this room. */
#ifndef SCRIPT_SOURCES_H
#define SCRIPT_SOURCES_H

#include "util/bytes.h"
#include "util/status.h"

struct source {
    const char *module; /* "keys.shop"; keys/shop.lua or keys/shop/init.lua */
    const char *path;   /* as a person would write it: the folder as given, and what is below */
    struct bytes text;
};

struct sources;

/* A folder that is not there is empty. Files and folders whose names begin with a dot or hold one elsewhere
 * can't be modules and are passed over, and so are links that lead out of the folder. IO or TOO_LARGE with a
 * reason. */
enum status sources_read(const char *folder, struct sources **out, struct error *err);
void sources_free(struct sources *sources); /* NULL is fine */
/* NULL when there is none. */
const struct source *sources_find(const struct sources *sources, struct bytes module);
const char *sources_folder(const struct sources *sources);

#endif
