/* What the files of this room share: one request being answered, and the ways to answer it. A resource is a
 * function that looks at `ask` and either writes JSON on ask->json (the answer is 200 with it) or calls one
 * of the refusals. Everything here runs on the admin server's one loop thread, but for the end of a reload,
 * and for what takes long: see ask_work. */
#ifndef ADMIN_ADMIN_PRIV_H
#define ADMIN_ADMIN_PRIV_H

#include <pthread.h>

#include "admin/admin.h"
#include "admin/query.h"
#include "admin/routes.h"
#include "util/arena.h"
#include "util/current.h"
#include "util/jsonw.h"
#include "util/list.h"

/* Each has a thread: people look at dead letters while somebody counts what a replay would do. */
enum work_kind { WORK_DEAD_LETTERS, WORK_COUNTS, WORK_KINDS };

struct admin {
    struct admin_options options;
    struct current current;      /* of struct admin_rules */
    struct store_reader *reader; /* the loop's */
    struct worker *workers[WORK_KINDS];
    struct feed *feed;
    bool on_loopback; /* nothing else is listened on */
    pthread_mutex_t rekeyed_lock;
    uint32_t rekeyed; /* the sink whose rows are being moved; 0: none */
};

struct ask {
    struct admin *admin;
    struct current_hold *hold; /* of `rules` */
    const struct admin_rules *rules;
    const struct http_request *request; /* until the handler returns */
    struct http_exchange *exchange;
    struct store_reader *reader; /* of the thread it is on */
    /* Set by a resource that another thread answers: called last, it sees to it that ask_finish is. What is
     * needed of the request is copied by then. NULL: the answer is there. */
    void (*later)(struct ask *ask);
    enum work_kind kind;                 /* whose worker */
    void (*work)(struct ask *ask);       /* the worker's */
    struct list node;                    /* the worker's */
    unsigned scopes;                     /* what whoever asks may do */
    const char *who;                     /* the name of the token, or "local" */
    struct bytes parts[ROUTE_PARTS_MAX]; /* what the braces of the route stand for, raw */
    struct query query;
    struct arena *arena; /* gone after the answer, as is this struct, which is in it */

    int status;       /* of the answer: 200 unless refused */
    const char *type; /* NULL: JSON */
    struct buf body;
    struct jsonw json; /* on body */
    const char *allow; /* header values, or NULL */
    bool ask_for_token;
    bool streams; /* it was answered with a stream */
};

/* Answers, and frees what the ask holds. `ask` is gone. */
void ask_finish(struct ask *ask);

/* What takes long: `work` answers on the thread of the worker of that kind. Called last; there, too, `query`,
 * `parts` and all that is found by them are good. */
void ask_work(struct ask *ask, enum work_kind kind, void (*work)(struct ask *ask));

/* {"error": code}, and whatever was written before is gone. The second form adds one more member. */
void ask_refuse(struct ask *ask, int status, const char *code);
void ask_refuse_with(struct ask *ask, int status, const char *code, const char *name, const char *text);
/* 400, naming the parameter and what was expected. */
void ask_refuse_filter(struct ask *ask, const struct query_fault *fault);
/* 404, naming what there is none of. */
void ask_not_found(struct ask *ask, const char *what);
void ask_not_found_of(struct ask *ask, const char *what, const char *expected);
/* For a store that can't be read: 503 store_unavailable, or 500 for CORRUPT. */
void ask_store_failed(struct ask *ask, enum status status);

/* "next_cursor": the text, or null at the end of the list. */
void ask_next_cursor(struct ask *ask, enum cursor_kind kind, const struct cursor *next);
/* A lane's id as 32 hex digits. */
void ask_lane_id(struct ask *ask, const char *name, const uint8_t lane[16]);
/* A unix time in ms; 0 gives null. */
void ask_time(struct ask *ask, const char *name, int64_t unix_ms);

/* A line in the audit table, with the reason that was given. `target` is what it was done to, as people name
 * it; counts are -1 where there are none. */
void ask_audit(struct ask *ask, const char *what, struct bytes target, int64_t matched, int64_t done);

/* named.c: the sources and sinks of the query. False when it was refused. */
bool ask_names_are_there(struct ask *ask);
/* 404, with those that are configured. */
void ask_no_sink(struct ask *ask);
void ask_no_source(struct ask *ask);

/* acts.c */
/* True when the act was not done, and `ask` says why; `what` there is none of, if that is it. */
bool ask_act_failed(struct ask *ask, enum lanes_answer answer, const char *what);
/* The lane, or the configured sink, that the path names; refused when there is none. */
bool ask_lane(struct ask *ask, struct lanes_lane *lane);
const struct admin_sink *ask_sink(struct ask *ask);
/* The same by names from elsewhere. */
const struct admin_sink *ask_sink_named(struct ask *ask, struct bytes source, struct bytes name);
void ask_audit_sink(struct ask *ask, const char *what, const struct admin_sink *sink, int64_t matched,
                    int64_t done);

/* dlq.c: the dead letters that the query asks for, from its cursor on. False when it was refused. */
bool ask_dead_filter(struct ask *ask, struct store_dead_filter *filter);

/* hooks.c: the seq of the hook that the path names. False when it was refused. */
bool ask_hook(struct ask *ask, uint64_t *seq);
/* The members of an envelope. */
void ask_write_envelope(struct ask *ask, const struct envelope *envelope);
/* pen.c: OK with its id there, or NOT_FOUND. */
enum status ask_pen_find(struct ask *ask, const struct uuid *hook, uint64_t *id);
/* A row as lanes wants it. */
struct lanes_row ask_lanes_row(const struct store_row_view *row);

/* One file a resource; each function is a row of routes.c. */
void get_health(struct ask *ask);
void get_ready(struct ask *ask);
void get_metrics(struct ask *ask);
void get_config(struct ask *ask);
void post_reload(struct ask *ask);
void get_sinks(struct ask *ask);
void get_lanes(struct ask *ask);
void get_lane(struct ask *ask);
void post_lane_pause(struct ask *ask);
void post_lane_resume(struct ask *ask);
void post_lane_retry(struct ask *ask);
void post_lane_skip(struct ask *ask);
void post_sink_pause(struct ask *ask);
void post_sink_resume(struct ask *ask);
void post_sink_retry(struct ask *ask);
void post_rekey(struct ask *ask);
void get_hooks(struct ask *ask);
void get_hook(struct ask *ask);
void get_hook_body(struct ask *ask);
void get_attempts(struct ask *ask);
void delete_hook(struct ask *ask);
void get_dead(struct ask *ask);
void post_dead_replay(struct ask *ask);
void post_dead_discard(struct ask *ask);
void get_store(struct ask *ask);
void get_audit(struct ask *ask);
void get_events(struct ask *ask);
void post_key_test(struct ask *ask);
void get_pen(struct ask *ask);
void get_penned(struct ask *ask);
void get_penned_body(struct ask *ask);
void post_pen_release(struct ask *ask);
void post_pen_discard(struct ask *ask);
void post_replay(struct ask *ask);
void get_replays(struct ask *ask);
void get_replay(struct ask *ask);
void patch_replay(struct ask *ask);
void get_rate_limit(struct ask *ask);
void put_rate_limit(struct ask *ask);
void delete_rate_limit(struct ask *ask);

#endif
