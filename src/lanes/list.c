/* Lists of lanes: the lanes thread copies of all of them what lists are sorted and filtered by, a slice
 * between two turns of its loop, at most once a second and only when somebody asks; who asked picks the page
 * out of the copy on its own thread. Of a million lanes each of both steps takes some 20 ms. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lanes/lanes_priv.h"
#include "util/clock.h"
#include "util/mem.h"

enum {
    SNAPSHOT_AGE_MS = 1000,
    SNAPSHOT_KEEP_MS = 60000, /* nobody asks any more: its memory goes back */
    SLICE_LANES = 8192,
    HUGE_BYTES = 2 << 20,
};

static struct snapshot *snapshot_new(void)
{
    struct snapshot *snapshot = mem_zalloc(sizeof *snapshot);
    atomic_init(&snapshot->refs, 1);
    return snapshot;
}

static void snapshot_free(struct snapshot *snapshot)
{
    if (!snapshot)
        return;
    VEC_FREE(&snapshot->list.briefs);
    VEC_FREE(&snapshot->list.stories);
    free(snapshot);
}

static void snapshot_unref(struct snapshot *snapshot)
{
    if (snapshot && atomic_fetch_sub(&snapshot->refs, 1) == 1)
        snapshot_free(snapshot);
}

void snapshots_close(struct lanes *lanes)
{
    snapshot_unref(lanes->snapshot);
    snapshot_free(lanes->building);
    snapshot_free(lanes->spare);
    lanes->snapshot = lanes->building = lanes->spare = NULL;
}

/* Room for all lanes at once, in large pages where the system has them: touching fresh memory page by page
 * costs more than copying the lanes. */
static void make_room(struct lane_list *list, size_t lanes)
{
    if (list->briefs.size >= lanes)
        return;
    size_t size = lanes + lanes / 8 + SLICE_LANES;
    free(list->briefs.at);
    list->briefs.at = mem_alloc(size * sizeof *list->briefs.at);
    list->briefs.size = size;
    uintptr_t from = ((uintptr_t)list->briefs.at + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    uintptr_t to = (uintptr_t)(list->briefs.at + size) / HUGE_BYTES * HUGE_BYTES;
    if (to > from)
        madvise((void *)from, to - from, MADV_HUGEPAGE); /* a wish */
}

static void publish(struct lanes *lanes)
{
    struct snapshot *made = lanes->building;
    lanes->building = NULL;
    made->made = lanes_now();
    pthread_mutex_lock(&lanes->look_lock);
    struct snapshot *old = lanes->snapshot;
    lanes->snapshot = made;
    lanes->snapshot_wanted = false;
    pthread_cond_broadcast(&lanes->look_cond);
    pthread_mutex_unlock(&lanes->look_lock);
    /* Only who holds the lock takes a reference, and only of the new one from here on. */
    if (old && atomic_load(&old->refs) == 1 && !lanes->spare)
        lanes->spare = old;
    else
        snapshot_unref(old);
}

/* Nobody has asked for a while. */
static void forget(struct lanes *lanes)
{
    snapshot_free(lanes->spare);
    lanes->spare = NULL;
    pthread_mutex_lock(&lanes->look_lock);
    struct snapshot *old = NULL;
    if (lanes->snapshot && clock_mono_ms() - lanes->snapshot->made.mono_ms > SNAPSHOT_KEEP_MS) {
        old = lanes->snapshot;
        lanes->snapshot = NULL;
    }
    pthread_mutex_unlock(&lanes->look_lock);
    snapshot_unref(old);
}

static bool begin(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->look_lock);
    bool wanted = lanes->snapshot_wanted;
    bool stale = lanes->snapshot && clock_mono_ms() - lanes->snapshot->made.mono_ms > SNAPSHOT_KEEP_MS;
    pthread_mutex_unlock(&lanes->look_lock);
    if (!wanted && stale)
        forget(lanes);
    if (!wanted)
        return false;
    lanes->building = lanes->spare ? lanes->spare : snapshot_new();
    lanes->spare = NULL;
    lanes->building->list.briefs.len = lanes->building->list.stories.len = lanes->cursor = 0;
    make_room(&lanes->building->list, sched_lane_count(lanes->sched));
    return true;
}

bool snapshot_build(struct lanes *lanes)
{
    if (!lanes->building && !begin(lanes))
        return false;
    sched_lanes_slice(lanes->sched, lanes_now(), &lanes->cursor, &lanes->building->list, SLICE_LANES);
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
           (!lanes->snapshot || clock_mono_ms() - lanes->snapshot->made.mono_ms > SNAPSHOT_AGE_MS)) {
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

static bool matches(const struct lane_filter *filter, const struct lane_brief *lane)
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

static bool age_before(const struct lane_brief *a, const struct lane_brief *b)
{
    return a->oldest_ms != b->oldest_ms ? a->oldest_ms < b->oldest_ms : a->head_seq < b->head_seq;
}

static bool depth_before(const struct lane_brief *a, const struct lane_brief *b)
{
    return a->depth != b->depth ? a->depth > b->depth : age_before(a, b);
}

typedef bool (*before_fn)(const struct lane_brief *a, const struct lane_brief *b);

/* The best `most` so far, the worst of them on top. */
struct best {
    const struct lane_brief **at;
    size_t len, most;
    before_fn before;
};

static void sift_down(struct best *best, size_t i)
{
    const struct lane_brief *lane = best->at[i];
    for (size_t child; (child = 2 * i + 1) < best->len; i = child) {
        if (child + 1 < best->len && best->before(best->at[child], best->at[child + 1]))
            child++;
        if (!best->before(lane, best->at[child]))
            break;
        best->at[i] = best->at[child];
    }
    best->at[i] = lane;
}

static void best_offer(struct best *best, const struct lane_brief *lane)
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
        const struct lane_brief *worst = best->at[0];
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
    const __typeof__(snapshot->list.briefs) *briefs = &snapshot->list.briefs;
    struct best best = {.before = filter->sort == LANE_SORT_DEPTH ? depth_before : age_before};
    best.most = filter->limit < briefs->len ? filter->limit : briefs->len;
    best.most = filter->offset < briefs->len - best.most ? best.most + filter->offset : briefs->len;
    best.at = mem_alloc((best.most + 1) * sizeof best.at[0]);
    for (size_t i = 0; i < briefs->len; i++) {
        if (!matches(filter, &briefs->at[i]))
            continue;
        ++*total;
        best_offer(&best, &briefs->at[i]);
    }
    size_t all = best.len, n = 0;
    best_sort(&best);
    for (size_t i = filter->offset; i < all && n < filter->limit; i++)
        lane_brief_view(&snapshot->list, best.at[i], snapshot->made.unix_ms, &out[n++]);
    free(best.at);
    snapshot_unref(snapshot);
    return n;
}
