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
    uint64_t plans;              /* replays->plans when it was made */
    uint64_t plan_at;            /* the window was looked at up to there */
    uint64_t plan_hooks;         /* so many were found */
    uint64_t begins;             /* its first hook; 0: none was found yet */
    bool too_wide;               /* more lanes than a plan can hold */
    bool ends, let_go;           /* it is over; its lanes were let go */
    bool withdrawn;              /* what waited was, once at least */
    uint64_t round;              /* it was at turn in that one */
    VEC(struct map_lane) found;  /* rewound by an earlier life, until the plan is made */
    VEC(struct map_lane) strays; /* lanes that the plan did not foresee: rewound until the end */
    double tokens;
    int64_t tokens_at_ms; /* monotonic */
    int64_t again_at_ms;  /* monotonic: nothing is tried before */
    int64_t lag_look_ms;  /* monotonic: what lag.c said holds until then */
    bool lags;
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
    bool busy;      /* the runner is on a round */
    uint64_t round; /* so many are over */
    uint64_t plans; /* counts the configurations that may give keys to other lanes */
    bool stop;
};

/* replays.c, under the lock */
bool job_is_active(const struct job *job);
/* replays.c: is there one that it takes? */
bool replay_has_sink(struct replays *replays, const struct store_replay *replay);
bool replay_takes_sink(const struct store_replay *replay, const struct lanes_sink *sink);

/* runner.c */
void *runner_main(void *replays);
void job_free(struct job *job);
/* Under the lock: until something happens, or for so long. */
void runner_wait_ms(struct replays *replays, int64_t ms);
/* For so long; false when the runner has to stop. */
bool runner_pause_ms(struct replays *replays, int64_t ms);
/* What it waits for (static; NULL: nothing), for lookers. */
void job_say(struct replays *replays, struct job *job, const char *waits);
/* With so many hooks that were gone before it came to them. Whoever asked for another state meanwhile is
 * right: then nothing of it is so, and it is counted when it ends. */
void job_end(struct replays *replays, struct job *job, enum replay_state state, const char *why,
             uint64_t gone);

/* frontier.c: what goes into the scheduler at one moment, rows first; then more rewinds. {0} is empty. */
struct batch {
    VEC(struct lanes_row) rows;
    VEC(struct lanes_rewind) rewinds;
};
void batch_free(struct batch *batch);
void batch_rewind(struct batch *batch, const struct map_lane *lane, uint64_t frontier);
/* The store has it already, so it is tried until it is done, or the next start does it: then false. */
bool batch_send(struct replays *replays, uint32_t number, const struct batch *batch);
/* Everything that the job holds back goes on. */
bool job_let_go(struct replays *replays, struct job *job);

/* withdraw.c: a turn of a job that was cancelled; true: nothing of it is owed any more. */
bool job_withdraw(struct replays *replays, struct job *job);

/* lag.c: a sink of the job is behind by more than its max_lag. */
bool job_lags(struct replays *replays, struct job *job, const struct store_replay *is);

/* plan.c: a turn of looking at the window. */
enum status plan_hooks(struct replays *replays, struct job *job);
enum status plan_pen(struct replays *replays, struct job *job);
/* Whoever made the configuration other than it was has moved keys to lanes that nobody foresaw. */
void plan_again(struct replays *replays, struct job *job, uint64_t cursor);

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
    size_t taken;  /* of seqs */
    uint64_t gone; /* of those taken: not there any more, or unreadable */
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

/* step.c: a step on its way to the store, with what it is made of. Whoever gives up on it leaves it to whom
 * it comes back. */
struct making {
    struct store_replay_step step;
    struct replays *replays;
    struct slice slice;
    VEC(struct slice_row) rows;
    VEC(struct store_replay_row) stored;
    bool over, durable, abandoned; /* under the lock */
};
struct making *making_new(struct replays *replays, uint32_t number);
void making_free(struct making *making);
/* Waits until it is durable; false: it is not, and `making` is gone. */
bool making_write(struct making *making);

/* make.c, release.c: a slice of a job, of at most so many hooks. `more`: there is no reason to wait before
 * the next one. */
enum status make_hooks(struct replays *replays, struct job *job, const struct store_replay *is, size_t hooks,
                       bool *more);
enum status release_hooks(struct replays *replays, struct job *job, const struct store_replay *is,
                          size_t hooks, bool *more);
/* What of the pen a job asks for, behind its cursor. */
struct store_pen_filter replay_pen_filter(const struct store_replay *replay, uint64_t after, size_t limit);
/* Entries of the quarantine as long as they fit: which is at most a slice, and so many bytes. */
struct pen_slice {
    struct replay_release releases[REPLAY_RELEASE_MAX];
    size_t count;
    uint64_t ids[REPLAY_RELEASE_MAX];
    size_t id_count, bytes;
    uint64_t damaged[REPLAY_RELEASE_MAX]; /* of ids: can't be read */
    size_t damaged_count;
};
/* Looks and reads, from the cursor in `filter` on, which moves. Free it also when it fails. */
enum status pen_slice_read(struct pen_slice *slice, struct store_reader *reader,
                           struct store_pen_filter *filter, bool *end);
void pen_slice_free(struct pen_slice *slice);

#endif
