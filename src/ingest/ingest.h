/* A request becomes an envelope and gets its answer: route, verify, resolve, commit, answer. Runs on the
 * loops of the ingest server; the answer comes from the store's writer once the hook is durable. */
#ifndef INGEST_INGEST_H
#define INGEST_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/http.h"
#include "metrics/metrics.h"
#include "order/order.h"
#include "store/store.h"
#include "util/status.h"
#include "verify/verify.h"

enum ingest_on_failure { INGEST_REJECT, INGEST_ACCEPT_FLAG };

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
    bool shared; /* tenant_path: the URL's tenant becomes the hook's */
    const struct verifier *verifier;
    enum ingest_on_failure on_failure;
    int respond; /* 200 201 202 204 */
    enum ingest_handshake handshake;
    const struct bytes *verify_tokens; /* of INGEST_META */
    size_t verify_token_count;
    const struct bytes *store_headers; /* names in any case; NULL: all are stored */
    size_t store_header_count;
    int64_t dedupe_ttl_ms; /* how long a dedupe key of the plan holds; 0: there is none */
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

struct ingest_options {
    struct store *store;
    struct metrics *metrics;
    const char *prefix;                  /* "/webhooks"; "" is allowed */
    bool tenant_in_path;                 /* {prefix}/{tenant}/{source} */
    const struct ingest_source *sources; /* borrowed for the life of the room, with all they point to */
    size_t source_count;
    size_t max_body_bytes;    /* for the 413's "limit" */
    bool (*ready)(void *ctx); /* GET /ready on this port: status only */
    /* False when it was not taken: too many wait. The store's writer thread; must not block. NULL: never. */
    bool (*revive)(void *ctx, struct ingest_revival *revival);
    void *ctx;
};

struct ingest;

enum status ingest_open(const struct ingest_options *options, struct ingest **out, struct error *err);
/* No request may be on its way any more. */
void ingest_close(struct ingest *ingest);

/* http_options.handler and .on_refused, with ctx = the ingest. */
void ingest_handle(void *ctx, const struct http_request *request);
void ingest_refused(void *ctx, const char *reason);

/* From now on a request on a kept connection gets 503 draining; first requests are still served. Any thread.
 */
void ingest_drain(struct ingest *ingest);

#endif
