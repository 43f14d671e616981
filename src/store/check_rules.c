#include "store/check_rules.h"

#include "store/store_priv.h"

/* BLOCK_SEQS is an enumerator: the two are compared in check.c. */
#define SEQS "1024"

#define RESTORE                                                                                              \
    "restore a backup that has no such fault (lanegate store restore --replace keeps this one aside)"
#define HOW_NAMED(column, kind)                                                                              \
    "NOT EXISTS (SELECT 1 FROM names n WHERE n.id = " column " AND n.kind = " kind ")"

/* clang-format off */
const struct check_rule check_rules[] = {
    {1, "epoch",
     "SELECT count(*) <> 1, NULL FROM meta WHERE name = 'epoch' AND typeof(value) = 'blob' AND length(value) = 16",
     NULL, NULL, "one epoch, 16 bytes", RESTORE},
    {1, "seq_floor",
     "SELECT count(*) <> 1, NULL FROM meta WHERE name = 'seq_floor' AND typeof(value) = 'integer' AND value >= 1",
     NULL, NULL, "a number from 1 on, below which no seq is given again", RESTORE},
    {1, "names",
     "SELECT count(*), min(id) FROM names WHERE kind NOT IN (1, 2, 3) OR (kind = 3) <> (sink IS NOT NULL)"
     " OR id > (SELECT count(*) FROM names)",
     "names", "number", "tenants, sources and sinks, numbered from 1 without a gap", RESTORE},
    {1, "names_twice",
     "SELECT count(*), min(n) FROM (SELECT min(id) n FROM names GROUP BY kind, text, sink HAVING count(*) > 1)",
     "names", "number", "every name once", RESTORE},
    {1, "hooks",
     "SELECT count(*), min(seq) FROM hooks h WHERE seq < 1 OR length(id) <> 16 OR " HOW_NAMED("h.tenant", "1")
     " OR " HOW_NAMED("h.source", "2"),
     "hooks", "seq", "an id of 16 bytes, a known tenant and a known source", RESTORE},
    {1, "rows",
     "SELECT count(*), min(seq) FROM rows r WHERE state NOT BETWEEN 0 AND 4 OR length(lane) <> 16 OR "
     HOW_NAMED("r.tenant", "1") " OR " HOW_NAMED("r.sink", "3"),
     "rows", "seq", "a state from 0 to 4, a lane of 16 bytes or none, a known tenant and a known sink", RESTORE},
    {1, "rows_without_hook",
     "SELECT count(*), min(seq) FROM rows r WHERE NOT EXISTS (SELECT 1 FROM hooks h WHERE h.seq = r.seq)",
     "rows", "seq", "a row belongs to a stored hook", RESTORE},
    {1, "rows_disagree",
     "SELECT count(*), min(r.seq) FROM rows r JOIN hooks h ON h.seq = r.seq JOIN names s ON s.id = r.sink "
     "JOIN names o ON o.id = h.source WHERE r.tenant <> h.tenant OR r.received_at <> h.received_at OR s.text <> o.text",
     "rows", "seq", "tenant, source and time of its hook", RESTORE},
    {1, "held_without_lane",
     "SELECT count(*), min(seq) FROM rows WHERE state = 3 AND lane IS NULL",
     "rows", "seq", "only a lane can be held", RESTORE},
    {1, "blocks_missing",
     "SELECT count(*), min(seq) FROM hooks WHERE seq / " SEQS " <= (SELECT max(block) FROM blocks) "
     "AND NOT EXISTS (SELECT 1 FROM blocks WHERE block = seq / " SEQS ")",
     "hooks", "seq", "every run of " SEQS " seqs with hooks has its line in blocks, or what is owed in it is never found",
     RESTORE},
    {1, "blocks_count",
     "SELECT count(*), min(block * " SEQS ") FROM blocks b WHERE hooks <> (SELECT count(*) FROM hooks h "
     "WHERE h.seq >= b.block * " SEQS " AND h.seq < (b.block + 1) * " SEQS ")",
     "blocks", "seq", "as many hooks as are there", RESTORE},
    {1, "blocks_times",
     "SELECT count(*), min(seq) FROM hooks h JOIN blocks b ON b.block = h.seq / " SEQS
     " WHERE h.received_at < b.oldest OR h.received_at > b.newest",
     "hooks", "seq", "a time within its block's", RESTORE},
    {1, "settled_but_owed",
     "SELECT count(*), min(seq) FROM rows r WHERE state = 0 AND EXISTS "
     "(SELECT 1 FROM blocks b WHERE b.block = r.seq / " SEQS " AND b.settled)",
     "rows", "seq", "nothing is owed in a settled block: what is would never be delivered", RESTORE},
    {1, "seq_ahead",
     "SELECT count(*), min(seq) FROM rows WHERE seq >= max((SELECT ifnull(max(seq), 0) + 1 FROM hooks), "
     "(SELECT value FROM meta WHERE name = 'seq_floor'))",
     "rows", "seq", "a seq that was given already: one that was not would be given twice", RESTORE},
    {2, "attempts_without_row",
     "SELECT count(*), min(seq) FROM attempts a WHERE NOT EXISTS "
     "(SELECT 1 FROM rows r WHERE r.seq = a.seq AND r.sink = a.sink)",
     "failed attempts", "seq", "a failed attempt belongs to a row", RESTORE},
    {3, "marks",
     "SELECT count(*), min(sink) FROM marks m WHERE kind NOT IN (1, 2, 3) OR length(lane) <> 16 OR "
     HOW_NAMED("m.sink", "3"),
     "pauses or open breakers", "sink", "a known sink, a lane of 16 bytes", RESTORE},
    {4, "sizes",
     "SELECT count(*), min(r.seq) FROM rows r JOIN hooks h ON h.seq = r.seq WHERE r.size <> length(h.head) + length(h.body)",
     "rows", "seq", "the size of its hook", RESTORE},
    {5, "claims",
     "SELECT count(*), min(c.seq) FROM claims c LEFT JOIN hooks h ON h.seq = c.seq "
     "WHERE length(c.hash) <> 16 OR length(c.id) <> 16 OR c.id <> h.id",
     "dedupe keys", "seq", "a key belongs to the hook that claimed it", RESTORE},
    {5, "claims_ahead",
     "SELECT count(*), min(seq) FROM claims WHERE seq >= max((SELECT ifnull(max(seq), 0) + 1 FROM hooks), "
     "(SELECT value FROM meta WHERE name = 'seq_floor'))",
     "dedupe keys", "seq", "a seq that was given already: one that was not would be given twice", RESTORE},
    {6, "quarantine",
     "SELECT count(*), min(id) FROM pen p WHERE length(hook) <> 16 OR size <> length(head) + length(body) OR "
     HOW_NAMED("p.tenant", "1") " OR " HOW_NAMED("p.source", "2"),
     "hooks in quarantine", "number", "an id of 16 bytes, its own size, a known tenant and a known source", RESTORE},
    {7, "replays",
     "SELECT count(*), min(n) FROM replays WHERE state NOT BETWEEN 0 AND 3 OR length(id) <> 16 OR cursor > last "
     "OR hooks < 0 OR made < 0 OR owed < 0",
     "replay jobs", "number", "a known state, a cursor within its window", RESTORE},
    {9, "limits",
     "SELECT count(*), NULL FROM limits WHERE NOT (rate > 0 AND burst > 0)",
     "limits of tenants", "number", "a rate and a burst", RESTORE},
};
/* clang-format on */

const int check_rule_count = sizeof check_rules / sizeof check_rules[0];
