/* An array in order of id; what is added later is sorted in when somebody asks. */
#include "cli/order_taken.h"

#include <stdlib.h>
#include <string.h>

#include "util/mem.h"
#include "util/vec.h"

#define NO_SINK SIZE_MAX

struct take {
    struct uuid id;
    struct lane_id lane;
    bool in_lane;
    size_t sink; /* of that lane; NO_SINK: of none that is known, or no lane */
};

struct order_taken {
    const struct taken_sink *sinks;
    size_t sink_count;
    VEC(struct take) takes;
    bool sorted;
};

struct order_taken *order_taken_new(const struct taken_sink *sinks, size_t count)
{
    struct order_taken *taken = mem_zalloc(sizeof *taken);
    taken->sinks = sinks;
    taken->sink_count = count;
    return taken;
}

void order_taken_free(struct order_taken *taken)
{
    if (!taken)
        return;
    VEC_FREE(&taken->takes);
    free(taken);
}

/* A keyless lane is shown with a key too (tenant/source), but its id is made without one. */
static size_t sink_of(const struct order_taken *taken, struct bytes source, const struct lane_id *lane,
                      struct bytes key)
{
    for (size_t i = 0; i < taken->sink_count; i++) {
        if (!bytes_eq(source, bytes_str(taken->sinks[i].source)))
            continue;
        struct bytes name = bytes_str(taken->sinks[i].name);
        struct lane_id of_key = lane_id_of(source, name, key), keyless = lane_id_of(source, name, BYTES_NONE);
        if (memcmp(lane, &of_key, sizeof of_key) == 0 || memcmp(lane, &keyless, sizeof keyless) == 0)
            return i;
    }
    return NO_SINK;
}

void order_taken_add(struct order_taken *taken, struct bytes id, struct bytes source, struct bytes lane,
                     struct bytes key)
{
    struct take take = {.sink = NO_SINK, .in_lane = lane.len > 0};
    if (!uuid_parse(id, &take.id))
        return;
    if (take.in_lane) {
        if (!hex_decode(lane, take.lane.bytes, sizeof take.lane.bytes))
            return;
        take.sink = sink_of(taken, source, &take.lane, key);
    }
    VEC_PUSH(&taken->takes, take);
    taken->sorted = false;
}

static int by_id(const void *a, const void *b)
{
    const struct take *x = a, *y = b;
    return memcmp(&x->id, &y->id, sizeof x->id);
}

/* The first delivery of a hook; the others follow it. NULL when there is none. */
static const struct take *first_of(struct order_taken *taken, const struct uuid *id)
{
    if (!taken->sorted && taken->takes.len)
        qsort(taken->takes.at, taken->takes.len, sizeof taken->takes.at[0], by_id);
    taken->sorted = true;
    size_t low = 0, high = taken->takes.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memcmp(&taken->takes.at[middle].id, id, sizeof *id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < taken->takes.len ? &taken->takes.at[low] : NULL;
}

static bool is_of(const struct order_taken *taken, const struct take *take, const struct uuid *id)
{
    return take && take < taken->takes.at + taken->takes.len && memcmp(&take->id, id, sizeof *id) == 0;
}

bool order_taken_by(struct order_taken *taken, const struct uuid *id, size_t sink)
{
    for (const struct take *take = first_of(taken, id); is_of(taken, take, id); take++)
        if (!take->in_lane || take->sink == sink)
            return true;
    return false;
}

bool order_taken_in(struct order_taken *taken, const struct uuid *id, const struct lane_id *lane)
{
    for (const struct take *take = first_of(taken, id); is_of(taken, take, id); take++)
        if (lane ? take->in_lane && memcmp(&take->lane, lane, sizeof *lane) == 0 : !take->in_lane)
            return true;
    return false;
}
