/* The parts of the comparison with jansson: json_make.c writes bodies, json_neutral.c knows where the two
 * readers differ on purpose, json_diff.c compares. */
#ifndef FUZZ_JSON_DIFF_H
#define FUZZ_JSON_DIFF_H

#include "random.h"
#include "util/buf.h"

/* A body: JSON by construction, then in most cases damaged somewhere. */
void make_body(struct random *random, struct buf *out);
/* A dotted path that has a chance to be in such a body. */
void make_path(struct random *random, struct buf *out);

/* Where the contract asks for more than jansson gives, and one thing that jansson lets through. */
#define KINDS(X)                                                                                             \
    X(BOM, "a byte order mark in front")                                                                     \
    X(OVERFLOW, "a number beyond a double")                                                                  \
    X(NUL_NAME, "\\u0000 in a name")                                                                         \
    X(SURROGATE, "a lone surrogate escape")                                                                  \
    X(DEPTH, "a plain value inside 2,048 levels")                                                            \
    X(NUL_BYTE, "jansson overlooks a NUL byte behind a number or a word")

enum kind {
#define KIND_ENUM(id, text) KIND_##id,
    KINDS(KIND_ENUM)
#undef KIND_ENUM
        KIND_COUNT
};

/* Writes `body` without what makes the readers differ, as far as that is possible. Gives a bit (1 << kind)
 * for each kind it met; for KIND_DEPTH nothing can be rewritten, the bit alone tells. */
unsigned neutralise(struct bytes body, struct buf *out);

#endif
