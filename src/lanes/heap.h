/* A binary heap, smallest key on top. Nodes live inside their owners and know their place, so anything can
 * leave from the middle. A value inside its owner; {0} is empty. Equal keys leave in no promised order, but
 * always the same one for the same history. */
#ifndef LANES_HEAP_H
#define LANES_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "util/check.h"
#include "util/vec.h"

struct heap_node {
    uint32_t place; /* index + 1; 0: in no heap */
};

struct heap_item {
    int64_t key;
    struct heap_node *node;
};

struct heap {
    VEC(struct heap_item) items;
};

#define HEAP_OWNER(heap_node, type, member) ((type *)((char *)(heap_node)-offsetof(type, member)))

static inline void heap_set_(struct heap *heap, size_t i, struct heap_item item)
{
    heap->items.at[i] = item;
    item.node->place = (uint32_t)i + 1;
}

static inline void heap_up_(struct heap *heap, size_t i, struct heap_item item)
{
    while (i > 0 && heap->items.at[(i - 1) / 2].key > item.key) {
        heap_set_(heap, i, heap->items.at[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    heap_set_(heap, i, item);
}

static inline void heap_down_(struct heap *heap, size_t i, struct heap_item item)
{
    for (size_t child; (child = 2 * i + 1) < heap->items.len; i = child) {
        if (child + 1 < heap->items.len && heap->items.at[child + 1].key < heap->items.at[child].key)
            child++;
        if (heap->items.at[child].key >= item.key)
            break;
        heap_set_(heap, i, heap->items.at[child]);
    }
    heap_set_(heap, i, item);
}

static inline void heap_push(struct heap *heap, struct heap_node *node, int64_t key)
{
    CHECK(node->place == 0);
    (void)VEC_ADD(&heap->items);
    heap_up_(heap, heap->items.len - 1, (struct heap_item){key, node});
}

/* Nothing happens when the node is in no heap; it must not be in another one. */
static inline void heap_remove(struct heap *heap, struct heap_node *node)
{
    if (node->place == 0)
        return;
    size_t i = node->place - 1;
    CHECK(i < heap->items.len && heap->items.at[i].node == node);
    node->place = 0;
    struct heap_item moved = heap->items.at[--heap->items.len];
    if (i == heap->items.len)
        return;
    if (i > 0 && heap->items.at[(i - 1) / 2].key > moved.key)
        heap_up_(heap, i, moved);
    else
        heap_down_(heap, i, moved);
}

static inline struct heap_item *heap_top(struct heap *heap)
{
    return heap->items.len ? &heap->items.at[0] : NULL;
}

/* The smallest but the top; NULL with fewer than two. */
static inline struct heap_item *heap_second(struct heap *heap)
{
    if (heap->items.len < 2)
        return NULL;
    bool right = heap->items.len > 2 && heap->items.at[2].key < heap->items.at[1].key;
    return &heap->items.at[right ? 2 : 1];
}

static inline void heap_free(struct heap *heap)
{
    VEC_FREE(&heap->items);
}

#endif
