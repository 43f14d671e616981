/* An intrusive, doubly linked, circular list. The node lives inside its owner; a node is in one list at a
 * time. A list head is a node that belongs to nobody. */
#ifndef UTIL_LIST_H
#define UTIL_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev;
};

#define LIST_INIT(name)                                                                                      \
    {                                                                                                        \
        &(name), &(name)                                                                                     \
    }
#define LIST_OWNER(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))
#define LIST_EACH(node, head) for (struct list *node = (head)->next; node != (head); node = node->next)
/* Survives the removal of `node`. */
#define LIST_EACH_SAFE(node, head)                                                                           \
    for (struct list *node = (head)->next, *node##_next = node->next; node != (head);                        \
         node = node##_next, node##_next = node->next)

static inline void list_init(struct list *head)
{
    head->next = head->prev = head;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

static inline void list_insert_before(struct list *at, struct list *node)
{
    node->next = at;
    node->prev = at->prev;
    at->prev->next = node;
    at->prev = node;
}

static inline void list_append(struct list *head, struct list *node)
{
    list_insert_before(head, node);
}

/* The node is left linked to itself: removing twice is harmless, list_empty(node) tells. */
static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

/* First node, taken out; NULL when empty. */
static inline struct list *list_pop(struct list *head)
{
    struct list *node = head->next;
    if (node == head)
        return NULL;
    list_remove(node);
    return node;
}

/* Everything in `from` goes behind what `to` has. */
static inline void list_splice(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

#endif
