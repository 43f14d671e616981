#include "replay/lane_map.h"

#include <stdlib.h>
#include <string.h>

enum { TIDY_LEAST = 4096 };

static int compare_lane(const struct map_lane *a, const struct map_lane *b)
{
    if (a->sink != b->sink)
        return a->sink < b->sink ? -1 : 1;
    if (a->tenant != b->tenant)
        return a->tenant < b->tenant ? -1 : 1;
    return memcmp(a->lane, b->lane, sizeof a->lane);
}

static int compare(const void *left, const void *right)
{
    return compare_lane(left, right);
}

static int compare_last(const void *left, const void *right, void *ctx)
{
    const struct lane_map *map = ctx;
    uint64_t a = map->all.at[*(const uint32_t *)left].last, b = map->all.at[*(const uint32_t *)right].last;
    return (a > b) - (a < b);
}

/* One entry a lane, with its highest row. */
static void tidy(struct lane_map *map)
{
    size_t kept = 0;
    if (map->all.len)
        qsort(map->all.at, map->all.len, sizeof map->all.at[0], compare);
    VEC_EACH (lane, &map->all) {
        struct map_lane *before = kept ? &map->all.at[kept - 1] : NULL;
        if (!before || compare_lane(before, lane) != 0)
            map->all.at[kept++] = *lane;
        else if (lane->last > before->last)
            before->last = lane->last;
    }
    map->full |= kept > LANE_MAP_MAX;
    map->all.len = map->tidy = kept < LANE_MAP_MAX ? kept : LANE_MAP_MAX;
}

/* Half of what lies here at most is double: so a lane is sorted some twenty times, however many rows it has.
 */
void lane_map_add(struct lane_map *map, const struct map_lane *lane)
{
    VEC_PUSH(&map->all, *lane);
    if (map->all.len >= TIDY_LEAST && map->all.len >= 2 * map->tidy)
        tidy(map);
}

void lane_map_sort(struct lane_map *map)
{
    tidy(map);
    map->by_last.len = map->passed = 0;
    for (size_t i = 0; i < map->all.len; i++)
        VEC_PUSH(&map->by_last, (uint32_t)i);
    if (map->by_last.len)
        qsort_r(map->by_last.at, map->by_last.len, sizeof map->by_last.at[0], compare_last, map);
}

struct map_lane *lane_map_find(struct lane_map *map, uint32_t sink, uint32_t tenant, const uint8_t lane[16])
{
    struct map_lane wanted = {.sink = sink, .tenant = tenant};
    memcpy(wanted.lane, lane, sizeof wanted.lane);
    return map->all.len ? bsearch(&wanted, map->all.at, map->all.len, sizeof wanted, compare) : NULL;
}

struct map_lane *lane_map_pass(struct lane_map *map, uint64_t cursor)
{
    if (map->passed == map->by_last.len)
        return NULL;
    struct map_lane *lane = &map->all.at[map->by_last.at[map->passed]];
    if (lane->last > cursor)
        return NULL;
    map->passed++;
    return lane;
}

void lane_map_free(struct lane_map *map)
{
    VEC_FREE(&map->all);
    VEC_FREE(&map->by_last);
    *map = (struct lane_map){0};
}
