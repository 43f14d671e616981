/* Chance from a seed: the same seed gives the same run on every machine (splitmix64). */
#ifndef SUPPORT_RANDOM_H
#define SUPPORT_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_u64(struct random *r)
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* 0 to n - 1. */
static inline size_t random_below(struct random *r, size_t n)
{
    return (size_t)(random_u64(r) % n);
}

/* True once in n times. */
static inline bool random_once_in(struct random *r, size_t n)
{
    return random_below(r, n) == 0;
}

#endif
