/* What a drilling receiver was told to do, per key: answer with a status, wait before it answers, or not
 * answer. A rule for "*" holds where a key has none of its own. Any thread. */
#ifndef CLI_DRILL_H
#define CLI_DRILL_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/bytes.h"

enum { DRILL_RULES_MAX = 10000, DRILL_KEY_MAX = 1024 };

struct drill;

/* What to do with one delivery. */
struct drill_order {
    int status;
    int64_t delay_us;
    bool hang;
};

/* `fail_percent` of the deliveries without another status get a 503, drawn with `seed`. */
struct drill *drill_new(unsigned fail_percent, uint64_t seed);
void drill_free(struct drill *drill);

/* `key` is decoded bytes, or "*". False over DRILL_RULES_MAX or DRILL_KEY_MAX. */
bool drill_fail(struct drill *drill, struct bytes key, int status);
/* Somewhere from `least_ms` to `most_ms`, drawn anew for each delivery. */
bool drill_delay(struct drill *drill, struct bytes key, int64_t least_ms, int64_t most_ms);
bool drill_hang(struct drill *drill, struct bytes key);
/* Forgets the rule of a key; all rules and the percentage when the key is absent. */
void drill_heal(struct drill *drill, struct bytes key);

/* `key` absent: an unordered delivery, for which only "*" counts. */
struct drill_order drill_ask(struct drill *drill, struct bytes key);
/* {"fail_percent":0,"keys":[{"key":"A","status":503,"delay_ms":0,"hang":false}]} */
void drill_show(struct drill *drill, struct buf *out);

#endif
