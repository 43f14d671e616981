/* What the machine lends to a process: the sizes from which some defaults come. Private to this room. */
#ifndef SCRIPT_MACHINE_H
#define SCRIPT_MACHINE_H

#include <stdint.h>

/* Processors this process may run on, at least 1. */
unsigned machine_cores(void);
/* Bytes of memory: the machine's, or the limit of our cgroup when that is less. */
int64_t machine_memory(void);

#endif
