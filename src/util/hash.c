#include "util/hash.h"

#include <pthread.h>
#include <sys/random.h>

#include "util/check.h"

static uint64_t seed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void choose(void)
{
    CHECK(getrandom(&seed, sizeof seed, 0) == sizeof seed);
}

uint64_t hash_seed(void)
{
    pthread_once(&once, choose);
    return seed;
}

/* The finalizer of MurmurHash3 (Austin Appleby, public domain): every input bit reaches every output bit. */
static uint64_t mix(uint64_t h)
{
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdULL;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ULL;
    return h ^ h >> 33;
}

uint64_t hash_u64(uint64_t a, uint64_t b)
{
    return mix(mix(a ^ hash_seed()) + b);
}

uint64_t hash_bytes(struct bytes text)
{
    uint64_t h = hash_seed() ^ text.len;
    const char *p = text.at;
    size_t left = text.len;
    for (uint64_t word; left >= 8; p += 8, left -= 8) {
        memcpy(&word, p, 8);
        h = mix(h + word);
    }
    uint64_t tail = 0;
    if (left)
        memcpy(&tail, p, left);
    return mix(h + tail);
}
