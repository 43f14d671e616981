/* The first hook with a dedupe key claims it: a row at the end of a table, in the transaction that makes the
 * hook durable. Only the writer commits, so nobody can be first beside it; what is in its memory is durable.
 * The rest of a batch is compared with what the batch itself will claim. A duplicate is answered when its
 * batch is, after the sync that makes its first one durable. */
#include <stdlib.h>

#include "store/store_priv.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/digest.h"
#include "util/log.h"
#include "util/mem.h"

enum { SWEEP_ROWS = 256 }; /* a transaction */

struct forgetting {
    struct list node;
    int kind;
    uint64_t seq;
    bool found;
    uint8_t claim[CLAIM_SIZE];
};

static bool claims_key(const struct store_hook *hook)
{
    return hook->dedupe_ttl_ms > 0 && hook->envelope->dedupe_key.len > 0;
}

static int64_t expires_ms(const struct store_hook *hook)
{
    return hook->envelope->received_at_ms + hook->dedupe_ttl_ms;
}

/* Lengths in front, so that no two lists of texts give the same bytes. */
void claim_make(struct store_hook *hook)
{
    const struct envelope *envelope = hook->envelope;
    if (!claims_key(hook))
        return;
    uint32_t lens[] = {(uint32_t)envelope->tenant.len, (uint32_t)envelope->source.len};
    const struct bytes parts[] = {bytes_of(lens, sizeof lens), envelope->tenant, envelope->source,
                                  envelope->dedupe_key};
    uint8_t whole[SHA256_SIZE];
    sha256(parts, sizeof parts / sizeof parts[0], whole);
    memcpy(hook->claim, whole, sizeof hook->claim);
}

/* ---- judging a batch ---- */

struct look {
    struct store *store;
    struct store_hook *hook;
    int64_t now_ms;
    bool failed;
};

static bool is_dead(sqlite3_stmt *states, uint64_t seq, bool *failed)
{
    bool dead = false;
    int rc;
    sqlite3_bind_int64(states, 1, (int64_t)seq);
    while ((rc = sqlite3_step(states)) == SQLITE_ROW)
        dead |= row_state_dead((enum row_state)sqlite3_column_int(states, 0));
    sqlite3_reset(states);
    *failed |= rc != SQLITE_DONE;
    return dead;
}

/* What memory guesses, the row knows. */
static bool is_twin(void *ctx, uint64_t seq)
{
    struct look *look = ctx;
    sqlite3_stmt **sql = look->store->writer.db.sql;
    struct store_twin *twin = &look->hook->twin;
    bool same = false;
    sqlite3_bind_int64(sql[WRITER_CLAIM_GET], 1, (int64_t)seq);
    int rc = sqlite3_step(sql[WRITER_CLAIM_GET]);
    if (rc == SQLITE_ROW) {
        struct bytes claim = db_column(sql[WRITER_CLAIM_GET], 0), id = db_column(sql[WRITER_CLAIM_GET], 1);
        same = bytes_eq(claim, bytes_of(look->hook->claim, CLAIM_SIZE)) && id.len == sizeof twin->id &&
               sqlite3_column_int64(sql[WRITER_CLAIM_GET], 2) > look->now_ms;
        if (same)
            memcpy(&twin->id, id.at, sizeof twin->id);
    }
    sqlite3_reset(sql[WRITER_CLAIM_GET]);
    look->failed |= rc != SQLITE_ROW && rc != SQLITE_DONE;
    if (same) {
        twin->found = true;
        twin->seq = seq;
        twin->dead = is_dead(sql[WRITER_STATES], seq, &look->failed);
    }
    return same || look->failed;
}

/* The hook of this batch that claims the same; NULL, and then `hook`, number `at` of it, does. */
static struct store_hook *first_in_batch(struct store *store, const struct store_hook *hook, size_t at)
{
    struct claims *claims = &store->claims;
    uint64_t home;
    memcpy(&home, hook->claim, sizeof home);
    size_t place = home & (claims->place_count - 1);
    while (claims->places[place] != 0) {
        struct store_hook *other = store->writer.batch[claims->places[place] - 1];
        if (memcmp(other->claim, hook->claim, CLAIM_SIZE) == 0)
            return other;
        place = (place + 1) & (claims->place_count - 1);
    }
    claims->places[place] = (uint32_t)(at + 1);
    return NULL;
}

