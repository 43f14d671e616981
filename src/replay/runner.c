/* The runner's thread: jobs in turn, each a slice. First a job is planned: its window is looked at once, for
 * the lanes and the last row of each. Then, at its pace, slices of hooks become owed again: one transaction
 * of the store with the cursor, then into the scheduler, with the frontiers of the lanes. A lane is rewound
 * from the first row that the job made of it until the last one was made; from then on "the lowest unfinished
 * row goes first" is enough. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replay/replay_priv.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

enum {
    PLAN_HOOKS = 512, /* a turn */
    SLICE_HOOKS = 250,
    TURN_MS = 50,      /* between turns of jobs that have to wait */
    AGAIN_MS = 250,    /* after the scheduler or the store was not to be had */
    STRAYS_MAX = 1000, /* rows of lanes that nobody foresaw, before a new plan is made */
};

void job_free(struct job *job)
{
    lane_map_free(&job->map);
    VEC_FREE(&job->found);
    VEC_FREE(&job->strays);
    free(job);
}

/* ---- waiting ---- */

/* Under the lock. */
static void wait_ms(struct replays *replays, int64_t ms)
{
    int64_t until_ms = clock_mono_ms() + ms;
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    pthread_cond_timedwait(&replays->wake, &replays->lock, &until);
}

static bool pause_ms(struct replays *replays, int64_t ms)
{
    int64_t until_ms = clock_mono_ms() + ms;
    pthread_mutex_lock(&replays->lock);
    while (!replays->stop && clock_mono_ms() < until_ms)
        wait_ms(replays, until_ms - clock_mono_ms());
    bool stop = replays->stop;
    pthread_mutex_unlock(&replays->lock);
    return !stop;
}

static void say(struct replays *replays, struct job *job, const char *waits)
{
    pthread_mutex_lock(&replays->lock);
    job->waits = waits;
    job->lanes = job->map.all.len + job->strays.len;
    job->lanes_rewound = job->found.len + job->map.rewound + job->strays.len;
    pthread_mutex_unlock(&replays->lock);
}

/* ---- frontiers ---- */

/* What goes into the scheduler at one moment, rows first; then more rewinds. */
struct batch {
    VEC(struct lanes_row) rows;
    VEC(struct lanes_rewind) rewinds;
};

static void batch_free(struct batch *batch)
{
    VEC_FREE(&batch->rows);
    VEC_FREE(&batch->rewinds);
}

static void batch_rewind(struct batch *batch, const struct map_lane *lane, uint64_t frontier)
{
    struct lanes_rewind *rewind = VEC_ADD(&batch->rewinds);
    *rewind =
        (struct lanes_rewind){.lane = {.sink = lane->sink, .tenant = lane->tenant}, .frontier = frontier};
    memcpy(rewind->lane.lane, lane->lane, sizeof rewind->lane.lane);
}

/* The store has it already, so it is tried until it is done, or the next start does it. */
static bool batch_send(struct replays *replays, uint32_t number, const struct batch *batch)
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
        else if (answer == LANES_DRAINING || !pause_ms(replays, AGAIN_MS))
            return false;
        else
            continue;
        if (sent == batch->rewinds.len)
            return true;
    } while (true);
}

/* Everything that the job holds back goes on. */
static bool let_go(struct replays *replays, struct job *job)
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

/* ---- the plan ---- */

static void plan_row(void *ctx, const struct slice_row *row)
{
    struct job *job = ctx;
    if (!row->row.ordered)
        return;
    struct map_lane lane = {.sink = row->sink->id, .tenant = row->tenant, .last = row->row.seq};
    memcpy(lane.lane, row->row.lane, sizeof lane.lane);
    lane_map_add(&job->map, &lane);
}

/* Lanes of an earlier life that have no row to come go on; the others stay where they are. */
static void plan_made(struct replays *replays, struct job *job)
{
    struct batch batch = {0};
    lane_map_sort(&job->map);
    VEC_EACH (found, &job->found) {
        struct map_lane *lane = lane_map_find(&job->map, found->sink, found->tenant, found->lane);
        if (lane && !lane->rewound) {
            lane->rewound = true;
            job->map.rewound++;
        } else if (!lane) {
            batch_rewind(&batch, found, UINT64_MAX);
        }
    }
    job->found.len = 0;
    if (batch.rewinds.len > 0)
        batch_send(replays, job->is.number, &batch);
    batch_free(&batch);
    pthread_mutex_lock(&replays->lock);
    job->planned = true;
    pthread_mutex_unlock(&replays->lock);
    say(replays, job, NULL);
}

