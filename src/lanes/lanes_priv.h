/* What is around the scheduler. Committed hooks and outcomes come in through two boxes; attempts go to
 * deliver, changes of rows to the store.
 *
 * Two kinds of thread move it on, one at a time: whoever holds `turn` (turn.c). The lanes thread waits for
 * it. A deliver loop only tries, at the end of a round: when another has it, the outcomes stay in their box
 * and the lanes thread is woken, which empties the box in its next turn. Nothing that may block is done with
 * the turn held, least of all a read from the store: the reader is the lanes thread's, and is used between
 * turns.
 *
 * Locks are taken in this order: turn; then act_lock, look_lock, gate_lock, wake_lock, a box's, deliver's
 * gate or one of the store's, none of them inside another but for wake_lock inside look_lock, and the box
 * of a loop inside deliver's gate. The writer's thread and lookers never take the turn.
 *
 * The end: lanes_quiesce, so that no turn starts an attempt; deliver_stop, whose loops end their attempts and
 * hand in the last outcomes; from then on the lanes thread is alone, and lanes_stop has it take one more turn
 * for what lies in the boxes. lanes_close frees what is left when no thread knows of it any more. */
#ifndef LANES_LANES_PRIV_H
#define LANES_LANES_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "lanes/lanes.h"
#include "lanes/sched.h"
#include "util/inbox.h"
#include "util/vec.h"

/* One committed hook on its way in, and then, while there is room, in the cache: what its rows need to be
 * delivered without asking the store. One allocation, with the keys behind the rows. */
struct parcel_row {
    struct sched_place place;
    uint32_t key_at, key_len;
    bool has_key, gone; /* its attempt has begun, or it is no concern of ours */
};
struct parcel {
    struct list node; /* the box, then cache->parcels, oldest first */
    struct parcel *hash_next;
    struct envelope *envelope; /* a reference; NULL: there was no room */
    uint64_t seq;
    int64_t received_ms, came_ms; /* unix; monotonic */
    size_t size;                  /* what it is charged with */
    size_t alloc_size;            /* of itself: what it counts for while it lies in the box */
    uint32_t row_count, rows_left;
    uint32_t replay; /* the job that let it out of the quarantine; 0: none */
    const char *keys;
    struct parcel_row rows[];
};

struct cache {
    struct parcel **buckets; /* a power of two */
    size_t bucket_count, count;
    struct list parcels;
};

/* An attempt under way: made at its start, gone at its outcome. */
struct flight {
    struct attempt attempt; /* first: what deliver hands back */
    struct sched_run *run;
    uint64_t seq;
    uint32_t sink;
    int64_t received_ms;
    size_t size;
    bool keyless; /* of the keyless lane: its key is made up */
    char key[];
};

struct lanes_sink_meter {
    struct series *results[OUTCOME_CLASS_COUNT], *lag, *states[LANE_STATE_COUNT];
    struct series *depth_max, *blocked, *oldest, *behind;
};

/* A sink once known stays in its place: its number is never given to another one. Without a configuration it
 * is LEAVING while something may still be owed to it, then GONE: it has no transport, and no row is its. */
enum sink_state { SINK_HERE, SINK_LEAVING, SINK_GONE };

struct sink_entry {
    struct lanes_sink is; /* its transport is a reference */
    struct lanes_sink_meter meter;
    char last_error[128];
    size_t flight_bytes;
    bool crowded;
    enum sink_state state; /* look_lock is held while it changes */
    uint64_t reload;       /* the last one that named it */
    bool may_go;           /* LEAVING: no row comes for it any more */
    const char *give_up;   /* LEAVING: the class its rows die of; NULL: they are delivered */
    size_t cursor;         /* of giving up */
    uint64_t gave_up;      /* rows so far */
};

/* All lanes at one moment. Its memory is used again for the next one: to have tens of megabytes from the
 * system takes longer than to fill them. */
struct snapshot {
    atomic_uint refs;
    struct sched_time made;
    struct lane_list list;
};

/* What an operator asks for; the head of a struct on the stack of the thread that waits for it. Under
 * act_lock until it is taken, the lanes thread's while it is. */
struct command {
    struct list node; /* lanes->commands */
    void (*run)(struct lanes *lanes, struct command *command);
    enum command_state { COMMAND_WAITS, COMMAND_TAKEN, COMMAND_DONE, COMMAND_REFUSED } state;
};

/* What the lanes thread has to tell of lanes, with what the store knows of their heads (tell.c). */
struct notices {
    struct sched_action *at;
    size_t len, size;
};

/* What a row needs on its way out: the envelope (a reference) and its key. */
struct load {
    struct envelope *envelope;
    struct buf key;
    bool has_key, found;
};

