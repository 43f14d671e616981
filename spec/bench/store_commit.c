/* How many hooks a second the store commits, with all of them synced: `threads` producers keep 128 hooks of 1
 * KB waiting, as 128 connections would. Prints the rate, the size of batches, the longest the log got, and
 * where the processor time went.
 *
 *     store_commit [seconds=5] [threads=2] [lanes=0] [outcomes=1] [dir]
 *
 * lanes > 0: the one row is ordered, in that many lanes at random. outcomes=1: each hook is reported
 * delivered. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "store_rig.h"
#include "util/clock.h"
#include "util/inbox.h"
#include "util/mem.h"

enum { OUTSTANDING = 128, BODY = 1024, LATENCIES = 1 << 22 };

static struct store *store;
static uint32_t sink;
static unsigned lanes;
static bool outcomes;
static atomic_bool stop;
static atomic_ulong committed, batches;
static uint32_t *latencies_us;
static atomic_ulong latency_count;

struct slot {
    struct store_hook hook;
    struct store_row row;
    struct producer *producer;
    struct list free;
    int64_t began_us;
    char key[24];
};

/* Its inbox gets the slots whose hooks were answered. */
struct producer {
    pthread_t thread;
    struct inbox inbox;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool woken;
    struct slot *slots;
    size_t slot_count;
    unsigned seed;
    double cpu_s;
};

static double thread_cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void producer_wake(void *ctx)
{
    struct producer *producer = ctx;
    pthread_mutex_lock(&producer->lock);
    producer->woken = true;
    pthread_cond_signal(&producer->wake);
    pthread_mutex_unlock(&producer->lock);
}

static void done(struct store_hook *hook, enum status status)
{
    if (status != STATUS_OK) {
        fprintf(stderr, "a hook was answered %s\n", status_name(status));
        abort();
    }
    struct slot *slot = LIST_OWNER(hook, struct slot, hook);
    unsigned long n = atomic_fetch_add(&latency_count, 1);
    if (n < LATENCIES)
        latencies_us[n] = (uint32_t)(clock_mono_us() - slot->began_us);
    inbox_put(&slot->producer->inbox, &slot->free);
}

static void on_committed(void *ctx, struct store_hook *const *hooks, size_t count)
{
    (void)ctx;
    atomic_fetch_add(&committed, count);
    atomic_fetch_add(&batches, 1);
    if (!outcomes)
        return;
    struct list changes = LIST_INIT(changes);
    for (size_t i = 0; i < count; i++) {
        struct store_change *change = store_change_new();
        change->seq = hooks[i]->envelope->seq;
        change->sink = sink;
        change->state = ROW_DONE;
        change->attempts = 1;
        change->first_attempt_ms = change->at_ms = clock_unix_ms();
        change->cls = "ok";
        change->http_status = 200;
        change->duration_us = 1234;
        list_append(&changes, &change->node);
    }
    store_changes(store, &changes);
}

static void send_hook(struct slot *slot)
{
    struct rig_hook *made = rig_hook_new(BODY);
    slot->hook = made->hook;
    free(made);
    slot->row = (struct store_row){.sink = sink, .ordered = lanes > 0};
    if (lanes > 0) {
        unsigned lane = (unsigned)rand_r(&slot->producer->seed) % lanes;
        int len = snprintf(slot->key, sizeof slot->key, "cus_%08u", lane);
        slot->row.key = bytes_of(slot->key, (size_t)len);
        memcpy(slot->row.lane, &lane, sizeof lane);
    }
    slot->hook.rows = &slot->row;
    slot->hook.row_count = 1;
    slot->hook.done = done;
    slot->began_us = clock_mono_us();
    enum status status = store_commit(store, &slot->hook);
    if (status != STATUS_OK) {
        fprintf(stderr, "store_commit: %s\n", status_name(status));
        abort();
    }
}

static void *producer_main(void *arg)
{
    struct producer *producer = arg;
    size_t out = producer->slot_count;
    for (size_t i = 0; i < producer->slot_count; i++)
        send_hook(&producer->slots[i]);
    while (out > 0) {
        pthread_mutex_lock(&producer->lock);
        while (!producer->woken)
            pthread_cond_wait(&producer->wake, &producer->lock);
        producer->woken = false;
        pthread_mutex_unlock(&producer->lock);
        struct list answered = LIST_INIT(answered);
        inbox_take(&producer->inbox, &answered);
        struct list *node;
        while ((node = list_pop(&answered))) {
            struct slot *slot = LIST_OWNER(node, struct slot, free);
            envelope_unref(slot->hook.envelope);
            if (atomic_load(&stop))
                out--;
            else
                send_hook(slot);
        }
    }
    producer->cpu_s = thread_cpu_s();
    return NULL;
}

