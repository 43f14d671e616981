/* A step of a job on its way to the store and back. */
#include <stdlib.h>

#include "replay/replay_priv.h"
#include "util/mem.h"

void making_free(struct making *making)
{
    slice_close(&making->slice);
    VEC_FREE(&making->rows);
    VEC_FREE(&making->stored);
    free(making);
}

static void step_done(struct store_replay_step *step, bool durable)
{
    struct making *making = step->ctx;
    struct replays *replays = making->replays;
    pthread_mutex_lock(&replays->lock);
    making->over = true;
    making->durable = durable;
    bool abandoned = making->abandoned;
    pthread_cond_broadcast(&replays->wake);
    pthread_mutex_unlock(&replays->lock);
    if (abandoned)
        making_free(making);
}

struct making *making_new(struct replays *replays, uint32_t number)
{
    struct making *making = mem_zalloc(sizeof *making);
    making->replays = replays;
    making->slice.replays = replays;
    making->step.number = number;
    making->step.done = step_done;
    making->step.ctx = making;
    return making;
}

bool making_write(struct making *making)
{
    enum { LOOK_MS = 1000 };
    struct replays *replays = making->replays;
    store_step_replay(replays->options.store, &making->step);
    pthread_mutex_lock(&replays->lock);
    while (!making->over && !replays->stop)
        runner_wait_ms(replays, LOOK_MS);
    making->abandoned = !making->over;
    bool durable = making->over && making->durable, abandoned = making->abandoned;
    pthread_mutex_unlock(&replays->lock);
    if (!durable && !abandoned)
        making_free(making);
    return durable;
}
