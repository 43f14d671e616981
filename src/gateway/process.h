/* What the process is to the system: its signals, its files, its memory. */
#ifndef GATEWAY_PROCESS_H
#define GATEWAY_PROCESS_H

#include <stdint.h>

#include "config/config.h"

/* Before any other thread exists: blocks the signals that process_wait_for_end takes, takes the file
 * descriptors it may need, tells the allocator how hooks come and go. */
void process_settle(const struct config *config);

/* Returns at SIGTERM or SIGINT. */
void process_wait_for_end(void);

/* From now on a second SIGTERM or SIGINT ends the process at once, and so does the passing of `within_ms`. */
void process_end_by(int64_t within_ms);

#endif
