/* How many hooks a second? Token buckets of tenants, sources and client addresses, of failed signatures and
 * of the quarantine. A bucket belongs to a name and outlives configurations, so that a reload fills none of
 * them. The limits themselves are handed in by whoever asks, but for those of tenants, which the API can
 * change: they are looked up here.
 *
 * Any thread, unless a function says otherwise; nothing blocks, and nothing is allocated on a hook's way.
 * Times are monotonic nanoseconds. */
#ifndef LIMITS_LIMITS_H
#define LIMITS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/bytes.h"
#include "util/ip.h"

/* `rate` hooks a second, and `burst` at once. */
struct limit {
    double rate; /* LIMIT_RATE_MIN .. LIMIT_RATE_MAX; 0: no limit */
    int64_t burst;
};
#define LIMIT_RATE_MIN 0.001
enum { LIMIT_RATE_MAX = 1000000, LIMIT_BURST_MAX = 1000000 };
/* Within those bounds, which all arithmetic here relies on. */
bool limit_in_bounds(struct limit limit);
/* What a limit without a burst has: a second's worth, one at least. */
int64_t limit_burst_of(double rate);

enum limit_kind { LIMIT_TENANT, LIMIT_SOURCE, LIMIT_ADDRESS, LIMIT_SIGNATURES, LIMIT_KINDS };
/* "tenant", "source", "address", "failed_signatures". */
const char *limit_kind_name(enum limit_kind kind);

struct limits;

struct limits *limits_open(void);
void limits_close(struct limits *limits); /* NULL is fine */

int64_t limits_now_ns(void);

/* What buckets are found by. Of an address: IPv4 as it is, IPv6 by /64, which is what one customer of a
 * provider has at least. */
uint64_t limits_key(struct bytes name);
uint64_t limits_address_key(const struct ip *ip);

/* ---- a hook ---- */

struct limits_hook {
    struct bytes tenant;
    uint64_t source, address; /* keys */
    struct limit of_source, of_address;
};

/* What was taken for it, to be given back should the hook not be taken after all. {0}: nothing. */
struct limits_charge {
    struct limits_taken {
        uint64_t key;
        int64_t every_ns; /* 0: nothing was taken */
    } of[LIMIT_SIGNATURES], pen;
};

/* One out of each bucket that there is a limit for, in the order tenant, source, address: 0. Or out of none:
 * after so many nanoseconds the one that refused, `which`, has another. */
int64_t limits_charge(struct limits *limits, const struct limits_hook *hook, int64_t now_ns,
                      struct limits_charge *charge, enum limit_kind *which);
void limits_give_back(struct limits *limits, const struct limits_charge *charge);

/* ---- signatures ---- */

/* An address at a source: failures of one source's hooks say nothing about another one's, which may come from
 * the same provider. */
struct limits_sender {
    uint64_t source, address;
    struct limit limit;
};

/* 0: it may be verified. Else it failed too often; nothing good came from there for LIMITS_KNOWN_NS. Nobody
 * pays for the failures of others; so while more addresses fail at once than there are places (buckets.h),
 * some that were forgotten are verified again. */
int64_t limits_may_verify(struct limits *limits, const struct limits_sender *sender, int64_t now_ns);
void limits_failed(struct limits *limits, const struct limits_sender *sender, int64_t now_ns);
/* A good signature came: for a day the address is not shut out of this source, whatever else comes from
 * there. It may be a proxy, or a provider's, that a forger is behind as well. */
void limits_proved(struct limits *limits, const struct limits_sender *sender, int64_t now_ns);
#define LIMITS_KNOWN_NS (24LL * 3600 * 1000000000)

/* ---- the quarantine ---- */

/* 0: the source may put one more there; it is in the charge. */
int64_t limits_pen(struct limits *limits, uint64_t source, struct limit limit, int64_t now_ns,
                   struct limits_charge *charge);

/* ---- the limits of tenants ---- */

struct limits_tenant {
    const char *name;
    struct limit limit;
};

/* Those of the configuration, copied; `otherwise` is that of each tenant without its own. */
void limits_configure(struct limits *limits, struct limit otherwise, const struct limits_tenant *tenants,
                      size_t count);

/* What was put before the restart. Once, before anything is put. */
void limits_restore(struct limits *limits, const struct limits_tenant *put, size_t count);

enum { LIMITS_PUT_MAX = 10000 };
/* Goes over what the configuration says of this tenant until it is dropped. False when LIMITS_PUT_MAX have
 * one. */
bool limits_put(struct limits *limits, struct bytes tenant, struct limit limit);
/* False when there was none. */
bool limits_drop(struct limits *limits, struct bytes tenant);

enum limit_origin { LIMIT_FROM_NOTHING, LIMIT_FROM_DEFAULT, LIMIT_FROM_FILE, LIMIT_FROM_API };
/* "default", "file", "api"; NULL for nothing. */
const char *limit_origin_name(enum limit_origin origin);
struct limits_look {
    struct limit limit; /* in force */
    enum limit_origin origin;
    struct limit without_api; /* what would be, were the API's dropped */
    int64_t available;        /* hooks it would take at this moment; where there is a limit */
};
void limits_look(struct limits *limits, struct bytes tenant, int64_t now_ns, struct limits_look *out);

/* ---- the log ---- */

/* Something was refused (`kind` may be LIMIT_KINDS: a share of the queue). True once a minute and kind: it is
 * to be logged, with `count` of them since the last time. */
bool limits_news(struct limits *limits, enum limit_kind kind, int64_t now_ns, int64_t *count);

#endif
