/* What operators ask for, on its way into the scheduler. A command lies on the stack of the thread that asks,
 * which waits for its answer. The lanes thread takes all that wait at once, does them, hands the changes of
 * rows to the store, and only then answers: whoever was answered finds what he did behind a store_flush. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "lanes/lanes_priv.h"
#include "util/check.h"
#include "util/clock.h"

/* ---- asking, on any thread ---- */

static struct timespec moment(int64_t at_ms)
{
    return (struct timespec){.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000};
}

bool command_do(struct lanes *lanes, struct command *command, enum lanes_answer *why_not)
{
    pthread_mutex_lock(&lanes->act_lock);
    bool closed = lanes->acts_closed || atomic_load(&lanes->quiesced);
    if (!closed)
        list_append(&lanes->commands, &command->node);
    pthread_mutex_unlock(&lanes->act_lock);
    *why_not = LANES_DRAINING;
    if (closed)
        return false;

    lanes_wake(lanes);
    struct timespec until = moment(clock_mono_ms() + LANES_ACT_TIMEOUT_MS);
    pthread_mutex_lock(&lanes->act_lock);
    bool in_time = true;
    while (command->state == COMMAND_WAITS && in_time)
        in_time = pthread_cond_timedwait(&lanes->act_cond, &lanes->act_lock, &until) != ETIMEDOUT;
    if (command->state == COMMAND_WAITS) {
        list_remove(&command->node);
        command->state = COMMAND_REFUSED;
        *why_not = LANES_BUSY;
    }
    while (command->state == COMMAND_TAKEN) /* it is being done: short */
        pthread_cond_wait(&lanes->act_cond, &lanes->act_lock);
    bool done = command->state == COMMAND_DONE;
    pthread_mutex_unlock(&lanes->act_lock);
    return done;
}

void place_in(struct sched_place *place, uint32_t sink, uint32_t tenant, bool ordered, const uint8_t lane[16])
{
    *place = (struct sched_place){.sink = sink, .tenant = tenant, .ordered = ordered};
    if (ordered)
        memcpy(place->lane, lane, sizeof place->lane);
}

/* Lanes thread. False when nothing is known of the lane. */
static bool find_lane(struct lanes *lanes, const struct lanes_lane *lane, struct sched_place *place)
{
    VEC_EACH (sink, &lanes->sinks) {
        if (sink->state == SINK_GONE || (lane->sink != LANES_SINK_ANY && lane->sink != sink->is.id))
            continue;
        place_in(place, sink->is.id, lane->tenant, true, lane->lane);
        if (sched_lane_known(lanes->sched, place))
            return true;
    }
    return false;
}

static enum lanes_answer answer_of(enum sched_answer answer)
{
    switch (answer) {
    case SCHED_DONE:
        return LANES_DONE;
    case SCHED_NOT_FOUND:
        return LANES_NOT_FOUND;
    case SCHED_HEAD_CHANGED:
        return LANES_HEAD_CHANGED;
    case SCHED_IN_FLIGHT:
        return LANES_IN_FLIGHT;
    case SCHED_NOTHING:
        return LANES_NOTHING;
    case SCHED_FULL:
        return LANES_FULL;
    }
    UNREACHABLE();
}

const char *lanes_answer_name(enum lanes_answer answer)
{
    static const char *const names[] = {
#define LANES_ANSWER_NAME(id, name) [LANES_##id] = name,
        LANES_ANSWERS(LANES_ANSWER_NAME)
#undef LANES_ANSWER_NAME
    };
    return names[answer];
}

/* ---- lanes ---- */

struct lane_command {
    struct command command;
    const struct lanes_lane *lane;
    enum lanes_lane_act act;
    uint64_t expect_head;
    enum sched_answer answer;
};

static enum sched_answer act_on_lane(struct lanes *lanes, const struct lane_command *ask,
                                     const struct sched_place *place)
{
    struct sched_time now = lanes_now();
    switch (ask->act) {
    case LANES_LANE_PAUSE:
        return sched_lane_pause(lanes->sched, now, place);
    case LANES_LANE_RESUME:
        return sched_lane_resume(lanes->sched, now, place);
    case LANES_LANE_RETRY:
        return sched_lane_retry(lanes->sched, now, place, ask->expect_head);
    case LANES_LANE_SKIP:
        return sched_lane_skip(lanes->sched, now, place, ask->expect_head);
    }
    UNREACHABLE();
}

