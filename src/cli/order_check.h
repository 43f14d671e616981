/* Did a receiver see each lane in order? Reads what `lanegate receive --log` wrote, a line a delivery, and
 * proves that no lane was turned around, or names the first place where one was. Pure: lines in, a report
 * out. */
#ifndef CLI_ORDER_CHECK_H
#define CLI_ORDER_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "util/bytes.h"

struct order_check;
struct order_taken; /* order_taken.h */

/* Counts of lines, but for `lanes` and `problems`. A delivery is an attempt that was answered 2xx. */
struct order_report {
    uint64_t attempts; /* all lines that tell of one */
    uint64_t failed;   /* answered otherwise, or not at all */
    uint64_t first;    /* first deliveries on time: what must ascend */
    uint64_t repeats;  /* of a seq delivered before: at least once means this may be */
    uint64_t late;     /* marked as late: behind a higher seq of their lane, and said so */
    uint64_t replays;
    uint64_t unordered;      /* without a lane: nothing to prove */
    uint64_t cut_off;        /* still being answered when the gateway had given up on them */
    uint64_t previous_right; /* previous_seq is the delivery before */
    uint64_t previous_fits;  /* it is an earlier one: the gateway had not heard of all */
    uint64_t lanes;          /* with their epoch */
    uint64_t problems;
    char problem[640]; /* the first one, with its lines; "" when there is none */
};

struct order_check *order_check_new(void);
void order_check_free(struct order_check *check);
/* From now on each delivery is told to `taken` too; borrowed. */
void order_check_tell(struct order_check *check, struct order_taken *taken);
/* One line without its line feed. Lines of other events are passed over; one that is not JSON is a problem,
 * since a log with holes proves nothing. */
void order_check_line(struct order_check *check, struct bytes line);
/* After the last line. Once. */
void order_check_finish(struct order_check *check, struct order_report *report);

#endif
