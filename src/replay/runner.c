/* The runner's thread: jobs in turn, each a slice. First a job is planned (plan.c); then, at its pace, slices
 * of stored hooks become owed again (make.c), or hooks in quarantine are let go (release.c). */
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
    SLICE_HOOKS = 250,
    TURN_MS = 50, /* between turns of jobs that have to wait */
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
void runner_wait_ms(struct replays *replays, int64_t ms)
{
    int64_t until_ms = clock_mono_ms() + ms;
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    pthread_cond_timedwait(&replays->wake, &replays->lock, &until);
}

bool runner_pause_ms(struct replays *replays, int64_t ms)
{
    int64_t until_ms = clock_mono_ms() + ms;
    pthread_mutex_lock(&replays->lock);
    while (!replays->stop && clock_mono_ms() < until_ms)
        runner_wait_ms(replays, until_ms - clock_mono_ms());
    bool stop = replays->stop;
    pthread_mutex_unlock(&replays->lock);
    return !stop;
}

void job_say(struct replays *replays, struct job *job, const char *waits)
{
    pthread_mutex_lock(&replays->lock);
    job->waits = waits;
    job->lanes = job->map.all.len + job->strays.len;
    job->lanes_rewound = job->found.len + job->map.rewound + job->strays.len;
    pthread_mutex_unlock(&replays->lock);
}

/* ---- a turn of one job ---- */

static bool take_counts(void *ctx, const struct store_replay *replay)
{
    struct store_replay *out = ctx;
    *out = *replay;
    return false;
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

static const char *why_wait(struct replays *replays, struct job *job, const struct store_replay *is)
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
    if (is->max_lag_ms > 0 && job_lags(replays, job, is))
        return "lag";
    return NULL;
}

void job_end(struct replays *replays, struct job *job, enum replay_state state, const char *why,
             uint64_t gone)
{
    char id[UUID_TEXT];
    pthread_mutex_lock(&replays->lock);
    bool still = job->is.state == REPLAY_RUNNING;
    if (still) {
        job->is.state = state;
        job->is.gone = gone;
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

/* All is made: over when all of that is delivered, or given up. */
static void wait_deliveries(struct replays *replays, struct job *job, const struct store_replay *is)
{
    char why[REPLAY_WHY_MAX] = "";
    bool over = is->made <= is->done + is->dead + is->given_up;
    job_say(replays, job, over ? NULL : "deliveries");
    if (!over)
        return;
    uint64_t gone = is->gone + (is->planned > is->hooks ? is->planned - is->hooks : 0);
    if (gone > 0)
        snprintf(why, sizeof why, "%llu of its %llu hooks were gone before it came to them",
                 (unsigned long long)gone, (unsigned long long)is->planned);
    job_end(replays, job, REPLAY_DONE, why, gone);
}

static enum status run(struct replays *replays, struct job *job, int64_t rate, bool *more)
{
    struct store_replay is = {0};
    enum status status =
        store_list_replays(replays->reader, job->is.number, job->is.number, take_counts, &is);
    if (status != STATUS_OK || is.number != job->is.number)
        return status;
    if (is.dead_run >= REPLAY_DEAD_RUN && is.state == REPLAY_RUNNING) {
        job_end(replays, job, REPLAY_PAUSED, "10 of its rows in a row died", is.gone);
        return STATUS_OK;
    }
    if (is.cursor >= is.last) {
        wait_deliveries(replays, job, &is);
        return STATUS_OK;
    }
    if (clock_mono_ms() < job->again_at_ms)
        return STATUS_OK; /* what it waits for was said */
    const char *waits = why_wait(replays, job, &is);
    job_say(replays, job, waits);
    size_t hooks = waits ? 0 : tokens(job, rate);
    if (hooks == 0)
        return STATUS_OK;
    bool pen = is.from == REPLAY_FROM_PEN;
    if (!replay_has_sink(replays, &is)) {
        job_end(replays, job, REPLAY_PAUSED,
                pen ? "no configured source is it any more; mend that, or cancel it"
                    : "no configured sink is its any more; mend that, or cancel it",
                is.gone);
        return STATUS_OK;
    }
    return (pen ? release_hooks : make_hooks)(replays, job, &is, hooks, more);
}

/* True: it has more to do at once. */
static bool job_turn(struct replays *replays, struct job *job)
{
    pthread_mutex_lock(&replays->lock);
    enum replay_state state = job->is.state;
    int64_t rate = job->is.rate;
    bool replan = job->plans != replays->plans && job->is.from == REPLAY_FROM_HOOKS;
    job->plans = replays->plans;
    uint64_t cursor = job->is.cursor;
    bool planned = job->planned && !replan, pen = job->is.from == REPLAY_FROM_PEN, more = false;
    pthread_mutex_unlock(&replays->lock);
    if (replan)
        plan_again(replays, job, cursor);
    bool tries = state == REPLAY_RUNNING || (state == REPLAY_PAUSED && !job->too_wide);
    if (!planned && tries)
        return (pen ? plan_pen : plan_hooks)(replays, job) == STATUS_OK;
    if (state == REPLAY_RUNNING)
        run(replays, job, rate, &more);
    else if (state == REPLAY_PAUSED)
        job_say(replays, job, "paused");
    return more;
}

/* A job that is over lets its lanes go, and leaves when nothing of it is owed any more. */
static void sweep(struct replays *replays, struct job *job)
{
    bool cancelled = job->is.state == REPLAY_CANCELLED;
    bool over = !cancelled || job_withdraw(replays, job);
    if (!job->let_go)
        job->let_go = job_let_go(replays, job);
    if (!over)
        return;
    pthread_mutex_lock(&replays->lock);
    list_remove(&job->node);
    pthread_mutex_unlock(&replays->lock);
    job_free(job);
}

/* The first of them that was not at turn in this round; NULL: none is left. Those that are over come first,
 * so that what they hold is free before others begin. Only the runner takes jobs out. */
static struct job *next_job(struct replays *replays, uint64_t round)
{
    struct job *next = NULL;
    pthread_mutex_lock(&replays->lock);
    LIST_EACH (node, &replays->jobs) {
        struct job *job = LIST_OWNER(node, struct job, node);
        if (job->round != round && (!next || (job_is_active(next) && !job_is_active(job))))
            next = job;
    }
    if (next)
        next->round = round;
    bool stop = replays->stop, active = next && job_is_active(next);
    if (next)
        next->ends = !active;
    pthread_mutex_unlock(&replays->lock);
    return stop ? NULL : next;
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
        replays->busy = true;
        pthread_mutex_unlock(&replays->lock);
        for (struct job *job; (job = next_job(replays, replays->round + 1));) {
            if (job->ends)
                sweep(replays, job);
            else
                more |= job_turn(replays, job);
        }
        pthread_mutex_lock(&replays->lock);
        replays->busy = false;
        replays->round++;
        pthread_cond_broadcast(&replays->wake);
        if (!more && !replays->stop)
            runner_wait_ms(replays, TURN_MS);
    }
    pthread_mutex_unlock(&replays->lock);
    return NULL;
}
