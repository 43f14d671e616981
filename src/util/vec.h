/* A growing array of one type: struct { T *at; size_t len, size; }. {0} is empty. VEC_FREE gives it back. */
#ifndef UTIL_VEC_H
#define UTIL_VEC_H

#include <stddef.h>
#include <stdlib.h>

#include "util/mem.h"

#define VEC(type)                                                                                            \
    struct {                                                                                                 \
        type *at;                                                                                            \
        size_t len, size;                                                                                    \
    }

/* Room for one more; gives its address, uninitialised and counted. */
#define VEC_ADD(vec)                                                                                         \
    (((vec)->len == (vec)->size ? (void)((vec)->size = (vec)->size ? (vec)->size * 2 : 8,                    \
                                         (vec)->at = mem_resize((vec)->at, (vec)->size * sizeof *(vec)->at)) \
                                : (void)0),                                                                  \
     &(vec)->at[(vec)->len++])

#define VEC_PUSH(vec, value) (*VEC_ADD(vec) = (value))
#define VEC_EACH(item, vec)                                                                                  \
    for (__typeof__((vec)->at) item = (vec)->at; item < (vec)->at + (vec)->len; item++)
#define VEC_FREE(vec) (free((vec)->at), (vec)->at = NULL, (vec)->len = (vec)->size = 0)

#endif
