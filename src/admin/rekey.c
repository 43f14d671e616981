/* POST /v1/sinks/{source}/{sink}/rekey: the rows that wait for a sink take the lanes that the running
 * configuration gives them, resolved from their stored envelopes, and keep their seqs. The sink stands still
 * meanwhile: were some rows of a key moved and others not, a later one could overtake. On the worker's
 * thread. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/admin_priv.h"
#include "order/order.h"
#include "util/clock.h"
#include "util/mem.h"
#include "util/vec.h"

enum {
    PAUSE_MS = 10 * 60 * 1000, /* should the process die: the pause ends by itself */
    RUNNING_WAIT_MS = 5000,    /* for attempts under way */
    PAGE_ROWS = 500,
};

/* A page of waiting rows, and where they go. Keys live in the arena, which is emptied with the page. */
struct page {
    struct ask *ask;
    struct arena *arena;
    struct lanes_move moves[PAGE_ROWS];
    size_t len;
    uint64_t last_seq;
};

struct tally {
    uint64_t matched; /* rows that wait */
    uint64_t moved;   /* to another lane, or would be */
    uint64_t missing; /* of the moved: into the keyless lane */
};

static bool take_row(void *ctx, const struct store_row_view *row)
{
    struct page *page = ctx;
    struct lanes_move *move = &page->moves[page->len++];
    page->last_seq = row->seq;
    *move = (struct lanes_move){.seq = row->seq, .tenant = row->tenant, .from_ordered = row->ordered};
    memcpy(move->from, row->lane, sizeof move->from);
    return page->len < PAGE_ROWS;
}

/* False when the hook can't be read. A hook that the filter would not take today stays where it is. */
static bool resolve(struct page *page, const struct admin_sink *sink, struct lanes_move *move)
{
    const struct admin_options *options = &page->ask->admin->options;
    struct envelope *envelope = NULL;
    if (store_read_hook(page->ask->reader, move->seq, &envelope) != STATUS_OK)
        return false;
    struct order_lane lane = {.filtered = true};
    options->resolve(page->ask->rules->of, sink, envelope, page->arena, &lane);
    move->to_ordered = lane.filtered ? move->from_ordered : lane.ordered;
    memcpy(move->to, lane.filtered ? move->from : lane.lane.bytes, sizeof move->to);
    move->key = lane.filtered ? BYTES_NONE : arena_copy(page->arena, lane.key);
    envelope_unref(envelope);
    return true;
}

static bool stays(const struct lanes_move *move)
{
    return move->from_ordered == move->to_ordered &&
           (!move->to_ordered || memcmp(move->from, move->to, sizeof move->to) == 0);
}

/* Those that move, to the front of the page. */
static void resolve_page(struct page *page, const struct admin_sink *sink, struct tally *tally)
{
    size_t kept = 0;
    for (size_t i = 0; i < page->len; i++) {
        struct lanes_move *move = &page->moves[i];
        tally->matched++;
        if (!resolve(page, sink, move) || stays(move))
            continue;
        tally->missing += move->to_ordered && !move->key.at;
        page->moves[kept++] = *move;
    }
    page->len = kept;
}

static enum lanes_answer move_page(struct page *page, uint32_t sink, struct tally *tally)
{
    enum lanes_answer answers[PAGE_ROWS];
    enum lanes_answer answer =
        lanes_rekey(page->ask->admin->options.lanes, sink, page->moves, page->len, answers);
    for (size_t i = 0; i < page->len && answer == LANES_DONE; i++)
        tally->moved += answers[i] == LANES_DONE;
    return answer;
}

