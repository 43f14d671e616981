/* How many hooks a second may come. Failed signatures are counted by address and source, and who has too many
 * is told so before his next one is verified: that is what costs time. A hook that is taken is charged to its
 * tenant, its source and its address. */
#include "ingest/ingest_priv.h"

#include <string.h>

#include "util/log.h"

enum { NS_A_SECOND = 1000000000 };

static const struct ingest_rules *rules_of(const struct route *route)
{
    return &((const struct table *)route->hold->value)->rules;
}

bool limit_counts_failures(const struct ingest_source *source)
{
    return source->on_failure == INGEST_REJECT && source->verifier &&
           strcmp(verifier_type(source->verifier), "none") != 0;
}

struct limits_sender limit_sender(const struct route *route, const struct caller *caller)
{
    struct limits_sender sender = {.limit = rules_of(route)->failed_signatures};
    if (!route->entry->counts_failures || sender.limit.rate <= 0)
        return (struct limits_sender){.limit = {0}};
    sender.source = route->entry->limit_key;
    sender.address = limits_address_key(&caller->ip);
    return sender;
}

static void refuse_limited(struct ingest *ingest, const struct route *route,
                           const struct http_request *request, enum limit_kind kind, int64_t wait_ns,
                           int64_t now_ns)
{
    int64_t count;
    counter_add(route->entry->limited[kind], 1);
    if (limits_news(ingest->options.limits, kind, now_ns, &count))
        log_event(LOG_WARN, "rate_limited", LOG_STR("limit", limit_kind_name(kind)),
                  LOG_BYTES("tenant", route->tenant), LOG_STR("source", route->entry->source->name),
                  LOG_BYTES("remote_ip", request->remote_ip), LOG_INT("refused", count));
    refuse_counted(route->entry, request->exchange, REFUSE_RATE_LIMITED,
                   &(struct refusal_detail){.retry_after_s = (wait_ns + NS_A_SECOND - 1) / NS_A_SECOND});
}

bool limit_may_verify(struct ingest *ingest, const struct route *route, const struct http_request *request,
                      const struct limits_sender *sender)
{
    if (sender->limit.rate <= 0)
        return true;
    int64_t now_ns = limits_now_ns();
    int64_t wait_ns = limits_may_verify(ingest->options.limits, sender, now_ns);
    if (wait_ns > 0)
        refuse_limited(ingest, route, request, LIMIT_SIGNATURES, wait_ns, now_ns);
    return wait_ns == 0;
}

void limit_verified(struct ingest *ingest, const struct limits_sender *sender, enum verification verification)
{
    if (sender->limit.rate <= 0)
        return;
    if (verification == VERIFICATION_FAILED)
        limits_failed(ingest->options.limits, sender, limits_now_ns());
    else
        limits_proved(ingest->options.limits, sender, limits_now_ns());
}

bool limit_charge(struct ingest *ingest, const struct route *route, const struct http_request *request,
                  const struct caller *caller, struct limits_charge *charge)
{
    const struct limit address = rules_of(route)->address;
    struct limits_hook hook = {.tenant = route->tenant,
                               .source = route->entry->limit_key,
                               .of_source = route->entry->source->limit,
                               .of_address = address};
    if (address.rate > 0)
        hook.address = limits_address_key(&caller->ip);
    enum limit_kind which;
    int64_t now_ns = limits_now_ns();
    int64_t wait_ns = limits_charge(ingest->options.limits, &hook, now_ns, charge, &which);
    if (wait_ns > 0)
        refuse_limited(ingest, route, request, which, wait_ns, now_ns);
    return wait_ns == 0;
}

bool limit_pen(struct ingest *ingest, const struct route *route, const struct http_request *request,
               struct limits_charge *charge)
{
    int64_t wait_ns = limits_pen(ingest->options.limits, route->entry->limit_key, rules_of(route)->pen,
                                 limits_now_ns(), charge);
    if (wait_ns > 0)
        refuse_counted(route->entry, request->exchange, REFUSE_QUARANTINE_RATE_LIMITED,
                       &(struct refusal_detail){.retry_after_s = (wait_ns + NS_A_SECOND - 1) / NS_A_SECOND});
    return wait_ns == 0;
}

void limit_tell_overload(struct ingest *ingest, const struct envelope *envelope)
{
    int64_t count;
    if (limits_news(ingest->options.limits, LIMIT_KINDS, limits_now_ns(), &count))
        log_event(
            LOG_WARN, "tenant_overload", LOG_BYTES("tenant", envelope->tenant),
            LOG_BYTES("source", envelope->source), LOG_INT("refused", count),
            LOG_STR("do",
                    "its hooks fill more of store.max_queue than they leave free; see rate_limits.tenants"));
}