static void expire(struct store *store, int64_t now_ms)
{
    struct claims *claims = &store->claims;
    size_t early = claim_index_expire(&claims->index, now_ms, store->options.max_dedupe_keys);
    if (early > 0)
        log_event(LOG_WARN, "dedupe_keys_forgotten", LOG_INT("keys", early),
                  LOG_INT("max_dedupe_keys", store->options.max_dedupe_keys),
                  LOG_STR("effect", "their hooks are not known as duplicates any more; raise "
                                    "store.max_dedupe_keys, or lower a ttl_ms"));
    atomic_store_explicit(&claims->keys, claims->index.count, memory_order_relaxed);
}

bool claims_part(struct store *store)
{
    struct claims *claims = &store->claims;
    struct writer *writer = &store->writer;
    struct look look = {.store = store, .now_ms = clock_unix_ms()};
    bool clear = false;
    size_t kept = 0;
    CHECK(list_empty(&claims->twins));
    expire(store, look.now_ms);
    for (size_t i = 0; i < writer->batch_len; i++) {
        struct store_hook *hook = writer->batch[i];
        bool twin = false;
        if (claims_key(hook) && !look.failed) {
            if (!clear)
                memset(claims->places, 0, claims->place_count * sizeof *claims->places);
            clear = true;
            look.hook = hook;
            twin = claim_index_find(&claims->index, hook->claim, is_twin, &look) && !look.failed;
            if (!twin && !look.failed) {
                hook->first_in = first_in_batch(store, hook, kept);
                twin = hook->first_in != NULL;
            }
        }
        if (twin)
            list_append(&claims->twins, &hook->node);
        else
            writer->batch[kept++] = hook;
    }
    writer->batch_len = kept;
    return !look.failed;
}

/* ---- writing ---- */

bool claim_write(struct store *store, const struct store_hook *hook, uint64_t seq)
{
    if (!claims_key(hook))
        return true;
    sqlite3_stmt *insert = store->writer.db.sql[WRITER_CLAIM];
    sqlite3_bind_int64(insert, 1, (int64_t)seq);
    sqlite3_bind_blob(insert, 2, hook->claim, CLAIM_SIZE, SQLITE_STATIC);
    sqlite3_bind_blob(insert, 3, hook->envelope->id.bytes, sizeof hook->envelope->id.bytes, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 4, expires_ms(hook));
    return db_run(insert);
}

/* No row below is needed; none at or above it is older than this moment. */
static uint64_t floor_of(const struct store *store)
{
    uint64_t floor = claim_index_floor(&store->claims.index);
    return floor < store->writer.next_seq ? floor : store->writer.next_seq;
}

/* Before anything is inserted: an empty index means that all rows there are may go. */
bool claims_sweep(struct store *store)
{
    struct claims *claims = &store->claims;
    uint64_t floor = floor_of(store);
    claims->sweeping = claims->swept;
    if (claims->swept >= floor)
        return true;
    sqlite3_stmt *sweep = store->writer.db.sql[WRITER_CLAIM_SWEEP];
    sqlite3_bind_int64(sweep, 1, floor > INT64_MAX ? INT64_MAX : (int64_t)floor);
    sqlite3_bind_int64(sweep, 2, SWEEP_ROWS);
    if (!db_run(sweep))
        return false;
    if (sqlite3_changes(store->writer.db.handle) < SWEEP_ROWS)
        claims->sweeping = floor;
    return true;
}

