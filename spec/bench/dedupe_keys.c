/* What dedupe costs: a store that remembers so many keys is opened, and takes hooks without a key and with
 * one.
 *
 *     dedupe_keys [KEYS [HOOKS]]      10000000 and 200000
 *
 * The keys are put into the table by SQLite itself, since how they came there does not matter. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "store_rig.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/mem.h"

enum { AT_ONCE = 128 };

static double cpu_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static long rss_mib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%*s %ld", &pages) == 1);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE) >> 20;
}

static void fill(const char *dir, long keys)
{
    char *path = mem_format("%s/store.db", dir);
    char *sql = mem_format("PRAGMA synchronous = OFF; BEGIN;"
                           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %ld)"
                           " INSERT INTO claims SELECT i, randomblob(16), randomblob(16), %lld FROM n;"
                           "UPDATE meta SET value = %ld WHERE name = 'seq_floor'; COMMIT;",
                           keys, (long long)clock_unix_ms() + 86400000, keys + 1);
    sqlite3 *db;
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
    free(sql);
    free(path);
}

/* AT_ONCE hooks wait for their commit at any time. */
static void put(struct store *store, uint32_t sink, long hooks, const char *prefix)
{
    struct rig_hook *waiting[AT_ONCE] = {NULL};
    double cpu = cpu_us();
    int64_t began_us = clock_mono_us();
    for (long i = 0; i < hooks + AT_ONCE; i++) {
        struct rig_hook **slot = &waiting[i % AT_ONCE];
        if (*slot) {
            CHECK(rig_wait_done(*slot) && (*slot)->status == STATUS_OK && !(*slot)->hook.twin.found);
            rig_hook_free(*slot);
            *slot = NULL;
        }
        if (i >= hooks)
            continue;
        *slot = rig_hook_new(1024);
        rig_hook_row(*slot, sink, NULL);
        if (prefix) {
            char key[64];
            snprintf(key, sizeof key, "%s_%ld", prefix, i);
            (*slot)->hook.envelope->dedupe_key = arena_copy((*slot)->hook.envelope->arena, bytes_str(key));
            (*slot)->hook.dedupe_ttl_ms = 86400000;
        }
        CHECK(store_commit(store, &(*slot)->hook) == STATUS_OK);
    }
    double seconds = (double)(clock_mono_us() - began_us) / 1e6;
    printf("%-12s %8.0f hooks/s  %6.1f us of processor time a hook\n", prefix ? "with a key" : "without",
           (double)hooks / seconds, (cpu_us() - cpu) / (double)hooks);
}

int main(int argc, char **argv)
{
    long keys = argc > 1 ? atol(argv[1]) : 10000000, hooks = argc > 2 ? atol(argv[2]) : 200000;
    char *dir = rig_make_dir();
    struct store_options options = rig_options(dir);
    options.max_dedupe_keys = 100000000;
    store_close(rig_start(&options));
    fill(dir, keys);

    long before_mib = rss_mib();
    int64_t began_us = clock_mono_us();
    struct store *store = rig_start(&options);
    printf("%ld keys: opened in %.2f s, %ld MiB of memory\n", keys,
           (double)(clock_mono_us() - began_us) / 1e6, rss_mib() - before_mib);
    uint32_t sink;
    struct error err;
    CHECK(store_sink_id(store, "shop", "billing", &sink, &err) == STATUS_OK);
    for (int round = 0; round < 3; round++) {
        static const char *const prefixes[] = {"a", "b", "c"};
        put(store, sink, hooks, NULL);
        put(store, sink, hooks, prefixes[round]);
    }
    store_close(store);
    rig_remove_dir(dir);
    return 0;
}
