/* From a start of the scheduler to an attempt of deliver, and back from its outcome. */
#include <stdlib.h>
#include <string.h>

#include "lanes/lanes_priv.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

enum { UNREADABLE_RETRY_MS = 1000 };

/* What a row needs on its way out: the envelope (a reference) and its key. */
struct load {
    struct envelope *envelope;
    struct buf key;
    bool has_key, found;
};

static bool take_key(void *ctx, const struct store_row_view *row)
{
    struct load *load = ctx;
    load->found = true;
    load->has_key = row->key.at != NULL;
    buf_putb(&load->key, row->key);
    return false;
}

static enum status load_from_store(struct lanes *lanes, const struct sched_start *start, struct load *load)
{
    enum status status = store_read_hook(lanes->reader, start->seq, &load->envelope);
    if (status != STATUS_OK || !start->place.ordered)
        return status;
    status = store_row_of(lanes->reader, start->seq, start->place.sink, take_key, load);
    return status == STATUS_OK && !load->found ? STATUS_NOT_FOUND : status;
}

static enum status load_row(struct lanes *lanes, const struct sched_start *start, struct load *load)
{
    struct parcel_row *row = NULL;
    struct parcel *parcel = cache_find(lanes, start->seq, start->place.sink, &row);
    if (!parcel) {
        enum status status = load_from_store(lanes, start, load);
        if (status == STATUS_OK)
            cache_make_room(lanes, envelope_size(load->envelope));
        return status;
    }
    load->envelope = envelope_ref(parcel->envelope);
    load->has_key = row->has_key;
    if (row->has_key)
        buf_put(&load->key, parcel->keys + row->key_at, row->key_len);
    cache_row_done(lanes, parcel, row);
    return STATUS_OK;
}

static struct bytes bytes_keep(struct bytes from)
{
    size_t len = from.len < SINK_RESPONSE_KEPT ? from.len : SINK_RESPONSE_KEPT;
    char *copy = mem_alloc(len + 1);
    memcpy(copy, from.at, len);
    return bytes_of(copy, len);
}

/* Deliver's thread. */
static void attempt_done(struct attempt *attempt)
{
    struct lanes *lanes = attempt->ctx;
    struct bytes *response = &attempt->outcome.response; /* ends with this call; the copy is ours */
    bool kept = attempt->outcome.cls != OUTCOME_OK && response->at;
    *response = kept ? bytes_keep(*response) : BYTES_NONE;
    inbox_put(&lanes->outcomes, &attempt->node);
}

/* The keyless lane's key is "tenant/source". */
static void key_for_sink(struct load *load)
{
    if (load->has_key)
        return;
    buf_putb(&load->key, load->envelope->tenant);
    buf_putc(&load->key, '/');
    buf_putb(&load->key, load->envelope->source);
}

static void judge_share(struct lanes *lanes, struct sink_entry *sink)
{
    size_t all = atomic_load(&lanes->flight_bytes), most = lanes->options.max_inflight_bytes;
    bool crowded = all >= most || sink->flight_bytes > most - all;
    if (crowded == sink->crowded)
        return;
    sink->crowded = crowded;
    sched_sink_crowd(lanes->sched, lanes_now(), sink->is.id, crowded);
}

/* A sink may hold half of the memory that the others leave: a receiver that hangs with large bodies never
 * takes all. One attempt it may always have. */
static void share_memory(struct lanes *lanes, uint32_t sink_id, ptrdiff_t bytes)
{
    struct sink_entry *own = lanes_sink_entry(lanes, sink_id);
    own->flight_bytes += (size_t)bytes;
    atomic_fetch_add(&lanes->flight_bytes, (size_t)bytes);
    judge_share(lanes, own);
    if (bytes > 0)
        return;
    VEC_EACH (sink, &lanes->sinks) {
        if (sink->crowded)
            judge_share(lanes, sink);
    }
}

