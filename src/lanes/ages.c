#include "lanes/ages.h"

#include <string.h>

#include "util/check.h"

/* The group that a seq belongs to: the last one that begins at or below it; -1: it lies below all. */
static ptrdiff_t group_of(const struct ages *ages, uint64_t seq)
{
    size_t low = 0, high = ages->groups.len;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (ages->groups.at[mid].from_seq <= seq)
            low = mid + 1;
        else
            high = mid;
    }
    return (ptrdiff_t)low - 1;
}

static void drop_group(struct ages *ages, size_t i)
{
    ages->groups.len--;
    memmove(ages->groups.at + i, ages->groups.at + i + 1, (ages->groups.len - i) * sizeof ages->groups.at[0]);
}

/* Two neighbours become one, all along: half as many, twice as wide. */
static void merge_pairs(struct ages *ages)
{
    size_t kept = 0;
    for (size_t i = 0; i < ages->groups.len; i += 2) {
        struct ages_group group = ages->groups.at[i];
        if (i + 1 < ages->groups.len)
            group.rows += ages->groups.at[i + 1].rows;
        ages->groups.at[kept++] = group;
    }
    ages->groups.len = kept;
}

void ages_add(struct ages *ages, uint64_t seq, int64_t received_ms)
{
    ptrdiff_t at = group_of(ages, seq);
    if (at < 0 && ages->groups.len > 0) { /* a row from before all others came back */
        struct ages_group *first = &ages->groups.at[0];
        first->from_seq = seq;
        if (received_ms < first->received_ms)
            first->received_ms = received_ms;
        first->rows++;
        return;
    }
    bool above = seq > ages->top_seq;
    if (above)
        ages->top_seq = seq;
    if (at >= 0 && (!above || received_ms - ages->groups.at[at].received_ms < AGES_WIDTH_MS)) {
        ages->groups.at[at].rows++;
        return;
    }
    if (ages->groups.len == AGES_MOST)
        merge_pairs(ages);
    VEC_PUSH(&ages->groups, ((struct ages_group){seq, received_ms, 1}));
}

void ages_remove(struct ages *ages, uint64_t seq)
{
    ptrdiff_t at = group_of(ages, seq);
    CHECK(at >= 0 && ages->groups.at[at].rows > 0);
    if (--ages->groups.at[at].rows == 0)
        drop_group(ages, (size_t)at);
}

int64_t ages_oldest_ms(const struct ages *ages)
{
    return ages->groups.len ? ages->groups.at[0].received_ms : 0;
}

void ages_free(struct ages *ages)
{
    VEC_FREE(&ages->groups);
}
