/* POST /v1/dlq/replay and /discard, on the worker's thread. One call does at most ACT_MOST dead letters, in
 * batches, and tells where the next one goes on: so neither the scheduler nor whoever asks next is held up by
 * a million of them, and a call that was cut off has done what it has done. Oldest hook first, so that a lane
 * gets its rows in order. */
#include <stdlib.h>
#include <string.h>

#include "admin/admin_priv.h"
#include "util/clock.h"
#include "util/mem.h"

enum {
    ACT_MOST = 10000,
    LOOK_MOST = 20000, /* dead letters a step looks at */
};

enum act { REPLAY, DISCARD };

static const struct {
    const char *what;
    enum lanes_answer (*run)(struct lanes *lanes, const struct lanes_row *rows, size_t count,
                             enum lanes_answer *answers);
} acts[] = {
    [REPLAY] = {"dlq.replay", lanes_replay},
    [DISCARD] = {"dlq.discard", lanes_discard},
};

/* What a row that no running sink owns must keep when it is discarded behind lanes' back. */
struct kept {
    uint32_t attempts;
    int64_t first_attempt_ms, waived_ms;
};

struct batch {
    struct lanes_row rows[LANES_ROWS_MAX];
    struct kept kept[LANES_ROWS_MAX];
    enum lanes_answer answers[LANES_ROWS_MAX];
    size_t count;
};

struct job {
    struct ask *ask;
    enum act act;
    struct store_dead_filter filter; /* with the cursor */
    uint64_t matched, done;
    uint64_t orphans;    /* not replayed: configuration does not name their sink any more */
    const char *stopped; /* why there is more to do; NULL: the call was long enough, or there is none */
    bool end;
    struct batch *batch;
};

static bool take_row(void *ctx, const struct store_row_view *row)
{
    struct batch *batch = ctx;
    batch->rows[batch->count] = ask_lanes_row(row);
    batch->kept[batch->count++] = (struct kept){row->attempts, row->first_attempt_ms, row->waived_ms};
    return true;
}

/* A dead letter of a sink that is gone: nobody but the store knows it. */
static void discard_orphan(struct store *store, const struct lanes_row *row, const struct kept *kept)
{
    struct store_change *change = store_change_new();
    change->seq = row->seq;
    change->sink = row->sink;
    change->state = ROW_DISCARDED;
    change->late = row->late;
    change->attempts = kept->attempts;
    change->first_attempt_ms = kept->first_attempt_ms;
    change->waived_ms = kept->waived_ms;
    change->at_ms = clock_unix_ms();
    struct list changes = LIST_INIT(changes);
    list_append(&changes, &change->node);
    store_changes(store, &changes);
}

static bool is_configured(const struct admin_rules *rules, uint32_t sink)
{
    for (size_t i = 0; i < rules->sink_count; i++)
        if (rules->sinks[i].id == sink)
            return true;
    return false;
}

static void count_answers(struct job *job)
{
    const struct admin_options *options = &job->ask->admin->options;
    struct batch *batch = job->batch;
    job->matched += batch->count;
    for (size_t i = 0; i < batch->count; i++) {
        bool given_up = job->act == DISCARD && batch->answers[i] == LANES_DONE;
        bool orphan =
            batch->answers[i] == LANES_NOT_FOUND && !is_configured(job->ask->rules, batch->rows[i].sink);
        if (orphan && job->act == DISCARD) {
            discard_orphan(options->store, &batch->rows[i], &batch->kept[i]);
            job->done++;
            given_up = true;
        }
        job->orphans += orphan && job->act == REPLAY;
        job->done += batch->answers[i] == LANES_DONE;
        if (given_up && job->ask->query.forget)
            store_forget_key(options->store, batch->rows[i].seq);
    }
}

/* The scheduler's memory has its bound, which hooks that come in are held to; so are those that come back. */
static bool has_room(struct job *job)
{
    struct store_stats stats;
    store_stats(job->ask->admin->options.store, &stats);
    if (job->act == REPLAY && stats.backlog_full)
        job->stopped = "backlog_full";
    return !job->stopped;
}

/* One batch. False when the call is over. */
static bool step(struct job *job, enum status *status)
{
    struct admin *admin = job->ask->admin;
    struct store_dead_filter before = job->filter;
    size_t left = ACT_MOST - (size_t)job->matched;
    if (left == 0 || job->end || !has_room(job))
        return false;
    job->batch->count = 0;
    job->filter.limit = left < LANES_ROWS_MAX ? left : LANES_ROWS_MAX;
    *status = store_walk_dead(job->ask->reader, &job->filter, LOOK_MOST, take_row, job->batch, &job->end);
    if (*status != STATUS_OK)
        return false;
    if (job->batch->count == 0)
        return true;
    enum lanes_answer answer =
        acts[job->act].run(admin->options.lanes, job->batch->rows, job->batch->count, job->batch->answers);
    if (answer != LANES_DONE) {
        job->filter = before;
        job->end = false;
        job->stopped = lanes_answer_name(answer);
        return false;
    }
    count_answers(job);
    return true;
}

