/* What a list may be asked for. Every parameter is one row of a table in params.c; a route says which of them
 * it takes, and anything else is refused by name. Pure. */
#ifndef ADMIN_QUERY_H
#define ADMIN_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admin/cursor.h"
#include "lanes/lanes.h"
#include "util/arena.h"
#include "util/bytes.h"
#include "util/uuid.h"

enum {
    QUERY_TENANT = 1 << 0,
    QUERY_SOURCE = 1 << 1,
    QUERY_SINK = 1 << 2,
    QUERY_KEY = 1 << 3,
    QUERY_LANE = 1 << 4,
    QUERY_CLASS = 1 << 5,
    QUERY_DEDUPE_KEY = 1 << 6,
    QUERY_SINCE = 1 << 7,
    QUERY_UNTIL = 1 << 8,
    QUERY_LANE_STATE = 1 << 9, /* "state" of a lane */
    QUERY_ROW_STATE = 1 << 10, /* "state" of a delivery row */
    QUERY_SORT = 1 << 11,
    QUERY_LIMIT = 1 << 12,
    QUERY_LANES_CURSOR = 1 << 13, /* "cursor", each list its own */
    QUERY_HOOKS_CURSOR = 1 << 14,
    QUERY_DEAD_CURSOR = 1 << 15,
    QUERY_AUDIT_CURSOR = 1 << 16,
    QUERY_WHO = 1 << 17,
    QUERY_WHAT = 1 << 18,
    QUERY_REASON = 1 << 19,
    QUERY_DRY_RUN = 1 << 20,
    QUERY_ALL = 1 << 21,
    QUERY_EXPECT_HEAD = 1 << 22,
    QUERY_FOR = 1 << 23,
    QUERY_HOOK = 1 << 24,
    QUERY_FORGET = 1 << 25,
    QUERY_FAILURE = 1 << 26,
    QUERY_PEN_CURSOR = 1 << 27,
    QUERY_EVENT = 1 << 28, /* kinds of events, joined by commas */
    QUERY_AFTER = 1 << 29, /* the id of an event */
    QUERY_RAW = 1 << 30,   /* a raw HTTP request */
    QUERY_RATE = 1LL << 34,
    QUERY_MAX_LAG = 1LL << 31,
    QUERY_REPLAY_STATE = 1LL << 32, /* "state" of a replay */
    QUERY_REPLAYS_CURSOR = 1LL << 33,
    QUERY_FROM = 1LL << 35,       /* where the hooks of a replay are */
    QUERY_LIMIT_RATE = 1LL << 36, /* "rate" of a limit */
    QUERY_BURST = 1LL << 37,
};

enum {
    QUERY_LIMIT_DEFAULT = 100,
    QUERY_LIMIT_MAX = 1000,
    QUERY_WORD_MAX = 64,
    QUERY_AGE_MAX = 32,
    QUERY_REASON_MAX = 1024
};
#define QUERY_FOR_MAX_MS (366LL * 24 * 3600 * 1000)

/* Texts are decoded, have a NUL behind them and live in the arena; absent when not asked for. */
struct query {
    struct bytes tenant, source, sink, cls;
    struct bytes key;        /* any bytes; empty: the keyless lane */
    struct bytes dedupe_key; /* any bytes */
    struct bytes failure;    /* why verification failed */
    struct bytes who, what;  /* of the audit table */
    struct bytes raw;        /* a raw HTTP request */
    struct bytes after;      /* an event's id, for whoever reads it */
    unsigned event_kinds;    /* a bit (1 << enum event_kind) each; 0: all */
    struct bytes reason;     /* why somebody does it, in his words */
    bool dry_run, all, forget;
    bool has_head_id;
    struct uuid head_id; /* expect_head, as an id or as a seq; 0: any */
    uint64_t head_seq;
    int64_t for_ms;     /* 0: not said */
    int64_t rate;       /* hooks/s; 0: not said */
    double limit_rate;  /* hooks/s of a limit; 0: not said */
    int64_t burst;      /* 0: not said */
    int64_t max_lag_ms; /* 0: not said */
    uint64_t given;     /* QUERY_*: what was said */
    bool has_hook;
    struct uuid hook;
    bool has_lane;
    uint8_t lane[16];
    int64_t since_ms, until_ms;              /* unix; 0: open */
    struct bytes since_age, until_age;       /* as they were said, when that was an age */
    int lane_state, row_state, replay_state; /* -1: any */
    enum replay_from from;
    enum lane_sort sort;
    size_t limit;
    struct cursor cursor;
};

/* Why a query was refused. `filter` is decoded and lives in the arena. */
struct query_fault {
    const char *code; /* unknown_filter, bad_filter; unknown_member, bad_member, bad_body */
    struct bytes filter;
    const char *expected; /* what would have been right; in the arena or static */
};

/* Reads "a=b&c=d" (BYTES_NONE: nothing) with the parameters in `allowed` (QUERY_*). Fills defaults for what
 * is not said. False with a fault at the first one that is unknown, malformed or there twice. */
bool query_parse(struct bytes text, uint64_t allowed, struct arena *arena, struct query *out,
                 struct query_fault *fault);

/* A name of the configuration: of a tenant, a source, a sink. */
bool query_is_name(struct bytes text);

/* The same parameters as members of a JSON object, values as they are: strings, numbers, true and false. Adds
 * to what query_parse has found; an empty body adds nothing. */
enum { QUERY_BODY_MAX = 16 * 1024 };
bool query_parse_body(struct bytes body, uint64_t allowed, struct arena *arena, struct query *query,
                      struct query_fault *fault);

#endif
