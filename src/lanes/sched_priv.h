/* What the scheduler is made of. A lane's life, and the one function (lane_settle) that says where it stands:
 *
 *                 row                        start
 *     IDLE ───────────────▶ READY ─────────────────────────▶ RUNNING
 *      ▲                    ▲  ▲                                │
 *      │ nothing left       │  │ due            failed          │
 *      │                    │  └────── WAITING ◀────────────────┤
 *      │                    │ resumed                           │
 *      │                    ├───────── PAUSED  ◀── paused ──────┤   ok, or dead and skipped:
 *      │                    │ replayed, discarded               │   whatever its rows say
 *      │                    └───────── HELD    ◀── dead, holds ─┤
 *      └────────────────────────────────────────────────────────┘
 *
 * A phase is never set by an event. An event changes rows, then lane_settle reads them: running? empty? is
 * the lowest row held? paused? due later? else ready. Entering and leaving a phase is one function each
 * (lane.c, the table). */
#ifndef LANES_SCHED_PRIV_H
#define LANES_SCHED_PRIV_H

#include "lanes/ages.h"
#include "lanes/heap.h"
#include "lanes/rows.h"
#include "lanes/sched.h"
#include "util/list.h"
#include "util/vec.h"

/* Planted bugs, for the test that shows that the simulation can fail (spec/sim). */
#define MUTANT_TAIL 1    /* a retry goes to the tail of its lane */
#define MUTANT_COUNTER 2 /* busy is a counter instead of a fact */
#define MUTANT_SCAN 3    /* the search for work that can start gives up early */
#ifndef SCHED_MUTANT
#define SCHED_MUTANT 0
#endif

enum {
    SLOW_AFTER_MS = 1000, /* an attempt that runs longer makes its sink slow */
    SLOW_SLOTS = 8,       /* what a slow sink may hold */
    SHARE_MOST = 8,       /* what every sink can have at any moment */
    RETRY_AFTER_MOST_MS = 3600 * 1000,
    REFUSED_STORM = 20,
    BLOCKED_NOTICE_MS = 5 * 60 * 1000,
};

enum phase {
    PHASE_NONE,
    PHASE_IDLE,
    PHASE_READY,
    PHASE_RUNNING,
    PHASE_WAITING,
    PHASE_HELD,
    PHASE_PAUSED,
    PHASE_COUNT
};

/* What is known of a row beyond its seq: made by its first failure, a hold, a replay. Most rows never have
 * one. A lane keeps them ascending in a ring. A dead row's note stays until a higher seq of its lane was
 * sent, since that makes it late, and the store must hear of it. */
struct note {
    struct note *next, *prev;
    struct lane *lane;
    uint64_t seq;
    uint32_t attempts;
    uint32_t job;
    int64_t first_ms, first_unix_ms; /* first attempt; unix 0: none yet */
    int64_t waived_ms;               /* time that does not count, beside the sink's */
    int64_t stopped_base_ms;         /* the sink's stopped clock at the first attempt */
    int64_t due_ms;                  /* monotonic */
    int64_t dead_at_ms;              /* unix */
    struct heap_node due;            /* sink->due, while WAITING */
    struct heap_node tried;          /* sink->tried: whom a probe may take */
    struct heap_node failing;        /* sink->failing, or sink->alarmed */
    bool late, held, dead, by_receiver /* it said when */, alarmed;
};

/* Rare things of a lane. */
struct lane_extra {
    struct list node; /* sched->unsynced, while it waits there */
    struct lane *lane;
    uint64_t unsynced;                  /* it goes on when so many rows that were said are durable */
    uint64_t frontier;                  /* of a rewind; UINT64_MAX: none */
    int64_t paused_ms, stopped_base_ms; /* since when, and the sink's stopped clock then */
    int64_t paused_unix_ms;
    bool paused;
};

