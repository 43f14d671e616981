/* The two clocks. Waiting is measured on the monotonic one, what people read on the wall clock. */
#ifndef UTIL_CLOCK_H
#define UTIL_CLOCK_H

#include <stdint.h>

int64_t clock_mono_us(void); /* microseconds since an arbitrary start, never backwards */
int64_t clock_mono_ms(void);
int64_t clock_unix_ms(void); /* milliseconds since 1970, may jump */

#endif
