/* "lanegate config token": the second word of the verb, in a file of its own. */
#ifndef CLI_TOKEN_H
#define CLI_TOKEN_H

#include "cli/cli.h"

/* argv[0] is "token". The exit code. */
int token_run(const struct cli_verb *verb, int argc, char **argv);

#endif
