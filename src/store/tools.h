/* A store as files: looked at, judged, copied, brought back. For whoever runs the gateway, on its machine;
 * none of this needs a struct store. Everything blocks on the caller's thread, and fails with a sentence:
 * NOT_FOUND (no store there), BUSY (somebody serves it), IO, CORRUPT (not a store, or damaged), REFUSED (a
 * rule: the sentence says which), DRAINING (the watch stopped it). */
#ifndef STORE_TOOLS_H
#define STORE_TOOLS_H

#include "store/store.h"

/* How far a long call has come, several times a second. */
struct store_watch {
    /* `what` is static; `total` 0: nobody knows. False stops the call. NULL: nobody watches. */
    bool (*step)(void *ctx, const char *what, uint64_t done, uint64_t total);
    void *ctx;
};

/* ---- check ---- */

/* Something that a store of ours never has. Texts are borrowed for the call. */
struct store_fault {
    const char *what; /* "rows_without_hook" */
    const char *found, *expected, *action;
};
struct store_judge {
    void (*fault)(void *ctx, const struct store_fault *fault);
    void *ctx;
    store_lane_of lane_of; /* NULL: lanes are not compared with their keys */
    struct store_watch watch;
};
struct store_verdict {
    uint64_t faults;
    uint64_t hooks, rows; /* looked at */
    bool lacks_log;       /* a store.db by itself: what only its log had is not in it, and nobody can tell */
};
/* Every page, every rule, every envelope. `path` is a data directory that nobody serves, or one file, such as
 * a backup; nothing in it is touched. OK when it could be judged, whatever was found. */
enum status store_check(const char *path, const struct store_judge *judge, struct store_verdict *out,
                        struct error *err);

/* ---- inspect ---- */

enum store_sight_kind {
    SIGHT_SOURCE,  /* tenant, source, hooks, oldest_ms, newest_ms */
    SIGHT_SINK,    /* source, sink; hooks by state */
    SIGHT_LANE,    /* tenant, source, sink, key, hooks (waiting), head_seq, oldest_ms, held, ordered */
    SIGHT_DEAD,    /* source, sink, cls, hooks, bytes, oldest_ms (of death) */
    SIGHT_PEN,     /* source, hooks, bytes, oldest_ms */
    SIGHT_STOPPED, /* cls ("breaker", "sink_pause", "lane_pause"), source, sink, tenant; oldest_ms: since */
};
/* One line of what is there. Texts are borrowed for the call; NULL where they say nothing. */
struct store_sight {
    enum store_sight_kind kind;
    const char *tenant, *source, *sink, *cls;
    struct bytes key; /* absent: the keyless lane */
    bool ordered, held;
    uint64_t hooks, bytes, head_seq;
    uint64_t states[ROW_DISCARDED + 1];
    int64_t oldest_ms, newest_ms; /* unix; 0: none */
};
struct store_view {
    struct uuid epoch;
    int layout;
    int64_t database_bytes, log_bytes; /* of the log: not in the database yet, and read too */
    uint64_t hooks, next_seq, dedupe_keys, audit_lines, lanes; /* lanes: that hold anything */
    uint64_t states[ROW_DISCARDED + 1];                        /* rows */
    uint64_t pen_hooks, pen_bytes;
    uint64_t replays_running, replays_paused;
    int64_t oldest_ms, newest_ms; /* hooks; unix, 0: none */
    int64_t backup_ms;            /* it is a backup, made then; 0: it is none */
    int64_t restored_ms;          /* it came from one; 0: it did not */
    struct uuid restored_from;    /* the epoch of that */
};
struct store_inspection {
    size_t max_lanes; /* the deepest */
    void (*each)(void *ctx, const struct store_sight *sight);
    void *ctx;
    struct store_watch watch;
};
/* Reads all rows. `path` as above; nothing in it is touched. */
enum status store_inspect(const char *path, const struct store_inspection *ask, struct store_view *out,
                          struct error *err);

/* ---- backup, restore ---- */

struct store_backup {
    const char *data_dir;     /* served or not */
    const char *file;         /* must not exist; 0600, whole or not there */
    int64_t min_free_bytes;   /* when it is on the store's file system, so much has to stay free */
    struct store_judge judge; /* of what was written: a fault fails the backup */
};
struct store_copied {
    int64_t bytes;
    bool served;    /* by another process meanwhile */
    bool same_disk; /* as the store's */
    bool aside;     /* of a restore: there was a store, and it is in `aside_path` now */
    char aside_path[512];
    struct uuid epoch, old_epoch; /* of a restore: the new one, and the backup's */
    int64_t backup_ms;            /* of a restore: when the file was made; 0: it does not say */
    struct store_verdict verdict;
};
enum status store_backup(const struct store_backup *ask, struct store_copied *out, struct error *err);

struct store_restore {
    const char *file;
    const char *data_dir; /* made 0700 when missing */
    bool replace;         /* a store in it is moved aside, into a folder of it; else REFUSED */
    bool damaged;         /* faults are told, and do not stop it */
    struct store_judge judge;
};
/* The store begins a new epoch. Whatever happens, the directory holds the old store, the new one, or says at
 * its next opening that a restore was interrupted. */
enum status store_restore(const struct store_restore *ask, struct store_copied *out, struct error *err);

#endif
