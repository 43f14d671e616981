/* Inside the room: the answers (refuse.c), the route (route.c), the envelope (hook.c), limits
 * (limit.c), its rows (rows.c), the way of one hook (intake.c). */
#ifndef INGEST_INGEST_PRIV_H
#define INGEST_INGEST_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "ingest/ingest.h"
#include "util/current.h"

/* Every answer that is not a success. One row: enumerator, code, HTTP status, Retry-After in seconds (0:
 * none). */
#define REFUSALS(X)                                                                                          \
    X(BAD_REQUEST, "bad_request", 400, 0)                                                                    \
    X(INVALID_HEADER, "invalid_header", 400, 0)                                                              \
    X(VERIFICATION_FAILED, "verification_failed", 401, 0)                                                    \
    X(IP_DENIED, "ip_denied", 403, 0)                                                                        \
    X(UNKNOWN_SOURCE, "unknown_source", 404, 0)                                                              \
    X(NOT_FOUND, "not_found", 404, 0)                                                                        \
    X(METHOD_NOT_ALLOWED, "method_not_allowed", 405, 0)                                                      \
    X(RATE_LIMITED, "rate_limited", 429, 1)                                                                  \
    X(TENANT_OVERLOAD, "tenant_overload", 429, 1)                                                            \
    X(PAYLOAD_TOO_LARGE, "payload_too_large", 413, 0)                                                        \
    X(OVERLOAD, "overload", 503, 1)                                                                          \
    X(STORE_UNAVAILABLE, "store_unavailable", 503, 2)                                                        \
    X(BACKLOG_FULL, "backlog_full", 503, 10)                                                                 \
    X(DLQ_FULL, "dlq_full", 503, 30)                                                                         \
    X(QUARANTINE_RATE_LIMITED, "quarantine_rate_limited", 429, 1)                                            \
    X(QUARANTINE_FULL, "quarantine_full", 503, 60)                                                           \
    X(DISK_FULL, "disk_full", 503, 30)                                                                       \
    X(DRAINING, "draining", 503, 2)

enum refusal {
#define REFUSAL_ENUM(id, code, status, retry) REFUSE_##id,
    REFUSALS(REFUSAL_ENUM)
#undef REFUSAL_ENUM
        REFUSAL_COUNT
};

const char *refusal_code(enum refusal refusal);
/* What store_commit or a hook's done() said, as an answer. Not for OK and IO. */
enum refusal refusal_of(enum status status);

/* Answers with {"error":"code"} and at most one more member. `name` NULL: none; `value` is a string, unless
 * it is absent: then `number` is. */
struct refusal_detail {
    int64_t retry_after_s; /* 0: the refusal's own */
    const char *name;
    struct bytes value;
    int64_t number;
};
void refusal_body(enum refusal refusal, const struct refusal_detail *detail, struct buf *out);
void refuse(struct http_exchange *exchange, enum refusal refusal, const struct refusal_detail *detail);

/* A source with what the room made for it at open. */
struct entry {
    const struct ingest_source *source;
    struct bytes name, tenant;
    uint64_t limit_key; /* of the source */
    bool counts_failures;
    struct series *accepted, *duplicate, *revived, *quarantined, *released, *dropped, *handshakes;
    struct series *refused[REFUSAL_COUNT];
    struct handshake *handshake;
    struct series **verify_failures; /* one per verify_reasons() */
    struct series *limited[LIMIT_KINDS];
    struct sink_entry *sinks;
};

struct sink_entry {
    struct series *filtered, *unordered, *missing[MISSING_REASON_COUNT];
    struct order_watch watch;
};

/* Rules made ready for requests. */
struct table {
    struct ingest_rules rules;
    struct bytes prefix;
    struct entry *entries; /* sorted by name */
};

struct ingest {
    struct ingest_options options;
    struct current tables;                 /* of struct table */
    struct series *refused[REFUSAL_COUNT]; /* before a source took it */
    struct series *duration;
    atomic_bool draining;
    _Atomic int64_t denied_logged_ms; /* 0: never */
};

