/* A job that was cancelled takes back what it made and what has not begun: attempts under way end, and what
 * fails then is taken back too, until nothing of it is owed. */
#include <string.h>

#include "replay/replay_priv.h"
#include "util/clock.h"

enum { AGAIN_MS = 300 };

struct page {
    struct lanes_row rows[LANES_ROWS_MAX];
    size_t len;
    uint32_t number;
};

/* Rows of one hook stay together: the next page begins with a hook. */
static bool take(void *ctx, const struct store_replay_owed *row)
{
    struct page *page = ctx;
    if (page->len == LANES_ROWS_MAX) {
        while (page->len > 0 && page->rows[page->len - 1].seq == row->seq)
            page->len--;
        return false;
    }
    struct lanes_row *out = &page->rows[page->len++];
    *out = (struct lanes_row){.seq = row->seq,
                              .sink = row->sink,
                              .tenant = row->tenant,
                              .state = row->before,
                              .ordered = row->ordered,
                              .received_ms = row->received_at_ms,
                              .replay = page->number};
    memcpy(out->lane, row->lane, sizeof out->lane);
    return true;
}

/* Gives how many rows are owed still, or were until now. */
static enum status withdraw(struct replays *replays, const struct store_replay *is, uint64_t *owed)
{
    struct page page;
    enum lanes_answer answers[LANES_ROWS_MAX];
    uint64_t from = 0;
    bool end = false;
    enum status status = STATUS_OK;
    *owed = 0;
    while (status == STATUS_OK && !end) {
        page.len = 0;
        page.number = is->number;
        status = store_list_replay_owed(replays->reader, is, &from, &end, take, &page);
        *owed += page.len;
        if (status == STATUS_OK && page.len > 0 &&
            lanes_withdraw(replays->options.lanes, page.rows, page.len, answers) != LANES_DONE)
            return STATUS_UNAVAILABLE;
    }
    return status;
}

static bool take_replay(void *ctx, const struct store_replay *replay)
{
    *(struct store_replay *)ctx = *replay;
    return false;
}

bool job_withdraw(struct replays *replays, struct job *job)
{
    uint64_t owed = 0;
    struct store_replay is = {.number = 0};
    if (job->withdrawn && clock_mono_ms() < job->again_at_ms)
        return false;
    enum status status =
        store_list_replays(replays->reader, job->is.number, job->is.number, take_replay, &is);
    if (status == STATUS_OK && is.number == job->is.number)
        status = withdraw(replays, &is, &owed);
    bool over = status == STATUS_OK && owed == 0;
    job->withdrawn = true;
    job->again_at_ms = clock_mono_ms() + AGAIN_MS;
    return over;
}
