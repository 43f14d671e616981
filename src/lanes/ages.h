/* How old is the oldest pending row of a sink, without keeping rows in order of age? Rows are counted in
 * groups of neighbouring seqs; a group knows when its first row was received. Exact to a second while few
 * groups live, to one part in a hundred of the age when there are many. A value inside its owner; {0} is
 * empty. */
#ifndef LANES_AGES_H
#define LANES_AGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/vec.h"

struct ages_group {
    uint64_t from_seq; /* up to the next group's */
    int64_t received_ms;
    uint32_t rows;
};

struct ages {
    VEC(struct ages_group) groups; /* ascending; at most AGES_MOST */
    uint64_t top_seq;              /* highest ever added: only above it may a group begin */
};

enum { AGES_MOST = 256, AGES_WIDTH_MS = 1000 };

void ages_add(struct ages *ages, uint64_t seq, int64_t received_ms);
void ages_remove(struct ages *ages, uint64_t seq);
int64_t ages_oldest_ms(const struct ages *ages); /* unix; 0: nothing is pending */
void ages_free(struct ages *ages);

#endif