static struct flight *flight_new(struct lanes *lanes, const struct sched_start *start, struct load *load)
{
    if (start->place.ordered)
        key_for_sink(load);
    struct flight *flight = mem_zalloc(sizeof *flight + load->key.len);
    flight->run = start->run;
    flight->seq = start->seq;
    flight->sink = start->place.sink;
    flight->received_ms = start->received_ms;
    flight->size = envelope_size(load->envelope);
    if (load->key.len)
        memcpy(flight->key, load->key.at, load->key.len);
    flight->attempt =
        (struct attempt){.envelope = load->envelope,
                         .sink = lanes_sink_entry(lanes, flight->sink)->is.sink,
                         .number = start->number,
                         .ordered = start->place.ordered,
                         .key = start->place.ordered ? bytes_of(flight->key, load->key.len) : BYTES_NONE,
                         .epoch = lanes->epoch,
                         .previous_seq = start->previous_seq,
                         .skipped = start->skipped,
                         .late = start->late,
                         .timeout_ms = lanes->options.attempt_timeout_ms,
                         .done = attempt_done,
                         .ctx = lanes};
    memcpy(flight->attempt.lane, start->place.lane, sizeof flight->attempt.lane);
    share_memory(lanes, flight->sink, (ptrdiff_t)flight->size);
    return flight;
}

/* The hook can't be had: for now (the store has trouble), or ever. */
static void load_failed(struct lanes *lanes, const struct sched_start *start, enum status status,
                        struct list *changes)
{
    struct sched_time now = lanes_now();
    if (status == STATUS_NOT_FOUND || status == STATUS_CORRUPT) {
        log_event(LOG_ERROR, "hook_unreadable", LOG_INT("seq", start->seq),
                  LOG_STR("status", status_name(status)));
        sched_give_up(lanes->sched, now, start->run, "unreadable");
    } else {
        sched_put_back(lanes->sched, now, start->run, false, UNREADABLE_RETRY_MS);
    }
    tell_actions(lanes, NULL, changes);
}

void attempts_start(struct lanes *lanes, struct list *changes)
{
    struct list attempts = LIST_INIT(attempts);
    struct sched_start start;
    /* While nothing can be written, outcomes would pile up: no attempt starts. */
    lanes->store_away = !store_writes(lanes->options.store);
    while (!lanes->store_away && !atomic_load(&lanes->quiesced) &&
           sched_next_start(lanes->sched, lanes_now(), &start)) {
        struct load load = {0};
        enum status status = load_row(lanes, &start, &load);
        if (status == STATUS_OK) {
            struct flight *flight = flight_new(lanes, &start, &load);
            list_append(&attempts, &flight->attempt.node);
        } else {
            envelope_unref(load.envelope);
            load_failed(lanes, &start, status, changes);
        }
        buf_free(&load.key);
        lanes->dirty = true;
    }
    atomic_store(&lanes->inflight, sched_running(lanes->sched));
    if (list_empty(&attempts))
        return;
    lanes->started_ms = clock_mono_ms();
    deliver_start(lanes->options.deliver, &attempts);
}

static void attempt_end(struct lanes *lanes, struct flight *flight, struct list *changes)
{
    const struct outcome *outcome = &flight->attempt.outcome;
    bool cut_off = outcome->cut_off;
    if (cut_off) {
        sched_put_back(lanes->sched, lanes_now(), flight->run, true, 0);
    } else {
        static const int classes[] = {[OUTCOME_OK] = SCHED_OK,
                                      [OUTCOME_TRANSIENT] = SCHED_TRANSIENT,
                                      [OUTCOME_RETRY_AFTER] = SCHED_RETRY_AFTER,
                                      [OUTCOME_REFUSED] = SCHED_REFUSED,
                                      [OUTCOME_CONFIG] = SCHED_CONFIG};
        struct sched_outcome result = {.cls = classes[outcome->cls],
                                       .retry_after_ms = outcome->retry_after_ms,
                                       .too_many = outcome->http_status == 429,
                                       .timed_out = outcome->timed_out,
                                       .unreachable = outcome->unreachable};
        sched_outcome(lanes->sched, lanes_now(), flight->run, &result);
    }
    tell_actions(lanes, cut_off ? NULL : flight, changes);
    share_memory(lanes, flight->sink, -(ptrdiff_t)flight->size);
    envelope_unref(flight->attempt.envelope);
    free((char *)outcome->response.at);
    free(flight);
}

void attempts_end(struct lanes *lanes, struct list *outcomes, struct list *changes)
{
    for (struct list *node; (node = list_pop(outcomes));) {
        struct attempt *attempt = LIST_OWNER(node, struct attempt, node);
        attempt_end(lanes, LIST_OWNER(attempt, struct flight, attempt), changes);
        lanes->dirty = true;
    }
    atomic_store(&lanes->inflight, sched_running(lanes->sched));
}
