/* The table of everything that can be asked: method, path, scope, filters, function. Matching is pure. */
#ifndef ADMIN_ROUTES_H
#define ADMIN_ROUTES_H

#include <stddef.h>

#include "util/bytes.h"

enum { ROUTE_PARTS_MAX = 4, ROUTE_ALLOW_MAX = 64 };

struct ask;

struct route {
    const char *method;
    const char *pattern; /* "/v1/hooks/{id}": a brace stands for one segment that is not empty */
    unsigned scope;      /* ADMIN_SCOPE_*; 0: open to everybody */
    uint64_t filters;    /* QUERY_* */
    void (*run)(struct ask *ask);
};

/* The route, with `parts` filled (borrowed from `path`). NULL when there is none: then `allow` lists the
 * methods that this path has ("GET, DELETE"), and is empty when the path is unknown. */
const struct route *route_find(struct bytes method, struct bytes path, struct bytes parts[ROUTE_PARTS_MAX],
                               char allow[ROUTE_ALLOW_MAX]);

#endif
