/* The admin API: look and ask. A handler for the http room (its own server, one loop) that answers from the
 * store, from lanes and from configuration; one file per resource. Short blocking calls (a store reader, a
 * lanes snapshot) are fine here: ingest has loops of its own. What may take seconds has a thread of its own.
 */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/http.h"
#include "lanes/lanes.h"
#include "metrics/metrics.h"
#include "store/store.h"
#include "util/arena.h"
#include "util/list.h"
#include "util/status.h"

struct order_lane; /* order/order.h */
struct jsonw;      /* util/jsonw.h */
struct replays;    /* replay/replay.h */
struct limits;     /* limits/limits.h */
struct replay_release;

struct admin_token {
    struct bytes hash; /* SHA-256 of the token, 32 bytes */
    const char *name;
    unsigned scopes; /* ADMIN_SCOPE_* */
};
enum { ADMIN_SCOPE_READ = 1, ADMIN_SCOPE_PAYLOAD = 2, ADMIN_SCOPE_OPERATE = 4, ADMIN_SCOPE_CONFIG = 8 };

/* A configured sink as /v1/sinks shows it. */
struct admin_sink {
    uint32_t id;
    const char *source, *name, *type;
    bool ordered;
    unsigned concurrency;
};

struct events;

/* What a reload replaces, as a whole: a request keeps what it began with until its answer. */
struct admin_rules {
    const struct admin_token *tokens; /* borrowed until `released`, as all that any of this points to */
    size_t token_count;               /* 0: no token is asked for */
    const struct admin_sink *sinks;
    size_t sink_count;
    void *of;                   /* handed to config_json and resolve */
    void (*released)(void *of); /* no request uses it any more; may be NULL */
};

/* POST /v1/reload. */
struct admin_reloaded {
    enum {
        ADMIN_RELOADED,
        ADMIN_RELOAD_BAD_CONFIG,    /* `faults`: one line each, ending in a line feed */
        ADMIN_RELOAD_HOOKS_OWED,    /* the same: to sinks that would be gone */
        ADMIN_RELOAD_NEEDS_RESTART, /* the same, and `changed`: what does */
        ADMIN_RELOAD_FAILED,        /* the same: the system or the store refused something */
        ADMIN_RELOAD_BUSY,          /* the scheduler was not reached; nothing was done */
        ADMIN_RELOAD_DRAINING,
    } what;
    uint64_t generation;        /* the one that runs now; 1: that of the start */
    const char *const *changed; /* paths of options that are other than before */
    size_t changed_count;
    struct bytes faults;
};

/* One that was asked for. Memory of the admin room, until done() is called: once, on any thread, `result` is
 * borrowed for the call. */
struct admin_reload {
    struct list node; /* whoever does it */
    void (*done)(struct admin_reload *reload, const struct admin_reloaded *result);
};

struct admin_options {
    struct store *store;
    struct lanes *lanes;
    struct replays *replays;
    struct limits *limits;
    struct metrics *metrics;
    struct events *events; /* for GET /v1/events */
    struct admin_rules rules;
    /* Where the server listens (as in http_options; borrowed for the call). Without tokens and on loopback
     * only, the Host header must name this machine: see access.h. An empty list counts as loopback. */
    const char *const *listen;
    size_t listen_count;
    /* Writes GET /v1/config's JSON (redacted). */
    void (*config_json)(void *of, struct buf *out);
    /* Why the process is not ready: fills up to `max` static names ("store", "disk", "stalled", "draining").
     */
    size_t (*not_ready)(void *ctx, const char **reasons, size_t max);
    /* The lane that the running configuration gives a stored hook at a sink; memory from `arena`. For rekey.
     */
    void (*resolve)(void *of, const struct admin_sink *sink, const struct envelope *envelope,
                    struct arena *arena, struct order_lane *out);
    /* Out of the quarantine, as in replays_options. */
    void (*release)(void *ctx, struct replay_release *releases, size_t count, uint32_t number, bool dry_run);
    /* One JSON object: what the running configuration's key makes of a hook at a sink. The envelope is the
     * callee's to change. */
    void (*key_test)(void *of, const struct admin_sink *sink, struct envelope *envelope, struct jsonw *json);
    /* Begins a reload and returns. */
    void (*reload)(void *ctx, struct admin_reload *reload);
    void *ctx; /* of not_ready, release and reload */
};

struct admin;

/* After store_open; opens store readers of its own. Nothing is left open on failure. */
enum status admin_open(const struct admin_options *options, struct admin **out, struct error *err);
/* Requests that begin from now on go by these. Any thread, one at a time. */
void admin_set(struct admin *admin, const struct admin_rules *rules);
/* Going down: what takes long is begun no more (503 draining). Any thread. */
void admin_drain(struct admin *admin);
/* After http_close: no handler runs any more. Before store_close. NULL is fine. */
void admin_close(struct admin *admin);

/* http_options.handler, with ctx = the admin. The server has one loop: the reader inside is that thread's.
 * Answers before it returns, but for a reload and for what takes long. */
void admin_handle(void *ctx, const struct http_request *request);

#endif