static void do_lane_act(struct lanes *lanes, struct command *command)
{
    struct lane_command *ask = LIST_OWNER(command, struct lane_command, command);
    const struct lanes_lane *lane = ask->lane;
    struct sched_place place;
    bool found = find_lane(lanes, lane, &place);
    if (!found && ask->act == LANES_LANE_PAUSE && lanes_sink_entry(lanes, lane->sink)) {
        place_in(&place, lane->sink, lane->tenant, true, lane->lane);
        found = true;
    }
    ask->answer = found ? act_on_lane(lanes, ask, &place) : SCHED_NOT_FOUND;
}

enum lanes_answer lanes_lane_act(struct lanes *lanes, const struct lanes_lane *lane, enum lanes_lane_act act,
                                 uint64_t expect_head)
{
    struct lane_command ask = {
        .command = {.run = do_lane_act}, .lane = lane, .act = act, .expect_head = expect_head};
    enum lanes_answer why_not;
    return command_do(lanes, &ask.command, &why_not) ? answer_of(ask.answer) : why_not;
}

struct rows_command {
    struct command command;
    const struct lanes_lane *lane;
    struct lane_view *view;
    uint64_t *seqs;
    size_t most, count;
    bool found;
};

static void do_lane_rows(struct lanes *lanes, struct command *command)
{
    struct rows_command *ask = LIST_OWNER(command, struct rows_command, command);
    struct sched_place place;
    if (!find_lane(lanes, ask->lane, &place))
        return;
    ask->found = sched_lane_look(lanes->sched, lanes_now(), &place, ask->view);
    ask->count = sched_lane_rows(lanes->sched, &place, ask->seqs, ask->most);
}

enum lanes_answer lanes_lane_look(struct lanes *lanes, const struct lanes_lane *lane, struct lane_view *view,
                                  uint64_t *seqs, size_t most, size_t *count)
{
    CHECK(most <= LANES_ROWS_MAX);
    struct rows_command ask = {
        .command = {.run = do_lane_rows}, .lane = lane, .view = view, .seqs = seqs, .most = most};
    enum lanes_answer why_not;
    *count = 0;
    if (!command_do(lanes, &ask.command, &why_not))
        return why_not;
    *count = ask.count;
    return ask.found ? LANES_DONE : LANES_NOT_FOUND;
}

/* ---- sinks ---- */

struct sink_command {
    struct command command;
    uint32_t sink;
    enum lanes_sink_act act;
    int64_t for_ms;
    bool found;
};

static void do_sink_act(struct lanes *lanes, struct command *command)
{
    struct sink_command *ask = LIST_OWNER(command, struct sink_command, command);
    struct sched_time now = lanes_now();
    ask->found = lanes_sink_entry(lanes, ask->sink) != NULL;
    if (!ask->found)
        return;
    switch (ask->act) {
    case LANES_SINK_PAUSE:
        sched_sink_pause(lanes->sched, now, ask->sink, ask->for_ms);
        return;
    case LANES_SINK_RESUME:
        sched_sink_resume(lanes->sched, now, ask->sink);
        return;
    case LANES_SINK_RETRY:
        sched_sink_retry(lanes->sched, now, ask->sink);
        return;
    }
    UNREACHABLE();
}

enum lanes_answer lanes_sink_act(struct lanes *lanes, uint32_t sink, enum lanes_sink_act act, int64_t for_ms)
{
    struct sink_command ask = {.command = {.run = do_sink_act}, .sink = sink, .act = act, .for_ms = for_ms};
    enum lanes_answer why_not;
    if (!command_do(lanes, &ask.command, &why_not))
        return why_not;
    return ask.found ? LANES_DONE : LANES_NOT_FOUND;
}

/* ---- rows ---- */

struct bulk_command {
    struct command command;
    const struct lanes_row *rows;
    size_t count;
    enum lanes_answer *answers;
    enum sched_answer (*each)(struct lanes *lanes, const struct sched_place *place,
                              const struct lanes_row *row);
};

static enum sched_answer replay(struct lanes *lanes, const struct sched_place *place,
                                const struct lanes_row *row)
{
    struct sched_again again = {
        .seq = row->seq, .received_ms = row->received_ms, .dead = row->state == ROW_DEAD, .late = row->late};
    return sched_replay(lanes->sched, lanes_now(), place, &again);
}

