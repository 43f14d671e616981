/* config.lua as structs: fills every room's options, so that no other room parses text. Immutable once
 * loaded; one arena; reference counted, since running work may still hold an older one after a reload. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "deliver/deliver.h"
#include "http/http.h"
#include "lanes/policy.h"
#include "limits/limits.h"
#include "order/order.h"
#include "script/keys.h"
#include "store/store.h"
#include "util/arena.h"
#include "util/ip.h"
#include "util/log.h"
#include "util/status.h"
#include "util/value.h"
#include "verify/verify.h"

enum on_verify_failure { VERIFY_REJECT, VERIFY_QUARANTINE, VERIFY_ACCEPT_FLAG };

/* What the provider asks before it sends anything. */
enum config_handshake { CONFIG_NO_HANDSHAKE, CONFIG_SLACK, CONFIG_META, CONFIG_GRAPH, CONFIG_ZOOM };

struct config_sink {
    const char *name;
    const char *was; /* its name before; NULL: none */
    struct sink_options transport;
    struct order_sink order;
    struct sched_policy policy;
};

struct config_source {
    const char *name, *tenant;
    bool shared;               /* tenant_path: the URL's tenant becomes the hook's */
    struct ip_gate gate;       /* beside the one for all */
    struct verifier *verifier; /* NULL when loaded without resolving secrets */
    enum on_verify_failure on_verify_failure;
    int respond; /* 200 201 202 204 */
    enum config_handshake handshake;
    const struct bytes *verify_tokens; /* of CONFIG_META */
    size_t verify_token_count;
    const struct bytes *store_headers; /* names; NULL: all of them are stored */
    size_t store_header_count;
    uint64_t dlq_max_rows;                   /* dead letters */
    int64_t dlq_max_bytes, dlq_retention_ms; /* retention 0: they stay */
    struct limit limit;                      /* hooks a second */
    const struct key_spec *dedupe;           /* NULL: none */
    int64_t dedupe_ttl_ms;                   /* 0: none */
    const struct config_sink *sinks;
    size_t sink_count;
    struct order_plan *plan;
};

/* A sink that is gone for good. */
struct config_retired {
    const char *source, *sink;
};

enum routing { ROUTING_PATH, ROUTING_TENANT_PATH };

struct config_token {
    struct bytes hash; /* SHA-256, 32 bytes */
    const char *name;
    unsigned scopes; /* CONFIG_SCOPE_* */
};
enum { CONFIG_SCOPE_READ = 1, CONFIG_SCOPE_PAYLOAD = 2, CONFIG_SCOPE_OPERATE = 4, CONFIG_SCOPE_CONFIG = 8 };

struct config {
    atomic_uint refs;
    struct arena *arena;
    const char *path;          /* of the file */
    const struct value *root;  /* the normalised tree */
    const struct value *shown; /* the same, redacted by allowlist: what config_write_json writes */

    const char *data_dir; /* absolute, or relative to the working directory */
    enum log_level log_level;
    bool log_json;
    int64_t drain_timeout_ms;

    struct http_options http; /* handler, ctx and metrics are the gateway's to fill in a copy */
    const char *prefix;       /* "/webhooks" */
    enum routing routing;
    struct ip_ranges trusted_proxies;
    struct ip_gate gate; /* for all sources */
    struct http_options admin;
    bool admin_auth_none;
    const struct config_token *tokens;
    size_t token_count;

    struct limit tenant_limit; /* of each without its own */
    struct limit address_limit, failed_signatures, pen_limit;
    const struct limits_tenant *limited_tenants;
    size_t limited_tenant_count;
    bool many_tenants;       /* more than one can send hooks */
    int64_t pen_share_bytes; /* of one source */

    struct store_options store; /* committed, ctx, metrics: the gateway's */
    unsigned dispatch_concurrency;
    size_t max_inflight_bytes, max_pending_bytes;
    int64_t attempt_timeout_ms;
    struct egress_rules egress;
    struct scripts *scripts; /* what the plans' engine is of; NULL: no key is in Lua, or plans are not made */

    const struct config_source *sources;
    size_t source_count;
    const struct config_retired *retired;
    size_t retired_count;
};

enum config_mode {
    CONFIG_SERVE,   /* env and file are resolved, secrets are needed */
    CONFIG_CLIENT,  /* helpers give placeholders; verifiers and plans are not made; only shape is checked */
    CONFIG_OFFLINE, /* like CLIENT but plans are made: check --offline */
};

/* `path` NULL: ./config.lua, then /etc/lanegate/config.lua. OK with one reference; INVALID with `faults`, one
 * line each, ending in a line feed; NOT_FOUND (no file; `faults` says where was looked). */
enum status config_load(const char *path, enum config_mode mode, struct config **out, struct buf *faults);
struct config *config_ref(struct config *config);
void config_unref(struct config *config);

/* Redacted by allowlist: every value that the schema does not mark as public is shown as "(set)". */
void config_write_json(const struct config *config, struct buf *out);

/* An option that two configurations do not agree on. */
struct config_change {
    const char *path; /* "sources.shop.sinks.billing.url"; a sink stands under its name */
    bool needs_restart;
};
/* All of them, sorted by path, from `arena`. */
size_t config_compare(const struct config *from, const struct config *to, struct arena *arena,
                      const struct config_change **out);

const struct config_source *config_source_find(const struct config *config, struct bytes name);

#endif
