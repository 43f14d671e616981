#include "gateway/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_supervisor(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    if (len < 2 || len >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(address.sun_path, path, len);
    if (path[0] == '@')
        address.sun_path[0] = 0; /* the abstract namespace */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    ssize_t sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, size);
    (void)sent;
    close(fd);
}

/* WATCHDOG_USEC and WATCHDOG_PID of sd_watchdog_enabled(3). */
int64_t notify_watchdog_ms(void)
{
    const char *patience = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (!patience || (pid && strtoll(pid, NULL, 10) != getpid()))
        return 0;
    int64_t ms = strtoll(patience, NULL, 10) / 1000;
    return ms > 0 ? ms : 0;
}
