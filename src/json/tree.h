/* The one place where jansson is included: a whole tree, for answers that the command line reads and bodies
 * that scripts want to see. Not on the way of a hook: see json.h and DECISIONS. */
#ifndef JSON_TREE_H
#define JSON_TREE_H

#include <jansson.h>

#endif
