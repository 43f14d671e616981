/* What a query may hold, as query.c reads it. */
#ifndef ADMIN_PARAMS_H
#define ADMIN_PARAMS_H

#include "admin/query.h"

struct param {
    const char *name; /* two may have one name, as "state": no route takes both */
    uint64_t bit;
    const char *expected; /* NULL: one of verify_reasons() */
    /* False: that is none. `value` lives as long as the query. */
    bool (*parse)(struct query *query, struct bytes value);
};

/* The one of that name among `allowed` (QUERY_*), or NULL. */
const struct param *param_find(struct bytes name, uint64_t allowed);
/* For people: the names of all that are allowed; what a value should be. In the arena, or static. */
const char *param_names(uint64_t allowed, struct arena *arena);
const char *param_expected(const struct param *param, struct arena *arena);

#endif
