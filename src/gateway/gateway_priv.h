/* What the files of this room share: the rooms, and the configuration that they run. */
#ifndef GATEWAY_GATEWAY_PRIV_H
#define GATEWAY_GATEWAY_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "gateway/gateway.h"
#include "gateway/generation.h"
#include "gateway/reload.h"
#include "replay/replay.h"

struct gateway {
    struct generation
        *generation; /* the newest: a reference. The reload thread's while that runs, else main's */
    pthread_mutex_t generation_lock; /* for others: a reference may be taken under it */
    struct reloader reloader;
    struct metrics *metrics;
    struct events *events;
    struct store *store;
    struct limits *limits;
    struct deliver *deliver;
    struct lanes *lanes;
    struct reviver *reviver;
    struct replays *replays;
    struct ingest *ingest;
    struct admin *admin;
    struct http_server *front, *back; /* ingest's and admin's */
    atomic_bool draining;
    bool lanes_run, store_runs;
};

/* reload.c: rules with the generation's references that their users hold. */
struct ingest_rules gateway_ingest_rules(struct generation *generation);
struct admin_rules gateway_admin_rules(struct generation *generation);

/* limits.c: opens the room, behind the store and the generation. Whoever closes all closes it. */
enum status gateway_open_limits(struct gateway *gateway, struct error *err);

#endif
