/* Rows of replay jobs on their way into the scheduler. They are owed in the store already; what comes in here
 * is never turned down, and a lane takes its rows and its frontier at one moment. */
#include <string.h>

#include "lanes/lanes_priv.h"
#include "util/check.h"

/* ---- ids ---- */

void lanes_replay_known(struct lanes *lanes, uint32_t number, const struct uuid *id)
{
    pthread_mutex_lock(&lanes->turn);
    size_t at = lanes->replays.len;
    VEC_PUSH(&lanes->replays, ((struct replay_name){number, *id}));
    for (; at > 0 && lanes->replays.at[at - 1].number > number; at--)
        lanes->replays.at[at] = lanes->replays.at[at - 1];
    lanes->replays.at[at] = (struct replay_name){number, *id};
    pthread_mutex_unlock(&lanes->turn);
}

const struct uuid *replay_id(const struct lanes *lanes, uint32_t number)
{
    size_t low = 0, high = lanes->replays.len;
    while (number && low < high) {
        size_t mid = (low + high) / 2;
        const struct replay_name *name = &lanes->replays.at[mid];
        if (name->number == number)
            return &name->id;
        if (name->number < number)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* ---- rows and rewinds ---- */

static void rewind_lane(struct lanes *lanes, const struct lanes_rewind *rewind)
{
    struct sched_place place;
    bool ends = rewind->frontier == UINT64_MAX; /* also of a sink that is gone: it may come back */
    if (ends ? !sched_sink_known(lanes->sched, rewind->lane.sink)
             : !lanes_sink_entry(lanes, rewind->lane.sink))
        return;
    place_in(&place, rewind->lane.sink, rewind->lane.tenant, true, rewind->lane.lane);
    sched_rewind(lanes->sched, lanes_now(), &place, rewind->frontier);
}

void lanes_rewind_restore(struct lanes *lanes, const struct lanes_rewind *rewind)
{
    CHECK(!lanes->running);
    rewind_lane(lanes, rewind);
}

struct again_command {
    struct command command;
    uint32_t number;
    const struct lanes_row *rows;
    const struct lanes_rewind *rewinds;
    size_t row_count, rewind_count;
};

/* That it is no dead letter any more, somebody else may have said meanwhile: it is owed all the same. */
static void again(struct lanes *lanes, const struct lanes_row *row, uint32_t number)
{
    struct sched_place place;
    struct sched_again again = {.seq = row->seq,
                                .received_ms = row->received_ms,
                                .dead = row->state == ROW_DEAD,
                                .late = row->late,
                                .job = number};
    if (!lanes_sink_entry(lanes, row->sink))
        return; /* its rows stay owed in the store */
    place_in(&place, row->sink, row->tenant, row->ordered, row->lane);
    if (sched_replay(lanes->sched, lanes_now(), &place, &again) != SCHED_NOT_FOUND)
        return;
    again.dead = false;
    sched_replay(lanes->sched, lanes_now(), &place, &again);
}

static void do_again(struct lanes *lanes, struct command *command)
{
    const struct again_command *ask = LIST_OWNER(command, struct again_command, command);
    for (size_t i = 0; i < ask->row_count; i++)
        again(lanes, &ask->rows[i], ask->number);
    for (size_t i = 0; i < ask->rewind_count; i++)
        rewind_lane(lanes, &ask->rewinds[i]);
}

enum lanes_answer lanes_replay_stored(struct lanes *lanes, uint32_t number, const struct lanes_row *rows,
                                      size_t row_count, const struct lanes_rewind *rewinds,
                                      size_t rewind_count)
{
    CHECK(row_count <= LANES_REPLAY_MAX && rewind_count <= LANES_REPLAY_MAX);
    struct again_command ask = {.command = {.run = do_again},
                                .number = number,
                                .rows = rows,
                                .rewinds = rewinds,
                                .row_count = row_count,
                                .rewind_count = rewind_count};
    enum lanes_answer why_not;
    return command_do(lanes, &ask.command, &why_not) ? LANES_DONE : why_not;
}