/* Page by page, in order of seq. */
static enum lanes_answer rekey(struct ask *ask, const struct admin_sink *sink, struct tally *tally,
                               enum status *status)
{
    struct page *page = mem_zalloc(sizeof *page);
    enum lanes_answer answer = LANES_DONE;
    page->ask = ask;
    size_t read = 0;
    do {
        page->arena = arena_new(64 * 1024);
        page->len = 0;
        *status = store_list_pending(ask->reader, sink->id, page->last_seq + 1, take_row, page);
        read = page->len;
        resolve_page(page, sink, tally);
        if (*status == STATUS_OK && !ask->query.dry_run)
            answer = move_page(page, sink->id, tally);
        else
            tally->moved += page->len;
        arena_free(page->arena);
    } while (*status == STATUS_OK && answer == LANES_DONE && read == PAGE_ROWS);
    free(page);
    return answer;
}

/* The sink starts nothing more; true when nothing of it runs either. */
static enum lanes_answer stand_still(struct ask *ask, uint32_t sink)
{
    struct lanes *lanes = ask->admin->options.lanes;
    int64_t until_ms = clock_mono_ms() + RUNNING_WAIT_MS;
    enum lanes_answer answer;
    while ((answer = lanes_rekey(lanes, sink, NULL, 0, NULL)) == LANES_IN_FLIGHT &&
           clock_mono_ms() < until_ms)
        usleep(5000);
    return answer;
}

static bool was_paused(struct ask *ask, uint32_t sink)
{
    struct lanes_sink_view view;
    return lanes_sink_look(ask->admin->options.lanes, sink, &view) && view.pause.paused;
}

static enum lanes_answer rekey_standing(struct ask *ask, const struct admin_sink *sink, bool paused,
                                        struct tally *tally, enum status *status)
{
    struct lanes *lanes = ask->admin->options.lanes;
    enum lanes_answer answer = LANES_DONE;
    if (!paused)
        answer = lanes_sink_act(lanes, sink->id, LANES_SINK_PAUSE, PAUSE_MS);
    if (answer != LANES_DONE)
        return answer;
    answer = stand_still(ask, sink->id);
    store_flush(ask->admin->options.store); /* what ended just now is no longer listed */
    if (answer == LANES_DONE)
        answer = rekey(ask, sink, tally, status);
    bool stored = store_flush(ask->admin->options.store); /* who starts now is read back with its new key */
    if (!stored && *status == STATUS_OK)
        *status = STATUS_UNAVAILABLE;
    if (!paused && stored)
        lanes_sink_act(lanes, sink->id, LANES_SINK_RESUME, 0);
    return answer;
}

/* Nobody pauses or resumes the sink meanwhile: 0 ends it. */
static void hold_sink(struct admin *admin, uint32_t sink)
{
    pthread_mutex_lock(&admin->rekeyed_lock);
    admin->rekeyed = sink;
    pthread_mutex_unlock(&admin->rekeyed_lock);
}

static void rekey_work(struct ask *ask)
{
    const struct admin_sink *sink = ask_sink(ask);
    struct tally tally = {0};
    enum status status = STATUS_OK;
    enum lanes_answer answer;
    if (ask->query.dry_run) {
        answer = rekey(ask, sink, &tally, &status);
    } else {
        hold_sink(ask->admin, sink->id);
        answer = rekey_standing(ask, sink, was_paused(ask, sink->id), &tally, &status);
        hold_sink(ask->admin, 0);
    }
    if (!ask->query.dry_run && tally.moved > 0)
        ask_audit_sink(ask, "sink.rekey", sink, (int64_t)tally.matched, (int64_t)tally.moved);
    if (status != STATUS_OK) {
        ask_store_failed(ask, status);
        return;
    }
    if (ask_act_failed(ask, answer, "sink"))
        return;
    struct jsonw *w = &ask->json;
    jsonw_object(w, NULL);
    jsonw_uint(w, "matched", tally.matched);
    jsonw_uint(w, "done", ask->query.dry_run ? 0 : tally.moved);
    jsonw_uint(w, "moving", tally.moved);
    jsonw_uint(w, "keyless", tally.missing);
    jsonw_bool(w, "dry_run", ask->query.dry_run);
    jsonw_end_object(w);
}

void post_rekey(struct ask *ask)
{
    if (ask_sink(ask))
        ask_work(ask, WORK_COUNTS, rekey_work);
}
