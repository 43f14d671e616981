/* From a start of the scheduler to an attempt of deliver, and back from its outcome. */
#include <stdlib.h>
#include <string.h>

#include "lanes/lanes_priv.h"
#include "util/clock.h"
#include "util/mem.h"

/* False: it is not in memory. */
static bool load_hot(struct lanes *lanes, const struct sched_start *start, struct load *load)
{
    struct parcel_row *row = NULL;
    struct parcel *parcel = cache_find(lanes, start->seq, start->place.sink, &row);
    if (!parcel)
        return false;
    load->envelope = envelope_ref(parcel->envelope);
    load->has_key = row->has_key;
    if (row->has_key)
        buf_put(&load->key, parcel->keys + row->key_at, row->key_len);
    cache_row_done(lanes, parcel, row);
    return true;
}

static struct bytes bytes_keep(struct bytes from)
{
    size_t len = from.len < SINK_RESPONSE_KEPT ? from.len : SINK_RESPONSE_KEPT;
    char *copy = mem_alloc(len + 1);
    memcpy(copy, from.at, len);
    return bytes_of(copy, len);
}

void outcomes_came(void *ctx)
{
    struct lanes *lanes = ctx;
    atomic_store(&lanes->outcomes_wait, true);
}

/* Deliver's thread; the end of its round sees to what lies in the box. */
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
    size_t all = atomic_load(&lanes->flight_bytes), most = atomic_load(&lanes->max_bytes);
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

struct flight *flight_new(struct lanes *lanes, const struct sched_start *start, struct load *load)
{
    if (start->place.ordered)
        key_for_sink(load);
    struct flight *flight = mem_zalloc(sizeof *flight + load->key.len);
    flight->run = start->run;
    flight->seq = start->seq;
    flight->sink = start->place.sink;
    flight->received_ms = start->received_ms;
    flight->size = envelope_size(load->envelope);
    flight->keyless = !load->has_key;
    if (load->key.len)
        memcpy(flight->key, load->key.at, load->key.len);
    flight->attempt =
        (struct attempt){.envelope = load->envelope,
                         .sink = sink_ref(lanes_sink_entry(lanes, flight->sink)->is.sink),
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
    const struct uuid *replay = replay_id(lanes, start->replay);
    if (replay) {
        flight->attempt.replayed = true;
        flight->attempt.replay_id = *replay;
    }
    memcpy(flight->attempt.lane, start->place.lane, sizeof flight->attempt.lane);
    share_memory(lanes, flight->sink, (ptrdiff_t)flight->size);
    return flight;
}

void attempts_go(struct lanes *lanes, struct list *attempts)
{
    lanes->dirty = true;
    atomic_store(&lanes->inflight, sched_running(lanes->sched));
    if (list_empty(attempts))
        return;
    lanes->started_ms = clock_mono_ms();
    deliver_start(lanes->options.deliver, attempts);
}

void attempts_start(struct lanes *lanes)
{
    struct list attempts = LIST_INIT(attempts);
    struct sched_start start;
    bool some = false;
    /* While nothing can be written, outcomes would pile up: no attempt starts. */
    lanes->store_away = !store_writes(lanes->options.store);
    while (!lanes->store_away && !atomic_load(&lanes->quiesced) &&
           sched_next_start(lanes->sched, lanes_now(), &start)) {
        struct load load = {0};
        some = true;
        if (load_hot(lanes, &start, &load))
            list_append(&attempts, &flight_new(lanes, &start, &load)->attempt.node);
        else
            cold_put(lanes, &start);
        buf_free(&load.key);
    }
    if (some)
        attempts_go(lanes, &attempts);
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
                                       .unreachable = outcome->unreachable,
                                       .unsent = outcome->unsent};
        sched_outcome(lanes->sched, lanes_now(), flight->run, &result);
    }
    tell_actions(lanes, cut_off ? NULL : flight, changes);
    share_memory(lanes, flight->sink, -(ptrdiff_t)flight->size);
    envelope_unref(flight->attempt.envelope);
    sink_close(flight->attempt.sink);
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
