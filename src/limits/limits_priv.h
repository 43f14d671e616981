/* Inside the room: charge.c takes, tenants.c knows who has which limit. */
#ifndef LIMITS_LIMITS_PRIV_H
#define LIMITS_LIMITS_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "limits/buckets.h"
#include "limits/limits.h"
#include "util/current.h"
#include "util/vec.h"

/* ---- tenants.c ---- */

struct own_limit {
    char *tenant;
    struct limit limit;
};

struct tenants {
    atomic_bool any;        /* has any tenant a limit? */
    struct current current; /* of struct tenant_table: all of it, for hooks */
    /* What that is made from, for whoever changes or looks at something. */
    pthread_mutex_t lock;
    struct limit otherwise;
    VEC(struct own_limit) file, api;
};

void tenants_open(struct tenants *tenants);
void tenants_close(struct tenants *tenants);
/* The limit of the tenant with that key, for a hook. */
struct pace tenants_pace(struct tenants *tenants, uint64_t key);

/* ---- limits.c ---- */

enum { NEWS_KINDS = LIMIT_KINDS + 1 };

struct news {
    atomic_int_least64_t told_ns, count;
};

struct limits {
    struct buckets *of[LIMIT_SIGNATURES + 1]; /* by enum limit_kind */
    struct buckets *pen, *known;
    struct tenants tenants;
    struct news news[NEWS_KINDS];
};

#endif
