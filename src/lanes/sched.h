/* Who is next? The rules of delivery, pure: no clock, no thread, no I/O, and randomness only from a seed.
 * Everything that happens comes in as a call with the time; what is to be done comes out of sched_next_start,
 * sched_actions and sched_next_due. The same calls with the same times give the same answers, which is what
 * lets a simulation prove it.
 *
 *     rows are committed ─┐                            ┌─▶ attempts to start
 *     an attempt ended ───┼─▶ lanes, sinks, breakers ──┼─▶ changes of rows, to be stored
 *     time passes ────────┤                            ├─▶ notices for people
 *     an operator acts ───┘                            └─▶ when to look again
 *
 * What it keeps to (contract, sections 4 and 5): at most one attempt of a lane runs; the next of a lane is
 * its lowest unfinished seq at that moment, read from its rows and never from a counter; a lane that can't go
 * on holds nothing that another one needs; slots go round over tenants, then sinks, then lanes.
 *
 * One owner at a time; nothing here blocks or fails. Costs: O(1) a row and an attempt, O(log of the blocked
 * heads) a retry. Memory: about 150 bytes a lane and 8 a row behind its head. */
#ifndef LANES_SCHED_H
#define LANES_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lanes/policy.h"
#include "lanes/view.h"
#include "util/vec.h"

struct sched;
struct sched_run; /* one attempt under way; valid until its outcome was told */

/* Every call brings both clocks. Waiting is measured on the first, which never goes back; the second, which
 * may jump, only goes into records. */
struct sched_time {
    int64_t mono_ms, unix_ms;
};

struct sched_options {
    uint64_t seed;         /* of the jitter */
    int64_t lane_idle_ms;  /* an empty lane is forgotten after it */
    size_t lane_idle_most; /* or when more than so many are empty */
    unsigned concurrency;  /* attempts running, all sinks */
};

struct sched *sched_new(const struct sched_options *options);
void sched_free(struct sched *sched);

/* Where a row belongs. An unordered row is a lane of its own, and `lane` is unused. */
struct sched_place {
    uint32_t sink, tenant; /* small numbers */
    bool ordered;
    uint8_t lane[16];
};

/* ---- sinks ---- */

/* A new sink, or another policy for a known one. The policy is copied; what it points to is borrowed until
 * the next one or sched_free. */
void sched_sink_set(struct sched *sched, struct sched_time now, uint32_t sink,
                    const struct sched_policy *policy);
/* What it has in memory is its share: it starts nothing while something of it runs. */
void sched_sink_crowd(struct sched *sched, struct sched_time now, uint32_t sink, bool crowded);
bool sched_sink_known(const struct sched *sched, uint32_t sink);
/* Every row of it that is not running is dead-lettered with this class (a static text), a slice a call: goes
 * on at *cursor (0: the beginning) for at most `most` rows; false at the end. One that runs is, when its
 * attempt fails. */
bool sched_sink_retire(struct sched *sched, struct sched_time now, uint32_t sink, const char *cls,
                       size_t *cursor, size_t most);
/* Other bounds than at sched_new; what runs goes on. The seed stays. */
void sched_set_bounds(struct sched *sched, const struct sched_options *options);

/* Before the rows are restored: their time that does not count goes on from here, so what passed before must
 * be in their `waived_ms`. */
void sched_sink_restore(struct sched *sched, struct sched_time now, uint32_t sink,
                        const struct breaker_record *breaker, const struct pause_record *pause);
/* After them. A lane that has no rows is paused all the same. */
void sched_lane_restore(struct sched *sched, struct sched_time now, const struct sched_place *place,
                        const struct pause_record *pause);

/* ---- rows come ---- */

/* A committed row: due at once. `job`: the one that let its hook out of the quarantine; 0: none. */
void sched_commit(struct sched *sched, struct sched_time now, const struct sched_place *place, uint64_t seq,
                  int64_t received_ms, uint32_t job);

/* A row found at the start; ascending in seq is fastest. A pending one is due at once, whatever it waited
 * for. */
