/* A disk that does not come back, as a test wants it: preloaded into the gateway, a sync waits for as long as
 * the file that LANEGATE_SPEC_DISK_STOPS names is there; a file of that name with ".waits" behind it says
 * that one does. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LOOK_EVERY_US = 1000 };

typedef int sync_file(int);

static int sync_when_let(const char *name, int fd)
{
    const char *path = getenv("LANEGATE_SPEC_DISK_STOPS");
    union {
        void *object;
        sync_file *function;
    } real = {.object = dlsym(RTLD_NEXT, name)};
    char waits[512];
    snprintf(waits, sizeof waits, "%s.waits", path ? path : "");
    while (path && access(path, F_OK) == 0) {
        close(open(waits, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        usleep(LOOK_EVERY_US);
    }
    return real.function(fd);
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    return sync_when_let("fdatasync", fd);
}

__attribute__((visibility("default"))) int fsync(int fd)
{
    return sync_when_let("fsync", fd);
}
