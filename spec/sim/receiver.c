/* The other end of the wire: a receiver that applies the contract's recipe. Per lane it keeps the last seq it
 * applied. Newer: apply. Equal: had it. Lower and not late: drop. Late, or of a replay job: apply what it has
 * not applied yet, out of the order. An attempt whose answer nobody waited for may reach it much later, after
 * its successors, or never. What must come of it: an effect happens once, and what the gateway calls
 * delivered has happened.
 */
#include "sim.h"

static void apply(struct world *world, struct row *row)
{
    if (row->applied && !row->rekeyed) /* under another key no fence can know */
        sim_fail(world, "seq %lu took effect twice", row->seq);
    row->applied = true;
}

void receive(struct world *world, const struct letter *letter)
{
    if (letter->lane == NO_LANE)
        return;
    struct row *row = &world->rows.at[letter->row];
    uint64_t *fence = &world->fences[letter->lane];
    if (row->seq > *fence) {
        apply(world, row);
        *fence = row->seq;
    } else if (row->seq < *fence && (letter->late || letter->replay) && !row->applied) {
        apply(world, row);
    }
}

void letter_lost(struct world *world, const struct letter *letter, struct dice *dice)
{
    uint32_t fate = dice_below(dice, 3);
    if (fate == 0)
        receive(world, letter); /* it was there, and the answer was not */
    else if (fate == 1)
        VEC_PUSH(&world->letters, *letter);
}

void letter_lands(struct world *world, struct dice *dice)
{
    if (world->letters.len == 0)
        return;
    size_t i = dice_below(dice, (uint32_t)world->letters.len);
    struct letter letter = world->letters.at[i];
    world->letters.at[i] = world->letters.at[--world->letters.len];
    receive(world, &letter);
}

void judge_effects(struct world *world)
{
    for (uint32_t i = 0; i < world->rows.len; i++) {
        const struct row *row = &world->rows.at[i];
        bool ordered = row->lane != NO_LANE;
        if (ordered && row->durable.state == SCHED_ROW_DONE && !row->applied)
            sim_fail(world, "seq %lu is called delivered and never took effect", row->seq);
    }
}
