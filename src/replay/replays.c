/* Jobs begin, change and are found again after a restart. What moves them on is runner.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/replay_priv.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/thread.h"

/* ---- what belongs together ---- */

bool job_is_active(const struct job *job)
{
    return job->is.state == REPLAY_RUNNING || job->is.state == REPLAY_PAUSED;
}

bool replay_takes_sink(const struct store_replay *replay, const struct lanes_sink *sink)
{
    return (!*replay->source || strcmp(replay->source, sink->source) == 0) &&
           (!*replay->sink || strcmp(replay->sink, sink->name) == 0);
}

/* As it was said: who says "2h" twice means the same. */
static bool same_time(int64_t a_ms, const char *a_text, int64_t b_ms, const char *b_text)
{
    return *a_text || *b_text ? strcmp(a_text, b_text) == 0 : a_ms == b_ms;
}

static bool is_same(const struct store_replay *a, const struct store_replay *b)
{
    return a->from == b->from && strcmp(a->tenant, b->tenant) == 0 && strcmp(a->source, b->source) == 0 &&
           strcmp(a->sink, b->sink) == 0 && strcmp(a->failure, b->failure) == 0 &&
           same_time(a->since_ms, a->since_text, b->since_ms, b->since_text) &&
           same_time(a->until_ms, a->until_text, b->until_ms, b->until_text);
}

static bool both_take(const char *a, const char *b)
{
    return !*a || !*b || strcmp(a, b) == 0;
}

/* A lane has one frontier: it is rewound by one job at a time. What is in quarantine leaves it once. */
static bool may_meet(const struct store_replay *a, const struct store_replay *b)
{
    return a->from == b->from && both_take(a->failure, b->failure) && both_take(a->tenant, b->tenant) &&
           both_take(a->source, b->source) && both_take(a->sink, b->sink);
}

/* ---- beginning ---- */

bool replay_has_sink(struct replays *replays, const struct store_replay *replay)
{
    const struct lanes_sink *sinks;
    size_t count;
    bool any = false;
    void *held = replays->options.hold(replays->options.ctx, &sinks, &count);
    for (size_t i = 0; i < count; i++)
        any |= replay_takes_sink(replay, &sinks[i]);
    replays->options.let_go(held);
    return any;
}

/* Under the lock. */
static enum replay_answer judge(struct replays *replays, struct store_replay *replay)
{
    size_t active = 0;
    LIST_EACH (node, &replays->jobs) {
        const struct job *job = LIST_OWNER(node, struct job, node);
        if (!job_is_active(job))
            continue;
        active++;
        bool same = is_same(&job->is, replay);
        if (same || may_meet(&job->is, replay)) {
            *replay = job->is;
            return same ? REPLAY_SAME : REPLAY_OVERLAPS;
        }
    }
    return active < REPLAYS_ACTIVE_MAX ? REPLAY_OK : REPLAY_TOO_MANY;
}

static struct job *job_new(const struct store_replay *replay, uint64_t plans)
{
    struct job *job = mem_zalloc(sizeof *job);
    job->is = *replay;
    job->waits = "planning";
    job->plans = plans;
    job->plan_at = replay->cursor;
    job->tokens_at_ms = clock_mono_ms();
    return job;
}

/* Under the lock. */
static void begin(struct replays *replays, struct store_replay *replay)
{
    struct store_stats stats;
    store_stats(replays->options.store, &stats);
    replay->number = ++replays->last_number;
    replay->state = REPLAY_RUNNING;
    replay->created_ms = replay->changed_ms = clock_unix_ms();
    replay->id = uuid_new(replay->created_ms);
    bool pen = replay->from == REPLAY_FROM_PEN;
    replay->first = pen ? stats.next_seq : 0; /* what it lets go has no lower seq */
    replay->last = pen ? INT64_MAX : stats.next_seq - 1;
    lanes_replay_known(replays->options.lanes, replay->number, &replay->id);
    store_put_replay(replays->options.store, replay);
    list_append(&replays->jobs, &job_new(replay, replays->plans)->node);
    pthread_cond_broadcast(&replays->wake);
}

