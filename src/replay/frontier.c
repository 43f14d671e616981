/* Rows of jobs on their way into the scheduler, and the frontiers of lanes that are rewound. */
#include <string.h>

#include "replay/replay_priv.h"
#include "util/check.h"

enum { AGAIN_MS = 250 }; /* after the scheduler was not to be had */

void batch_free(struct batch *batch)
{
    VEC_FREE(&batch->rows);
    VEC_FREE(&batch->rewinds);
}

void batch_rewind(struct batch *batch, const struct map_lane *lane, uint64_t frontier)
{
    struct lanes_rewind *rewind = VEC_ADD(&batch->rewinds);
    *rewind =
        (struct lanes_rewind){.lane = {.sink = lane->sink, .tenant = lane->tenant}, .frontier = frontier};
    memcpy(rewind->lane.lane, lane->lane, sizeof rewind->lane.lane);
}

bool batch_send(struct replays *replays, uint32_t number, const struct batch *batch)
{
    size_t sent = 0, most = LANES_REPLAY_MAX;
    CHECK(batch->rows.len <= most);
    do {
        size_t count = batch->rewinds.len - sent < most ? batch->rewinds.len - sent : most;
        size_t rows = sent == 0 ? batch->rows.len : 0;
        enum lanes_answer answer = lanes_replay_stored(replays->options.lanes, number, batch->rows.at, rows,
                                                       batch->rewinds.at + sent, count);
        if (answer == LANES_DONE)
            sent += count;
        else if (answer == LANES_DRAINING || !runner_pause_ms(replays, AGAIN_MS))
            return false;
        else
            continue;
        if (sent == batch->rewinds.len)
            return true;
    } while (true);
}

bool job_let_go(struct replays *replays, struct job *job)
{
    struct batch batch = {0};
    VEC_EACH (lane, &job->found)
        batch_rewind(&batch, lane, UINT64_MAX);
    VEC_EACH (lane, &job->strays)
        batch_rewind(&batch, lane, UINT64_MAX);
    VEC_EACH (lane, &job->map.all)
        if (lane->rewound)
            batch_rewind(&batch, lane, UINT64_MAX);
    bool sent = batch.rewinds.len == 0 || batch_send(replays, job->is.number, &batch);
    batch_free(&batch);
    return sent;
}