struct lane {
    struct list node; /* flow->fresh or ->tried, or sched->idle */
    struct flow *flow;
    struct lane *hash_next;
    uint8_t id[16]; /* of an unordered row: its seq */
    struct rows rows;
    struct note *notes; /* the lowest */
    struct lane_extra *extra;
    uint64_t last_ok;
    uint64_t highest_sent;  /* a receiver may have applied it in this life */
    uint64_t highest_found; /* of its rows at the start: who knows what was sent before? */
    union {
        struct sched_run *run; /* PHASE_RUNNING */
        int64_t idle_ms;       /* PHASE_IDLE */
    };
    uint32_t dead;   /* dead letters, holding ones too */
    uint32_t streak; /* the sink's streak in which its failure was counted */
    uint32_t slab;   /* where it lies */
    uint8_t phase;
    bool ordered, summed, used /* the slab's */;
#if SCHED_MUTANT == MUTANT_COUNTER
    uint32_t busy;
#endif
};

/* One tenant's rows at one sink. */
struct flow {
    struct list node;       /* tenant->flows, or sink->waiting or ->passed */
    struct list probe_node; /* sink->probe_flows: it has rows never tried */
    struct sched_sink *sink;
    struct tenant *tenant;
    struct list fresh, tried; /* READY lanes whose head was never tried, or was */
    struct rows loose;        /* unordered rows never tried */
    uint8_t turn;             /* which of the three goes next */
    enum { FLOW_ASLEEP, FLOW_RINGED, FLOW_PARKED } where;
};

struct tenant {
    struct list node;  /* sched->ring */
    struct list flows; /* ringed ones: they may start now */
    uint32_t id;
};

struct sched_run {
    struct list node; /* sink->runs, oldest first */
    struct lane *lane;
    uint64_t seq;
    int64_t started_ms, started_unix_ms;
    bool probe;
};

struct breaker {
    enum breaker_state state;
    enum breaker_cause cause;
    uint32_t opens;                  /* in a row */
    uint32_t failed;                 /* counted since the last ok */
    uint32_t streak;                 /* a new number after each ok */
    uint32_t refusals;               /* in a row */
    uint64_t refused[REFUSED_STORM]; /* their seqs */
    int64_t since_unix_ms;           /* not closed since */
    int64_t probe_at_ms;
    struct sched_run *probe;
    const struct flow *probed_flow; /* the lane probed last, which may be forgotten by now; NULL: none */
    bool probed_ordered;
    uint8_t probed_id[16];
};

struct sched_sink {
    uint32_t id;
    struct sched_policy policy;
    VEC(struct flow *) flows; /* by tenant id */
    struct list waiting;      /* flows with work that wait for this sink */
    struct list passed;       /* before them: their turn came, and no slot was left */
    struct list probe_flows;
    unsigned ringed; /* flows of it among the tenants' */
    struct list runs;
    unsigned running;
    unsigned ramp; /* slots after a breaker closed; 0: as configured */
    bool last_timed_out, crowded;
    const char *retired; /* the class its rows die of; NULL: it lives */

    struct breaker breaker;
    struct list probe_node; /* sched->probing */
    struct list short_node; /* sched->short_of_slots */
    bool paused;
    int64_t pause_until_ms;    /* INT64_MAX: until resumed */
    struct pause_record pause; /* as it is told */
    int64_t stopped_ms,
        stopped_since_ms; /* the clock of time that does not count; since: INT64_MAX when it runs not */
    double tokens;
    int64_t tokens_at_ms;

    struct heap due, tried, failing, alarmed;
    struct heap_node timer; /* sched->timers */

    struct ages ages;
    uint64_t pending, dead, behind;
    uint64_t lanes[PHASE_COUNT]; /* ordered ones that have rows */
    uint64_t ready_tried;
    uint64_t waiting_rows;
    VEC(uint32_t) depths; /* lanes by depth */
    size_t depth_max;
};

struct table {
    struct lane **buckets;
    size_t count, base, split; /* base is a power of two; base + split buckets are in use */
    size_t room;
};