static void log_job(const char *event, const struct store_replay *replay)
{
    char id[UUID_TEXT];
    uuid_format(&replay->id, id);
    log_event(LOG_INFO, event, LOG_STR("id", id), LOG_STR("state", replay_state_name(replay->state)),
              LOG_INT("rate", replay->rate), LOG_STR("who", replay->who));
}

enum replay_answer replays_begin(struct replays *replays, struct store_replay *replay)
{
    if (!replay_has_sink(replays, replay))
        return REPLAY_NO_SINK;
    pthread_mutex_lock(&replays->lock);
    enum replay_answer answer = replays->stop ? REPLAY_UNAVAILABLE : judge(replays, replay);
    if (answer == REPLAY_OK)
        begin(replays, replay);
    pthread_mutex_unlock(&replays->lock);
    if (answer == REPLAY_OK) {
        log_job("replay_started", replay);
        answer = store_flush(replays->options.store) ? REPLAY_OK : REPLAY_UNAVAILABLE;
    }
    return answer;
}

/* ---- changing ---- */

/* Under the lock. */
static struct job *find(struct replays *replays, const struct uuid *id)
{
    LIST_EACH (node, &replays->jobs) {
        struct job *job = LIST_OWNER(node, struct job, node);
        if (memcmp(&job->is.id, id, sizeof *id) == 0 && job_is_active(job))
            return job;
    }
    return NULL;
}

static void set(struct replays *replays, struct job *job, int state, int64_t rate)
{
    if (rate > 0)
        job->is.rate = rate;
    if (state >= 0 && state != (int)job->is.state) {
        job->is.state = (enum replay_state)state;
        job->is.dead_run = 0;
        snprintf(job->is.why, sizeof job->is.why, "%s",
                 state == REPLAY_PAUSED ? "an operator paused it" : "");
    }
    job->is.changed_ms = clock_unix_ms();
    store_put_replay(replays->options.store, &job->is);
    pthread_cond_broadcast(&replays->wake);
}

enum replay_answer replays_set(struct replays *replays, const struct uuid *id, int state, int64_t rate,
                               struct store_replay *replay)
{
    pthread_mutex_lock(&replays->lock);
    bool stop = replays->stop;
    struct job *job = stop ? NULL : find(replays, id);
    if (job) {
        set(replays, job, state, rate);
        *replay = job->is;
    }
    pthread_mutex_unlock(&replays->lock);
    if (!job)
        return stop ? REPLAY_UNAVAILABLE : REPLAY_NOT_FOUND;
    log_job("replay_changed", replay);
    return store_flush(replays->options.store) ? REPLAY_OK : REPLAY_UNAVAILABLE;
}

bool replays_look(struct replays *replays, uint32_t number, struct replay_look *out)
{
    bool found = false;
    pthread_mutex_lock(&replays->lock);
    LIST_EACH (node, &replays->jobs) {
        const struct job *job = LIST_OWNER(node, struct job, node);
        if (job->is.number != number || !job_is_active(job))
            continue;
        found = true;
        *out = (struct replay_look){job->waits, job->planned, job->lanes, job->lanes_rewound};
    }
    pthread_mutex_unlock(&replays->lock);
    return found;
}

/* ---- another configuration ---- */

/* The runner takes the new configuration for its next slice; what it is at was begun under the old one. */
bool replays_reloaded(struct replays *replays, bool other_lanes, int64_t until_ms)
{
    pthread_mutex_lock(&replays->lock);
    replays->plans += other_lanes;
    uint64_t round = replays->round + 1;
    while (replays->running && replays->busy && replays->round < round && !replays->stop &&
           clock_mono_ms() < until_ms)
        runner_wait_ms(replays, until_ms - clock_mono_ms());
    bool settled = !replays->running || !replays->busy || replays->round >= round;
    pthread_cond_broadcast(&replays->wake);
    pthread_mutex_unlock(&replays->lock);
    return settled;
}