/* expire.c, the lanes thread's: dead letters that are older than their sink keeps them */
struct expiry {
    int64_t every_ms; /* 0: no sink has a retention */
    int64_t next_ms;  /* monotonic; the next step, or the next sweep */
    uint64_t given;   /* what was done to dead letters until then must be written before a step reads any */
    size_t sink;      /* the sweep is there */
    bool sweeping;
    struct store_dead_filter filter; /* with the cursor */
    uint64_t count;                  /* of this sink */
};

/* A replay job whose rows may be about. */
struct replay_name {
    uint32_t number;
    struct uuid id;
};

struct lanes {
    /* The rooms stay; bounds are changed by a reload (with the turn, as they are read). */
    struct lanes_options options;
    atomic_size_t max_bytes;   /* in flight and waiting: options.max_inflight_bytes now. Any thread reads */
    atomic_size_t max_pending; /* options.max_pending_bytes now. Any thread reads */
    VEC(int32_t) sink_index;   /* by id; -1: not ours. Grows with the turn */
    struct uuid epoch;

    pthread_mutex_t turn;

    /* With the turn. */
    struct sched *sched;
    VEC(struct sink_entry)
    sinks;                          /* the lanes thread adds and changes entries: it may read without the
                                       turn; grows under look_lock */
    VEC(struct store_mark) strange; /* of sinks that were not ours at the start, should they come back */
    uint64_t reloads;
    size_t leaving;    /* sinks that are */
    uint64_t given_up; /* what was said of rows given up must be written before there are more */
    struct cache cache;
    struct list cold; /* starts that the lanes thread reads for: cold.c */
    struct notices notices;
    VEC(struct replay_name) replays; /* ascending in number */
    bool durable_asked; /* what lanes wait for behind a row that left without being delivered: one question */
    uint64_t durable_said, durable_given;
    bool store_away;      /* it can't write now */
    bool dirty;           /* the views are behind */
    uint64_t taken;       /* rows: see `came` */
    int64_t published_ms; /* monotonic */
    int64_t started_ms;   /* the last attempt */
    int64_t turns_at_ms;  /* the lanes thread will, without being woken */

    /* The lanes thread's. */
    pthread_t thread;
    bool running; /* whoever starts and stops it */
    struct store_reader *reader;
    struct expiry expiry;
    struct snapshot *building, *spare; /* spare: nobody's, memory for the next one */
    size_t cursor;

    struct inbox committed; /* the writer's thread puts; wakes the lanes thread */
    struct inbox outcomes;  /* loops put, and see to it themselves at the end of their round */
    atomic_bool outcomes_wait;

    pthread_mutex_t wake_lock;
    pthread_cond_t wake_cond; /* monotonic */
    bool awake;               /* under wake_lock */
    atomic_bool quiesced, stopping;

    pthread_mutex_t act_lock;
    pthread_cond_t act_cond;
    struct list commands; /* under act_lock, as is acts_closed */
    bool acts_closed;

    atomic_size_t held_bytes;   /* of parcels, in the box and in the cache; the writer's thread adds */
    atomic_size_t flight_bytes; /* of attempts under way; the writer's thread looks */
    atomic_size_t inflight;

    pthread_mutex_t gate_lock;
    bool backlog_full;         /* under gate_lock */
    atomic_size_t boxed_bytes; /* of all parcels in the box, also of those that hold no envelope */
    atomic_size_t sched_bytes; /* as of the lanes thread's last turn */

    /* Rows, since the start: handed over by the writer's thread, taken by the lanes thread, in what lookers
     * see. What lies between is pending too: whoever has an answer finds its hook counted. */
    atomic_uint_least64_t came;
    uint64_t shown; /* under look_lock */

    /* For lookers: written by the lanes thread, under look_lock. */
    pthread_mutex_t look_lock;
    pthread_cond_t look_cond;
    struct lanes_sink_view *views;
    struct sched_sink_view *sums;
    struct snapshot *snapshot; /* a reference; NULL: none yet */
    bool snapshot_wanted, over;
    int64_t stalled_since_ms; /* monotonic: slots are free, work waits, nothing starts; 0: it moves */
    atomic_int_least64_t beat_ms;
    struct series *pending, *inflight_gauge, *dead;
};

/* "With the turn" unless it says otherwise. */

/* lanes.c */
struct sink_entry *lanes_sink_entry(struct lanes *lanes, uint32_t id); /* NULL: not ours, or gone */
struct sched_options lanes_bounds(const struct lanes_options *options);
/* A sink that was not there; its transport is referenced. */
struct sink_entry *lanes_sink_add(struct lanes *lanes, const struct lanes_sink *sink);
/* Any thread, without the turn: opens or closes the gate of ingest. */
void backlog_judge(struct lanes *lanes);

/* rebuild.c: what the store says is owed becomes lanes. Before the lanes thread and the writer run. */
enum status lanes_rebuild(struct lanes *lanes, struct error *err);

