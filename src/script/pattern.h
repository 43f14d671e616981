/* Lua patterns under a budget of steps. What they mean is Lua 5.1's manual, section 5.4.1, as LuaJIT reads it
 * (%g is there, classes are ASCII); but a NUL in a pattern is a byte, not its end. No Lua state in here.
 * Private to this room. */
#ifndef SCRIPT_PATTERN_H
#define SCRIPT_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#include "util/bytes.h"

enum { PATTERN_CAPTURES_MAX = 32, PATTERN_DEPTH_MAX = 200 };
enum { PATTERN_OPEN = -1, PATTERN_POSITION = -2 }; /* lengths of captures that have none */

struct pattern_capture {
    const char *at;
    ptrdiff_t len;
};

struct pattern {
    const char *subject, *subject_end;
    const char *end;   /* of the pattern */
    int64_t steps;     /* left */
    const char *error; /* why it can't go on; NULL: nothing wrong. At steps <= 0 there is none */
    int depth;
    int captures;
    struct pattern_capture capture[PATTERN_CAPTURES_MAX];
};

/* Ready for pattern_match. A leading '^' is the caller's business. */
struct pattern pattern_of(struct bytes subject, struct bytes text, int64_t steps);
/* Does the pattern from `text` on match exactly at `at`? Gives the end of the match, or NULL: no match, or
 * `error` is set, or the steps are used up. Forgets captures of a match before. */
const char *pattern_match(struct pattern *pattern, const char *at, const char *text);

#endif
