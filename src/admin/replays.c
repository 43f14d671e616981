/* Replay jobs: POST /v1/replays begins one (or counts what it would do), GET looks, PATCH pauses, resumes,
 * cancels, and changes the pace. */
#include <stdio.h>

#include "admin/admin_priv.h"
#include "replay/replay.h"

enum { COUNT_BUDGET_MS = 10000 };

/* ---- one job as JSON ---- */

static void write_name(struct jsonw *w, const char *name, const char *text)
{
    jsonw_str(w, name, *text ? text : NULL);
}

/* How much of the window it has looked at, in hundredths of a percent. */
static double progress(const struct store_replay *replay)
{
    if (replay->cursor >= replay->last)
        return 1;
    if (replay->planned == 0 || replay->hooks >= replay->planned)
        return 0;
    return (double)(uint64_t)(10000.0 * (double)replay->hooks / (double)replay->planned) / 10000;
}

static void write_planned(struct jsonw *w, const struct store_replay *replay)
{
    if (replay->planned > 0)
        jsonw_uint(w, "planned", replay->planned);
    else
        jsonw_null(w, "planned");
}

/* Where it is, and what only one of the two kinds has. */
static void write_kind(struct jsonw *w, const struct store_replay *replay, const struct replay_look *look)
{
    if (replay->from == REPLAY_FROM_PEN) {
        jsonw_uint(w, "released", replay->released);
        jsonw_uint(w, "duplicates", replay->duplicates);
        jsonw_uint(w, "failed", replay->failed);
        return;
    }
    jsonw_uint(w, "last_seq", replay->last);
    jsonw_uint(w, "cursor_seq", replay->cursor);
    jsonw_uint(w, "owed_already", replay->owed);
    if (look->planned)
        jsonw_uint(w, "lanes", look->lanes);
    else
        jsonw_null(w, "lanes");
    jsonw_uint(w, "lanes_rewound", look->lanes_rewound);
}

/* `existing`: it was asked for, and was there. */
static void write_replay(struct ask *ask, const struct store_replay *replay, bool existing)
{
    struct jsonw *w = &ask->json;
    struct replay_look look = {0};
    char id[UUID_TEXT];
    bool active = replays_look(ask->admin->options.replays, replay->number, &look);
    uuid_format(&replay->id, id);
    jsonw_object(w, NULL);
    jsonw_str(w, "id", id);
    jsonw_str(w, "state", replay_state_name(replay->state));
    jsonw_str(w, "from", replay_from_name(replay->from));
    write_name(w, "why", replay->why);
    write_name(w, "waits", active && look.waits ? look.waits : "");
    write_name(w, "tenant", replay->tenant);
    write_name(w, "source", replay->source);
    write_name(w, "sink", replay->sink);
    write_name(w, "failure", replay->failure);
    ask_time(ask, "since", replay->since_ms);
    ask_time(ask, "until", replay->until_ms);
    jsonw_int(w, "rate", replay->rate);
    ask_time(ask, "max_lag_ms", replay->max_lag_ms);
    jsonw_double(w, "progress", progress(replay));
    write_planned(w, replay);
    jsonw_uint(w, "hooks", replay->hooks);
    jsonw_uint(w, "gone", replay->gone);
    write_kind(w, replay, &look);
    jsonw_uint(w, "made", replay->made);
    jsonw_uint(w, "done", replay->done);
    jsonw_uint(w, "dead", replay->dead);
    jsonw_uint(w, "discarded", replay->given_up);
    uint64_t over = replay->done + replay->dead + replay->given_up;
    jsonw_uint(w, "outstanding", replay->made > over ? replay->made - over : 0);
    ask_time(ask, "created_at", replay->created_ms);
    ask_time(ask, "changed_at", replay->changed_ms);
    write_name(w, "who", replay->who);
    write_name(w, "reason", replay->reason);
    if (existing)
        jsonw_bool(w, "existing", true);
    jsonw_end_object(w);
}

/* ---- looking ---- */

struct page {
    struct ask *ask;
    size_t written;
    bool more;
    uint32_t last;
};

static bool write_entry(void *ctx, const struct store_replay *replay)
{
    struct page *page = ctx;
    int state = page->ask->query.replay_state;
    if (state >= 0 && (int)replay->state != state)
        return true;
    if (page->written == page->ask->query.limit) {
        page->more = true;
        return false;
    }
    page->written++;
    page->last = replay->number;
    write_replay(page->ask, replay, false);
    return true;
}

