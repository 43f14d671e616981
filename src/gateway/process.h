/* What the process is to the system: its signals, its files, its memory. */
#ifndef GATEWAY_PROCESS_H
#define GATEWAY_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

/* Before any other thread exists: blocks the signals that process_wait_for_end takes, takes the file
 * descriptors it may need, tells the allocator how hooks come and go. */
void process_settle(const struct config *config);

/* What the waiting thread looks at meanwhile. All of it is called from there. */
struct process_watch {
    bool (*moves)(void *ctx);  /* true: work moves, or there is none */
    void (*hangup)(void *ctx); /* SIGHUP came. Must not block */
    void *ctx;
};

/* Returns at SIGTERM or SIGINT. Under a supervisor with a watchdog it is told, three times within its
 * patience, that work moves; one that hears nothing any more ends the process and starts it again. */
void process_wait_for_end(const struct process_watch *watch);

/* From now on a second SIGTERM or SIGINT ends the process at once, and so does the passing of `within_ms`. */
void process_end_by(int64_t within_ms);

#endif
