/* Deliveries that are answered later, or never: one thread and a list ordered by due time. */
#ifndef CLI_LATER_H
#define CLI_LATER_H

#include "cli/delivery.h"

struct later;

/* `answer` is called on the thread when a delivery is due; `give_up` on any when it was hanging and was
 * healed, or waits at the end. Each takes the delivery. */
struct later *later_open(void (*answer)(void *ctx, struct delivery *delivery),
                         void (*give_up)(void *ctx, struct delivery *delivery), void *ctx);
/* Any thread. due_us says when. After later_stop: given up at once. */
void later_add(struct later *later, struct delivery *delivery);
/* Gives up on what hangs for this key; on all that hangs when it is absent or "*". */
void later_heal(struct later *later, struct bytes key);
/* Gives up on all; joins the thread. */
void later_stop(struct later *later);
void later_close(struct later *later);

#endif