static void end_as(struct replays *replays, struct job *job, enum replay_state state, const char *why);

/* Whoever made the configuration other than it was has moved keys to lanes that nobody foresaw. */
static void plan_again(struct replays *replays, struct job *job, uint64_t cursor)
{
    VEC_EACH (lane, &job->map.all)
        if (lane->rewound)
            VEC_PUSH(&job->found, *lane);
    VEC_EACH (lane, &job->strays)
        VEC_PUSH(&job->found, *lane);
    lane_map_free(&job->map);
    job->strays.len = 0;
    job->plan_at = cursor;
    pthread_mutex_lock(&replays->lock);
    job->planned = false;
    pthread_mutex_unlock(&replays->lock);
}

static enum status plan(struct replays *replays, struct job *job)
{
    struct slice slice;
    uint64_t seq;
    bool end = false;
    uint64_t at = job->plan_at;
    enum status status = slice_open(&slice, replays, replays->reader, &job->is, &at, PLAN_HOOKS, &end);
    while (status == STATUS_OK)
        status = slice_next(&slice, &seq, plan_row, job);
    slice_let_go(&slice);
    uint64_t first = slice.seqs.len ? slice.seqs.at[0] : 0;
    slice_close(&slice);
    if (status != STATUS_NOT_FOUND)
        return status; /* the same again: what was added twice counts once */
    if (!job->begins)
        job->begins = first;
    job->plan_at = at;
    if (job->map.full) {
        plan_again(replays, job, job->is.cursor);
        job->too_wide = true;
        end_as(replays, job, REPLAY_PAUSED,
               "it would rewind more than 1000000 lanes; cancel it, and narrow its window");
        return STATUS_FULL;
    }
    if (end)
        plan_made(replays, job);
    return STATUS_OK;
}

/* ---- a slice is made ---- */

/* A step on its way; whoever gives up on it leaves it to whom it comes back. */
struct making {
    struct store_replay_step step;
    struct replays *replays;
    struct slice slice;
    VEC(struct slice_row) rows;
    VEC(struct store_replay_row) stored;
    bool over, durable, abandoned; /* under the lock */
};

static void making_free(struct making *making)
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

static void take_row(void *ctx, const struct slice_row *row)
{
    struct making *making = ctx;
    VEC_PUSH(&making->rows, *row);
}

