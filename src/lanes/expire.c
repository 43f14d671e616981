/* Dead letters that are older than their sink keeps them are given up, a slice between two turns of the loop.
 * One that holds its lane never is: behind it others wait for a person's word. */
#include <string.h>

#include "lanes/lanes_priv.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/log.h"

enum {
    EVERY_MOST_MS = 60000,
    EVERY_LEAST_MS = 100,
    LOOK_MOST = 2000, /* dead letters a step looks at: about a millisecond */
    DROP_MOST = 200,  /* and gives up */
    WAIT_MS = 10,     /* for the store to have written what was done before */
};

void expiry_open(struct lanes *lanes)
{
    int64_t shortest_ms = 0;
    VEC_EACH (sink, &lanes->sinks) {
        int64_t ms = sink->state == SINK_HERE ? sink->is.dead_retention_ms : 0;
        if (ms > 0 && (shortest_ms == 0 || ms < shortest_ms))
            shortest_ms = ms;
    }
    lanes->expiry.every_ms = 0;
    if (shortest_ms == 0)
        return;
    int64_t every_ms = shortest_ms / 4;
    if (every_ms > EVERY_MOST_MS)
        every_ms = EVERY_MOST_MS;
    lanes->expiry.every_ms = every_ms < EVERY_LEAST_MS ? EVERY_LEAST_MS : every_ms;
}

int64_t expiry_due_ms(const struct lanes *lanes)
{
    return lanes->expiry.every_ms > 0 ? lanes->expiry.next_ms : INT64_MAX;
}

/* What a step found: read without the turn, given up with it. In between nothing brings a dead letter back
 * but an act, and acts are done on this thread. */
struct found {
    size_t len;
    struct found_row {
        struct sched_place place;
        uint64_t seq;
    } at[DROP_MOST];
};

static bool find(void *ctx, const struct store_row_view *row)
{
    struct found *found = ctx;
    if (row->state != ROW_DEAD)
        return true;
    CHECK(found->len < DROP_MOST);
    struct found_row *one = &found->at[found->len++];
    one->seq = row->seq;
    one->place = (struct sched_place){.sink = row->sink, .tenant = row->tenant, .ordered = row->ordered};
    if (row->ordered)
        memcpy(one->place.lane, row->lane, sizeof one->place.lane);
    return true;
}

static void drop(struct lanes *lanes, const struct found *found)
{
    struct list changes = LIST_INIT(changes);
    pthread_mutex_lock(&lanes->turn);
    for (size_t i = 0; i < found->len; i++)
        if (sched_discard(lanes->sched, lanes_now(), &found->at[i].place, found->at[i].seq, true) ==
            SCHED_DONE)
            lanes->expiry.count++;
    lanes_tell(lanes, &changes);
    pthread_mutex_unlock(&lanes->turn);
    if (found->len > 0)
        lanes->expiry.given = store_given(lanes->options.store);
}

/* The next sink that keeps its dead letters for a time only; false when the sweep is over. */
static bool next_sink(struct lanes *lanes)
{
    struct expiry *expiry = &lanes->expiry;
    while (expiry->sink < lanes->sinks.len && (lanes->sinks.at[expiry->sink].is.dead_retention_ms == 0 ||
                                               lanes->sinks.at[expiry->sink].state != SINK_HERE))
        expiry->sink++;
    if (expiry->sink == lanes->sinks.len)
        return false;
    const struct lanes_sink *sink = &lanes->sinks.at[expiry->sink].is;
    expiry->count = 0;
    expiry->filter = (struct store_dead_filter){.source = sink->source,
                                                .sink = sink->name,
                                                .until_ms = clock_unix_ms() - sink->dead_retention_ms,
                                                .limit = DROP_MOST};
    return true;
}

static void tell_dropped(struct lanes *lanes)
{
    const struct expiry *expiry = &lanes->expiry;
    const struct lanes_sink *sink = &lanes->sinks.at[expiry->sink].is;
    if (expiry->count > 0)
        log_event(LOG_WARN, "dead_letters_expired", LOG_STR("source", sink->source),
                  LOG_STR("sink", sink->name), LOG_INT("count", expiry->count),
                  LOG_INT("retention_ms", sink->dead_retention_ms));
}

static bool sweep_over(struct lanes *lanes)
{
    lanes->expiry.sweeping = false;
    lanes->expiry.next_ms = clock_mono_ms() + lanes->expiry.every_ms;
    return false;
}

/* One step of the sweep; false when it can't go on now. */
static bool step(struct lanes *lanes)
{
    struct expiry *expiry = &lanes->expiry;
    struct found found = {0};
    bool end = false;
    enum status status = store_walk_dead(lanes->reader, &expiry->filter, LOOK_MOST, find, &found, &end);
    drop(lanes, &found);
    if (status != STATUS_OK) /* later, then: nothing is lost but time */
        return sweep_over(lanes);
    if (!end)
        return true;
    tell_dropped(lanes);
    expiry->sink++;
    return next_sink(lanes) || sweep_over(lanes);
}

bool expiry_turn(struct lanes *lanes)
{
    struct expiry *expiry = &lanes->expiry;
    if (clock_mono_ms() < expiry_due_ms(lanes) || atomic_load(&lanes->quiesced))
        return false;
    /* What a step reads must be what the scheduler knows. */
    if (!store_is_written(lanes->options.store, expiry->given)) {
        expiry->next_ms = clock_mono_ms() + WAIT_MS;
        return false;
    }
    if (!expiry->sweeping) {
        expiry->sink = 0;
        expiry->sweeping = true;
        if (!next_sink(lanes))
            return sweep_over(lanes);
    }
    return step(lanes);
}
