/* Tells a supervisor how the process is doing: sd_notify(3)'s datagram protocol, when NOTIFY_SOCKET is set.
 */
#ifndef GATEWAY_NOTIFY_H
#define GATEWAY_NOTIFY_H

#include <stdint.h>

/* "READY=1", "STOPPING=1", "WATCHDOG=1". Without a supervisor it does nothing; a failure is nobody's loss. */
void notify_supervisor(const char *state);

/* How long the supervisor waits for a "WATCHDOG=1" before it ends this process, in ms; 0: it does not. */
int64_t notify_watchdog_ms(void);

#endif
