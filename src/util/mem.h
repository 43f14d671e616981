/* Allocation that does not fail: small, bounded requests end the process when the system has no memory left
 * (it restarts with everything that was promised). Anything whose size a stranger chooses is bounded before
 * it gets here. */
#ifndef UTIL_MEM_H
#define UTIL_MEM_H

#include <stddef.h>

void *mem_alloc(size_t size);                                                    /* not cleared */
void *mem_zalloc(size_t size);                                                   /* cleared */
void *mem_resize(void *old, size_t size);                                        /* like realloc */
char *mem_strdup(const char *text);                                              /* free() it */
char *mem_format(const char *format, ...) __attribute__((format(printf, 1, 2))); /* free() it */

#endif