/* ---- the audit line: the filters in words ---- */

static void put_word(struct buf *out, const char *name, struct bytes value)
{
    if (!value.at)
        return;
    buf_putf(out, "%s%s=", out->len ? " " : "", name);
    percent_encode(out, value);
}

static void put_time(struct buf *out, const char *name, int64_t unix_ms)
{
    if (unix_ms)
        buf_putf(out, "%s%s=%lld", out->len ? " " : "", name, (long long)unix_ms);
}

static void audit(const struct job *job)
{
    const struct query *query = &job->ask->query;
    struct buf target = {0};
    char lane[33], hook[UUID_TEXT];
    hex_encode(query->lane, sizeof query->lane, lane);
    uuid_format(&query->hook, hook);
    put_word(&target, "tenant", query->tenant);
    put_word(&target, "source", query->source);
    put_word(&target, "sink", query->sink);
    put_word(&target, "key", query->key);
    put_word(&target, "lane", query->has_lane && !query->key.at ? bytes_str(lane) : BYTES_NONE);
    put_word(&target, "hook", query->has_hook ? bytes_str(hook) : BYTES_NONE);
    put_word(&target, "class", query->cls);
    put_time(&target, "since", query->since_ms);
    put_time(&target, "until", query->until_ms);
    if (!target.len)
        buf_puts(&target, "all");
    if (query->forget)
        buf_puts(&target, " forget");
    ask_audit(job->ask, acts[job->act].what, buf_bytes(&target), (int64_t)job->matched, (int64_t)job->done);
    buf_free(&target);
}

/* ---- answers ---- */

static void write_sum(struct job *job)
{
    struct ask *ask = job->ask;
    struct store_dead_sum sum;
    enum status status = store_sum_dead(ask->reader, &job->filter, &sum);
    if (status != STATUS_OK) {
        ask_store_failed(ask, status);
        return;
    }
    struct jsonw *w = &ask->json;
    jsonw_object(w, NULL);
    jsonw_bool(w, "dry_run", true);
    jsonw_uint(w, "matched", sum.rows);
    jsonw_uint(w, "done", 0);
    if (job->act == REPLAY) {
        jsonw_uint(w, "late", sum.late);
        if (sum.delivered_after < 0)
            jsonw_null(w, "delivered_after");
        else
            jsonw_int(w, "delivered_after", sum.delivered_after);
    }
    jsonw_end_object(w);
}

static void write_done(struct job *job)
{
    struct jsonw *w = &job->ask->json;
    jsonw_object(w, NULL);
    jsonw_uint(w, "matched", job->matched);
    jsonw_uint(w, "done", job->done);
    if (job->act == REPLAY)
        jsonw_uint(w, "sink_gone", job->orphans);
    jsonw_str(w, "stopped", job->stopped);
    ask_next_cursor(
        job->ask, CURSOR_DEAD,
        job->end ? NULL : &(struct cursor){.seq = job->filter.after_seq, .sink = job->filter.after_sink});
    jsonw_end_object(w);
}

static void run(struct job *job)
{
    struct ask *ask = job->ask;
    enum status status = STATUS_OK;
    job->batch = mem_alloc(sizeof *job->batch);
    while (step(job, &status))
        ;
    if (job->matched > 0) {
        audit(job);
        store_flush(ask->admin->options.store);
    }
    if (job->matched == 0 && status != STATUS_OK)
        ask_store_failed(ask, status);
    else if (job->matched == 0 && job->stopped)
        ask_refuse(ask, 503, job->stopped);
    else
        write_done(job);
    free(job->batch);
}

static bool is_bounded(struct ask *ask)
{
    enum { NO_FILTERS = QUERY_REASON | QUERY_DRY_RUN | QUERY_ALL | QUERY_FORGET | QUERY_DEAD_CURSOR };
    if (ask->query.all || ask->query.dry_run || (ask->query.given & ~(uint64_t)NO_FILTERS))
        return true;
    ask_refuse_filter(ask, &(struct query_fault){"bad_filter", BYTES("all"),
                                                 "true where no filter is: every dead letter is meant"});
    return false;
}

static void act_on_dead(struct ask *ask, enum act act)
{
    struct job job = {.ask = ask, .act = act};
    if (!ask_dead_filter(ask, &job.filter))
        return;
    /* What is read is what the scheduler knows. */
    if (!store_flush(ask->admin->options.store))
        ask_store_failed(ask, STATUS_UNAVAILABLE);
    else if (ask->query.dry_run)
        write_sum(&job);
    else
        run(&job);
}

static void replay_dead(struct ask *ask)
{
    act_on_dead(ask, REPLAY);
}

static void discard_dead(struct ask *ask)
{
    act_on_dead(ask, DISCARD);
}

void post_dead_replay(struct ask *ask)
{
    if (is_bounded(ask))
        ask_work(ask, WORK_DEAD_LETTERS, replay_dead);
}

void post_dead_discard(struct ask *ask)
{
    if (is_bounded(ask))
        ask_work(ask, WORK_DEAD_LETTERS, discard_dead);
}
