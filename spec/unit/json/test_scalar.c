/* The promises of test_walk.c once more, for a machine without SSE2: a walk built here takes the place of the
 * library's. */
#define JSON_NO_SIMD 1
#include "json/walk.c"

#include "test_walk.c"
