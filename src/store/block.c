/* Blocks of seqs: see store_priv.h. In memory are those that are not settled, plus the one being filled. */
#include <stdlib.h>

#include "store/store_priv.h"
#include "util/check.h"

static size_t place_of(const struct blocks *blocks, uint64_t number)
{
    size_t low = 0, high = blocks->open.len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (blocks->open.at[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct block *find(const struct blocks *blocks, uint64_t number)
{
    size_t at = place_of(blocks, number);
    return at < blocks->open.len && blocks->open.at[at].number == number ? &blocks->open.at[at] : NULL;
}

static struct block *insert(struct blocks *blocks, uint64_t number)
{
    size_t at = place_of(blocks, number);
    (void)VEC_ADD(&blocks->open);
    memmove(&blocks->open.at[at + 1], &blocks->open.at[at],
            (blocks->open.len - 1 - at) * sizeof *blocks->open.at);
    blocks->open.at[at] = (struct block){.number = number, .oldest_ms = INT64_MAX, .newest_ms = INT64_MIN};
    return &blocks->open.at[at];
}

static void set_dirty(struct blocks *blocks, struct block *block)
{
    blocks->dirty += !block->dirty;
    block->dirty = true;
}

/* Both times count: hooks are found by the time in their id and listed by the time they were received. */
static void add_hook(struct block *block, const struct uuid *id, int64_t received_at_ms)
{
    int64_t made_ms = uuid_unix_ms(id);
    int64_t first = made_ms < received_at_ms ? made_ms : received_at_ms;
    int64_t last = made_ms < received_at_ms ? received_at_ms : made_ms;
    block->hooks++;
    block->oldest_ms = first < block->oldest_ms ? first : block->oldest_ms;
    block->newest_ms = last > block->newest_ms ? last : block->newest_ms;
}

/* The block that hooks go to now; the one before is full and gets its row. */
static struct block *filling(struct blocks *blocks, uint64_t number)
{
    struct block *block = find(blocks, number);
    if (block)
        return block;
    struct block *before = find(blocks, blocks->last);
    if (before && blocks->last < number)
        set_dirty(blocks, before);
    blocks->last = number;
    return insert(blocks, number);
}

void blocks_add_hook(struct blocks *blocks, const struct envelope *envelope, size_t rows)
{
    struct block *block = filling(blocks, envelope->seq / BLOCK_SEQS);
    add_hook(block, &envelope->id, envelope->received_at_ms);
    block->pending += (uint32_t)rows;
}

void blocks_shift_row(struct blocks *blocks, uint64_t seq, enum row_state was, enum row_state is)
{
    int shift = (is == ROW_PENDING) - (was == ROW_PENDING);
    if (shift == 0)
        return;
    uint64_t number = seq / BLOCK_SEQS;
    struct block *block = find(blocks, number);
    if (!block) {
        /* Settled, and now owed again: blocks_write reads what is stored of it. */
        block = insert(blocks, number);
        set_dirty(blocks, block);
    }
    CHECK(shift > 0 || block->pending > 0);
    block->pending += (uint32_t)shift;
    if (block->pending == 0 && number < blocks->last)
        set_dirty(blocks, block);
}

void blocks_count_removed(struct blocks *blocks, uint64_t number, uint32_t hooks)
{
    struct block *block = find(blocks, number);
    if (block)
        block->hooks -= hooks < block->hooks ? hooks : block->hooks;
}

/* A block that was settled has lost its numbers in memory. */
static bool recall(sqlite3_stmt *get, struct block *block)
{
    sqlite3_bind_int64(get, 1, (int64_t)block->number);
    int rc = sqlite3_step(get);
    if (rc == SQLITE_ROW) {
        block->hooks = (uint32_t)sqlite3_column_int64(get, 0);
        block->oldest_ms = sqlite3_column_int64(get, 1);
        block->newest_ms = sqlite3_column_int64(get, 2);
    }
    sqlite3_reset(get);
    return rc == SQLITE_ROW || rc == SQLITE_DONE;
}

bool blocks_write(struct store *store)
{
    struct blocks *blocks = &store->blocks;
    if (blocks->dirty == 0)
        return true;
    sqlite3_stmt **sql = store->writer.db.sql;
    VEC_EACH (block, &blocks->open) {
        if (!block->dirty)
            continue;
        if (block->oldest_ms == INT64_MAX && !recall(sql[WRITER_BLOCK_GET], block))
            return false;
        block->writing = true;
        sqlite3_stmt *stmt = sql[block->hooks > 0 ? WRITER_BLOCK_PUT : WRITER_BLOCK_DROP];
        sqlite3_bind_int64(stmt, 1, (int64_t)block->number);
        if (block->hooks > 0) {
            sqlite3_bind_int64(stmt, 2, block->hooks);
            sqlite3_bind_int64(stmt, 3, block->oldest_ms);
            sqlite3_bind_int64(stmt, 4, block->newest_ms);
            sqlite3_bind_int(stmt, 5, block->pending == 0);
        } else {
            sqlite3_bind_int64(stmt, 2, INT64_MAX);
        }
        if (!db_run(stmt))
            return false;
    }
    return true;
}

/* Before anything of the same transaction is counted: what is counted now was not written. */
void blocks_written(struct store *store)
{
    struct blocks *blocks = &store->blocks;
    if (blocks->dirty == 0)
        return;
    size_t kept = 0;
    VEC_EACH (block, &blocks->open) {
        if (block->writing) {
            block->writing = block->dirty = false;
            blocks->dirty--;
            if (block->pending == 0 && block->number < blocks->last)
                continue; /* settled, and its row says so */
        }
        blocks->open.at[kept++] = *block;
    }
    blocks->open.len = kept;
}

/* A crash may have come before a full block got its row: those above the last row are made again from their
 * hooks. They are few. */
static enum status load_tail(struct store *store, struct error *err)
{
    struct db *db = &store->writer.db;
    struct blocks *blocks = &store->blocks;
    int64_t after;
    sqlite3_stmt *stmt = NULL;
    int rc = SQLITE_ERROR;
    if (!db_int(db, "SELECT max(block) + 1 FROM blocks", 0, &after) ||
        sqlite3_prepare_v2(db->handle, "SELECT seq, id, received_at FROM hooks WHERE seq >= ?1 ORDER BY seq",
                           -1, &stmt, NULL) != SQLITE_OK)
        goto out;
    sqlite3_bind_int64(stmt, 1, after * BLOCK_SEQS);
    blocks->last = store->writer.next_seq / BLOCK_SEQS;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct bytes id = db_column(stmt, 1);
        if (id.len != sizeof(struct uuid)) {
            rc = SQLITE_CORRUPT;
            break;
        }
        uint64_t number = (uint64_t)sqlite3_column_int64(stmt, 0) / BLOCK_SEQS;
        struct block *block = find(blocks, number);
        if (!block)
            block = insert(blocks, number);
        add_hook(block, (const struct uuid *)(const void *)id.at, sqlite3_column_int64(stmt, 2));
        if (number < blocks->last)
            set_dirty(blocks, block);
        atomic_fetch_add(&store->hooks, 1);
    }

out:
    sqlite3_finalize(stmt);
    return rc == SQLITE_DONE
               ? STATUS_OK
               : error_set(err, db_status(rc), "the store's hooks can't be read: %s", db_problem(db));
}

enum status blocks_load(struct store *store, struct error *err)
{
    struct db *db = &store->writer.db;
    sqlite3_stmt *stmt = NULL;
    int64_t hooks;
    int rc = SQLITE_ERROR;
    if (db_int(db, "SELECT sum(hooks) FROM blocks", 0, &hooks))
        rc = sqlite3_prepare_v2(
            db->handle, "SELECT block, hooks, oldest, newest FROM blocks WHERE settled = 0 ORDER BY block",
            -1, &stmt, NULL);
    if (rc == SQLITE_OK) {
        atomic_store(&store->hooks, (uint64_t)hooks);
        while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
            *VEC_ADD(&store->blocks.open) = (struct block){
                .number = (uint64_t)sqlite3_column_int64(stmt, 0),
                .hooks = (uint32_t)sqlite3_column_int64(stmt, 1),
                .oldest_ms = sqlite3_column_int64(stmt, 2),
                .newest_ms = sqlite3_column_int64(stmt, 3),
            };
        }
    }
    sqlite3_finalize(stmt);
    if (rc != SQLITE_DONE)
        return error_set(err, db_status(rc), "the store's blocks can't be read: %s", db_problem(db));
    return load_tail(store, err);
}

void blocks_forget_owed(struct blocks *blocks)
{
    VEC_EACH (block, &blocks->open)
        block->pending = 0;
}

void blocks_count_owed(struct blocks *blocks, uint64_t seq, enum row_state state)
{
    struct block *block = find(blocks, seq / BLOCK_SEQS);
    if (block)
        block->pending += state == ROW_PENDING;
}

void blocks_counted(struct blocks *blocks)
{
    VEC_EACH (block, &blocks->open) {
        if (block->pending == 0 && block->number < blocks->last)
            set_dirty(blocks, block);
    }
}

void blocks_free(struct blocks *blocks)
{
    VEC_FREE(&blocks->open);
}
