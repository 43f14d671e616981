/* The unfinished rows of one lane (or the fresh unordered rows of a flow): ascending seqs, each with the time
 * it was received, eight bytes a row. A value inside its owner; {0} is empty. The first row is kept outside
 * the chunks, so a lane of one allocates nothing. `bytes` counts what the allocator was asked for. Not
 * thread-safe. */
#ifndef LANES_ROWS_H
#define LANES_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rows_chunk;

struct rows {
    uint64_t first;          /* lowest seq; 0: empty */
    int64_t received_ms;     /* of the first, unix */
    struct rows_chunk *last; /* a ring: last->next is the lowest chunk */
    uint32_t count;
};

/* False when the seq is there already. Appending is O(1), anything else walks chunks of up to 512 rows. */
bool rows_add(struct rows *rows, uint64_t seq, int64_t received_ms, size_t *bytes);
/* False when it was not there; `received_ms` may be NULL. The first is O(1). */
bool rows_remove(struct rows *rows, uint64_t seq, int64_t *received_ms, size_t *bytes);
bool rows_has(const struct rows *rows, uint64_t seq);
/* The lowest seq above `after`; 0: none. */
uint64_t rows_next(const struct rows *rows, uint64_t after);
void rows_free(struct rows *rows, size_t *bytes);

#endif
