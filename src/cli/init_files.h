/* The files of lua/keys and spec/keys, in the binary: what `lanegate init` writes. Made at build time. */
#ifndef CLI_INIT_FILES_H
#define CLI_INIT_FILES_H

#include "script/embedded.h"

extern const struct script_embedded init_files[]; /* `module` is a path: "lua/keys/stripe.lua" */

#endif
