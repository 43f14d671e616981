/* How many hooks a second a tenant may send: looked at, set, and left to the file again. A tenant need not be
 * known: with tenant_path, its first hook makes it. */
#include <stdio.h>

#include "admin/admin_priv.h"
#include "limits/limits.h"

static bool names_tenant(struct ask *ask)
{
    if (query_is_name(ask->parts[0]))
        return true;
    ask_not_found(ask, "tenant");
    return false;
}

static void write_limit(struct jsonw *w, struct limit limit)
{
    if (limit.rate > 0) {
        jsonw_double(w, "rate", limit.rate);
        jsonw_int(w, "burst", limit.burst);
    } else {
        jsonw_null(w, "rate");
        jsonw_null(w, "burst");
    }
}

/* `status` is that of an act, or NULL. */
static void answer(struct ask *ask, const char *status)
{
    struct jsonw *w = &ask->json;
    struct limits_look look;
    limits_look(ask->admin->options.limits, ask->parts[0], limits_now_ns(), &look);
    jsonw_object(w, NULL);
    if (status)
        jsonw_str(w, "status", status);
    jsonw_bytes(w, "tenant", ask->parts[0]);
    write_limit(w, look.limit);
    jsonw_str(w, "from", limit_origin_name(look.origin));
    if (look.limit.rate > 0)
        jsonw_int(w, "available", look.available);
    else
        jsonw_null(w, "available");
    jsonw_object(w, "without_api");
    write_limit(w, look.without_api);
    jsonw_end_object(w);
    jsonw_end_object(w);
}

/* A limit without a rate: it is gone. */
static void keep(struct ask *ask, const char *what, struct limit limit)
{
    struct store_limit kept = {.set = limit.rate > 0, .rate = limit.rate, .burst = limit.burst};
    char target[STORE_TENANT_MAX + 64];
    snprintf(kept.tenant, sizeof kept.tenant, "%.*s", BYTES_ARG(ask->parts[0]));
    if (kept.set)
        snprintf(target, sizeof target, "%s rate=%.12g burst=%lld", kept.tenant, kept.rate,
                 (long long)kept.burst);
    ask_audit(ask, what, bytes_str(kept.set ? target : kept.tenant), -1, -1);
    store_set_limit(ask->admin->options.store, &kept);
}

/* In force at once; kept, when the answer is 200. */
static void finish(struct ask *ask, const char *status)
{
    if (store_flush(ask->admin->options.store))
        answer(ask, status);
    else
        ask_store_failed(ask, STATUS_UNAVAILABLE);
}

void get_rate_limit(struct ask *ask)
{
    if (names_tenant(ask))
        answer(ask, NULL);
}

void put_rate_limit(struct ask *ask)
{
    struct limit limit = {.rate = ask->query.limit_rate, .burst = ask->query.burst};
    if (!names_tenant(ask))
        return;
    if (limit.rate <= 0) {
        ask_refuse_filter(ask, &(struct query_fault){"bad_member", BYTES("rate"),
                                                     "hooks a second: a number from 0.001 to 1000000"});
        return;
    }
    if (limit.burst == 0)
        limit.burst = limit_burst_of(limit.rate);
    if (!limits_put(ask->admin->options.limits, ask->parts[0], limit)) {
        ask_refuse_with(ask, 409, "too_many_limits", "expected",
                        "fewer tenants with a limit of their own; delete some, or use rate_limits.default");
        return;
    }
    keep(ask, "rate_limit.set", limit);
    finish(ask, "done");
}

void delete_rate_limit(struct ask *ask)
{
    if (!names_tenant(ask))
        return;
    bool was = limits_drop(ask->admin->options.limits, ask->parts[0]);
    if (was)
        keep(ask, "rate_limit.delete", (struct limit){.rate = 0});
    finish(ask, was ? "done" : "unchanged");
}
