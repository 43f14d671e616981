/* Loading configuration for a verb: faults are printed as they are, one line each. */
#ifndef CLI_CONFIG_FILE_H
#define CLI_CONFIG_FILE_H

#include "config/config.h"

/* CLI_OK with one reference in `out`; CLI_BAD_CONFIG with everything printed on stderr. */
int config_file_load(const char *path, enum config_mode mode, struct config **out);

#endif
