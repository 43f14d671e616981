/* Hooks a second, at the start: the file's limits, and over them what people set while an earlier process
 * ran. */
#include "limits/limits.h"
#include "gateway/gateway_priv.h"
#include "util/vec.h"

struct kept {
    VEC(struct store_limit) all;
};

static void keep(void *ctx, const struct store_limit *limit)
{
    struct kept *kept = ctx;
    VEC_PUSH(&kept->all, *limit);
}

enum status gateway_open_limits(struct gateway *g, struct error *err)
{
    struct kept kept = {0};
    VEC(struct limits_tenant) put = {0};
    g->limits = limits_open();
    generation_limits(g->generation, g->limits);
    enum status status = store_limits(g->store, keep, &kept, err);
    VEC_EACH (limit, &kept.all) {
        struct limits_tenant tenant = {limit->tenant, {limit->rate, limit->burst}};
        if (status == STATUS_OK && !limit_in_bounds(tenant.limit))
            status = error_set(err, STATUS_CORRUPT, "the stored rate limit of tenant %s is out of bounds",
                               limit->tenant);
        VEC_PUSH(&put, tenant);
    }
    if (status == STATUS_OK)
        limits_restore(g->limits, put.at, put.len);
    VEC_FREE(&kept.all);
    VEC_FREE(&put);
    return status;
}