static enum sched_answer discard(struct lanes *lanes, const struct sched_place *place,
                                 const struct lanes_row *row)
{
    return sched_discard(lanes->sched, lanes_now(), place, row->seq, row->state == ROW_DEAD);
}

static void do_rows(struct lanes *lanes, struct command *command)
{
    struct bulk_command *ask = LIST_OWNER(command, struct bulk_command, command);
    for (size_t i = 0; i < ask->count; i++) {
        const struct lanes_row *row = &ask->rows[i];
        struct sched_place place;
        place_in(&place, row->sink, row->tenant, row->ordered, row->lane);
        /* What is known of a sink that is gone should stay true. */
        bool known = ask->each != replay ? sched_sink_known(lanes->sched, row->sink)
                                         : lanes_sink_entry(lanes, row->sink) != NULL;
        ask->answers[i] = known ? answer_of(ask->each(lanes, &place, row)) : LANES_NOT_FOUND;
    }
}

static enum lanes_answer bulk(struct lanes *lanes, struct bulk_command *ask)
{
    CHECK(ask->count <= LANES_ROWS_MAX);
    ask->command = (struct command){.run = do_rows};
    enum lanes_answer why_not;
    return command_do(lanes, &ask->command, &why_not) ? LANES_DONE : why_not;
}

enum lanes_answer lanes_replay(struct lanes *lanes, const struct lanes_row *rows, size_t count,
                               enum lanes_answer *answers)
{
    return bulk(lanes,
                &(struct bulk_command){.rows = rows, .count = count, .answers = answers, .each = replay});
}

enum lanes_answer lanes_discard(struct lanes *lanes, const struct lanes_row *rows, size_t count,
                                enum lanes_answer *answers)
{
    return bulk(lanes,
                &(struct bulk_command){.rows = rows, .count = count, .answers = answers, .each = discard});
}

static enum sched_answer withdraw(struct lanes *lanes, const struct sched_place *place,
                                  const struct lanes_row *row)
{
    bool dead = row->state == ROW_DEAD || row->state == ROW_HELD;
    return sched_withdraw(lanes->sched, lanes_now(), place, row->seq, row->replay, dead,
                          row->state == ROW_HELD);
}

enum lanes_answer lanes_withdraw(struct lanes *lanes, const struct lanes_row *rows, size_t count,
                                 enum lanes_answer *answers)
{
    return bulk(lanes,
                &(struct bulk_command){.rows = rows, .count = count, .answers = answers, .each = withdraw});
}

/* ---- rekey ---- */

struct rekey_command {
    struct command command;
    uint32_t sink;
    const struct lanes_move *moves;
    size_t count;
    enum lanes_answer answer, *answers;
};

/* What is in memory of it would be delivered under the old key. */
static void forget_parcel(struct lanes *lanes, uint64_t seq, uint32_t sink)
{
    struct parcel_row *row = NULL;
    struct parcel *parcel = cache_find(lanes, seq, sink, &row);
    if (parcel)
        cache_row_done(lanes, parcel, row);
}

static enum sched_answer move(struct lanes *lanes, uint32_t sink, const struct lanes_move *row)
{
    struct sched_place from, to;
    place_in(&from, sink, row->tenant, row->from_ordered, row->from);
    place_in(&to, sink, row->tenant, row->to_ordered, row->to);
    enum sched_answer answer = sched_rekey(lanes->sched, lanes_now(), &from, row->seq, &to);
    if (answer != SCHED_DONE)
        return answer;
    forget_parcel(lanes, row->seq, sink);
    struct list before = LIST_INIT(before); /* what is said of the old lane is durable first */
    lanes_tell(lanes, &before);
    struct store_lane_move stored = {
        .seq = row->seq, .sink = sink, .ordered = row->to_ordered, .key = row->key};
    memcpy(stored.lane, row->to, sizeof stored.lane);
    store_move_row(lanes->options.store, &stored);
    return answer;
}

