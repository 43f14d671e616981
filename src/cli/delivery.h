/* One delivery as a receiver saw it, and how it is written down. */
#ifndef CLI_DELIVERY_H
#define CLI_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "http/http.h"
#include "util/arena.h"
#include "util/buf.h"
#include "util/list.h"

struct delivery {
    struct arena *arena; /* holds this struct and the bytes below */
    struct bytes path;
    struct bytes source, tenant, lane, epoch, seq, previous_seq, skipped, replay_id, id,
        attempt; /* absent: not sent */
    struct bytes idempotency_key;
    struct bytes key; /* decoded; absent on an unordered sink */
    bool late;
    bool intact; /* the body is what its digest says, or there was none */
    char body_sha256[65];
    int64_t started_us, finished_us; /* unix; never backwards within a process */
    int status;                      /* as answered; 0: not at all */

    /* for whoever holds it while it waits */
    struct list node;
    struct http_exchange *exchange;
    int64_t due_us; /* of clock_mono_us; 0: hangs */
};

/* From headers "x-PREFIX-..."; copies all it needs. */
struct delivery *delivery_read(const struct http_request *request, const char *prefix);
void delivery_free(struct delivery *delivery);

/* Unix microseconds that follow the monotonic clock. Any thread. */
int64_t delivery_clock_us(void);

/* Both end in a line feed. */
void delivery_write_json(const struct delivery *delivery, struct buf *out);
void delivery_write_text(const struct delivery *delivery, struct buf *out);

#endif
