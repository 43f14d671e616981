/* A request becomes an envelope and gets its answer: route, verify, resolve, commit, answer. Runs on the
 * loops of the ingest server; the answer comes from the store's writer once the hook is durable. */
#ifndef INGEST_INGEST_H
#define INGEST_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/http.h"
#include "limits/limits.h"
#include "metrics/metrics.h"
#include "order/order.h"
#include "store/store.h"
#include "util/ip.h"
#include "util/status.h"
#include "verify/verify.h"

enum ingest_on_failure { INGEST_REJECT, INGEST_QUARANTINE, INGEST_ACCEPT_FLAG };

/* What a provider asks before it sends: handshake.h. */
enum ingest_handshake { INGEST_NO_HANDSHAKE, INGEST_SLACK, INGEST_META, INGEST_GRAPH, INGEST_ZOOM };

struct ingest_sink {
    uint32_t id; /* store_sink_id */
    const char *name;
    const struct key_spec *key; /* for the warning of rule 6; NULL: none */
};

/* One source. The sinks stand in the order of the plan. */
struct ingest_source {
    const char *name;
    const char *tenant;
    bool shared;         /* tenant_path: the URL's tenant becomes the hook's */
    struct ip_gate gate; /* narrows the rules' own */
    const struct verifier *verifier;
    enum ingest_on_failure on_failure;
    int respond; /* 200 201 202 204 */
    enum ingest_handshake handshake;
    const struct bytes *verify_tokens; /* of INGEST_META */
    size_t verify_token_count;
    const struct bytes *store_headers; /* names in any case; NULL: all are stored */
    size_t store_header_count;
    int64_t dedupe_ttl_ms; /* how long a dedupe key of the plan holds; 0: there is none */
    struct limit limit;    /* hooks a second */
    const struct order_plan *plan;
    const struct ingest_sink *sinks;
    size_t sink_count;
};

/* Dead letters of a hook that a provider sends again. */
struct ingest_revival {
    struct list node; /* whoever revives */
    uint64_t seq;
    /* Any thread, exactly once. OK, with `revived`: something of it is owed again, and that is durable. */
    void (*done)(struct ingest_revival *revival, enum status status, bool revived);
};

struct events;

/* What a reload replaces, as a whole: a request keeps what it began with until its answer. */
struct ingest_rules {
    const char *prefix;                  /* "/webhooks"; "" is allowed */
    bool tenant_in_path;                 /* {prefix}/{tenant}/{source} */
    const struct ingest_source *sources; /* borrowed until `released`, as all that any of this points to */
    size_t source_count;
    size_t max_body_bytes;            /* for the 413's "limit" */
    struct ip_ranges trusted_proxies; /* whose X-Forwarded-For is believed */
    struct ip_gate gate;              /* who may post to any source; probes are for everybody */
    struct limit address;             /* hooks a second of one client address */
    struct limit failed_signatures;   /* of one address, at one source */
    bool many_tenants;                /* there are several, so that they share the store's queue */
    /* The pen: what of failed hooks it takes of one source, and how much of one source it holds. */
    struct limit pen;
    int64_t pen_share_bytes;
    void (*released)(void *of); /* no request uses it any more; a loop, the writer, or ingest_close. May be
                                   NULL */
    void *of;
};

struct ingest_options {
    struct store *store;
    struct limits *limits;
    struct metrics *metrics;
    struct events *events; /* accepted hooks; may be NULL */
    struct ingest_rules rules;
    bool (*ready)(void *ctx); /* GET /ready on this port: status only */
    /* False when it was not taken: too many wait. The store's writer thread; must not block. NULL: never. */
    bool (*revive)(void *ctx, struct ingest_revival *revival);
    void *ctx;
};

struct ingest;

enum status ingest_open(const struct ingest_options *options, struct ingest **out, struct error *err);
/* Requests that begin from now on go by these. Any thread, one at a time. */
void ingest_set(struct ingest *ingest, const struct ingest_rules *rules);
/* No request may be on its way any more. */
void ingest_close(struct ingest *ingest);

/* http_options.handler and .on_refused, with ctx = the ingest. */
void ingest_handle(void *ctx, const struct http_request *request);
void ingest_refused(void *ctx, const char *reason);

/* Hooks out of the pen: verified again, by today's secrets at the time they came, and if that is good
 * committed as new ones; their lanes and dedupe keys are resolved as at ingest. */
enum ingest_released {
    RELEASE_VERIFIED,     /* in a dry run: it would be a hook */
    RELEASE_DONE,         /* durable; it has a seq */
    RELEASE_DUPLICATE,    /* out of the pen; its dedupe key was claimed by another */
    RELEASE_FAILED_AGAIN, /* still there */
    RELEASE_NO_SOURCE,    /* still there: no source of that name and tenant is configured */
    RELEASE_GONE,         /* somebody was faster */
    RELEASE_REFUSED,      /* not now: still there, for all that anybody knows */
};
struct ingest_release {
    uint64_t pen_id;
    struct envelope *envelope; /* the caller's, who has the only reference; changed by the call */
    enum ingest_released outcome;
    const char *reason; /* static: why it failed again, or the code of what refused it */
};
enum { INGEST_RELEASE_MAX = 100 };
/* Blocks until all are durable. `replay`: the job that lets them go, 0: none. Any thread but the store's own
 * and the loops. */
void ingest_release(struct ingest *ingest, struct ingest_release *releases, size_t count, uint32_t replay,
                    bool dry_run);

/* From now on a request on a kept connection gets 503 draining; first requests are still served. Any thread.
 */
void ingest_drain(struct ingest *ingest);

#endif