static void do_rekey(struct lanes *lanes, struct command *command)
{
    struct rekey_command *ask = LIST_OWNER(command, struct rekey_command, command);
    struct sched_sink_view view;
    ask->answer = LANES_NOT_FOUND;
    if (!lanes_sink_entry(lanes, ask->sink))
        return;
    sched_sink_look(lanes->sched, lanes_now(), ask->sink, &view);
    ask->answer = view.running > 0 ? LANES_IN_FLIGHT : LANES_DONE;
    for (size_t i = 0; i < ask->count && view.running == 0; i++)
        ask->answers[i] = answer_of(move(lanes, ask->sink, &ask->moves[i]));
}

enum lanes_answer lanes_rekey(struct lanes *lanes, uint32_t sink, const struct lanes_move *moves,
                              size_t count, enum lanes_answer *answers)
{
    CHECK(count <= LANES_ROWS_MAX);
    struct rekey_command ask = {
        .command = {.run = do_rekey}, .sink = sink, .moves = moves, .count = count, .answers = answers};
    enum lanes_answer why_not;
    return command_do(lanes, &ask.command, &why_not) ? ask.answer : why_not;
}

/* ---- erase ---- */

struct erase_command {
    struct command command;
    const struct lanes_row *rows;
    size_t count;
    enum lanes_answer answer;
};

static enum lanes_answer may_erase(struct lanes *lanes, const struct lanes_row *row)
{
    struct sched_place place;
    if (!sched_sink_known(lanes->sched, row->sink)) /* nobody's: the store alone has it */
        return LANES_DONE;
    place_in(&place, row->sink, row->tenant, row->ordered, row->lane);
    enum sched_answer answer = sched_may_discard(lanes->sched, &place, row->seq, row->state == ROW_DEAD);
    return answer == SCHED_NOT_FOUND ? LANES_NOTHING : answer_of(answer);
}

static void do_erase(struct lanes *lanes, struct command *command)
{
    struct erase_command *ask = LIST_OWNER(command, struct erase_command, command);
    ask->answer = LANES_DONE;
    for (size_t i = 0; i < ask->count && ask->answer == LANES_DONE; i++)
        ask->answer = may_erase(lanes, &ask->rows[i]);
    for (size_t i = 0; i < ask->count && ask->answer == LANES_DONE; i++) {
        const struct lanes_row *row = &ask->rows[i];
        struct sched_place place;
        if (!sched_sink_known(lanes->sched, row->sink))
            continue;
        place_in(&place, row->sink, row->tenant, row->ordered, row->lane);
        CHECK(discard(lanes, &place, row) == SCHED_DONE);
        forget_parcel(lanes, row->seq, row->sink);
    }
}

enum lanes_answer lanes_erase(struct lanes *lanes, const struct lanes_row *rows, size_t count)
{
    struct erase_command ask = {.command = {.run = do_erase}, .rows = rows, .count = count};
    enum lanes_answer why_not;
    return command_do(lanes, &ask.command, &why_not) ? ask.answer : why_not;
}

/* ---- doing, on the lanes thread ---- */

static void answer_all(struct lanes *lanes, struct list *taken, enum command_state state)
{
    for (struct list *node; (node = list_pop(taken));)
        LIST_OWNER(node, struct command, node)->state = state; /* and its memory is the asker's again */
    pthread_cond_broadcast(&lanes->act_cond);
}

void acts_run(struct lanes *lanes)
{
    struct list taken = LIST_INIT(taken), changes = LIST_INIT(changes);
    pthread_mutex_lock(&lanes->act_lock);
    list_splice(&taken, &lanes->commands);
    LIST_EACH (node, &taken)
        LIST_OWNER(node, struct command, node)->state = COMMAND_TAKEN;
    pthread_mutex_unlock(&lanes->act_lock);
    if (list_empty(&taken))
        return;
    LIST_EACH (node, &taken) {
        struct command *command = LIST_OWNER(node, struct command, node);
        command->run(lanes, command);
    }
    lanes_tell(lanes, &changes);
    lanes->expiry.given = store_given(lanes->options.store);
    lanes->dirty = true;
    pthread_mutex_lock(&lanes->act_lock);
    answer_all(lanes, &taken, COMMAND_DONE);
    pthread_mutex_unlock(&lanes->act_lock);
}

void acts_close(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->act_lock);
    lanes->acts_closed = true;
    answer_all(lanes, &lanes->commands, COMMAND_REFUSED);
    pthread_mutex_unlock(&lanes->act_lock);
}
