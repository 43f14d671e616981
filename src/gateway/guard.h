/* Nothing that is owed is left behind: what the configuration says of sinks that are gone, or have a new
 * name, is done to their rows; a configuration that says nothing of them is refused. */
#ifndef GATEWAY_GUARD_H
#define GATEWAY_GUARD_H

#include "config/config.h"
#include "store/store.h"

/* Between store_open and store_start, before any sink gets its number. REFUSED with `faults`, one line each,
 * ending in a line feed: nothing was given up then. Else `err` tells what the store said. */
enum status guard_rows(const struct config *config, struct store *store, struct buf *faults,
                       struct error *err);

#endif