struct sched_owed {
    uint64_t seq;
    int64_t received_ms;
    enum { OWED_PENDING, OWED_DEAD, OWED_HELD } state;
    bool late;
    uint32_t job; /* the replay job that made it; 0: none */
    uint32_t attempts;
    int64_t first_attempt_ms, waived_ms, dead_at_ms;
};
void sched_restore(struct sched *sched, struct sched_time now, const struct sched_place *place,
                   const struct sched_owed *row);
/* A hint, twice a row before it is restored: the lane of this place is needed soon; then sooner. It asks the
 * processor for what finding it reads, or for the lane itself. */
void sched_restore_soon(struct sched *sched, const struct sched_place *place, bool sooner);

/* ---- attempts ---- */

struct sched_start {
    struct sched_run *run;
    struct sched_place place;
    uint64_t seq;
    int64_t received_ms;
    uint32_t number;       /* 1: the first */
    uint64_t previous_seq; /* last ok of the lane; 0: not known */
    uint32_t skipped;      /* dead letters of the lane now */
    uint32_t replay;       /* the job that made the row; 0: none */
    bool late;             /* a higher seq of the lane was delivered before, or may have been */
    bool probe;            /* of a breaker */
};
/* The next attempt to start, or false. Its slot is taken from here on, until sched_outcome or sched_put_back.
 */
bool sched_next_start(struct sched *sched, struct sched_time now, struct sched_start *out);

struct sched_outcome {
    enum { SCHED_OK, SCHED_TRANSIENT, SCHED_RETRY_AFTER, SCHED_REFUSED, SCHED_CONFIG } cls;
    int64_t retry_after_ms; /* class RETRY_AFTER */
    bool too_many;          /* a 429: never counts for the breaker */
    bool timed_out;
    bool unreachable; /* connect, TLS, name or time-out: not an answer of the receiver */
    bool unsent;      /* the receiver can't have seen it: nothing of its lane is late for it */
};
void sched_outcome(struct sched *sched, struct sched_time now, struct sched_run *run,
                   const struct sched_outcome *outcome);
/* The attempt counts for nothing: nothing is spent, the row is due again after `delay_ms`. `sent`: it was on
 * its way, and may arrive. */
void sched_put_back(struct sched *sched, struct sched_time now, struct sched_run *run, bool sent,
                    int64_t delay_ms);
/* An attempt under way goes on, but not its row: the hook is unreadable, say. Dead-lettered, skipping. */
void sched_give_up(struct sched *sched, struct sched_time now, struct sched_run *run, const char *cls);

size_t sched_running(const struct sched *sched);

/* ---- time ---- */

/* Does what has become due. Cheap when nothing has. */
void sched_tick(struct sched *sched, struct sched_time now);
/* The monotonic time of the next thing that happens by itself; INT64_MAX: nothing. */
int64_t sched_next_due(struct sched *sched);

/* ---- what came of it ---- */

enum sched_action_kind {
    ACTION_ROW,            /* a row changed: store it */
    ACTION_LANE_BLOCKED,   /* its head has been failing or held for five minutes: once */
    ACTION_LANE_UNBLOCKED, /* after the former */
    ACTION_BREAKER,        /* the breaker of a sink changed */
    ACTION_SINK_PAUSE,     /* a sink was paused or resumed, by whomever */
    ACTION_LANE_PAUSE,     /* a lane was */
};

enum sched_row_state {
    SCHED_ROW_PENDING,
    SCHED_ROW_DONE,
    SCHED_ROW_DEAD,
    SCHED_ROW_HELD,
    SCHED_ROW_DISCARDED
};

