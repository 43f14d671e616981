#include "util/check.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void check_failed(const char *file, int line, const char *expr)
{
    fprintf(stderr, "{\"level\":\"fatal\",\"event\":\"check_failed\",\"at\":\"%s:%d\",\"expr\":\"%s\"}\n", file, line,
            expr);
    abort();
}
