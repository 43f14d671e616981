/* Nothing that is owed is left behind: what the configuration says of sinks that are gone, or have a new
 * name, is done to their rows; a configuration that says nothing of them is refused. */
#ifndef GATEWAY_GUARD_H
#define GATEWAY_GUARD_H

#include "config/config.h"
#include "lanes/lanes.h"
#include "store/store.h"

/* Between store_open and store_start, before any sink gets its number. REFUSED with `faults`, one line each,
 * ending in a line feed: nothing was given up then. Else `err` tells what the store said. */
enum status guard_rows(const struct config *config, struct store *store, struct buf *faults,
                       struct error *err);

enum guard_answer { GUARD_FINE, GUARD_HOOKS_OWED, GUARD_NEEDS_RESTART };

struct gone_sinks {
    struct lanes_gone *at;
    size_t len, size;
};

/* The same of a configuration that is to replace the running one, by what lanes knows of rows; nothing is
 * done. `faults` says what stands in the way; `gone` (VEC_FREE it) gets the sinks whose rows may be given up.
 * Renaming a sink that is owed hooks moves rows of a store that stands still: that needs a restart. */
enum guard_answer guard_reload(const struct config *config, const struct store *store, struct lanes *lanes,
                               struct gone_sinks *gone, struct buf *faults);

#endif
