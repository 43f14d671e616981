#include "util/check.h"

#include <stdio.h>
#include <stdlib.h>

/* Nothing of ours is trusted any more here: no buffer, no lock, no allocation. */
_Noreturn void check_failed(const char *file, int line, const char *expr)
{
    char escaped[512];
    size_t n = 0;
    for (; *expr && n + 2 < sizeof escaped; expr++) {
        if (*expr == '"' || *expr == '\\')
            escaped[n++] = '\\';
        escaped[n++] = *expr;
    }
    escaped[n] = 0;
    fprintf(stderr, "{\"level\":\"fatal\",\"event\":\"check_failed\",\"at\":\"%s:%d\",\"expr\":\"%s\"}\n",
            file, line, escaped);
    abort();
}
