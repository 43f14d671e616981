/* A world for the scheduler: a model store, receivers with moods, operators, crashes and clocks, all from one
 * seed. The model keeps its own account of every row and lane, in the plainest form there is, and judges each
 * thing the scheduler does by the rules of the contract. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lanes/sched.h"
#include "util/vec.h"

enum { TENANTS = 3, SOURCES = 2, SINKS = 4, KEYS = 9, LANES = TENANTS * SINKS * KEYS, NO_LANE = LANES };

/* A small random stream (splitmix64, Steele and others 2014): every step of a script has its own. */
struct dice {
    uint64_t state;
};
uint64_t dice_roll(struct dice *dice);
uint32_t dice_below(struct dice *dice, uint32_t n);
bool dice_chance(struct dice *dice, uint32_t percent);

/* What the store knows of a row for certain. */
struct kept {
    enum sched_row_state state;
    bool late;
    uint32_t attempts;
    int64_t first_attempt_ms, waived_ms, at_ms;
};

struct row {
    uint64_t seq;
    int64_t received_ms;
    uint32_t tenant, sink;
    uint32_t lane, durable_lane; /* NO_LANE: unordered */
    struct kept live, durable;
    bool running, by_receiver, tried_here;
    uint32_t job;             /* of a replay that made it; 0: none */
    bool poison;              /* its receiver always says 500 */
    bool applied, rekeyed;    /* what the receiver did of it; it was in another lane once */
    int64_t due_ms, first_ms; /* monotonic, of this life */
};

struct lane_model {
    VEC(uint32_t) owed; /* rows pending or held, ascending in seq */
    int64_t running;    /* a row; -1: none */
    bool paused, durably_paused;
    uint64_t frontier, last_ok;
    uint64_t sent;     /* the highest that a receiver may have applied, in this life */
    uint64_t unsynced; /* it goes on when so many changes are synced */
    unsigned dead, overtaken;
};

/* A change on its way to the disk. */
struct unsynced {
    struct sched_action action;
    bool moved; /* a row, to action.place */
};

/* One attempt on the wire, as it was sent. */
struct letter {
    uint32_t row, lane;
    bool late, replay;
};

struct run {
    struct sched_run *run;
    uint32_t row;
    int64_t started_ms;
    bool probe;
    struct letter letter;
};

enum mood { MOOD_WELL, MOOD_FLAKY, MOOD_DOWN, MOOD_ERRORS, MOOD_REFUSES, MOOD_BUSY, MOOD_BROKEN, MOODS };

struct sink_model {
    struct sched_policy policy;
    enum mood mood;
    VEC(uint32_t) loose; /* unordered rows owed */
    unsigned running, ramp;
    bool last_timed_out, paused;
    int64_t pause_until_ms;
    struct pause_record durable_pause;
    enum breaker_state breaker;
    struct breaker_record record, durable_record;
    VEC(uint32_t) failed; /* lanes, or LANES + row, that failed since the last ok */
    unsigned failed_alone;
    VEC(uint64_t) refused;
    int64_t last_probed; /* as in `failed`; -1: none since it was closed */
    unsigned overtaken[TENANTS];
};

/* A replay job at one lane, durable as the store keeps it: rows up to `next` were made, each in one
 * transaction with that number. */
struct job {
    uint32_t lane;
    VEC(uint32_t) rows; /* ascending in seq */
    size_t next;
};

struct world {
    struct sched *sched;
    uint64_t seed;
    int64_t mono_ms, offset_ms; /* unix = mono + offset */
    unsigned concurrency;
    int64_t lane_idle_ms;
    bool forgets; /* lanes are forgotten early in this episode */
    bool verbose;
    uint64_t next_seq, hooks;
    uint64_t found;       /* rows up to it are of an earlier life */
    VEC(struct row) rows; /* ascending in seq, by sink within a seq */
    VEC(struct run) runs;
    VEC(struct unsynced) unsynced;
    uint64_t said, synced;      /* changes of rows, in this life */
    VEC(struct letter) letters; /* whose answer nobody waited for, still on their way */
    uint64_t fences[LANES];     /* the receiver's: the last seq it applied */
    struct lane_model lanes[LANES];
    struct sink_model sinks[SINKS];
    struct job job;
    uint64_t starts;
    /* What the next by_outcome action must fit. */
    int64_t judged; /* a row; -1: none */
    struct sched_outcome verdict;
    bool by_operator, gives_up;
};

/* Ends the process with the sentence. */
_Noreturn void sim_fail(const struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* model.c */
struct sched_time world_now(const struct world *world);
void place_of_row(const struct row *row, struct sched_place *place);
void place_of_lane(uint32_t lane, struct sched_place *place);
uint32_t lane_of_place(const struct sched_place *place);
uint32_t lane_index(uint32_t tenant, uint32_t sink, uint32_t key);
void model_add(struct world *world, uint32_t row); /* it is owed: into its lane */
void model_remove(struct world *world, uint32_t row);
bool job_row_is_done(const struct world *world, size_t i); /* made, and delivered or given up */
bool job_is_done(const struct world *world);
bool lane_is_due(const struct world *world, const struct lane_model *lane);
bool row_is_due(const struct world *world, const struct row *row);
bool others_due(struct world *world, uint32_t sink, uint32_t row);
int64_t row_find(const struct world *world, uint64_t seq, uint32_t sink);
void keep(struct kept *kept, const struct sched_action *action);

/* judge.c: what the scheduler did, and whether it may */
void judge_start(struct world *world, const struct sched_start *start);
void judge_actions(struct world *world);
void judge_idle(struct world *world); /* nothing more starts: is that right? */
void judge_sums(struct world *world);

/* receiver.c */
void receive(struct world *world, const struct letter *letter);
/* Its answer is not known: it may have arrived, may arrive later, or never. */
void letter_lost(struct world *world, const struct letter *letter, struct dice *dice);
void letter_lands(struct world *world, struct dice *dice);
void judge_effects(struct world *world);

/* world.c */
void world_open(struct world *world, uint64_t seed);
void world_close(struct world *world);
void world_restart(struct world *world, struct dice *dice);
void world_policies(struct world *world, struct dice *dice);
void world_pump(struct world *world);
void world_sync(struct world *world, size_t most);
void world_drain(struct world *world); /* all is well again: everything must arrive */

/* steps.c */
enum { EPISODE_STEPS = 2500 };
void step_do(struct world *world, uint64_t roll);
void step_outcome(struct world *world, size_t run, const struct sched_outcome *outcome);

#endif
