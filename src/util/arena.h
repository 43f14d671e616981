/* A bump arena: many small allocations, one free. One owner at a time; not for sharing between threads while
 * it still grows. Aligned to 16 bytes. */
#ifndef UTIL_ARENA_H
#define UTIL_ARENA_H

#include <stddef.h>

#include "util/bytes.h"

struct arena;

/* The first block holds `size_hint` bytes; later ones grow. Never fails (mem.h). */
struct arena *arena_new(size_t size_hint);
void arena_free(struct arena *arena); /* NULL is fine */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_zalloc(struct arena *arena, size_t size);
/* A copy with a NUL behind it (not counted in len); BYTES_NONE stays BYTES_NONE. */
struct bytes arena_copy(struct arena *arena, struct bytes text);
const char *arena_strdup(struct arena *arena, const char *text);
/* What the arena holds of the system's memory, in bytes. */
size_t arena_size(const struct arena *arena);

#endif