/* ---- life ---- */

struct finding {
    struct replays *replays;
    struct job *job;
};

static void rewind_found(void *ctx, uint32_t sink, uint32_t tenant, const uint8_t lane[16])
{
    struct finding *finding = ctx;
    struct map_lane found = {.sink = sink, .tenant = tenant, .rewound = true};
    struct lanes_rewind rewind = {.lane = {.sink = sink, .tenant = tenant},
                                  .frontier = finding->job->is.cursor};
    memcpy(found.lane, lane, sizeof found.lane);
    memcpy(rewind.lane.lane, lane, sizeof rewind.lane.lane);
    VEC_PUSH(&finding->job->found, found);
    lanes_rewind_restore(finding->replays->options.lanes, &rewind);
}

static bool find_job(void *ctx, const struct store_replay *replay)
{
    struct replays *replays = ctx;
    if (replay->number > replays->last_number)
        replays->last_number = replay->number;
    lanes_replay_known(replays->options.lanes, replay->number, &replay->id);
    bool owes =
        replay->state == REPLAY_CANCELLED &&
        replay->made > replay->done + replay->dead + replay->given_up; /* it was killed at taking it back */
    if (replay->state == REPLAY_RUNNING || replay->state == REPLAY_PAUSED || owes)
        list_append(&replays->jobs, &job_new(replay, replays->plans)->node);
    return true;
}

static enum status find_jobs(struct replays *replays)
{
    enum status status = store_list_replays(replays->reader, 0, UINT32_MAX, find_job, replays);
    LIST_EACH (node, &replays->jobs) {
        struct finding finding = {replays, LIST_OWNER(node, struct job, node)};
        if (status == STATUS_OK && finding.job->is.from == REPLAY_FROM_HOOKS)
            status = store_replayed_lanes(replays->reader, &finding.job->is, rewind_found, &finding);
        finding.job->lanes_rewound = finding.job->found.len;
    }
    return status;
}

enum status replays_open(const struct replays_options *options, struct replays **out, struct error *err)
{
    struct replays *replays = mem_zalloc(sizeof *replays);
    pthread_condattr_t attr;
    replays->options = *options;
    list_init(&replays->jobs);
    CHECK(pthread_mutex_init(&replays->lock, NULL) == 0 && pthread_condattr_init(&attr) == 0);
    CHECK(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(&replays->wake, &attr) == 0);
    pthread_condattr_destroy(&attr);
    enum status status = store_reader_open(options->store, &replays->reader, err);
    if (status == STATUS_OK) {
        status = find_jobs(replays);
        if (status != STATUS_OK)
            error_set(err, status, "the store's replays can't be read");
    }
    *out = replays;
    if (status != STATUS_OK) {
        replays_stop(replays);
        replays_close(replays);
        *out = NULL;
    }
    return status;
}

enum status replays_start(struct replays *replays, struct error *err)
{
    if (thread_start(&replays->thread, "replays", runner_main, replays) != 0)
        return error_set(err, STATUS_IO, "no thread for replays");
    replays->running = true;
    return STATUS_OK;
}

void replays_stop(struct replays *replays)
{
    if (!replays)
        return;
    pthread_mutex_lock(&replays->lock);
    replays->stop = true;
    pthread_cond_broadcast(&replays->wake);
    pthread_mutex_unlock(&replays->lock);
    if (replays->running)
        CHECK(pthread_join(replays->thread, NULL) == 0);
    replays->running = false;
    store_reader_close(replays->reader);
    replays->reader = NULL;
}

void replays_close(struct replays *replays)
{
    if (!replays)
        return;
    CHECK(!replays->reader);
    struct list *node;
    while ((node = list_pop(&replays->jobs)))
        job_free(LIST_OWNER(node, struct job, node));
    pthread_cond_destroy(&replays->wake);
    pthread_mutex_destroy(&replays->lock);
    free(replays);
}