enum { SLAB_LANES = 256 };
struct slab {
    size_t used, next_unused;
    struct lane *free; /* by hash_next */
    struct lane lanes[SLAB_LANES];
};
struct slab_slot {
    struct slab *slab; /* NULL: nothing is there (any more) */
    bool listed;       /* in sched->room */
};

struct sched {
    struct sched_options options;
    struct sched_time now;
    uint64_t random;
    VEC(struct sched_sink *) sinks; /* by id */
    VEC(struct tenant *) tenants;   /* by id */
    struct table table;
    VEC(struct slab_slot) slabs;
    VEC(uint32_t) room;              /* slots that can take a lane */
    struct list ring;                /* tenants that have a flow which may start */
    struct list probing;             /* sinks that want a probe */
    struct list idle;                /* empty lanes, longest first */
    size_t idle_count, paused_count; /* lanes */
    struct heap timers;
    unsigned running;
    unsigned share;             /* slots that every sink can have, whatever the others hold */
    unsigned reserved;          /* of them, those that nobody holds now */
    struct list short_of_slots; /* sinks that hold their share and wait for what is nobody's, longest first */
    VEC(struct sched_action) actions;
    uint64_t said, durable; /* ACTION_ROW, ever */
    struct list unsynced;   /* lane_extra, in order */
    size_t lane_count;
    size_t bytes; /* chunks and notes */
};

/* table.c */
struct lane *table_find(struct sched *sched, const struct flow *flow, bool ordered, const uint8_t id[16]);
struct lane *table_add(struct sched *sched, struct flow *flow, bool ordered, const uint8_t id[16]);
/* Asks the processor for the bucket of a lane that is soon looked for; or, when that has come, for the lane.
 */
void table_prefetch(const struct sched *sched, const struct flow *flow, const uint8_t id[16], bool lane_too);
void table_remove(struct sched *sched, struct lane *lane);
void table_free(struct sched *sched);

/* sched.c */
struct sched_sink *sink_of(struct sched *sched, uint32_t id);
struct flow *flow_of(struct sched *sched, uint32_t sink, uint32_t tenant);
struct lane *lane_of(struct sched *sched, const struct sched_place *place, uint64_t seq);
void place_of(const struct lane *lane, struct sched_place *out);
void unordered_id(uint64_t seq, uint8_t id[16]);
/* It is owed from now on, and no more. A replay's rows are old by nature: they do not count in how far the
 * sink is behind. */
void row_counts(struct sched_sink *sink, uint64_t seq, int64_t received_ms, uint32_t job);
void row_leaves(struct sched_sink *sink, uint64_t seq, uint32_t job);
void sink_arm(struct sched *sched, struct sched_sink *sink);
/* A change of a row, to be stored; `note` may be NULL for a row that was never tried. */
struct sched_action *say_row(struct sched *sched, const struct lane *lane, uint64_t seq,
                             const struct note *note, enum sched_row_state state, const char *cls);

/* lane.c */
struct lane *lane_make(struct sched *sched, struct flow *flow, bool ordered, const uint8_t id[16]);
struct lane_extra *lane_extra(struct sched *sched, struct lane *lane);
/* Before and after anything about a lane changes. lane_touch is enough when its head and its phase stay;
 * lane_settle may forget a lane that has nothing left: don't use it afterwards. */
void lane_leave(struct sched *sched, struct lane *lane);
void lane_touch(struct lane *lane);
void lane_settle(struct sched *sched, struct lane *lane);
/* Puts a row in or takes it out, of the lane's rows and of all sums; the lane must be left or touched. */
bool lane_put(struct sched *sched, struct lane *lane, uint64_t seq, int64_t received_ms);
/* Gives when the row was received. */
int64_t lane_take(struct sched *sched, struct lane *lane, uint64_t seq);
struct note *note_find(const struct lane *lane, uint64_t seq);
struct note *note_get(struct sched *sched, struct lane *lane, uint64_t seq);
void note_drop(struct sched *sched, struct note *note);
/* A lane that people were told about goes on. */
void lane_say_unblocked(struct sched *sched, struct note *note);
void lane_undead(struct lane *lane); /* one dead letter less */
void lanes_forget_idle(struct sched *sched);
/* What was just said of a row of it must be durable before it goes on. The lane must be left. */
void lane_await_durable(struct sched *sched, struct lane *lane);
bool lane_awaits_durable(const struct sched *sched, const struct lane *lane);
/* A receiver may have applied `seq` under the lane's key: all of the lane below it is late from now on, and
 * the store hears of that before it hears more of `seq`. The lane must be left. */
