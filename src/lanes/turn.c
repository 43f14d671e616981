/* The turns. Whoever holds the turn moves the scheduler on: as a rule the deliver loop on which an attempt
 * has just ended, so that the next one of its lane begins without a change of thread; else the lanes thread,
 * which has everything besides: new rows, due times, acts, and all that reads from the store. A loop never
 * waits for the turn: what it can't do at once it leaves to the lanes thread, and wakes it. */
#include <errno.h>
#include <time.h>

#include "lanes/lanes_priv.h"
#include "util/check.h"
#include "util/clock.h"

enum {
    PUBLISH_MS = 20,     /* how far the view of the sinks may be behind */
    DURABLE_LOOK_MS = 4, /* while a lane waits for the disk */
    BEAT_MS = 5000,      /* the lanes thread turns at least that often */
    STORE_AWAY_MS = 100, /* and that often while the store can't write */
};

struct sched_time lanes_now(void)
{
    return (struct sched_time){clock_mono_ms(), clock_unix_ms()};
}

/* ---- waking and sleeping ---- */

void lanes_wake(void *ctx)
{
    struct lanes *lanes = ctx;
    pthread_mutex_lock(&lanes->wake_lock);
    bool slept = !lanes->awake;
    lanes->awake = true;
    pthread_mutex_unlock(&lanes->wake_lock);
    if (slept) /* behind the lock: who is woken would only wait for it */
        pthread_cond_signal(&lanes->wake_cond);
}

static void sleep_until(struct lanes *lanes, int64_t until_ms)
{
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    pthread_mutex_lock(&lanes->wake_lock);
    while (!lanes->awake && pthread_cond_timedwait(&lanes->wake_cond, &lanes->wake_lock, &until) != ETIMEDOUT)
        ;
    lanes->awake = false;
    pthread_mutex_unlock(&lanes->wake_lock);
}

/* When the lanes thread must turn again, for what any turn may have left behind. */
static int64_t due_ms(struct lanes *lanes)
{
    int64_t now_ms = clock_mono_ms(), until_ms = now_ms + (lanes->store_away ? STORE_AWAY_MS : BEAT_MS);
    int64_t next_ms = sched_next_due(lanes->sched);
    if (next_ms < until_ms)
        until_ms = next_ms;
    if (lanes->durable_asked && now_ms + DURABLE_LOOK_MS < until_ms)
        until_ms = now_ms + DURABLE_LOOK_MS;
    if (lanes->dirty && lanes->published_ms + PUBLISH_MS < until_ms)
        until_ms = lanes->published_ms + PUBLISH_MS;
    return until_ms;
}

/* ---- what every turn does ---- */

/* Everything said so far was given to the store: when that is durable, lanes go on. */
static void ask_durable(struct lanes *lanes)
{
    if (lanes->durable_asked || !sched_awaits_durable(lanes->sched, &lanes->durable_said))
        return;
    lanes->durable_given = store_changes_given(lanes->options.store);
    lanes->durable_asked = true;
}

/* Outcomes in, starts out, changes to the store. */
static void move_on(struct lanes *lanes)
{
    struct list outcomes = LIST_INIT(outcomes), changes = LIST_INIT(changes);
    atomic_store(&lanes->outcomes_wait, false); /* before the box is emptied */
    if (inbox_take(&lanes->outcomes, &outcomes))
        attempts_end(lanes, &outcomes, &changes);
    attempts_start(lanes);
    lanes_tell(lanes, &changes);
    ask_durable(lanes);
}

/* ---- of a deliver loop ---- */

void turn_of_loop(void *ctx)
{
    struct lanes *lanes = ctx;
    if (!atomic_load(&lanes->outcomes_wait))
        return;
    bool wake = true; /* whoever holds the turn may have emptied the box already */
    if (pthread_mutex_trylock(&lanes->turn) == 0) {
        move_on(lanes);
        int64_t next_ms = due_ms(lanes);
        bool sooner = next_ms < lanes->turns_at_ms;
        if (sooner)
            lanes->turns_at_ms = next_ms;
        wake = sooner || !list_empty(&lanes->cold) || lanes->notices.len > 0;
        pthread_mutex_unlock(&lanes->turn);
    }
    if (wake)
        lanes_wake(lanes);
}

/* ---- of the lanes thread ---- */

static void take_committed(struct lanes *lanes)
{
    struct list parcels = LIST_INIT(parcels);
    if (!inbox_take(&lanes->committed, &parcels))
        return;
    struct sched_time now = lanes_now();
    size_t boxed = 0;
    for (struct list *node; (node = list_pop(&parcels));) {
        struct parcel *parcel = LIST_OWNER(node, struct parcel, node);
        boxed += parcel->alloc_size;
        parcel->came_ms = now.mono_ms;
        lanes->taken += parcel->row_count;
        for (uint32_t i = 0; i < parcel->row_count; i++) {
            struct parcel_row *row = &parcel->rows[i];
            if (lanes_sink_entry(lanes, row->place.sink)) {
                sched_commit(lanes->sched, now, &row->place, parcel->seq, parcel->received_ms,
                             parcel->replay);
                continue;
            }
            row->gone = true;
            parcel->rows_left--;
        }
        cache_add(lanes, parcel);
    }
    atomic_fetch_sub(&lanes->boxed_bytes, boxed);
    lanes->dirty = true;
}

static void hear_durable(struct lanes *lanes)
{
    if (!lanes->durable_asked || !store_changes_written(lanes->options.store, lanes->durable_given))
        return;
    lanes->durable_asked = false;
    sched_durable(lanes->sched, lanes_now(), lanes->durable_said);
}

/* One turn, and behind it what must not hold it up; false when everything is written and the thread may end.
 */
static bool turn(struct lanes *lanes)
{
    bool last = atomic_load(&lanes->stopping);
    atomic_store(&lanes->beat_ms, clock_mono_ms());
    pthread_mutex_lock(&lanes->turn);
    take_committed(lanes);
    sched_tick(lanes->sched, lanes_now());
    leaving_turn(lanes);
    acts_run(lanes);
    hear_durable(lanes);
    move_on(lanes);
    atomic_store(&lanes->sched_bytes, sched_memory(lanes->sched));
    bool more = snapshot_build(lanes);
    if (lanes->dirty && clock_mono_ms() - lanes->published_ms >= PUBLISH_MS)
        gauges_publish(lanes);
    int64_t until_ms = due_ms(lanes), expiry_ms = expiry_due_ms(lanes), leaving_ms = leaving_due_ms(lanes);
    until_ms = expiry_ms < until_ms ? expiry_ms : until_ms;
    lanes->turns_at_ms = until_ms = leaving_ms < until_ms ? leaving_ms : until_ms;
    pthread_mutex_unlock(&lanes->turn);

    backlog_judge(lanes);
    more |= cold_start(lanes);
    notices_tell(lanes);
    more |= expiry_turn(lanes);
    if (last)
        return false;
    if (!more)
        sleep_until(lanes, until_ms);
    return true;
}

void *turns_run(void *ctx)
{
    struct lanes *lanes = ctx;
    while (turn(lanes))
        ;
    acts_close(lanes);
    pthread_mutex_lock(&lanes->turn);
    gauges_publish(lanes);
    pthread_mutex_unlock(&lanes->turn);
    pthread_mutex_lock(&lanes->look_lock);
    lanes->over = true;
    pthread_cond_broadcast(&lanes->look_cond);
    pthread_mutex_unlock(&lanes->look_lock);
    return NULL;
}