void claims_written(struct store *store)
{
    struct claims *claims = &store->claims;
    struct writer *writer = &store->writer;
    claims->swept = claims->sweeping;
    for (size_t i = 0; i < writer->batch_len; i++) {
        const struct store_hook *hook = writer->batch[i];
        if (claims_key(hook))
            claim_index_add(&claims->index, hook->claim, hook->envelope->seq, expires_ms(hook));
    }
    LIST_EACH (node, &claims->twins) {
        struct store_hook *hook = LIST_OWNER(node, struct store_hook, node);
        if (hook->first_in)
            hook->twin = (struct store_twin){
                .found = true, .seq = hook->first_in->envelope->seq, .id = hook->first_in->envelope->id};
    }
    atomic_store_explicit(&claims->keys, claims->index.count, memory_order_relaxed);
}

int64_t claims_due_us(const struct store *store)
{
    if (store->claims.swept < floor_of(store))
        return 0;
    int64_t due_ms = claim_index_due_ms(&store->claims.index);
    if (due_ms == INT64_MAX)
        return INT64_MAX;
    int64_t left_ms = due_ms - clock_unix_ms();
    return left_ms <= 0 ? 0 : clock_mono_us() + left_ms * 1000;
}

/* ---- freeing a key ---- */

void store_forget_key(struct store *store, uint64_t seq)
{
    struct forgetting *forgetting = mem_zalloc(sizeof *forgetting);
    forgetting->kind = CHANGE_FORGET;
    forgetting->seq = seq;
    struct list one = LIST_INIT(one);
    list_append(&one, &forgetting->node);
    changes_give(store, &one);
}

bool forget_write(struct store *store, struct list *node)
{
    struct forgetting *forgetting = LIST_OWNER(node, struct forgetting, node);
    sqlite3_stmt **sql = store->writer.db.sql;
    sqlite3_bind_int64(sql[WRITER_CLAIM_GET], 1, (int64_t)forgetting->seq);
    int rc = sqlite3_step(sql[WRITER_CLAIM_GET]);
    struct bytes claim = rc == SQLITE_ROW ? db_column(sql[WRITER_CLAIM_GET], 0) : BYTES_NONE;
    forgetting->found = claim.len == CLAIM_SIZE;
    if (forgetting->found)
        memcpy(forgetting->claim, claim.at, CLAIM_SIZE);
    sqlite3_reset(sql[WRITER_CLAIM_GET]);
    if (!forgetting->found)
        return rc == SQLITE_DONE || rc == SQLITE_ROW;
    sqlite3_bind_int64(sql[WRITER_CLAIM_DROP], 1, (int64_t)forgetting->seq);
    return db_run(sql[WRITER_CLAIM_DROP]);
}

void forget_written(struct store *store, const struct list *node)
{
    const struct forgetting *forgetting = LIST_OWNER(node, struct forgetting, node);
    if (forgetting->found)
        claim_index_remove(&store->claims.index, forgetting->claim, forgetting->seq);
}

/* ---- life ---- */

enum status claims_load(struct store *store, struct error *err)
{
    struct claims *claims = &store->claims;
    struct db *db = &store->writer.db;
    sqlite3_stmt *stmt = NULL;
    int64_t now_ms = clock_unix_ms();
    claims->place_count = 16;
    while (claims->place_count < 2 * store->options.max_batch)
        claims->place_count *= 2;
    claims->places = mem_zalloc(claims->place_count * sizeof *claims->places);

    int rc =
        sqlite3_prepare_v2(db->handle, "SELECT seq, hash, expires FROM claims ORDER BY seq", -1, &stmt, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(stmt);
        if (rc != SQLITE_ROW)
            break;
        struct bytes claim = db_column(stmt, 1);
        int64_t until_ms = sqlite3_column_int64(stmt, 2);
        if (claim.len != CLAIM_SIZE)
            rc = SQLITE_CORRUPT;
        else if (until_ms > now_ms)
            claim_index_add(&claims->index, (const uint8_t *)claim.at,
                            (uint64_t)sqlite3_column_int64(stmt, 0), until_ms);
    }
    sqlite3_finalize(stmt);
    if (rc != SQLITE_DONE)
        return error_set(err, db_status(rc), "the store's dedupe keys can't be read: %s", db_problem(db));
    expire(store, now_ms);
    return STATUS_OK;
}

void claims_free(struct claims *claims)
{
    claim_index_free(&claims->index);
    free(claims->places);
}
