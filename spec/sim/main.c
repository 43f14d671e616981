/* Episodes under one seed after the other. Each runs in a child, a batch at a time, so that a failed CHECK of
 * the scheduler is a finding like any other; a finding is shrunk to a short script and printed with its seed.
 *
 *     sim [--hooks N] [--seconds N] [--seed N] [--expect-failure] */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim.h"
#include "util/check.h"
#include "util/clock.h"

/* What a child tells its parent. */
struct report {
    uint64_t seed, hooks, starts;
    uint32_t step; /* the last one it took */
    char finding[256];
};
static struct report *report;

enum { BATCH = 20 };

_Noreturn void sim_fail(const struct world *world, const char *format, ...)
{
    (void)world;
    va_list args;
    va_start(args, format);
    vsnprintf(report->finding, sizeof report->finding, format, args);
    va_end(args);
    fflush(NULL);
    _exit(1);
}

/* One script: the steps of a seed that are left. The last part is always the happy end. */
static void episode(uint64_t seed, const bool *left_out, uint32_t steps, bool verbose)
{
    static struct world world;
    world.verbose = verbose;
    report->seed = seed;
    world_open(&world, seed);
    struct dice script = {seed ^ 0x5bd1e995};
    for (uint32_t i = 0; i < steps; i++) {
        uint64_t roll = dice_roll(&script);
        report->step = i;
        if (!left_out || !left_out[i])
            step_do(&world, roll);
    }
    report->step = steps;
    world_drain(&world);
    report->hooks += world.hooks;
    report->starts += world.starts;
    world_close(&world);
}

/* True when the script ends well. */
static bool holds(uint64_t seed, const bool *left_out, uint32_t steps, bool verbose)
{
    report->finding[0] = 0;
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (!verbose)
            CHECK(freopen("/dev/null", "w", stderr));
        episode(seed, left_out, steps, verbose);
        fflush(NULL);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The same promise was broken: the sentences are alike up to their first number. */
static bool same_kind(const char *a, const char *b)
{
    size_t n = strcspn(a, "0123456789");
    return n == strcspn(b, "0123456789") && memcmp(a, b, n) == 0;
}

/* Leaves out what the finding does not need: halves, quarters, ... single steps. */
static void shrink(uint64_t seed, uint32_t steps)
{
    static bool left_out[EPISODE_STEPS];
    int64_t until_ms = clock_mono_ms() + 30000;
    char found[sizeof report->finding];
    memcpy(found, report->finding, sizeof found);
    for (uint32_t size = steps; size > 0; size /= 2) {
        for (uint32_t from = 0; from < steps && clock_mono_ms() < until_ms; from += size) {
            bool before[EPISODE_STEPS];
            memcpy(before, left_out, sizeof before);
            bool any = false;
            for (uint32_t i = from; i < from + size && i < steps; i++) {
                any |= !left_out[i];
                left_out[i] = true;
            }
            if (any && (holds(seed, left_out, steps, false) || !same_kind(report->finding, found)))
                memcpy(left_out, before, sizeof before);
        }
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < steps; i++)
        kept += !left_out[i];
    printf("shrunk to %u steps of seed %lu:\n", kept, seed);
    holds(seed, left_out, steps, true);
    printf("finding: %s\n", report->finding[0] ? report->finding : "a CHECK failed, see above");
}

/* A batch of episodes in one child; true when all held. */
static bool batch(uint64_t seed, uint32_t episodes)
{
    report->finding[0] = 0;
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        for (uint32_t i = 0; i < episodes; i++)
            episode(seed + i, NULL, EPISODE_STEPS, false);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
    uint64_t hooks = 1000000, seed = 1;
    int64_t seconds = 0;
    bool expect_failure = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--expect-failure") == 0)
            expect_failure = true;
        else if (i + 1 < argc && strcmp(argv[i], "--hooks") == 0)
            hooks = strtoull(argv[++i], NULL, 10);
        else if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0)
            seconds = strtoll(argv[++i], NULL, 10);
        else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[++i], NULL, 10);
        else
            return fprintf(stderr, "usage: sim [--hooks N] [--seconds N] [--seed N] [--expect-failure]\n"), 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(report != MAP_FAILED);
    int64_t started_ms = clock_mono_ms();
    for (; report->hooks < hooks; seed += BATCH) {
        if (seconds > 0 && clock_mono_ms() - started_ms > seconds * 1000)
            break;
        if (batch(seed, BATCH))
            continue;
        printf("seed %lu, step %u, after %lu hooks and %.1f s: %s\n", report->seed, report->step,
               report->hooks, (double)(clock_mono_ms() - started_ms) / 1000,
               report->finding[0] ? report->finding : "a CHECK failed");
        shrink(report->seed, EPISODE_STEPS);
        return expect_failure ? 0 : 1;
    }
    printf("%lu hooks, %lu attempts, %.1f s: every rule held\n", report->hooks, report->starts,
           (double)(clock_mono_ms() - started_ms) / 1000);
    return expect_failure ? 1 : 0;
}
