/* The lanes of a job, each with its last row: known once the whole window was looked at. Filled in any order,
 * then sorted; then looked up. A value inside its owner; {0} is empty. */
#ifndef REPLAY_LANE_MAP_H
#define REPLAY_LANE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/vec.h"

enum { LANE_MAP_MAX = 1000000 };

struct map_lane {
    uint32_t sink, tenant;
    uint8_t lane[16];
    uint64_t last;
    bool rewound;
};

struct lane_map {
    VEC(struct map_lane) all; /* after lane_map_sort: by sink, tenant and lane, one each */
    VEC(uint32_t) by_last;    /* places in `all` */
    size_t tidy;              /* entries that the last tidying left */
    size_t passed;            /* of by_last: behind the job */
    size_t rewound;           /* how many are */
    bool full;                /* there are more than LANE_MAP_MAX, and they are not in it */
};

void lane_map_add(struct lane_map *map, const struct map_lane *lane);
void lane_map_sort(struct lane_map *map);
struct map_lane *lane_map_find(struct lane_map *map, uint32_t sink, uint32_t tenant, const uint8_t lane[16]);
/* The next one whose last row is not above `cursor`; NULL: no more. */
struct map_lane *lane_map_pass(struct lane_map *map, uint64_t cursor);
void lane_map_free(struct lane_map *map);

#endif