void get_replays(struct ask *ask)
{
    struct page page = {.ask = ask};
    uint64_t before = ask->query.cursor.seq;
    jsonw_object(&ask->json, NULL);
    jsonw_array(&ask->json, "replays");
    enum status status = store_list_replays(ask->reader, 0, before > 0 ? (uint32_t)(before - 1) : UINT32_MAX,
                                            write_entry, &page);
    jsonw_end_array(&ask->json);
    ask_next_cursor(ask, CURSOR_REPLAYS, page.more ? &(struct cursor){.seq = page.last} : NULL);
    jsonw_end_object(&ask->json);
    if (status != STATUS_OK)
        ask_store_failed(ask, status);
}

struct seek {
    struct uuid id;
    struct store_replay replay;
    bool found;
};

static bool seek_id(void *ctx, const struct store_replay *replay)
{
    struct seek *seek = ctx;
    seek->found = memcmp(&seek->id, &replay->id, sizeof seek->id) == 0;
    if (seek->found)
        seek->replay = *replay;
    return !seek->found;
}

/* The job that the path names; refused when there is none. */
static bool find_replay(struct ask *ask, struct store_replay *out)
{
    struct seek seek = {.found = false};
    enum status status = STATUS_OK;
    if (uuid_parse(ask->parts[0], &seek.id))
        status = store_list_replays(ask->reader, 0, UINT32_MAX, seek_id, &seek);
    if (status != STATUS_OK)
        ask_store_failed(ask, status);
    else if (!seek.found)
        ask_not_found(ask, "replay");
    *out = seek.replay;
    return status == STATUS_OK && seek.found;
}

void get_replay(struct ask *ask)
{
    struct store_replay replay;
    if (find_replay(ask, &replay))
        write_replay(ask, &replay, false);
}

/* ---- the audit line ---- */

static void put_word(struct buf *out, const char *name, const char *value)
{
    if (*value)
        buf_putf(out, " %s=%s", name, value);
}

static void put_time(struct buf *out, const char *name, int64_t unix_ms)
{
    if (unix_ms)
        buf_putf(out, " %s=%lld", name, (long long)unix_ms);
}

static void audit(struct ask *ask, const char *what, const struct store_replay *replay)
{
    struct buf target = {0};
    char id[UUID_TEXT];
    uuid_format(&replay->id, id);
    buf_puts(&target, id);
    if (replay->from == REPLAY_FROM_PEN)
        put_word(&target, "from", replay_from_name(replay->from));
    put_word(&target, "tenant", replay->tenant);
    put_word(&target, "source", replay->source);
    put_word(&target, "sink", replay->sink);
    put_word(&target, "failure", replay->failure);
    put_time(&target, "since", replay->since_ms);
    put_time(&target, "until", replay->until_ms);
    buf_putf(&target, " rate=%lld", (long long)replay->rate);
    ask_audit(ask, what, buf_bytes(&target), -1, -1);
    buf_free(&target);
}

/* ---- what is asked for ---- */

static void text_into(char *out, size_t size, struct bytes text)
{
    snprintf(out, size, "%.*s", BYTES_ARG(text));
}

/* What makes no sense; false when nothing does not. */
static bool find_fault(const struct query *query, struct query_fault *fault)
{
    enum {
        FILTERS =
            QUERY_TENANT | QUERY_SOURCE | QUERY_SINK | QUERY_SINCE | QUERY_UNTIL | QUERY_FAILURE | QUERY_FROM
    };
    bool pen = query->from == REPLAY_FROM_PEN;
    fault->code = "bad_filter";
    if (pen && query->sink.at) {
        fault->filter = BYTES("sink");
        fault->expected = "none: a hook out of the quarantine goes to every sink of its source";
    } else if (!pen && query->failure.at) {
        fault->filter = BYTES("failure");
        fault->expected = "from=quarantine beside it";
    } else if (query->since_ms && query->until_ms && query->since_ms >= query->until_ms) {
        fault->filter = BYTES("until");
        fault->expected = "a time behind since";
    } else if (!query->all && !(query->given & FILTERS)) {
        fault->filter = BYTES("all");
        fault->expected = "true where no filter is: every stored hook is meant";
    } else if (!query->all && pen && !(query->given & FILTERS & ~(uint64_t)QUERY_FROM)) {
        fault->filter = BYTES("all");
        fault->expected = "true where no filter is: all of the quarantine is meant";
    } else {
        return false;
    }
    return true;
}

static bool read_ask(struct ask *ask, struct store_replay *replay)
{
    const struct query *query = &ask->query;
    struct query_fault fault;
    *replay = (struct store_replay){.from = query->from,
                                    .since_ms = query->since_ms,
                                    .until_ms = query->until_ms,
                                    .rate = query->rate ? query->rate : REPLAY_RATE_DEFAULT,
                                    .max_lag_ms = query->max_lag_ms};
    text_into(replay->tenant, sizeof replay->tenant, query->tenant);
    text_into(replay->source, sizeof replay->source, query->source);
    text_into(replay->sink, sizeof replay->sink, query->sink);
    text_into(replay->failure, sizeof replay->failure, query->failure);
    text_into(replay->since_text, sizeof replay->since_text, query->since_age);
    text_into(replay->until_text, sizeof replay->until_text, query->until_age);
    text_into(replay->who, sizeof replay->who, bytes_str(ask->who));
    text_into(replay->reason, sizeof replay->reason, query->reason);
    if (!find_fault(query, &fault))
        return true;
    ask_refuse_filter(ask, &fault);
    return false;
}

