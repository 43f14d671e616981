/* A row that waits moves to another lane, or out of the lanes. */
#include "store/store_priv.h"
#include "util/mem.h"

struct move {
    struct list node;
    int kind;
    uint64_t seq;
    uint32_t sink;
    bool ordered, has_key;
    uint8_t lane[16];
    size_t key_len;
    char key[];
};

void store_move_row(struct store *store, const struct store_lane_move *to)
{
    struct move *move = mem_alloc(sizeof *move + to->key.len);
    *move = (struct move){.kind = CHANGE_MOVE,
                          .seq = to->seq,
                          .sink = to->sink,
                          .ordered = to->ordered,
                          .has_key = to->ordered && to->key.at,
                          .key_len = to->key.len};
    memcpy(move->lane, to->lane, sizeof move->lane);
    if (to->key.len)
        memcpy(move->key, to->key.at, to->key.len);
    struct list one = LIST_INIT(one);
    list_append(&one, &move->node);
    changes_give(store, &one);
}

bool move_write(sqlite3_stmt **sql, const struct list *node)
{
    const struct move *move = LIST_OWNER(node, struct move, node);
    sqlite3_stmt *stmt = sql[WRITER_MOVE];
    sqlite3_bind_int64(stmt, 1, (int64_t)move->seq);
    sqlite3_bind_int64(stmt, 2, move->sink);
    db_bind(stmt, 3, move->ordered ? bytes_of(move->lane, sizeof move->lane) : BYTES_NONE);
    db_bind(stmt, 4, move->has_key ? bytes_of(move->key, move->key_len) : BYTES_NONE);
    return db_run(stmt);
}
