/* One thread, the runner, moves all jobs on. The list of jobs and what `lock` guards of each are shared with
 * whoever asks; the rest of a job is the runner's alone, which does without the lock what takes long. */
#ifndef REPLAY_REPLAY_PRIV_H
#define REPLAY_REPLAY_PRIV_H

#include <pthread.h>

#include "order/order.h"
#include "replay/lane_map.h"
#include "replay/replay.h"
#include "util/list.h"

struct job {
    struct list node; /* replays->jobs, under `lock` */

    /* Under `lock`: written by the runner, but for state, why and rate. */
    struct store_replay is;
    const char *waits;
    bool planned;
    uint64_t lanes, lanes_rewound;

    /* The runner's. */
    struct lane_map map;
    uint64_t plan_at;            /* the window was looked at up to there */
    uint64_t begins;             /* its first hook; 0: none was found yet */
    bool too_wide;               /* more lanes than a plan can hold */
    VEC(struct map_lane) found;  /* rewound by an earlier life, until the plan is made */
    VEC(struct map_lane) strays; /* lanes that the plan did not foresee: rewound until the end */
    double tokens;
    int64_t tokens_at_ms; /* monotonic */
};

struct replays {
    struct replays_options options;
    struct store_reader *reader; /* the runner's, from start to stop */
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* monotonic: something was asked for, or a step is written */
    struct list jobs;
    uint32_t last_number;
    bool stop;
};

/* replays.c, under the lock */
bool job_is_active(const struct job *job);
bool replay_takes_sink(const struct store_replay *replay, const struct lanes_sink *sink);

/* runner.c */
void *runner_main(void *replays);
void job_free(struct job *job);

/* slice.c: some hooks of a job and what they become under the configuration in force. */
struct slice {
    struct replays *replays;
    const struct store_replay *replay;
    struct store_reader *reader;
    void *held;
    const struct lanes_sink *sinks;
    size_t sink_count;
    struct arena *arena; /* of keys */
    VEC(uint64_t) seqs;
    size_t taken; /* of seqs */
};
/* Begins a slice: reads the seqs of at most `limit` hooks behind `*after`, which moves. */
enum status slice_open(struct slice *slice, struct replays *replays, struct store_reader *reader,
                       const struct store_replay *replay, uint64_t *after, size_t limit, bool *end);
void slice_close(struct slice *slice);
/* Of the configuration: no more of it is asked for. Keys stay until the slice is closed. */
void slice_let_go(struct slice *slice);
/* The rows of the next hook, at most one a sink: NOT_FOUND at the end of the slice. A hook that is gone, or
 * that no sink takes, has none. */
struct slice_row {
    const struct lanes_sink *sink;
    uint32_t tenant;
    int64_t received_ms;
    struct store_replay_row row;
};
enum status slice_next(struct slice *slice, uint64_t *seq,
                       void (*each)(void *ctx, const struct slice_row *row), void *ctx);

#endif