struct sched_action {
    enum sched_action_kind kind;
    struct sched_place place;   /* ROW, LANE_*; of BREAKER and SINK_* only the sink */
    uint64_t seq;               /* ROW; of LANE_* the head that blocks or blocked it */
    enum sched_row_state state; /* ROW, and what follows */
    bool late;
    uint32_t job;    /* of a replay; 0: none */
    bool by_outcome; /* the direct result of the last sched_outcome: its status and reason belong to it */
    uint32_t attempts;
    int64_t first_attempt_ms, due_ms, at_ms; /* unix; 0: none */
    int64_t waived_ms;
    const char *cls;              /* static; NULL: as it was */
    int64_t since_ms;             /* LANE_*: unix, first failed attempt */
    uint32_t behind;              /* LANE_*: rows behind the head */
    enum breaker_state breaker;   /* BREAKER */
    struct breaker_record record; /* BREAKER */
    struct pause_record pause;    /* *_PAUSE */
};
/* Since the last sched_actions_done, in order; valid until any other call. */
const struct sched_action *sched_actions(const struct sched *sched, size_t *count);
void sched_actions_done(struct sched *sched);
/* Behind a dead letter that was skipped, and behind a discarded row, a lane goes on when that is durable:
 * were it forgotten by a crash after a successor was delivered, the row would come again as if it were the
 * next, and a receiver that keeps to the fence would drop it. So whoever stores the changes tells how many
 * ACTION_ROW of all that were ever said are durable; and is told whether a lane waits for that. */
void sched_durable(struct sched *sched, struct sched_time now, uint64_t rows_said);
bool sched_awaits_durable(const struct sched *sched, uint64_t *rows_said);

/* ---- operators ---- */

enum sched_answer {
    SCHED_DONE,
    SCHED_NOT_FOUND,    /* no such lane or row here */
    SCHED_HEAD_CHANGED, /* `expect_head` is another one by now */
    SCHED_IN_FLIGHT,    /* its attempt runs */
    SCHED_NOTHING,      /* it is so already */
    SCHED_FULL,         /* too many lanes are paused: SCHED_PAUSED_MOST */
};

/* Lanes of which nothing else is known stay in memory as long as they are paused: a bound on those. */
enum { SCHED_PAUSED_MOST = 10000 };

/* `expect_head` 0: any. Pausing makes a lane that nothing is known of; its sink must be known. */
enum sched_answer sched_lane_pause(struct sched *sched, struct sched_time now,
                                   const struct sched_place *place);
enum sched_answer sched_lane_resume(struct sched *sched, struct sched_time now,
                                    const struct sched_place *place);
/* The head is due now; a held one is tried again with a fresh budget. */
enum sched_answer sched_lane_retry(struct sched *sched, struct sched_time now,
                                   const struct sched_place *place, uint64_t expect_head);
/* The head becomes a dead letter (class "skipped") and the lane goes on. */
enum sched_answer sched_lane_skip(struct sched *sched, struct sched_time now, const struct sched_place *place,
                                  uint64_t expect_head);

/* `for_ms` 0: until resumed. */
void sched_sink_pause(struct sched *sched, struct sched_time now, uint32_t sink, int64_t for_ms);
void sched_sink_resume(struct sched *sched, struct sched_time now, uint32_t sink);
/* Closes the breaker, ends the parking, makes all heads due. */
void sched_sink_retry(struct sched *sched, struct sched_time now, uint32_t sink);

/* A row is owed (again), keeping its seq: a dead letter with a fresh budget (`dead`), a stored hook of a
 * replay job (`job`), a released hold. NOTHING when it is owed already: it is not made twice, but belongs to
 * the job from now on. */
struct sched_again {
    uint64_t seq;
    int64_t received_ms;
    bool dead;    /* it counts as a dead letter of its lane now */
    bool late;    /* as stored */
    uint32_t job; /* 0: none */
};
enum sched_answer sched_replay(struct sched *sched, struct sched_time now, const struct sched_place *place,
                               const struct sched_again *row);
/* Gives a row up for good: a dead letter, a held one, or one still waiting. `dead` as above. */
enum sched_answer sched_discard(struct sched *sched, struct sched_time now, const struct sched_place *place,
                                uint64_t seq, bool dead);
/* What the former would answer, with nothing done. */
enum sched_answer sched_may_discard(struct sched *sched, const struct sched_place *place, uint64_t seq,
                                    bool dead);
/* A row of a job that still waits is owed no more: a dead letter, as it was before (`dead`; `hold`: one that
 * held its lane; of the class it died of, or "withdrawn" when the job tried it), or else given up. NOTHING
 * when it is not the job's, or died already. */
