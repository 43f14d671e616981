/* Lists of lanes: the lanes thread copies all of them, a slice between two turns of its loop, at most once a
 * second and only when somebody asks; who asked picks and sorts in the copy on its own thread. */
#include <stdlib.h>
#include <string.h>

#include "lanes/lanes_priv.h"
#include "util/clock.h"
#include "util/mem.h"

enum { SNAPSHOT_AGE_MS = 1000, SLICE_LANES = 8192 };

void snapshot_unref(struct snapshot *snapshot)
{
    if (snapshot && atomic_fetch_sub(&snapshot->refs, 1) == 1)
        free(snapshot);
}

static void publish(struct lanes *lanes)
{
    struct snapshot *made = lanes->building;
    lanes->building = NULL;
    made->made_ms = clock_mono_ms();
    pthread_mutex_lock(&lanes->look_lock);
    struct snapshot *old = lanes->snapshot;
    lanes->snapshot = made;
    lanes->snapshot_wanted = false;
    pthread_cond_broadcast(&lanes->look_cond);
    pthread_mutex_unlock(&lanes->look_lock);
    snapshot_unref(old);
}

bool snapshot_build(struct lanes *lanes)
{
    if (!lanes->building) {
        pthread_mutex_lock(&lanes->look_lock);
        bool wanted = lanes->snapshot_wanted;
        pthread_mutex_unlock(&lanes->look_lock);
        if (!wanted)
            return false;
        lanes->building_room = SLICE_LANES;
        lanes->building =
            mem_alloc(sizeof *lanes->building + lanes->building_room * sizeof lanes->building->at[0]);
        atomic_init(&lanes->building->refs, 1);
        lanes->building->len = lanes->cursor = 0;
    }
    struct snapshot *building = lanes->building;
    if (building->len + SLICE_LANES > lanes->building_room) {
        lanes->building_room *= 2;
        building = lanes->building =
            mem_resize(building, sizeof *building + lanes->building_room * sizeof building->at[0]);
    }
    building->len += sched_lanes_slice(lanes->sched, lanes_now(), &lanes->cursor,
                                       building->at + building->len, SLICE_LANES);
    if (lanes->cursor != 0)
        return true;
    publish(lanes);
    return false;
}

/* A reference to one that is young enough; NULL when the thread is gone. */
static struct snapshot *snapshot_get(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->look_lock);
    while (!lanes->over &&
           (!lanes->snapshot || clock_mono_ms() - lanes->snapshot->made_ms > SNAPSHOT_AGE_MS)) {
        lanes->snapshot_wanted = true;
        lanes_wake(lanes);
        pthread_cond_wait(&lanes->look_cond, &lanes->look_lock);
    }
    struct snapshot *snapshot = lanes->over ? NULL : lanes->snapshot;
    if (snapshot)
        atomic_fetch_add(&snapshot->refs, 1);
    pthread_mutex_unlock(&lanes->look_lock);
    return snapshot;
}

static bool matches(const struct lane_filter *filter, const struct lane_view *lane)
{
    if (filter->tenant >= 0 && lane->tenant != filter->tenant)
        return false;
    if (filter->sink >= 0 && lane->sink != filter->sink)
        return false;
    if (filter->state >= 0 && (int)lane->state != filter->state)
        return false;
    if (filter->lane && memcmp(filter->lane, lane->lane, sizeof lane->lane) != 0)
        return false;
    bool listed = !filter->sink_ids;
    for (size_t i = 0; i < filter->sink_id_count && !listed; i++)
        listed = filter->sink_ids[i] == lane->sink;
    return listed;
}

static bool age_before(const struct lane_view *a, const struct lane_view *b)
{
    return a->oldest_ms != b->oldest_ms ? a->oldest_ms < b->oldest_ms : a->head_seq < b->head_seq;
}

static bool depth_before(const struct lane_view *a, const struct lane_view *b)
{
    return a->depth != b->depth ? a->depth > b->depth : age_before(a, b);
}

typedef bool (*before_fn)(const struct lane_view *a, const struct lane_view *b);

/* The best `most` so far, the worst of them on top. */
struct best {
    const struct lane_view **at;
    size_t len, most;
    before_fn before;
};

static void sift_down(struct best *best, size_t i)
{
    const struct lane_view *lane = best->at[i];
    for (size_t child; (child = 2 * i + 1) < best->len; i = child) {
        if (child + 1 < best->len && best->before(best->at[child], best->at[child + 1]))
            child++;
        if (!best->before(lane, best->at[child]))
            break;
        best->at[i] = best->at[child];
    }
    best->at[i] = lane;
}

static void best_offer(struct best *best, const struct lane_view *lane)
{
    if (best->len == best->most) {
        if (best->most > 0 && best->before(lane, best->at[0])) {
            best->at[0] = lane;
            sift_down(best, 0);
        }
        return;
    }
    size_t i = best->len++;
    for (; i > 0 && best->before(best->at[(i - 1) / 2], lane); i = (i - 1) / 2)
        best->at[i] = best->at[(i - 1) / 2];
    best->at[i] = lane;
}

/* Takes them off worst first: the array ends up sorted, best first. */
static void best_sort(struct best *best)
{
    for (size_t n = best->len; n > 1; n--) {
        const struct lane_view *worst = best->at[0];
        best->at[0] = best->at[n - 1];
        best->len = n - 1;
        sift_down(best, 0);
        best->at[n - 1] = worst;
        best->len = n;
    }
}

size_t lanes_list(struct lanes *lanes, const struct lane_filter *filter, struct lane_view *out,
                  uint64_t *total)
{
    *total = 0;
    struct snapshot *snapshot = snapshot_get(lanes);
    if (!snapshot)
        return 0;
    struct best best = {.before = filter->sort == LANE_SORT_DEPTH ? depth_before : age_before};
    best.most = filter->limit < snapshot->len ? filter->limit : snapshot->len;
    best.most = filter->offset < snapshot->len - best.most ? best.most + filter->offset : snapshot->len;
    best.at = mem_alloc((best.most + 1) * sizeof best.at[0]);
    for (size_t i = 0; i < snapshot->len; i++) {
        if (!matches(filter, &snapshot->at[i]))
            continue;
        ++*total;
        best_offer(&best, &snapshot->at[i]);
    }
    size_t all = best.len, n = 0;
    best_sort(&best);
    for (size_t i = filter->offset; i < all && n < filter->limit; i++)
        out[n++] = *best.at[i];
    free(best.at);
    snapshot_unref(snapshot);
    return n;
}
