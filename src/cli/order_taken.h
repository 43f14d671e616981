/* What a receiver's log took: which hooks, in which lanes. A lane id is made of source, sink and key, so a
 * delivery's own lane says by which of the known sinks it came. */
#ifndef CLI_ORDER_TAKEN_H
#define CLI_ORDER_TAKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "order/order.h"
#include "util/bytes.h"
#include "util/uuid.h"

/* A sink that the gateway has. */
struct taken_sink {
    const char *source, *name;
    bool wanted; /* its deliveries should be in the log */
};

struct order_taken;

/* `sinks` are borrowed until order_taken_free. */
struct order_taken *order_taken_new(const struct taken_sink *sinks, size_t count);
void order_taken_free(struct order_taken *taken); /* NULL is fine */

/* One delivery that was answered 2xx, as the log tells of it; `lane` is "" when it had none, `key` is the
 * decoded x-lanegate-ordering-key. One without a hook's id proves nothing and is passed over. */
void order_taken_add(struct order_taken *taken, struct bytes id, struct bytes source, struct bytes lane,
                     struct bytes key);

/* Was this hook delivered by that sink (an index into `sinks`)? A delivery without a lane stands for every
 * sink: it does not say by which it came. */
bool order_taken_by(struct order_taken *taken, const struct uuid *id, size_t sink);
/* Was it delivered in that lane, or, for NULL, without one? */
bool order_taken_in(struct order_taken *taken, const struct uuid *id, const struct lane_id *lane);

#endif