enum sched_answer sched_withdraw(struct sched *sched, struct sched_time now, const struct sched_place *place,
                                 uint64_t seq, uint32_t job, bool dead, bool hold);
/* A replay job rewinds a lane: rows above `frontier` wait, even when the lane has run empty below it, until
 * the job moves the frontier on; UINT64_MAX ends it. */
void sched_rewind(struct sched *sched, struct sched_time now, const struct sched_place *place,
                  uint64_t frontier);
/* A waiting row moves to another lane (or out of the lanes) of the same sink and tenant, keeping its seq and
 * what it has spent. In its new lane it is late, since nobody knows what was delivered there before; whoever
 * stores the move stores that with it, and behind what sched_actions says of the lane it left. */
enum sched_answer sched_rekey(struct sched *sched, struct sched_time now, const struct sched_place *from,
                              uint64_t seq, const struct sched_place *to);

/* ---- looking ---- */

/* Memory of lanes and rows in use, in bytes; what empty lanes take is not counted, they go when room is
 * needed. */
size_t sched_memory(const struct sched *sched);

struct sched_sink_view {
    uint64_t pending; /* rows owed */
    uint64_t dead;    /* dead letters, holding ones too */
    uint64_t running;
    uint64_t lanes[LANE_STATE_COUNT]; /* lanes that have rows, by state */
    uint64_t retrying_rows;           /* heads and unordered rows that wait for another attempt */
    uint64_t rows_behind_blocked, lane_depth_max;
    int64_t oldest_ms;        /* unix: the oldest pending was received; 0: none */
    int64_t blocked_since_ms; /* unix: first failed attempt of the oldest failing head; 0: none */
    enum breaker_state breaker;
    struct breaker_record record;
    struct pause_record pause;
    bool waiting_with_free_slot; /* work is there that nothing but a pick keeps from starting */
};
/* From running sums: no scan. */
void sched_sink_look(struct sched *sched, struct sched_time now, uint32_t sink, struct sched_sink_view *out);

bool sched_lane_look(struct sched *sched, struct sched_time now, const struct sched_place *place,
                     struct lane_view *out);
/* Is anything known of it: rows, dead letters, a pause, or its last ok? */
bool sched_lane_known(struct sched *sched, const struct sched_place *place);
/* The seqs of its next rows; gives how many. */
size_t sched_lane_rows(struct sched *sched, const struct sched_place *place, uint64_t *seqs, size_t most);

/* A lane in a list of all: what lists are sorted and filtered by, and small, since there may be millions.
 * What else there is to tell of few is in a story. */
struct lane_brief {
    uint8_t lane[16];
    uint64_t head_seq;
    int64_t oldest_ms; /* unix */
    uint32_t tenant, sink, depth;
    uint32_t state : 4;  /* enum lane_state */
    uint32_t story : 28; /* its place in the list's stories, from 1; 0: its head was never tried, nor is it
                            paused */
};
struct lane_story {
    uint32_t head_attempts;
    int64_t head_due_ms, blocked_since_ms, paused_since_ms; /* as in struct lane_view */
};
/* Zeroed, and freed with VEC_FREE of both; `len` = 0 keeps the memory for the next time. */
struct lane_list {
    VEC(struct lane_brief) briefs;
    VEC(struct lane_story) stories;
};

/* How many there are: room that sched_lanes_slice may need. */
size_t sched_lane_count(const struct sched *sched);
/* Adds lanes with rows, a slice a call: goes on at *cursor (0: the beginning), looks at up to `most` of them;
 * *cursor is 0 again at the end. Lanes that come or go in between may be missed; none shows twice. */
void sched_lanes_slice(struct sched *sched, struct sched_time now, size_t *cursor, struct lane_list *out,
                       size_t most);
/* As sched_lane_look would have shown it at `unix_ms`. */
void lane_brief_view(const struct lane_list *list, const struct lane_brief *brief, int64_t unix_ms,
                     struct lane_view *out);

/* For tests: walks everything and ends the process when a sum or a list disagrees with the rows. */
void sched_audit(struct sched *sched, struct sched_time now);

#endif