void lane_sent(struct sched *sched, struct lane *lane, uint64_t seq);
/* `seq` leaves the lane for good. What was found at the start may have been sent, and the next start will not
 * find it: dead letters below it are late. */
void lane_loses(struct sched *sched, struct lane *lane, uint64_t seq);
/* A row is a dead letter from now on. The lane must be left. */
void lane_bury(struct sched *sched, struct lane *lane, uint64_t seq, bool hold, const char *cls);

/* acts.c */
/* What was dead is owed again as if it were new: due at once, nothing spent. */
void note_renew(struct note *note);
/* A dead letter that holds its lane is owed again, with a fresh budget. The lane must be left. */
void lane_unhold(struct sched *sched, struct lane *lane, struct note *note, int64_t received_ms);

/* flow.c */
void flow_wake(struct sched *sched, struct flow *flow);
void flow_check(struct sched *sched, struct flow *flow);
void sink_release(struct sched *sched, struct sched_sink *sink);
bool sink_waits(const struct sched_sink *sink);
bool sink_is_short(const struct sched *sched, const struct sched_sink *sink);
/* A slot is taken or given back; sinks have come or gone. */
void slots_move(struct sched *sched, struct sched_sink *sink, int by);
void slots_share_out(struct sched *sched);
/* False: nothing is left, or nobody waits for it. */
bool slots_offer(struct sched *sched);
/* What its limits leave; and what it may start right now, gate and rate included. */
unsigned sink_slots(const struct sched *sched, const struct sched_sink *sink);
unsigned sink_free_slots(struct sched *sched, struct sched_sink *sink);
int64_t sink_tokens_due(const struct sched_sink *sink);

/* breaker.c */
struct breaker_record breaker_record(const struct sched *sched, const struct sched_sink *sink);
bool sink_open_for_all(const struct sched_sink *sink);
int64_t sink_stopped(const struct sched *sched, const struct sched_sink *sink);
void sink_stop_clock(struct sched *sched, struct sched_sink *sink);
void breaker_ok(struct sched *sched, struct sched_sink *sink, struct sched_run *run);
void breaker_failed(struct sched *sched, struct sched_sink *sink, struct sched_run *run,
                    const struct sched_outcome *outcome);
void breaker_refused(struct sched *sched, struct sched_sink *sink, struct sched_run *run);
void breaker_config(struct sched *sched, struct sched_sink *sink, struct sched_run *run);
void breaker_probe_vanished(struct sched *sched, struct sched_sink *sink, struct sched_run *run);
void breaker_tick(struct sched *sched, struct sched_sink *sink);
void breaker_close(struct sched *sched, struct sched_sink *sink, unsigned ramp);
void breaker_want_probe(struct sched *sched, struct sched_sink *sink);
/* The lane whose head a probe takes, out of its lists; NULL: nobody is there. */
struct lane *breaker_candidate(struct sched *sched, struct sched_sink *sink);
void sink_heads_due(struct sched *sched, struct sched_sink *sink, bool by_receiver_too);

/* retry.c */
int64_t retry_delay_ms(struct sched *sched, const struct retry_policy *policy, uint32_t attempts);
bool retry_exhausted(const struct sched *sched, const struct sched_sink *sink, const struct note *note);
int64_t note_waived_ms(const struct sched *sched, const struct sched_sink *sink, const struct note *note);

#endif
