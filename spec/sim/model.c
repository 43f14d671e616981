/* The model's own account: rows, and lanes as sorted lists of them. Slow and plain on purpose. */
#include <string.h>

#include "order/order.h"
#include "sim.h"
#include "util/check.h"

uint64_t dice_roll(struct dice *dice)
{
    uint64_t z = dice->state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return z ^ z >> 31;
}

uint32_t dice_below(struct dice *dice, uint32_t n)
{
    return (uint32_t)((dice_roll(dice) >> 32) * n >> 32);
}

bool dice_chance(struct dice *dice, uint32_t percent)
{
    return dice_below(dice, 100) < percent;
}

struct sched_time world_now(const struct world *world)
{
    return (struct sched_time){world->mono_ms, world->mono_ms + world->offset_ms};
}

/* Keys that try to confuse: '*', NUL, the longest that is kept and one more, bytes that are no text, a
 * delimiter, and the keyless lane. The same ones are used in both sources. */
static struct bytes key_of(uint32_t key, char room[129])
{
    memset(room, 'k', 129);
    switch (key) {
    case 0:
        return BYTES("*");
    case 1:
        return bytes_of("a\0b", 3);
    case 2:
        return bytes_of("a", 1);
    case 3:
        return bytes_of(room, 128);
    case 4:
        return bytes_of(room, 129);
    case 5:
        return bytes_of("\xff\xfe\x80", 3);
    case 6:
        return BYTES("s/b/");
    case 7:
        return BYTES("customer-7");
    default:
        return BYTES_NONE;
    }
}

uint32_t lane_index(uint32_t tenant, uint32_t sink, uint32_t key)
{
    return (tenant * SINKS + sink) * KEYS + key;
}

/* The ids that the real order room gives, made once. */
static const uint8_t *lane_bytes(uint32_t lane)
{
    static struct lane_id ids[LANES];
    static bool made;
    if (!made) {
        struct arena *arena = arena_new(4096);
        for (uint32_t i = 0; i < LANES; i++) {
            char room[129];
            uint32_t sink = i / KEYS % SINKS;
            struct bytes key = order_key_stamp(key_of(i % KEYS, room), arena);
            ids[i] =
                lane_id_of(sink < 2 ? BYTES("shop") : BYTES("pay"), sink % 2 ? BYTES("a") : BYTES("b"), key);
        }
        arena_free(arena);
        made = true;
    }
    return ids[lane].bytes;
}

void place_of_lane(uint32_t lane, struct sched_place *place)
{
    *place =
        (struct sched_place){.tenant = lane / KEYS / SINKS, .sink = lane / KEYS % SINKS, .ordered = true};
    memcpy(place->lane, lane_bytes(lane), sizeof place->lane);
}

uint32_t lane_of_place(const struct sched_place *place)
{
    for (uint32_t key = 0; key < KEYS; key++) {
        uint32_t lane = lane_index(place->tenant, place->sink, key);
        if (memcmp(lane_bytes(lane), place->lane, sizeof place->lane) == 0)
            return lane;
    }
    return NO_LANE;
}

void place_of_row(const struct row *row, struct sched_place *place)
{
    if (row->lane == NO_LANE)
        *place = (struct sched_place){.tenant = row->tenant, .sink = row->sink};
    else
        place_of_lane(row->lane, place);
}

int64_t row_find(const struct world *world, uint64_t seq, uint32_t sink)
{
    size_t low = 0, high = world->rows.len;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (world->rows.at[mid].seq < seq)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < world->rows.len && world->rows.at[low].seq == seq; low++)
        if (world->rows.at[low].sink == sink)
            return (int64_t)low;
    return -1;
}

void model_add(struct world *world, uint32_t index)
{
    struct row *row = &world->rows.at[index];
    if (row->lane == NO_LANE) {
        VEC_PUSH(&world->sinks[row->sink].loose, index);
        return;
    }
    struct lane_model *lane = &world->lanes[row->lane];
    (void)VEC_ADD(&lane->owed);
    size_t i = lane->owed.len - 1;
    for (; i > 0 && lane->owed.at[i - 1] > index; i--)
        lane->owed.at[i] = lane->owed.at[i - 1];
    lane->owed.at[i] = index;
}

void model_remove(struct world *world, uint32_t index)
{
    struct row *row = &world->rows.at[index];
    uint32_t *at = row->lane == NO_LANE ? world->sinks[row->sink].loose.at : world->lanes[row->lane].owed.at;
    size_t *len =
        row->lane == NO_LANE ? &world->sinks[row->sink].loose.len : &world->lanes[row->lane].owed.len;
    size_t i = 0;
    while (i < *len && at[i] != index)
        i++;
    CHECK(i < *len);
    memmove(at + i, at + i + 1, (--*len - i) * sizeof *at);
}

bool row_is_due(const struct world *world, const struct row *row)
{
    return row->live.state == SCHED_ROW_PENDING && !row->running && row->due_ms <= world->mono_ms;
}

bool lane_is_due(const struct world *world, const struct lane_model *lane)
{
    if (lane->running >= 0 || lane->owed.len == 0 || lane->paused || lane->unsynced > world->synced)
        return false;
    const struct row *head = &world->rows.at[lane->owed.at[0]];
    return head->seq <= lane->frontier && row_is_due(world, head);
}

bool others_due(struct world *world, uint32_t sink, uint32_t index)
{
    const struct row *row = &world->rows.at[index];
    if (world->sinks[sink].running > 1)
        return true;
    for (uint32_t i = 0; i < LANES; i++)
        if (i / KEYS % SINKS == sink && i != row->lane && lane_is_due(world, &world->lanes[i]))
            return true;
    VEC_EACH (at, &world->sinks[sink].loose) {
        if (*at != index && row_is_due(world, &world->rows.at[*at]))
            return true;
    }
    return false;
}

void keep(struct kept *kept, const struct sched_action *action)
{
    *kept = (struct kept){.state = action->state,
                          .late = action->late,
                          .attempts = action->attempts,
                          .first_attempt_ms = action->first_attempt_ms,
                          .waived_ms = action->waived_ms,
                          .at_ms = action->at_ms};
}

bool job_row_is_done(const struct world *world, size_t i)
{
    const struct row *row = &world->rows.at[world->job.rows.at[i]];
    bool owed = row->live.state == SCHED_ROW_PENDING || row->live.state == SCHED_ROW_HELD;
    return (i < world->job.next && !owed) || row->lane != world->job.lane; /* somebody rekeyed it */
}

bool job_is_done(const struct world *world)
{
    for (size_t i = 0; i < world->job.rows.len; i++)
        if (!job_row_is_done(world, i))
            return false;
    return true;
}
