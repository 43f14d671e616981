/* One configuration in the words of every room, with the store's numbers. Immutable once made, and counted:
 * held by the gateway while it is the newest, by ingest while a request that began under it is not answered,
 * by admin likewise, and by each open sink, thus by each attempt under way. */
#ifndef GATEWAY_GENERATION_H
#define GATEWAY_GENERATION_H

#include <stdatomic.h>

#include "admin/admin.h"
#include "config/config.h"
#include "ingest/ingest.h"
#include "lanes/lanes.h"
#include "util/list.h"

struct generation {
    atomic_uint refs;
    uint64_t number; /* 1: that of the start */
    struct config *config;
    size_t sink_count; /* of each of the following three, in the same order */
    struct lanes_sink *lanes_sinks;
    struct admin_sink *admin_sinks;
    struct ingest_sink *ingest_sinks;
    struct ingest_source *ingest_sources;
    struct admin_token *tokens;

    void (*over)(void *ctx, struct generation *generation); /* nobody holds it: generation_free is due */
    void *ctx;
    struct list node; /* then, the owner's */
};

/* Takes a reference of its own to `config`, whose scripts are counted from here on. Gives every sink its
 * durable number, which may write: with the store's status on failure. One reference, the caller's. */
enum status generation_new(struct config *config, uint64_t number, struct store *store,
                           struct metrics *metrics, struct generation **out, struct error *err);
struct generation *generation_ref(struct generation *generation);
void generation_unref(void *generation); /* any thread */
/* When over() was called, or would be by the next unref. */
void generation_free(struct generation *generation);

/* Opens the transport of every sink, in lanes_sinks: each with a reference to the generation. All or none. */
enum status generation_open_sinks(struct generation *generation, struct deliver *deliver, struct error *err);
/* Gives up what was opened: what others hold of it stays open. */
void generation_close_sinks(struct generation *generation);

/* What of the rooms' options is the configuration's; the generation is not referenced. */
void generation_lanes(const struct generation *generation, struct lanes_options *out);
struct ingest_rules generation_ingest(const struct generation *generation);
void generation_limits(const struct generation *generation, struct limits *limits); /* from now on */
struct admin_rules generation_admin(const struct generation *generation);
/* One a source; free() it. */
struct store_dlq_bound *generation_dlq_bounds(const struct config *config);

#endif