/* ---- counting ---- */

static void write_count(void *ctx, const struct replay_count *count)
{
    struct jsonw *w = &((struct ask *)ctx)->json;
    jsonw_object(w, NULL);
    jsonw_str(w, "source", count->source);
    jsonw_str(w, "sink", count->sink);
    jsonw_bool(w, "ordered", count->ordered);
    jsonw_uint(w, "rows", count->rows);
    jsonw_uint(w, "lanes", count->lanes);
    jsonw_end_object(w);
}

/* On the worker's thread. */
static void write_counts(struct ask *ask)
{
    struct jsonw *w = &ask->json;
    struct store_replay asked;
    const struct store_replay *replay = &asked;
    struct replay_sum sum;
    if (!read_ask(ask, &asked))
        return;
    jsonw_object(w, NULL);
    jsonw_bool(w, "dry_run", true);
    jsonw_str(w, "from", replay_from_name(replay->from));
    jsonw_array(w, "sinks");
    enum status status = replays_count(ask->admin->options.replays, ask->reader, replay, COUNT_BUDGET_MS,
                                       &sum, write_count, ask);
    jsonw_end_array(w);
    jsonw_uint(w, "hooks", sum.hooks);
    if (replay->from == REPLAY_FROM_PEN) {
        jsonw_uint(w, "verified", sum.verified);
        jsonw_uint(w, "failed", sum.failed);
    }
    jsonw_bool(w, "complete", sum.complete);
    jsonw_int(w, "rate", replay->rate);
    jsonw_end_object(w);
    if (status != STATUS_OK)
        ask_store_failed(ask, status);
}

/* ---- beginning and changing ---- */

/* False when `ask` says why not. */
static bool is_fine(struct ask *ask, enum replay_answer answer, const struct store_replay *replay)
{
    char id[UUID_TEXT];
    switch (answer) {
    case REPLAY_OK:
    case REPLAY_SAME:
        return true;
    case REPLAY_OVERLAPS:
        uuid_format(&replay->id, id);
        ask_refuse_with(ask, 409, "replay_running", "id", id);
        return false;
    case REPLAY_TOO_MANY:
        ask_refuse(ask, 409, "too_many_replays");
        return false;
    case REPLAY_NO_SINK:
        (replay->from == REPLAY_FROM_PEN ? ask_no_source : ask_no_sink)(ask);
        return false;
    case REPLAY_NOT_FOUND:
        ask_not_found(ask, "replay");
        return false;
    case REPLAY_OVER:
        ask_refuse_with(ask, 409, "replay_over", "expected", "a replay that is running or paused");
        return false;
    case REPLAY_UNAVAILABLE:
        ask_store_failed(ask, STATUS_UNAVAILABLE);
        return false;
    }
    return false;
}

void post_replay(struct ask *ask)
{
    struct store_replay replay;
    if (!read_ask(ask, &replay))
        return;
    if (ask->query.dry_run) {
        ask_work(ask, WORK_COUNTS, write_counts);
        return;
    }
    enum replay_answer answer = replays_begin(ask->admin->options.replays, &replay);
    if (!is_fine(ask, answer, &replay))
        return;
    if (answer == REPLAY_OK) {
        audit(ask, "replay.start", &replay);
        ask->status = 201;
    }
    write_replay(ask, &replay, answer == REPLAY_SAME);
}

void patch_replay(struct ask *ask)
{
    struct store_replay replay;
    int state = ask->query.replay_state;
    if (state == REPLAY_DONE || !(ask->query.given & (QUERY_REPLAY_STATE | QUERY_RATE))) {
        ask_refuse_filter(ask, &(struct query_fault){"bad_filter", BYTES("state"),
                                                     "running, paused or cancelled, unless rate is said"});
        return;
    }
    if (!find_replay(ask, &replay))
        return;
    enum replay_answer answer =
        replays_set(ask->admin->options.replays, &replay.id, state, ask->query.rate, &replay);
    if (!is_fine(ask, answer == REPLAY_NOT_FOUND ? REPLAY_OVER : answer, &replay))
        return;
    static const char *const whats[] = {[REPLAY_RUNNING] = "replay.resume",
                                        [REPLAY_PAUSED] = "replay.pause",
                                        [REPLAY_CANCELLED] = "replay.cancel"};
    audit(ask, state >= 0 ? whats[state] : "replay.rate", &replay);
    write_replay(ask, &replay, false);
}