static bool count_owed(void *ctx, const struct store_owed *row)
{
    (void)row;
    ++*(size_t *)ctx;
    return true;
}

/* What a restart takes before the first hook can be accepted. */
static void measure_start(const struct store_options *options)
{
    struct error err;
    size_t owed = 0;
    int64_t began_us = clock_mono_us();
    store = rig_open(options);
    int64_t opened_us = clock_mono_us();
    if (store_scan(store, count_owed, &owed, &err) != STATUS_OK) {
        fprintf(stderr, "store_scan: %s\n", err.text);
        abort();
    }
    printf("start: open %.1f ms, scan of %zu owed rows %.1f ms\n", (double)(opened_us - began_us) / 1e3, owed,
           (double)(clock_mono_us() - opened_us) / 1e3);
    store_close(store);
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 5;
    size_t threads = argc > 2 ? (size_t)atoi(argv[2]) : 2;
    lanes = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
    outcomes = argc > 4 ? atoi(argv[4]) != 0 : true;
    char *dir = argc > 5 ? mem_strdup(argv[5]) : rig_make_dir();
    latencies_us = mem_alloc(LATENCIES * sizeof *latencies_us);

    struct store_options options = rig_options(dir);
    options.committed = on_committed;
    store = rig_start(&options);
    struct error err;
    if (store_sink_id(store, "shop", "billing", &sink, &err) != STATUS_OK)
        return 1;

    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    int64_t began_us = clock_mono_us();
    struct producer *producers = mem_zalloc(threads * sizeof *producers);
    for (size_t i = 0; i < threads; i++) {
        struct producer *producer = &producers[i];
        inbox_init(&producer->inbox, producer_wake, producer);
        pthread_mutex_init(&producer->lock, NULL);
        pthread_cond_init(&producer->wake, NULL);
        producer->seed = (unsigned)i + 1;
        producer->slot_count = OUTSTANDING / threads;
        producer->slots = mem_zalloc(producer->slot_count * sizeof *producer->slots);
        for (size_t k = 0; k < producer->slot_count; k++)
            producer->slots[k].producer = producer;
        pthread_create(&producer->thread, NULL, producer_main, producer);
    }

    int64_t longest = 0;
    while (clock_mono_us() - began_us < (int64_t)(seconds * 1e6)) {
        struct store_stats stats;
        store_stats(store, &stats);
        longest = stats.log_bytes > longest ? stats.log_bytes : longest;
        usleep(10000);
    }
    double hooks = (double)atomic_load(&committed);
    double took = (double)(clock_mono_us() - began_us) / 1e6;
    getrusage(RUSAGE_SELF, &after);
    atomic_store(&stop, true);
    double producing_s = 0;
    for (size_t i = 0; i < threads; i++) {
        pthread_join(producers[i].thread, NULL);
        producing_s += producers[i].cpu_s;
    }
    store_flush(store);
    size_t n = atomic_load(&latency_count) < LATENCIES ? atomic_load(&latency_count) : LATENCIES;
    qsort(latencies_us, n, sizeof *latencies_us, by_size);

    double user_us = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1e6 +
                     (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec);
    double system_us = (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1e6 +
                       (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec);
    printf("%.0f hooks/s, %.0f a batch, %s, %s\n", hooks / took, hooks / (double)atomic_load(&batches),
           lanes > 0 ? "one ordered row" : "one unordered row",
           outcomes ? "with outcomes" : "without outcomes");
    printf("answer: p50 %u us, p99 %u us, p99.9 %u us, max %u us\n", latencies_us[n / 2],
           latencies_us[n * 99 / 100], latencies_us[n * 999 / 1000], latencies_us[n - 1]);
    printf("longest log %.1f MiB\n", (double)longest / 1048576);
    printf("processor time a hook: user %.2f us, system %.2f us; of it producers %.2f us\n", user_us / hooks,
           system_us / hooks, producing_s * 1e6 / hooks);
    store_close(store);
    options.committed = NULL;
    measure_start(&options);
    if (argc <= 5)
        rig_remove_dir(dir);
    return 0;
}
