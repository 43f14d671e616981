/* A disk whose syncs take SLOW_SYNC_MS longer, for LD_PRELOAD. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wait_first(void)
{
    const char *text = getenv("SLOW_SYNC_MS");
    long ms = text ? strtol(text, NULL, 10) : 0;
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    wait_first();
    return (int)syscall(SYS_fdatasync, fd);
}

__attribute__((visibility("default"))) int fsync(int fd)
{
    wait_first();
    return (int)syscall(SYS_fsync, fd);
}
