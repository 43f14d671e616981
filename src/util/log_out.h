/* The way of a line to stderr. A pipe that nobody reads must not stop a gateway: after log_out_start() a line
 * that can't be written at once waits in memory for a thread of its own, in order, up to LOG_WAITING_MAX
 * bytes. What does not fit is dropped, counted, and told as `log_lines_dropped` once the others are out. A
 * line that stderr takes at once is out before the call returns, so a crash takes none of those along. */
#ifndef UTIL_LOG_OUT_H
#define UTIL_LOG_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "util/bytes.h"

enum { LOG_WAITING_MAX = 1 << 20 };

/* Any thread. `line` ends with a line feed. Before log_out_start: waits for stderr. */
void log_out(struct bytes line);
/* Once, in a process that must not wait; the thread is there until the process ends. False: there is no
 * thread, and lines go on to be waited for. */
bool log_out_start(void);
/* Before the process ends. False: something still waits after `ms`. */
bool log_out_drain(int64_t ms);

#endif