/* turn.c */
struct sched_time lanes_now(void);
void lanes_wake(void *lanes); /* any thread: the lanes thread turns soon */
/* At the end of a deliver loop's round (deliver_on_round). */
void turn_of_loop(void *lanes);
/* The lanes thread, until lanes_stop. */
void *turns_run(void *lanes);

/* cache.c */
void cache_open(struct cache *cache);
void cache_close(struct lanes *lanes);
void cache_add(struct lanes *lanes, struct parcel *parcel);
/* The parcel of a seq with its envelope, and the row for this sink; NULL: ask the store. */
struct parcel *cache_find(struct lanes *lanes, uint64_t seq, uint32_t sink, struct parcel_row **row);
void cache_row_done(struct lanes *lanes, struct parcel *parcel, struct parcel_row *row);
void cache_make_room(struct lanes *lanes, size_t bytes);
struct parcel *parcel_new(const struct store_hook *hook);
void parcel_free(struct lanes *lanes, struct parcel *parcel);

/* attempt.c */
/* Starts what may start. */
void attempts_start(struct lanes *lanes);
/* What came of them is appended to `changes`. */
void attempts_end(struct lanes *lanes, struct list *outcomes, struct list *changes);
/* A start and what it needs as an attempt; takes the envelope over, copies the key. */
struct flight *flight_new(struct lanes *lanes, const struct sched_start *start, struct load *load);
/* Off they go; the list may be empty. */
void attempts_go(struct lanes *lanes, struct list *attempts);
/* The outcomes box was empty and is not any more; any thread. */
void outcomes_came(void *lanes);

/* cold.c */
void cold_put(struct lanes *lanes, const struct sched_start *start);
/* The lanes thread, without the turn: reads for a while and starts what it read. True: turn again. */
bool cold_start(struct lanes *lanes);

/* tell.c */
/* What the scheduler said since, as changes, log lines and counts. `flight` is the one whose outcome it was,
 * or NULL. */
void tell_actions(struct lanes *lanes, struct flight *flight, struct list *changes);
/* The same without an outcome, and the changes go to the store, these behind those in `changes`. */
void lanes_tell(struct lanes *lanes, struct list *changes);
/* The lanes thread, without the turn. */
void notices_tell(struct lanes *lanes);

/* marks.c: breakers and pauses over a restart. In this order: load (before the rows), waived for each row,
 * restore the lanes, VEC_FREE(&marks->all). */
struct marks {
    struct lanes *lanes;
    struct sched_time now;
    VEC(struct store_mark) all;
};
void marks_set_breaker(struct lanes *lanes, const struct sched_action *action);
void marks_set_pause(struct lanes *lanes, const struct sched_action *action);
enum status marks_load(struct marks *marks, struct lanes *lanes, struct sched_time now, struct error *err);
int64_t marks_waived_ms(struct marks *marks, const struct store_owed *row);
void marks_restore_lanes(struct marks *marks);
/* Of a sink that was not ours at the start. Before its rows; then its lanes. */
void marks_restore_stranger(struct lanes *lanes, uint32_t sink);
void marks_restore_stranger_lanes(struct lanes *lanes, uint32_t sink);

/* expire.c: the lanes thread. */
void expiry_open(struct lanes *lanes);
/* Without the turn: a step of a sweep, when one is due. True: there is more to do. */
bool expiry_turn(struct lanes *lanes);
int64_t expiry_due_ms(const struct lanes *lanes);

/* gauges.c */
void gauges_open(struct lanes *lanes);
void gauges_sink_open(struct lanes *lanes, struct sink_entry *sink); /* under look_lock */
void gauges_publish(struct lanes *lanes);

/* act.c: does what operators ask for; and turns away what is left, for good. */
void acts_run(struct lanes *lanes);
void acts_close(struct lanes *lanes);
/* Asking, on any other thread. False when it was taken back: the scheduler did not come to it in time, or is
 * gone. */
bool command_do(struct lanes *lanes, struct command *command, enum lanes_answer *why_not);

/* reload.c: sinks on their way out. Before acts_run in a turn, and behind what was committed. */
void leaving_turn(struct lanes *lanes);
int64_t leaving_due_ms(const struct lanes *lanes);

/* again.c: the id of a job; NULL: it is forgotten. */
const struct uuid *replay_id(const struct lanes *lanes, uint32_t number);

/* act.c: an operator's ask; false with the reason when it was not done. */
bool command_do(struct lanes *lanes, struct command *command, enum lanes_answer *why_not);
void place_in(struct sched_place *place, uint32_t sink, uint32_t tenant, bool ordered,
              const uint8_t lane[16]);

/* list.c */
bool snapshot_build(struct lanes *lanes); /* true: there is more to do */
void snapshots_close(struct lanes *lanes);

#endif
