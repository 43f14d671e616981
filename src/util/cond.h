/* A condition that is waited for by the monotonic clock: a wall clock that jumps must not wake anybody early,
 * or late by an hour. */
#ifndef UTIL_COND_H
#define UTIL_COND_H

#include <pthread.h>
#include <time.h>

#include "util/check.h"

/* pthread_cond_destroy ends it. */
static inline void cond_init_monotonic(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    CHECK(pthread_condattr_init(&attr) == 0);
    CHECK(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(cond, &attr) == 0);
    pthread_condattr_destroy(&attr);
}

#endif
