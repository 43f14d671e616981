/* How many dead letters there are, and how late those of them are that their lane has overtaken: how many
 * later hooks were delivered already. No counter is kept of that, so it is counted when somebody asks, and
 * only as far as a look at what is stored may take. */
#include "store/reader_priv.h"
#include "util/clock.h"

enum {
    DEAD_STEP = 20000,      /* dead letters a read transaction */
    DONE_STEP_SEQS = 16384, /* seqs a read transaction */
    LANES_MAX = 100000,     /* late rows whose lanes are remembered */
    LOOK_BUDGET_MS = 1000,
};

/* A lane, and the lowest seq of it that is late. */
struct late {
    uint32_t sink, tenant;
    uint8_t lane[16];
    uint64_t seq;
};

struct sum {
    struct store_dead_sum *out;
    VEC(struct late) late;
    bool too_many;
};

static int compare(const void *left, const void *right)
{
    const struct late *a = left, *b = right;
    if (a->sink != b->sink)
        return a->sink < b->sink ? -1 : 1;
    if (a->tenant != b->tenant)
        return a->tenant < b->tenant ? -1 : 1;
    return memcmp(a->lane, b->lane, sizeof a->lane);
}

static int compare_seq(const void *left, const void *right)
{
    const struct late *a = left, *b = right;
    int order = compare(a, b);
    return order ? order : (a->seq > b->seq) - (a->seq < b->seq);
}

static void count_row(struct sum *sum, sqlite3_stmt *stmt)
{
    struct bytes lane = db_column(stmt, 5);
    bool late = sqlite3_column_int(stmt, 6) != 0 && lane.len == 16;
    sum->out->rows++;
    sum->out->late += late;
    if (!late)
        return;
    sum->too_many |= sum->late.len == LANES_MAX;
    if (sum->too_many)
        return;
    struct late *entry = VEC_ADD(&sum->late);
    *entry = (struct late){.sink = (uint32_t)sqlite3_column_int64(stmt, 1),
                           .tenant = (uint32_t)sqlite3_column_int64(stmt, 2),
                           .seq = (uint64_t)sqlite3_column_int64(stmt, 0)};
    memcpy(entry->lane, lane.at, lane.len);
}

/* One read transaction from `*seq` and `*sink` on. ROW when there is more. */
static int count_step(struct store_reader *reader, const struct store_dead_filter *filter, uint64_t *seq,
                      uint32_t *sink, struct sum *sum)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_DEAD);
    int rc = SQLITE_ROW;
    sqlite3_bind_int64(stmt, 1, (int64_t)dead_first(filter, *seq));
    for (size_t n = 0; n < DEAD_STEP && (rc = sqlite3_step(stmt)) == SQLITE_ROW;) {
        uint64_t at = (uint64_t)sqlite3_column_int64(stmt, 0);
        uint32_t of = (uint32_t)sqlite3_column_int64(stmt, 1);
        if (at == *seq && of <= *sink)
            continue;
        if (dead_over(filter, at)) {
            rc = SQLITE_DONE;
            break;
        }
        n++;
        *seq = at;
        *sink = of;
        if (dead_matches(reader->store, filter, stmt))
            count_row(sum, stmt);
    }
    sqlite3_reset(stmt);
    return rc;
}

/* One entry a lane: that of its lowest seq. */
static uint64_t tidy(struct sum *sum)
{
    uint64_t lowest = UINT64_MAX;
    size_t kept = 0;
    qsort(sum->late.at, sum->late.len, sizeof sum->late.at[0], compare_seq);
    VEC_EACH (entry, &sum->late) {
        lowest = entry->seq < lowest ? entry->seq : lowest;
        if (kept == 0 || compare(&sum->late.at[kept - 1], entry) != 0)
            sum->late.at[kept++] = *entry;
    }
    sum->late.len = kept;
    return lowest;
}

static int64_t done_between(struct store_reader *reader, const struct sum *sum, uint64_t from, uint64_t to,
                            int *rc)
{
    sqlite3_stmt *stmt = db_sql(&reader->db, READER_DONE);
    int64_t count = 0;
    sqlite3_bind_int64(stmt, 1, (int64_t)from);
    sqlite3_bind_int64(stmt, 2, (int64_t)to);
    while ((*rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct bytes lane = db_column(stmt, 3);
        struct late row = {.sink = (uint32_t)sqlite3_column_int64(stmt, 1),
                           .tenant = (uint32_t)sqlite3_column_int64(stmt, 2)};
        if (lane.len != sizeof row.lane)
            continue;
        memcpy(row.lane, lane.at, lane.len);
        const struct late *late = bsearch(&row, sum->late.at, sum->late.len, sizeof sum->late.at[0], compare);
        count += late && (uint64_t)sqlite3_column_int64(stmt, 0) > late->seq;
    }
    sqlite3_reset(stmt);
    return count;
}

static int count_delivered(struct store_reader *reader, struct sum *sum)
{
    uint64_t from = tidy(sum) + 1, end = atomic_load(&reader->store->next_seq);
    int64_t until_ms = clock_mono_ms() + LOOK_BUDGET_MS, count = 0;
    int rc = SQLITE_DONE;
    for (; from < end && rc == SQLITE_DONE; from += DONE_STEP_SEQS) {
        if (clock_mono_ms() >= until_ms) {
            sum->too_many = true;
            return rc;
        }
        count += done_between(reader, sum, from, from + DONE_STEP_SEQS, &rc);
    }
    sum->out->delivered_after = count;
    return rc;
}

enum status store_sum_dead(struct store_reader *reader, const struct store_dead_filter *filter,
                           struct store_dead_sum *out)
{
    struct sum sum = {.out = out};
    uint64_t seq = 0;
    uint32_t sink = 0;
    int rc;
    *out = (struct store_dead_sum){0};
    do
        rc = count_step(reader, filter, &seq, &sink, &sum);
    while (rc == SQLITE_ROW);
    if (rc == SQLITE_DONE && sum.late.len > 0 && !sum.too_many)
        rc = count_delivered(reader, &sum);
    if (sum.too_many)
        out->delivered_after = -1;
    VEC_FREE(&sum.late);
    return reader_status(rc, true);
}
