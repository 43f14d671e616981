/* Starts of rows whose hook is not in memory any more. A turn that meets one puts it aside, its slot taken;
 * the lanes thread reads it between two turns, so that a slow disk holds up nothing that is in memory. There
 * are never more than attempts may run. */
#include <stdlib.h>

#include "lanes/lanes_priv.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

enum {
    SLICE_US = 2000, /* spent on reading before the thread looks at what came meanwhile */
    UNREADABLE_RETRY_MS = 1000,
};

struct cold {
    struct list node; /* lanes->cold */
    struct sched_start start;
};

void cold_put(struct lanes *lanes, const struct sched_start *start)
{
    struct cold *cold = mem_alloc(sizeof *cold);
    cold->start = *start;
    list_append(&lanes->cold, &cold->node);
}

static bool take_key(void *ctx, const struct store_row_view *row)
{
    struct load *load = ctx;
    load->found = true;
    load->has_key = row->key.at != NULL;
    buf_putb(&load->key, row->key);
    return false;
}

static enum status read_row(struct lanes *lanes, const struct sched_start *start, struct load *load)
{
    enum status status = store_read_hook(lanes->reader, start->seq, &load->envelope);
    if (status != STATUS_OK || !start->place.ordered)
        return status;
    status = store_row_of(lanes->reader, start->seq, start->place.sink, take_key, load);
    return status == STATUS_OK && !load->found ? STATUS_NOT_FOUND : status;
}

/* The hook can't be had: for now (the store has trouble), or ever. */
static void read_failed(struct lanes *lanes, const struct sched_start *start, enum status status)
{
    struct sched_time now = lanes_now();
    if (status == STATUS_NOT_FOUND || status == STATUS_CORRUPT) {
        log_event(LOG_ERROR, "hook_unreadable", LOG_INT("seq", start->seq),
                  LOG_STR("status", status_name(status)));
        sched_give_up(lanes->sched, now, start->run, "unreadable");
    } else {
        sched_put_back(lanes->sched, now, start->run, false, UNREADABLE_RETRY_MS);
    }
}

/* Before its size is known. What a crowded sink has picked already goes back, but for the one attempt that it
 * may always have. */
static bool may_begin(struct lanes *lanes, const struct sched_start *start)
{
    const struct sink_entry *sink = lanes_sink_entry(lanes, start->place.sink);
    return !atomic_load(&lanes->quiesced) && !(sink->crowded && sink->flight_bytes > 0);
}

/* The next one to read; NULL: none is left. With the turn. */
static struct cold *next_cold(struct lanes *lanes)
{
    for (struct list *node; (node = list_pop(&lanes->cold));) {
        struct cold *cold = LIST_OWNER(node, struct cold, node);
        if (may_begin(lanes, &cold->start))
            return cold;
        sched_put_back(lanes->sched, lanes_now(), cold->start.run, false, 0);
        free(cold);
    }
    return NULL;
}

static void begin(struct lanes *lanes, const struct sched_start *start, enum status status, struct load *load,
                  struct list *attempts)
{
    if (status != STATUS_OK) {
        envelope_unref(load->envelope);
        read_failed(lanes, start, status);
        return;
    }
    cache_make_room(lanes, envelope_size(load->envelope));
    list_append(attempts, &flight_new(lanes, start, load)->attempt.node);
}

/* What was begun and said in this slice goes out. With the turn. */
static void hand_over(struct lanes *lanes, struct list *attempts)
{
    struct list changes = LIST_INIT(changes);
    lanes_tell(lanes, &changes);
    attempts_go(lanes, attempts);
}

bool cold_start(struct lanes *lanes)
{
    struct list attempts = LIST_INIT(attempts);
    int64_t until_us = clock_mono_us() + SLICE_US;
    pthread_mutex_lock(&lanes->turn);
    bool some = !list_empty(&lanes->cold);
    for (struct cold *cold; (cold = next_cold(lanes));) {
        pthread_mutex_unlock(&lanes->turn);
        struct load load = {0};
        enum status status = read_row(lanes, &cold->start, &load);
        pthread_mutex_lock(&lanes->turn);
        begin(lanes, &cold->start, status, &load, &attempts);
        buf_free(&load.key);
        free(cold);
        if (clock_mono_us() >= until_us)
            break;
    }
    if (some)
        hand_over(lanes, &attempts);
    pthread_mutex_unlock(&lanes->turn);
    return some; /* something may have been put back, and is to be picked again */
}
