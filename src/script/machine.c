#include "script/machine.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

unsigned machine_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (unsigned)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

/* A container sees its own group at the root of this tree; 0 when there is no limit. */
static int64_t group_limit(void)
{
    int64_t limit = 0;
    FILE *file = fopen("/sys/fs/cgroup/memory.max", "re");
    if (!file)
        return 0;
    if (fscanf(file, "%" SCNd64, &limit) != 1) /* "max" */
        limit = 0;
    fclose(file);
    return limit;
}

int64_t machine_memory(void)
{
    int64_t all = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    int64_t limit = group_limit();
    return limit > 0 && limit < all ? limit : all;
}
