/* Removal, in steps small enough to ride in a transaction of hooks without anyone waiting for it. A range was
 * planned a moment ago; whether a row keeps its hook is asked again here, by the only thread that changes
 * rows. */
#include "store/store_priv.h"
#include "util/clock.h"

enum { CHUNK = 32, BUDGET_US = 1000 };

static bool remove_range(sqlite3_stmt **sql, sqlite3 *handle, struct range range, uint32_t *hooks)
{
    static const enum writer_sql all[] = {WRITER_REMOVE_ATTEMPTS, WRITER_REMOVE_ROWS, WRITER_REMOVE_HOOKS};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        sqlite3_bind_int64(sql[all[i]], 1, (int64_t)range.from);
        sqlite3_bind_int64(sql[all[i]], 2, (int64_t)range.to);
        if (!db_run(sql[all[i]]))
            return false;
    }
    *hooks = (uint32_t)sqlite3_changes(handle);
    static const enum writer_sql count[] = {WRITER_BLOCK_TAKE, WRITER_BLOCK_DROP};
    for (size_t i = 0; i < 2 && *hooks > 0; i++) {
        sqlite3_bind_int64(sql[count[i]], 1, (int64_t)(range.from / BLOCK_SEQS));
        sqlite3_bind_int64(sql[count[i]], 2, i == 0 ? *hooks : 0);
        if (!db_run(sql[count[i]]))
            return false;
    }
    return true;
}

/* The next CHUNK seqs of the plan; false when there are none. */
static bool next_range(struct keeper *keeper, struct range *out)
{
    pthread_mutex_lock(&keeper->lock);
    bool any = keeper->plan_done < keeper->plan_len;
    if (any) {
        struct range *range = &keeper->plan[keeper->plan_done];
        *out = *range;
        if (out->to - out->from > CHUNK)
            out->to = out->from + CHUNK;
        range->from = out->to;
        keeper->plan_done += range->from == range->to;
    }
    pthread_mutex_unlock(&keeper->lock);
    return any;
}

bool remove_step(struct store *store)
{
    struct writer *writer = &store->writer;
    writer->removed_len = 0;
    if (!atomic_load_explicit(&store->keeper.planned, memory_order_relaxed))
        return true;
    int64_t until_us = clock_mono_us() + BUDGET_US;
    struct range range;
    while (writer->removed_len < PLAN_MAX && next_range(&store->keeper, &range)) {
        size_t at = writer->removed_len++;
        writer->removed[at] = range;
        if (!remove_range(writer->db.sql, writer->db.handle, range, &writer->removed_hooks[at]))
            return false;
        if (clock_mono_us() >= until_us)
            break;
    }
    /* All hooks may go: what counts them must stay. */
    return writer->removed_len == 0 || writer_put_floor(store);
}

static void plan_over(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    if (keeper->plan_done == keeper->plan_len) {
        atomic_store(&keeper->planned, false);
        pthread_cond_signal(&keeper->wake);
    }
    pthread_mutex_unlock(&keeper->lock);
}

void remove_written(struct store *store)
{
    struct writer *writer = &store->writer;
    for (size_t i = 0; i < writer->removed_len; i++) {
        blocks_count_removed(&store->blocks, writer->removed[i].from / BLOCK_SEQS, writer->removed_hooks[i]);
        atomic_fetch_sub(&store->hooks, writer->removed_hooks[i]);
    }
    if (writer->removed_len > 0)
        plan_over(&store->keeper);
    writer->removed_len = 0;
}

void remove_undone(struct store *store)
{
    struct writer *writer = &store->writer;
    if (writer->removed_len == 0)
        return;
    keeper_look_again(store, writer->removed[0].from);
    plan_over(&store->keeper);
    writer->removed_len = 0;
}
