/* One reader: a connection and its statements, for one thread. */
#ifndef STORE_READER_PRIV_H
#define STORE_READER_PRIV_H

#include <stdlib.h>

#include "store/store_priv.h"

#define READER_SQL(X)                                                                                        \
    X(HOOK, "SELECT id, received_at, tenant, source, head, body FROM hooks WHERE seq = ?1")                  \
    X(PEN, "SELECT id, hook, received_at, tenant, source, size, reason FROM pen WHERE id > ?1 ORDER BY id")  \
    X(PEN_HOOK,                                                                                              \
      "SELECT id, hook, received_at, tenant, source, size, reason FROM pen WHERE id > ?1 AND hook = ?2")     \
    X(PEN_READ, "SELECT hook, received_at, tenant, source, head, body FROM pen WHERE id = ?1")               \
    X(TAIL, "SELECT ifnull(max(block) + 1, 0) FROM blocks")                                                  \
    X(BLOCKS_AT, "SELECT block FROM blocks WHERE oldest <= ?1 AND newest >= ?1 ORDER BY block DESC")         \
    X(FIND, "SELECT seq FROM hooks WHERE seq >= ?1 AND seq < ?2 AND id = ?3")                                \
    X(ROWS, "SELECT " ROW_COLUMNS ", h.id, length(h.body) FROM rows r JOIN hooks h ON h.seq = r.seq "        \
            "WHERE r.seq = ?1 AND r.sink >= ?2 AND r.sink <= ?3 ORDER BY r.sink")                            \
    X(NEWEST, "SELECT seq, id, received_at, tenant, source, length(body), head FROM hooks "                  \
              "WHERE seq < ?1 ORDER BY seq DESC LIMIT 1")                                                    \
    X(FIRST, "SELECT seq, id, received_at FROM hooks ORDER BY seq LIMIT 1")                                  \
    X(LAST, "SELECT seq, id, received_at FROM hooks ORDER BY seq DESC LIMIT 1")                              \
    X(BLOCK, "SELECT oldest, newest FROM blocks WHERE block = ?1")                                           \
    X(AUDIT, "SELECT id, at, who, what, target, reason, matched, done FROM audit WHERE id < ?1 "             \
             "AND (?2 IS NULL OR who = ?2) AND (?3 IS NULL OR what = ?3) AND at >= ?4 AND at < ?5 "          \
             "ORDER BY id DESC LIMIT ?6")                                                                    \
    X(ATTEMPTS, "SELECT sink, at, attempt, cls, http_status, duration, reason, response FROM attempts "      \
                "WHERE seq = ?1 ORDER BY sink, id")                                                          \
    X(OPEN_BLOCK, "SELECT block FROM blocks WHERE block >= ?1 AND settled = 0 ORDER BY block LIMIT 1")       \
    X(PENDING, "SELECT " ROW_COLUMNS " FROM rows r WHERE r.seq >= ?1 AND r.seq < ?2 AND r.sink = ?3 "        \
               "AND r.state = 0 ORDER BY r.seq")                                                             \
    X(STATES, "SELECT state FROM rows WHERE seq = ?1")                                                       \
    X(DONE, "SELECT seq, sink, tenant, lane FROM rows WHERE seq >= ?1 AND seq < ?2 AND state = 1 "           \
            "AND lane IS NOT NULL")                                                                          \
    X(WALK, "SELECT seq, received_at, tenant, source FROM hooks WHERE seq > ?1 AND seq <= ?2 ORDER BY seq")  \
    X(REPLAYS,                                                                                               \
      "SELECT n, id, state, why, tenant, source, sink, since, until, rate, max_lag, first, cursor, "         \
      "last, hooks, made, owed, done, dead, given_up, dead_run, created, changed, who, reason, "             \
      "origin, failure, since_text, until_text, planned, gone, released, duplicates, failed "                \
      "FROM replays WHERE n >= ?1 AND n <= ?2 ORDER BY n DESC")                                              \
    X(REPLAYED,                                                                                              \
      "SELECT DISTINCT sink, tenant, lane FROM rows WHERE seq >= ?1 AND seq <= ?2 AND replay = ?3 "          \
      "AND lane IS NOT NULL")                                                                                \
    X(REPLAY_OWED,                                                                                           \
      "SELECT r.seq, r.sink, r.tenant, r.lane, r.received_at, r.before FROM rows r "                         \
      "WHERE r.seq >= ?1 AND r.seq < ?2 AND r.replay = ?3 AND r.state = 0 ORDER BY r.seq, r.sink")           \
    X(DEAD,                                                                                                  \
      "SELECT seq, sink, tenant, cls, at, lane, late FROM rows INDEXED BY dead WHERE state IN " DEAD_STATES  \
      " AND seq >= ?1 ORDER BY seq, sink")

enum reader_sql {
#define READER_SQL_ENUM(id, text) READER_##id,
    READER_SQL(READER_SQL_ENUM)
#undef READER_SQL_ENUM
        READER_SQL_COUNT
};

/* dead.c: where in the index the hooks that a filter asks for begin, and whether they are behind us. */
static inline uint64_t dead_first(const struct store_dead_filter *filter, uint64_t from)
{
    return filter->seq > from ? filter->seq : from;
}

static inline bool dead_over(const struct store_dead_filter *filter, uint64_t seq)
{
    return filter->seq > 0 && seq > filter->seq;
}

/* dead.c: whether the row of READER_DEAD that stands there is asked for. */
bool dead_matches(struct store *store, const struct store_dead_filter *filter, sqlite3_stmt *stmt);

struct store_reader {
    struct store *store;
    struct db db;
};

/* OK or NOT_FOUND when SQLite was content, else IO or CORRUPT. */
enum status reader_status(int rc, bool found);
/* A hook out of the columns id, received_at, tenant, source, head, body. */
enum status reader_envelope(struct store *store, sqlite3_stmt *stmt, uint64_t seq, struct envelope **out);
/* A row of READER_ROWS. */
bool reader_row(struct store_reader *reader, sqlite3_stmt *stmt, struct store_row_view *view);

#endif
