/* Hashing for in-memory tables. Seeded once per process, so that nobody outside can aim at one bucket. */
#ifndef UTIL_HASH_H
#define UTIL_HASH_H

#include <stdint.h>

#include "util/bytes.h"

/* Random, the same for the whole life of the process. Any thread. */
uint64_t hash_seed(void);
uint64_t hash_bytes(struct bytes text);
/* Two words mixed with the seed. */
uint64_t hash_u64(uint64_t a, uint64_t b);

#endif
