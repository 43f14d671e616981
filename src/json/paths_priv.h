/* Paths as a tree of segments, so that a walk compares a member's name with what is still possible there and
 * with nothing else. The tree is one array; what a node's subtree asks for is one run of `order`. */
#ifndef JSON_PATHS_PRIV_H
#define JSON_PATHS_PRIV_H

#include "json/json.h"

struct path_node {
    struct bytes name; /* of the segment that leads here */
    size_t index;      /* the same as an array element, or SIZE_MAX */
    uint64_t lengths;  /* the lengths of the children's names, one bit each (length_bit) */
    const struct path_node *children;
    size_t child_count;
    /* Of json_paths.order: first to ends_here are the paths that end at this node, up to end those below it.
     */
    size_t first, ends_here, end;
};

struct json_paths {
    size_t count;
    const size_t *order; /* path numbers, sorted by their segments */
    const struct path_node *root;
    struct arena *arena; /* owns all of it */
};

/* A filter before comparing bytes: most names of a body differ from a wanted one in length already. */
static inline uint64_t length_bit(size_t len)
{
    return UINT64_C(1) << (len < 63 ? len : 63);
}

#endif
