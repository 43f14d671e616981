/* Assertions on our own mistakes, kept in release builds. What the world can cause is returned, never
 * checked. */
#ifndef UTIL_CHECK_H
#define UTIL_CHECK_H

#include <stdbool.h>

/* Ends the process with file, line and the expression when `expr` is false. */
#define CHECK(expr)                                                                                          \
    do {                                                                                                     \
        if (__builtin_expect(!(expr), 0))                                                                    \
            check_failed(__FILE__, __LINE__, #expr);                                                         \
    } while (0)

/* A branch that no input can reach. */
#define UNREACHABLE() check_failed(__FILE__, __LINE__, "unreachable")

_Noreturn void check_failed(const char *file, int line, const char *expr);

#endif
