/* Taking from buckets: all or nothing for a hook, and who may be verified. */
#include "limits/limits_priv.h"
#include "util/hash.h"

int64_t limits_charge(struct limits *limits, const struct limits_hook *hook, int64_t now_ns,
                      struct limits_charge *charge, enum limit_kind *which)
{
    *charge = (struct limits_charge){0};
    struct pace paces[LIMIT_SIGNATURES] = {
        [LIMIT_SOURCE] = pace_of(hook->of_source), [LIMIT_ADDRESS] = pace_of(hook->of_address)};
    uint64_t keys[LIMIT_SIGNATURES] = {[LIMIT_SOURCE] = hook->source, [LIMIT_ADDRESS] = hook->address};
    if (atomic_load_explicit(&limits->tenants.any, memory_order_relaxed)) {
        keys[LIMIT_TENANT] = limits_key(hook->tenant);
        paces[LIMIT_TENANT] = tenants_pace(&limits->tenants, keys[LIMIT_TENANT]);
    }
    for (int kind = LIMIT_TENANT; kind < LIMIT_SIGNATURES; kind++) {
        if (paces[kind].every_ns == 0)
            continue;
        int64_t wait_ns = buckets_take(limits->of[kind], keys[kind], paces[kind], now_ns);
        if (wait_ns > 0) {
            limits_give_back(limits, charge);
            *charge = (struct limits_charge){0};
            *which = (enum limit_kind)kind;
            return wait_ns;
        }
        charge->of[kind].key = keys[kind];
        charge->of[kind].every_ns = paces[kind].every_ns;
    }
    return 0;
}

void limits_give_back(struct limits *limits, const struct limits_charge *charge)
{
    for (int kind = LIMIT_TENANT; kind < LIMIT_SIGNATURES; kind++)
        if (charge->of[kind].every_ns > 0)
            buckets_give_back(limits->of[kind], charge->of[kind].key, charge->of[kind].every_ns);
    if (charge->pen.every_ns > 0)
        buckets_give_back(limits->pen, charge->pen.key, charge->pen.every_ns);
}

static uint64_t sender_key(const struct limits_sender *sender)
{
    return hash_u64(sender->source, sender->address);
}

int64_t limits_may_verify(struct limits *limits, const struct limits_sender *sender, int64_t now_ns)
{
    struct pace pace = pace_of(sender->limit);
    if (pace.every_ns == 0)
        return 0;
    uint64_t key = sender_key(sender);
    int64_t wait_ns = buckets_wait_ns(limits->of[LIMIT_SIGNATURES], key, pace, now_ns);
    return wait_ns > 0 && buckets_known_until(limits->known, key) <= now_ns ? wait_ns : 0;
}

void limits_failed(struct limits *limits, const struct limits_sender *sender, int64_t now_ns)
{
    struct pace pace = pace_of(sender->limit);
    if (pace.every_ns > 0)
        buckets_take(limits->of[LIMIT_SIGNATURES], sender_key(sender), pace, now_ns);
}

void limits_proved(struct limits *limits, const struct limits_sender *sender, int64_t now_ns)
{
    if (sender->limit.rate <= 0)
        return;
    uint64_t key = sender_key(sender);
    if (buckets_known_until(limits->known, key) < now_ns + LIMITS_KNOWN_NS / 2) /* seldom written */
        buckets_know(limits->known, key, now_ns + LIMITS_KNOWN_NS);
}

int64_t limits_pen(struct limits *limits, uint64_t source, struct limit limit, int64_t now_ns,
                   struct limits_charge *charge)
{
    struct pace pace = pace_of(limit);
    *charge = (struct limits_charge){0};
    if (pace.every_ns == 0)
        return 0;
    int64_t wait_ns = buckets_take(limits->pen, source, pace, now_ns);
    if (wait_ns == 0)
        charge->pen = (struct limits_taken){source, pace.every_ns};
    return wait_ns;
}
