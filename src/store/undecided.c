/* When a commit fails at the write of the log or at its sync, nobody knows whether a crash now would bring
 * the batch back: its frames may be on the disk, whole and with their commit mark. Answering 503 would be a
 * lie if they are, answering 201 if they are not. So nothing is answered until the frames can't be read any
 * more.
 *
 * That is brought about by a small transaction in their place. SQLite has not moved its end of the log, so
 * the next transaction's frames go to the same offset, over the first frames of the batch. Every frame
 * carries a checksum over the header's salts, all frames before it and itself; recovery stops at the first
 * one that does not fit. Once the replacing frames are synced, what is left of the batch behind them
 * continues a chain that no longer exists: it fits only if the replacing frames were equal, byte for byte, to
 * those they replaced. They never are, since each try writes a number of its own (`replaced`). The sync is a
 * true one even where a failed sync has made the kernel forget dirty pages, because these pages were written
 * again before it.
 *
 *      commit fails ──▶ undecided ──replaced──▶ the batch gets UNAVAILABLE, hooks are taken again
 *                           │
 *                  commit_timeout_ms ──▶ the batch gets IO (no answer); still undecided, until replaced
 */
#include "store/store_priv.h"
#include "util/clock.h"
#include "util/log.h"

enum { REPLACE_EVERY_MS = 100 };

void undecided_enter(struct store *store)
{
    struct writer *writer = &store->writer;
    log_event(LOG_ERROR, "store_commit_failed", LOG_STR("reason", db_problem(&writer->db)),
              LOG_INT("hooks", writer->batch_len));
    if (!sqlite3_get_autocommit(writer->db.handle))
        db_run(writer->db.sql[WRITER_ROLLBACK]);
    atomic_store(&store->undecided_since_ms, clock_unix_ms());
    atomic_store(&store->undecided, true);
    changes_set_stuck(&store->changes, true);
    writer->undecided_since_us = clock_mono_us();
    writer->replace_at_us = writer->undecided_since_us + REPLACE_EVERY_MS * 1000;
}

static bool replace(struct store *store)
{
    struct writer *writer = &store->writer;
    sqlite3_stmt **sql = writer->db.sql;
    if (!sqlite3_get_autocommit(writer->db.handle) && !db_run(sql[WRITER_ROLLBACK]))
        return false;
    bool filled = db_run(sql[WRITER_BEGIN]) && writer_put_floor(store);
    if (filled) {
        sqlite3_bind_text(sql[WRITER_META], 1, "replaced", -1, SQLITE_STATIC);
        sqlite3_bind_int64(sql[WRITER_META], 2, ++writer->replaced);
        filled = db_run(sql[WRITER_META]);
    }
    if (filled && db_run(sql[WRITER_COMMIT]))
        return true;
    if (!sqlite3_get_autocommit(writer->db.handle))
        db_run(sql[WRITER_ROLLBACK]);
    return false;
}

bool undecided_turn(struct store *store)
{
    struct writer *writer = &store->writer;
    writer_refuse_waiting(store); /* never written: that much is certain */

    int64_t now_us = clock_mono_us();
    if (now_us >= writer->replace_at_us) {
        if (replace(store)) {
            log_event(LOG_INFO, "store_commit_replaced",
                      LOG_INT("after_ms", (clock_mono_us() - writer->undecided_since_us) / 1000));
            writer->floor_dirty = false;
            atomic_store(&store->failing, false);
            atomic_store(&store->undecided, false);
            atomic_store(&store->undecided_since_ms, 0);
            changes_set_stuck(&store->changes, false);
            writer_answer(store, STATUS_UNAVAILABLE);
            return true;
        }
        writer->replace_at_us = clock_mono_us() + REPLACE_EVERY_MS * 1000;
    }
    int64_t close_at_us = writer->undecided_since_us + store->options.commit_timeout_ms * 1000;
    if (now_us >= close_at_us) {
        writer_answer(store, STATUS_IO);
        /* Outcomes that could not be written are owed again after the next start. */
        if (atomic_load(&store->draining) && atomic_load(&store->queue.hooks) == 0)
            return false;
        close_at_us = INT64_MAX;
    }
    queue_sleep(&store->queue, close_at_us < writer->replace_at_us ? close_at_us : writer->replace_at_us);
    return true;
}
