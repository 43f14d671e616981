/* Tells a supervisor how the process is doing: sd_notify(3)'s datagram protocol, when NOTIFY_SOCKET is set.
 */
#ifndef GATEWAY_NOTIFY_H
#define GATEWAY_NOTIFY_H

/* "READY=1", "STOPPING=1". Without a supervisor it does nothing; a failure is nobody's loss. */
void notify_supervisor(const char *state);

#endif
