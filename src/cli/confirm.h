/* What destroys or repeats asks first: on a terminal a person, elsewhere --yes. */
#ifndef CLI_CONFIRM_H
#define CLI_CONFIRM_H

#include <stdbool.h>

#include "cli/cli.h"

/* CLI_OK: go on. CLI_FAILED: the person said no. CLI_USAGE: nobody can be asked, and --yes was not given. The
 * question has no mark and no newline: "skip hook ... of lane ..."; it goes to stderr, harmless as it is. */
int cli_confirm(const struct cli_verb *verb, bool yes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
