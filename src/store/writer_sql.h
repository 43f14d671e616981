/* What the writer says to the database; each statement is prepared once. */
#ifndef STORE_WRITER_SQL_H
#define STORE_WRITER_SQL_H

#include "store/db.h" /* KEPT_STATES */

#define WRITER_SQL(X)                                                                                        \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                              \
    X(COMMIT, "COMMIT")                                                                                      \
    X(ROLLBACK, "ROLLBACK")                                                                                  \
    X(HOOK, "INSERT INTO hooks(seq, id, received_at, tenant, source, head, body) "                           \
            "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                                            \
    X(ROW, "INSERT INTO rows(seq, sink, state, tenant, lane, key, received_at, size) "                       \
           "VALUES(?1, ?2, 0, ?3, ?4, ?5, ?6, ?7)")                                                          \
    X(STATE, "SELECT state, coalesce(size, 0) FROM rows WHERE seq = ?1 AND sink = ?2")                       \
    X(STATES, "SELECT state, coalesce(size, 0), sink FROM rows WHERE seq = ?1")                              \
    X(ERASE_ATTEMPTS, "DELETE FROM attempts WHERE seq = ?1")                                                 \
    X(ERASE_ROWS, "DELETE FROM rows WHERE seq = ?1")                                                         \
    X(ERASE_HOOK, "DELETE FROM hooks WHERE seq = ?1")                                                        \
    X(CHANGE, "UPDATE rows SET state = ?3, late = ?4, attempts = ?5, first_attempt = ?6, due = ?7, "         \
              "at = ?8, waived = ?9, cls = ?10, http_status = ?11, duration = ?12, reason = ?13 "            \
              "WHERE seq = ?1 AND sink = ?2")                                                                \
    X(NOTE, "UPDATE rows SET state = ?3, late = ?4, attempts = ?5, first_attempt = ?6, due = ?7, "           \
            "at = iif(state = ?3, at, ?8), waived = ?9 WHERE seq = ?1 AND sink = ?2")                        \
    X(AUDIT, "INSERT INTO audit(at, who, what, target, reason, matched, done) "                              \
             "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                                           \
    X(AUDIT_TRIM, "DELETE FROM audit WHERE id <= last_insert_rowid() - ?1")                                  \
    X(ATTEMPT, "INSERT INTO attempts(seq, sink, at, attempt, cls, http_status, duration, reason, response) " \
               "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                                                 \
    X(ATTEMPT_TRIM, "DELETE FROM attempts WHERE id IN (SELECT id FROM attempts WHERE seq = ?1 AND "          \
                    "sink = ?2 ORDER BY id DESC LIMIT -1 OFFSET ?3)")                                        \
    X(MARK, "INSERT OR REPLACE INTO marks(kind, sink, tenant, lane, since, until, cause, opens) "            \
            "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                                                        \
    X(LIMIT, "INSERT OR REPLACE INTO limits(tenant, rate, burst) VALUES(?1, ?2, ?3)")                        \
    X(LIMIT_DROP, "DELETE FROM limits WHERE tenant = ?1")                                                    \
    X(UNMARK, "DELETE FROM marks WHERE kind = ?1 AND sink = ?2 AND tenant = ?3 AND lane = ?4")               \
    X(PEN_PUT, "INSERT INTO pen(hook, received_at, tenant, source, size, reason, head, body) "               \
               "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                                                     \
    X(PEN_HAS, "SELECT 1 FROM pen WHERE id = ?1")                                                            \
    X(PEN_DROP, "DELETE FROM pen WHERE id = ?1 RETURNING source, size")                                      \
    X(PEN_EXPIRE, "DELETE FROM pen WHERE id IN (SELECT id FROM pen WHERE received_at < ?1 ORDER BY id "      \
                  "LIMIT ?2) RETURNING source, size")                                                        \
    X(PEN_OLDEST, "SELECT received_at FROM pen ORDER BY id LIMIT 1")                                         \
    X(PEN_REASON, "UPDATE pen SET reason = ?2 WHERE id = ?1")                                                \
    X(CLAIM, "INSERT INTO claims(seq, hash, id, expires) VALUES(?1, ?2, ?3, ?4)")                            \
    X(CLAIM_GET, "SELECT hash, id, expires FROM claims WHERE seq = ?1")                                      \
    X(CLAIM_DROP, "DELETE FROM claims WHERE seq = ?1")                                                       \
    X(CLAIM_SWEEP,                                                                                           \
      "DELETE FROM claims WHERE seq IN (SELECT seq FROM claims WHERE seq < ?1 ORDER BY seq LIMIT ?2)")       \
    X(MOVE, "UPDATE rows SET lane = ?3, key = ?4, attempts = coalesce(attempts, 0), "                        \
            "late = max(coalesce(late, 0), ?3 IS NOT NULL) WHERE seq = ?1 AND sink = ?2")                    \
    X(REPLAY, "INSERT INTO replays(n, id, state, why, tenant, source, sink, since, until, rate, max_lag, "   \
              "first, cursor, last, created, changed, who, reason, origin, failure, since_text, "            \
              "until_text, planned, gone) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "                           \
              "?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24) "              \
              "ON CONFLICT(n) DO UPDATE SET state = ?3, why = ?4, rate = ?10, changed = ?16, "               \
              "planned = max(planned, ?23), gone = max(gone, ?24), dead_run = 0")                            \
    X(REPLAY_TRIM, "DELETE FROM replays WHERE n <= ?1 AND state IN (2, 3)")                                  \
    X(REPLAY_STEP, "UPDATE replays SET cursor = ?2, first = iif(hooks = 0 AND origin = 0, ?6, first), "      \
                   "hooks = hooks + ?3, made = made + ?4, owed = owed + ?5, gone = gone + ?7, "              \
                   "failed = failed + ?8 WHERE n = ?1")                                                      \
    X(REPLAY_RELEASED, "UPDATE replays SET hooks = hooks + 1, released = released + ?2, "                    \
                       "duplicates = duplicates + ?3, made = made + ?4 WHERE n = ?1")                        \
    X(REPLAY_OWN, "UPDATE rows SET replay = ?2, attempts = 0 WHERE seq = ?1") /* 0: it has a story */        \
    X(REPLAY_COUNT, "UPDATE replays SET done = done + ?2, dead = dead + ?3, given_up = given_up + ?4, "      \
                    "dead_run = iif(?2 > 0, 0, dead_run + max(?3, 0)) WHERE n = ?1")                         \
    X(REPLAY_LOOK, "SELECT state, coalesce(size, 0), lane FROM rows WHERE seq = ?1 AND sink = ?2")           \
    X(REPLAY_ROW,                                                                                            \
      "INSERT INTO rows(seq, sink, state, tenant, lane, key, received_at, size, attempts, "                  \
      "late, replay) SELECT seq, ?2, 0, tenant, ?3, ?4, received_at, "                                       \
      "length(head) + length(body), 0, 0, ?5 FROM hooks WHERE seq = ?1 "                                     \
      "ON CONFLICT(seq, sink) DO UPDATE SET before = state, state = 0, "                                     \
      "lane = iif(state IN " DEAD_STATES ", lane, excluded.lane), "                                          \
      "key = iif(state IN " DEAD_STATES ", key, excluded.key), attempts = 0, first_attempt = 0, "            \
      "due = 0, waived = 0, replay = excluded.replay WHERE state <> 0")                                      \
    X(REPLAY_NO_MORE, "UPDATE rows SET replay = NULL WHERE seq = ?1 AND sink = ?2 AND replay IS NOT NULL")   \
    X(NAME, "INSERT OR IGNORE INTO names(id, kind, text, sink) VALUES(?1, ?2, ?3, ?4)")                      \
    X(META, "INSERT INTO meta(name, value) VALUES(?1, ?2) "                                                  \
            "ON CONFLICT(name) DO UPDATE SET value = excluded.value")                                        \
    X(BLOCK_PUT, "INSERT INTO blocks(block, hooks, oldest, newest, settled) VALUES(?1, ?2, ?3, ?4, ?5) "     \
                 "ON CONFLICT(block) DO UPDATE SET hooks = excluded.hooks, oldest = excluded.oldest, "       \
                 "newest = excluded.newest, settled = excluded.settled")                                     \
    X(BLOCK_GET, "SELECT hooks, oldest, newest FROM blocks WHERE block = ?1")                                \
    X(BLOCK_TAKE, "UPDATE blocks SET hooks = hooks - ?2 WHERE block = ?1")                                   \
    X(BLOCK_DROP, "DELETE FROM blocks WHERE block = ?1 AND hooks <= ?2")                                     \
    X(BLOCK_OWED, "UPDATE blocks SET settled = 0 WHERE block = ?1")                                          \
    X(REMOVE_ROWS, "DELETE FROM rows WHERE seq >= ?1 AND seq < ?2 AND NOT EXISTS "                           \
                   "(SELECT 1 FROM rows k WHERE k.seq = rows.seq AND k.state IN " KEPT_STATES ")")           \
    X(REMOVE_ATTEMPTS, "DELETE FROM attempts WHERE seq >= ?1 AND seq < ?2 AND NOT EXISTS "                   \
                       "(SELECT 1 FROM rows k WHERE k.seq = attempts.seq AND k.state IN " KEPT_STATES ")")   \
    X(REMOVE_HOOKS, "DELETE FROM hooks WHERE seq >= ?1 AND seq < ?2 AND NOT EXISTS "                         \
                    "(SELECT 1 FROM rows k WHERE k.seq = hooks.seq AND k.state IN " KEPT_STATES ")")

enum writer_sql {
#define WRITER_SQL_ENUM(id, text) WRITER_##id,
    WRITER_SQL(WRITER_SQL_ENUM)
#undef WRITER_SQL_ENUM
        WRITER_SQL_COUNT
};

#endif
