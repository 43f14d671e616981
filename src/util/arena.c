#include "util/arena.h"

#include <stdlib.h>
#include <string.h>

#include "util/mem.h"

struct block {
    struct block *older;
    size_t size;
    size_t used;
    _Alignas(16) char data[];
};

struct arena {
    struct block *newest;
    size_t total;
    struct block first; /* its data follows: an arena that fits its hint is one allocation */
};

static size_t aligned(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

struct arena *arena_new(size_t size_hint)
{
    size_t size = aligned(size_hint);
    struct arena *arena = mem_alloc(sizeof *arena + size);
    arena->first = (struct block){.size = size};
    arena->newest = &arena->first;
    arena->total = sizeof *arena + size;
    return arena;
}

void arena_free(struct arena *arena)
{
    if (!arena)
        return;
    for (struct block *b = arena->newest; b != &arena->first;) {
        struct block *older = b->older;
        free(b);
        b = older;
    }
    free(arena);
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size = aligned(size ? size : 1);
    struct block *b = arena->newest;
    if (b->size - b->used < size) {
        size_t room = b->size * 2 > 1024 ? b->size * 2 : 1024;
        if (room > 1 << 20)
            room = 1 << 20;
        if (room < size)
            room = size;
        struct block *fresh = mem_alloc(sizeof *fresh + room);
        *fresh = (struct block){.older = b, .size = room};
        arena->newest = b = fresh;
        arena->total += sizeof *fresh + room;
    }
    void *at = b->data + b->used;
    b->used += size;
    return at;
}

void *arena_zalloc(struct arena *arena, size_t size)
{
    return memset(arena_alloc(arena, size), 0, size);
}

struct bytes arena_copy(struct arena *arena, struct bytes text)
{
    if (!text.at)
        return BYTES_NONE;
    char *at = arena_alloc(arena, text.len + 1);
    memcpy(at, text.at, text.len);
    at[text.len] = 0;
    return bytes_of(at, text.len);
}

const char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_copy(arena, bytes_str(text)).at;
}

size_t arena_size(const struct arena *arena)
{
    return arena->total;
}
