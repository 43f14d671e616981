/* Do the key functions of a configuration depend on the hook alone? Asked of up to CHECK_KEYS_HOOKS stored
 * hooks a source, when a gateway is there that has some. */
#ifndef CLI_CHECK_KEYS_H
#define CLI_CHECK_KEYS_H

#include "cli/client.h"
#include "config/config.h"

enum { CHECK_KEYS_HOOKS = 100 };

/* Adds a line to `faults` for every sink whose key is nondeterministic, in the form of config_load's. Gives
 * how many hooks were tried; 0 when no key has a script, or nothing is stored, or nobody is there to ask. */
size_t check_keys(const struct cli_verb *verb, const struct client_where *where, const struct config *config,
                  struct buf *faults);

#endif