/* Hooks as long as their rows fit. */
static enum status gather(struct making *making, uint64_t after, bool end)
{
    enum status status = STATUS_OK;
    uint64_t seq;
    making->step.cursor = after;
    while (making->rows.len + making->slice.sink_count <= LANES_REPLAY_MAX &&
           (status = slice_next(&making->slice, &seq, take_row, making)) == STATUS_OK)
        making->step.hooks++;
    if (status == STATUS_OK) /* it is full: the rest is the next one's */
        making->step.cursor = seq;
    else if (status == STATUS_NOT_FOUND && end)
        making->step.cursor = making->slice.replay->last;
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static bool wait_durable(struct replays *replays, struct making *making)
{
    pthread_mutex_lock(&replays->lock);
    while (!making->over && !replays->stop)
        wait_ms(replays, 1000);
    making->abandoned = !making->over;
    bool durable = making->over && making->durable, abandoned = making->abandoned;
    pthread_mutex_unlock(&replays->lock);
    if (!durable && !abandoned)
        making_free(making);
    return durable;
}

static void rewind_for(struct job *job, const struct store_replay_row *row, const struct slice_row *of,
                       uint64_t cursor, struct batch *batch)
{
    struct map_lane *lane = lane_map_find(&job->map, row->sink, of->tenant, row->lane);
    struct map_lane stray = {.sink = row->sink, .tenant = of->tenant, .rewound = true};
    if (!lane) {
        memcpy(stray.lane, row->lane, sizeof stray.lane);
        VEC_PUSH(&job->strays, stray);
        batch_rewind(batch, &stray, row->seq);
    } else if (lane->last > cursor) {
        job->map.rewound += !lane->rewound;
        lane->rewound = true;
        batch_rewind(batch, lane, row->seq);
    }
}

/* Rows that were made go into the scheduler, with the frontiers of their lanes; lanes whose last row is made
 * are let go. */
static bool hand_over(struct replays *replays, struct job *job, struct making *making)
{
    struct batch batch = {0};
    for (size_t i = 0; i < making->stored.len; i++) {
        const struct store_replay_row *row = &making->stored.at[i];
        const struct slice_row *of = &making->rows.at[i];
        if (!row->made)
            continue;
        struct lanes_row *out = VEC_ADD(&batch.rows);
        *out = (struct lanes_row){.seq = row->seq,
                                  .sink = row->sink,
                                  .tenant = of->tenant,
                                  .state = row->was < 0 ? ROW_DONE : (enum row_state)row->was,
                                  .ordered = row->ordered,
                                  .received_ms = of->received_ms};
        memcpy(out->lane, row->lane, sizeof out->lane);
        if (row->ordered)
            rewind_for(job, row, of, making->step.cursor, &batch);
    }
    for (struct map_lane *lane; (lane = lane_map_pass(&job->map, making->step.cursor));) {
        if (!lane->rewound)
            continue;
        lane->rewound = false;
        job->map.rewound--;
        batch_rewind(&batch, lane, UINT64_MAX);
    }
    bool sent = batch.rows.len + batch.rewinds.len == 0 || batch_send(replays, job->is.number, &batch);
    batch_free(&batch);
    return sent;
}

/* `more`: there is no reason to wait before the next one. */
static enum status make(struct replays *replays, struct job *job, const struct store_replay *is, size_t hooks,
                        bool *more)
{
    struct making *making = mem_zalloc(sizeof *making);
    uint64_t after = job->begins > is->cursor ? job->begins - 1 : is->cursor;
    bool end = false;
    making->replays = replays;
    making->step.number = is->number;
    making->step.done = step_done;
    making->step.ctx = making;
    enum status status = slice_open(&making->slice, replays, replays->reader, is, &after, hooks, &end);
    if (status == STATUS_OK)
        status = gather(making, after, end);
    slice_let_go(&making->slice);
    if (status != STATUS_OK) {
        making_free(making);
        return status;
    }
    VEC_EACH (row, &making->rows)
        VEC_PUSH(&making->stored, row->row);
    making->step.rows = making->stored.at;
    making->step.count = making->stored.len;
    job->tokens -= (double)making->step.hooks;
    uint64_t cursor = making->step.cursor;
    *more = job->tokens >= 1 || making->step.hooks == 0;
    store_step_replay(replays->options.store, &making->step);
    if (!wait_durable(replays, making))
        return STATUS_UNAVAILABLE;
    hand_over(replays, job, making);
    pthread_mutex_lock(&replays->lock);
    job->is.cursor = cursor;
    pthread_mutex_unlock(&replays->lock);
    making_free(making);
    if (job->strays.len >= STRAYS_MAX)
        plan_again(replays, job, cursor);
    return STATUS_OK;
}

/* ---- a turn of one job ---- */

static bool take_counts(void *ctx, const struct store_replay *replay)
{
    struct store_replay *out = ctx;
    *out = *replay;
    return false;
}

/* How far the sink of the job that is furthest behind is, in what is not a replay's. */
static int64_t lag_ms(struct replays *replays, const struct store_replay *is)
{
    const struct lanes_sink *sinks;
    size_t count;
    int64_t oldest_ms = INT64_MAX, now_ms = clock_unix_ms();
    void *held = replays->options.hold(replays->options.ctx, &sinks, &count);
    struct lanes_sink_view *views = mem_zalloc((count + 1) * sizeof *views);
    size_t seen = lanes_sinks(replays->options.lanes, views, count);
    for (size_t i = 0; i < seen; i++)
        for (size_t k = 0; k < count; k++)
            if (views[i].id == sinks[k].id && replay_takes_sink(is, &sinks[k]) && views[i].oldest_ms > 0 &&
                views[i].oldest_ms < oldest_ms)
                oldest_ms = views[i].oldest_ms;
    replays->options.let_go(held);
    free(views);
    return oldest_ms == INT64_MAX ? 0 : now_ms - oldest_ms;
}

/* Hooks' worth of tokens; a fifth of a second's at most, so that a pause is no debt. */
static size_t tokens(struct job *job, int64_t rate)
{
    int64_t now_ms = clock_mono_ms();
    double most = (double)rate / 5 > 1 ? (double)rate / 5 : 1;
    job->tokens += (double)(now_ms - job->tokens_at_ms) * (double)rate / 1000;
    job->tokens_at_ms = now_ms;
    if (job->tokens > most)
        job->tokens = most;
    if (job->tokens < 1)
        return 0;
    return job->tokens < SLICE_HOOKS ? (size_t)job->tokens : SLICE_HOOKS;
}

static const char *why_wait(struct replays *replays, const struct store_replay *is)
{
    struct store_stats stats;
    store_stats(replays->options.store, &stats);
    if (!store_writes(replays->options.store))
        return "store";
    if (stats.backlog_full)
        return "backlog_full";
    if (stats.disk_full)
        return "disk_full";
    if (is->made - is->done - is->dead - is->given_up >= REPLAY_OUTSTANDING_MAX)
        return "outstanding";
    if (is->max_lag_ms > 0 && lag_ms(replays, is) > is->max_lag_ms)
        return "lag";
    return NULL;
}

/* Whoever asked for another state meanwhile is right. */
static void end_as(struct replays *replays, struct job *job, enum replay_state state, const char *why)
{
    char id[UUID_TEXT];
    pthread_mutex_lock(&replays->lock);
    bool still = job->is.state == REPLAY_RUNNING;
    if (still) {
        job->is.state = state;
        job->is.changed_ms = clock_unix_ms();
        snprintf(job->is.why, sizeof job->is.why, "%s", why);
        store_put_replay(replays->options.store, &job->is);
    }
    uuid_format(&job->is.id, id);
    pthread_mutex_unlock(&replays->lock);
    if (still)
        log_event(state == REPLAY_PAUSED ? LOG_WARN : LOG_INFO,
                  state == REPLAY_PAUSED ? "replay_paused" : "replay_done", LOG_STR("id", id),
                  LOG_STR("why", why));
}

static enum status run(struct replays *replays, struct job *job, int64_t rate, bool *more)
{
    struct store_replay is = {0};
    enum status status =
        store_list_replays(replays->reader, job->is.number, job->is.number, take_counts, &is);
    if (status != STATUS_OK || is.number != job->is.number)
        return status;
    if (is.dead_run >= REPLAY_DEAD_RUN && is.state == REPLAY_RUNNING) {
        end_as(replays, job, REPLAY_PAUSED, "10 of its rows in a row died");
        return STATUS_OK;
    }
    if (is.cursor >= is.last) {
        bool over = is.made <= is.done + is.dead + is.given_up;
        say(replays, job, over ? NULL : "deliveries");
        if (over)
            end_as(replays, job, REPLAY_DONE, "");
        return STATUS_OK;
    }
    const char *waits = why_wait(replays, &is);
    say(replays, job, waits);
    size_t hooks = waits ? 0 : tokens(job, rate);
    return hooks > 0 ? make(replays, job, &is, hooks, more) : STATUS_OK;
}

/* True: it has more to do at once. */
static bool job_turn(struct replays *replays, struct job *job)
{
    pthread_mutex_lock(&replays->lock);
    enum replay_state state = job->is.state;
    int64_t rate = job->is.rate;
    bool planned = job->planned, more = false;
    pthread_mutex_unlock(&replays->lock);
    bool tries = state == REPLAY_RUNNING || (state == REPLAY_PAUSED && !job->too_wide);
    if (!planned && tries)
        return plan(replays, job) == STATUS_OK;
    if (state == REPLAY_RUNNING)
        run(replays, job, rate, &more);
    else if (state == REPLAY_PAUSED)
        say(replays, job, "paused");
    return more;
}

/* Jobs that are over leave, when nothing waits for them any more. */
static void sweep(struct replays *replays)
{
    struct list over = LIST_INIT(over);
    pthread_mutex_lock(&replays->lock);
    LIST_EACH_SAFE (node, &replays->jobs) {
        if (job_is_active(LIST_OWNER(node, struct job, node)))
            continue;
        list_remove(node);
        list_append(&over, node);
    }
    pthread_mutex_unlock(&replays->lock);
    for (struct list *node; (node = list_pop(&over));) {
        struct job *job = LIST_OWNER(node, struct job, node);
        let_go(replays, job);
        job_free(job);
    }
}

/* The job behind `job` in the list; the first one behind NULL. Only the runner takes jobs out. */
static struct job *next_job(struct replays *replays, struct job *job)
{
    pthread_mutex_lock(&replays->lock);
    struct list *node = job ? job->node.next : replays->jobs.next;
    bool end = node == &replays->jobs || replays->stop;
    pthread_mutex_unlock(&replays->lock);
    return end ? NULL : LIST_OWNER(node, struct job, node);
}

void *runner_main(void *arg)
{
    struct replays *replays = arg;
    pthread_mutex_lock(&replays->lock);
    while (!replays->stop) {
        bool more = false, idle = list_empty(&replays->jobs);
        if (idle) {
            pthread_cond_wait(&replays->wake, &replays->lock);
            continue;
        }
        pthread_mutex_unlock(&replays->lock);
        for (struct job *job = NULL; (job = next_job(replays, job));)
            more |= job_turn(replays, job);
        sweep(replays);
        pthread_mutex_lock(&replays->lock);
        if (!more && !replays->stop)
            wait_ms(replays, TURN_MS);
    }
    pthread_mutex_unlock(&replays->lock);
    return NULL;
}
