/* A store in a directory of its own, hooks to put into it, and ways to wait for what becomes of them. For
 * tests and benches of rooms that need a store. */
#ifndef SUPPORT_STORE_RIG_H
#define SUPPORT_STORE_RIG_H

#include "store/store.h"

/* A fresh directory under $TMPDIR or /tmp; removed with everything in it by rig_remove_dir. free() both ways.
 */
char *rig_make_dir(void);
void rig_remove_dir(char *dir); /* frees it too */
/* The store's files as they are now, as a crash would leave them, in a directory of their own; its lock is
 * free. */
char *rig_copy_dir(const char *dir);

/* Small bounds, long retention, no minimum of free space. */
struct store_options rig_options(const char *dir);

/* Opens, scans nothing, starts; ends the process with the reason when that fails. */
struct store *rig_start(const struct store_options *options);
struct store *rig_open(const struct store_options *options);

/* One hook with its rows, to be committed once. */
struct rig_hook {
    struct store_hook hook;
    struct store_row rows[4];
    enum status status; /* what done() said */
    int done;           /* how often; atomic */
    uint64_t seq;       /* 0 unless OK */
};

/* Tenant "default", source "shop", a GET-able id, `body_len` bytes of body; no rows yet. */
struct rig_hook *rig_hook_new(size_t body_len);
void rig_hook_row(struct rig_hook *hook, uint32_t sink, const char *key); /* ordered when key is not NULL */
void rig_hook_free(struct rig_hook *hook);

/* Waits for done(), at most 20 seconds; false when it did not come. */
bool rig_wait_done(struct rig_hook *hook);
/* store_commit and the wait; the status of either. */
enum status rig_commit(struct store *store, struct rig_hook *hook);
/* Commits a hook of `body_len` with one unordered row and forgets it; its seq, or 0. */
uint64_t rig_put(struct store *store, uint32_t sink, size_t body_len);

/* The same for `count` hooks at once (they share batches); ends the process when one is refused. The first
 * seq: the others follow it. */
uint64_t rig_put_many(struct store *store, uint32_t sink, size_t body_len, size_t count);

/* Gives one change to the store. */
void rig_change(struct store *store, uint64_t seq, uint32_t sink, enum row_state state, const char *cls);

/* Polls until `condition` is true, at most 20 seconds; false when it never was. */
#define RIG_WAIT(condition)                                                                                  \
    ({                                                                                                       \
        int64_t rig_until_ms = clock_mono_ms() + 20000;                                                      \
        bool rig_met;                                                                                        \
        while (!(rig_met = (condition)) && clock_mono_ms() < rig_until_ms)                                   \
            usleep(500);                                                                                     \
        rig_met;                                                                                             \
    })

#endif
