/* What the pure scheduler takes for one delivery (a row comes, its attempt starts, it ends well) while lanes
 * and backlog grow, and while other lanes are blocked: a curve that should be flat but for the processor's
 * caches.
 *
 *     bench_sched_cost [deliveries=500000]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lanes/sched.h"
#include "util/check.h"
#include "util/clock.h"

enum { SINK = 1, TENANT = 1, RUNNING = 32 };

static const struct sched_policy policy = {
    .concurrency = RUNNING,
    .retry = {.base_ms = 3600000, .max_ms = 3600000},
    .breaker = {.failures = UINT32_MAX, .open_ms = 5000, .max_open_ms = 60000},
};
static const struct sched_time now = {.mono_ms = 1000, .unix_ms = 1700000000000};
static const struct sched_outcome ok = {.cls = SCHED_OK}, transient = {.cls = SCHED_TRANSIENT};

struct bench {
    struct sched *sched;
    uint64_t seq;
};

/* Ids that are spread as those of real lanes are. */
static struct sched_place place_of(uint64_t lane)
{
    struct sched_place place = {.sink = SINK, .tenant = TENANT, .ordered = true};
    uint64_t mixed = (lane + 1) * 0x9e3779b97f4a7c15u;
    memcpy(place.lane, &mixed, sizeof mixed);
    memcpy(place.lane + 8, &lane, sizeof lane);
    return place;
}

static void commit(struct bench *bench, const struct sched_place *place)
{
    sched_commit(bench->sched, now, place, ++bench->seq, now.unix_ms, 0);
    sched_actions_done(bench->sched);
}

static void finish(struct bench *bench, struct sched_run *run, const struct sched_outcome *outcome)
{
    sched_outcome(bench->sched, now, run, outcome);
    sched_actions_done(bench->sched);
}

/* Lanes whose head has failed once, with one row behind it. */
static void block(struct bench *bench, uint64_t blocked)
{
    for (uint64_t lane = 0; lane < blocked; lane++) {
        struct sched_place place = place_of(1000000000 + lane);
        commit(bench, &place);
        commit(bench, &place);
        struct sched_start start;
        CHECK(sched_next_start(bench->sched, now, &start));
        finish(bench, start.run, &transient);
    }
}

static void measure(uint64_t lanes, uint64_t depth, uint64_t blocked, uint64_t deliveries)
{
    struct sched_options options = {
        .seed = 1, .lane_idle_ms = 60000, .lane_idle_most = 100000, .concurrency = RUNNING};
    struct bench bench = {.sched = sched_new(&options)};
    sched_sink_set(bench.sched, now, SINK, &policy);
    block(&bench, blocked);
    for (uint64_t row = 0; row < lanes * depth; row++) {
        struct sched_place place = place_of(row % lanes);
        commit(&bench, &place);
    }
    double memory = (double)sched_memory(bench.sched);

    struct sched_start running[RUNNING];
    size_t first = 0;
    for (size_t i = 0; i < RUNNING; i++)
        CHECK(sched_next_start(bench.sched, now, &running[i]));
    int64_t began_us = clock_mono_us();
    for (uint64_t i = 0; i < deliveries; i++) {
        struct sched_start *oldest = &running[first++ % RUNNING];
        finish(&bench, oldest->run, &ok);
        commit(&bench, &oldest->place);
        CHECK(sched_next_start(bench.sched, now, oldest));
    }
    double ns = (double)(clock_mono_us() - began_us) * 1e3 / (double)deliveries;
    printf("%10llu %10llu %10llu %12.0f %14.1f\n", (unsigned long long)lanes, (unsigned long long)depth,
           (unsigned long long)blocked, ns, memory / (double)(lanes * depth + 2 * blocked));
    fflush(stdout);
    for (size_t i = 0; i < RUNNING; i++)
        finish(&bench, running[i].run, &ok);
    sched_free(bench.sched);
}

int main(int argc, char **argv)
{
    uint64_t deliveries = argc > 1 ? strtoull(argv[1], NULL, 10) : 500000;
    printf("%10s %10s %10s %12s %14s\n", "lanes", "rows each", "blocked", "ns/delivery", "bytes/row");
    for (uint64_t lanes = 1000; lanes <= 1000000; lanes *= 10)
        measure(lanes, 1, 0, deliveries);
    for (uint64_t depth = 10; depth <= 10000; depth *= 10)
        measure(1000, depth, 0, deliveries);
    for (uint64_t blocked = 1000; blocked <= 1000000; blocked *= 10)
        measure(1000, 10, blocked, deliveries);
    return 0;
}