/* address.c: who sends. A value on the stack of the request that borrows it. */
struct caller {
    bool known; /* false: a proxy that is trusted wrote what can't be read */
    struct ip ip;
    struct bytes text; /* of `ip`; the socket's peer while not known */
    char own_text[IP_TEXT];
};
void caller_find(const struct ip_ranges *trusted, const struct http_request *request, struct caller *caller);
/* NULL when they may come; else why not. */
const char *caller_denied(const struct ip_gate *gate, const struct caller *caller);
/* A line in the log now and then, since nobody else sees which address it was. `source` NULL: the gate of
 * all. */
void caller_log(struct ingest *ingest, const struct caller *caller, const char *source, const char *reason);

enum route_kind { ROUTE_HOOK, ROUTE_HEALTH, ROUTE_READY, ROUTE_UNKNOWN_SOURCE, ROUTE_NOT_FOUND };

struct route {
    enum route_kind kind;
    struct current_hold *hold; /* ROUTE_HOOK: of the table that `entry` is in */
    struct entry *entry;       /* ROUTE_HOOK */
    struct bytes tenant;       /* ROUTE_HOOK: borrowed from the request or the entry */
};

/* By bytes: no decoding, no dot segments, nothing but an exact match. */
struct route route_of(const struct table *table, struct bytes target_path);
/* NULL when there is no such source. */
struct entry *entry_find(const struct table *table, struct bytes name);
/* [A-Za-z0-9_-]{1,64} */
bool route_name_ok(struct bytes name);

/* The request's bytes copied into an envelope (one reference, the caller's), with `more` bytes of room in its
 * arena. Everything is in it, whatever the source stores: verification comes first. */
struct envelope *hook_envelope(const struct route *route, const struct http_request *request, size_t more);
/* Leaves only the headers that the source stores, so that what is resolved and forwarded now is what a replay
 * will see. The content type stays in its own field. */
void hook_keep_stored(struct envelope *envelope, const struct ingest_source *source);

/* rows.c: the dedupe key of a verified hook, and one row for every sink whose filter takes it; all in the
 * envelope's arena. What is missing or left out is counted. */
void hook_resolve(const struct entry *entry, struct store_hook *hook);

/* limit.c. Do failures of this source count? Only where they are refused: a quarantine has a rate of its own.
 */
bool limit_counts_failures(const struct ingest_source *source);
/* Whose failures count; without a limit when they don't. */
struct limits_sender limit_sender(const struct route *route, const struct caller *caller);
/* May it be verified, and taken as one hook more? False: it was answered. */
bool limit_may_verify(struct ingest *ingest, const struct route *route, const struct http_request *request,
                      const struct limits_sender *sender);
void limit_verified(struct ingest *ingest, const struct limits_sender *sender,
                    enum verification verification);
bool limit_charge(struct ingest *ingest, const struct route *route, const struct http_request *request,
                  const struct caller *caller, struct limits_charge *charge);
/* False: the quarantine has no room for it now. */
bool limit_pen(struct ingest *ingest, const struct route *route, const struct http_request *request,
               struct limits_charge *charge);
/* A refusal by the store: one line a minute says that a tenant floods it. */
void limit_tell_overload(struct ingest *ingest, const struct envelope *envelope);

/* intake.c: counted, then answered. */
void refuse_counted(const struct entry *entry, struct http_exchange *exchange, enum refusal refusal,
                    const struct refusal_detail *detail);

/* pen.c */
void answer_quarantined(struct http_exchange *exchange, const char *reason);

/* intake.c: for whoever watches. */
void publish_accepted(struct ingest *ingest, const struct envelope *envelope, int64_t at_ms);

/* The rest of the way of a routed POST. False: it was answered. True: it will be, and route->hold is dropped
 * then. */
bool intake(struct ingest *ingest, const struct route *route, const struct http_request *request,
            const struct caller *caller);

#endif
