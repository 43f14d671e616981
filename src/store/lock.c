/* The lock of a data directory: held by the kernel for as long as the file is open, so a killed process
 * leaves none behind. The pid inside is for people. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "store/store_priv.h"

#define RESTORE "restore" /* instead of a pid */

/* 0: not one that serves, for its pid would be there. */
static long holder_of(int fd)
{
    char text[32] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    long pid = n > 0 ? strtol(text, NULL, 10) : 0;
    return pid > 0 && (kill((pid_t)pid, 0) == 0 || errno != ESRCH) ? pid : 0;
}

static bool is_restore(int fd)
{
    char text[sizeof RESTORE] = "";
    return pread(fd, text, sizeof RESTORE - 1, 0) == sizeof RESTORE - 1 && strcmp(text, RESTORE) == 0;
}

static enum status busy(const char *data_dir, int fd, struct error *err)
{
    long pid = holder_of(fd);
    if (is_restore(fd))
        return error_set(err, STATUS_BUSY, "a store is being restored in %s", data_dir);
    return pid > 0 ? error_set(err, STATUS_BUSY, "%s is served by process %ld", data_dir, pid)
                   : error_set(err, STATUS_BUSY,
                               "%s is in use: \"lanegate store\" reads or restores it, or another machine or "
                               "container serves it",
                               data_dir);
}

enum status lock_take(const char *data_dir, bool restores, int *out, struct error *err)
{
    char *path = mem_format("%s/lock", data_dir);
    enum status status = STATUS_OK;
    /* No link is followed: a restore is often run by root, and this file is written to. */
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        status = error_set(err, STATUS_IO, "data_dir %s: can't be written: %s", data_dir, strerror(errno));
        goto free_path;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        status = errno == EWOULDBLOCK ? busy(data_dir, fd, err)
                                      : error_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
        goto close_fd;
    }
    char text[32];
    int len = restores ? snprintf(text, sizeof text, RESTORE "\n")
                       : snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)len, 0) != len) {
        status = error_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
        goto close_fd;
    }
    *out = fd;
    goto free_path;

close_fd:
    close(fd);
free_path:
    free(path);
    return status;
}

enum status lock_share(const char *data_dir, int *out, bool *restored, struct error *err)
{
    char *path = mem_format("%s/lock", data_dir);
    enum status status = STATUS_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *out = -1;
    *restored = false;
    if (fd < 0 && errno != ENOENT)
        status = error_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
    if (fd < 0)
        goto free_path;
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
        *out = fd;
        goto free_path;
    }
    status = errno == EWOULDBLOCK ? busy(data_dir, fd, err)
                                  : error_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
    *restored = status == STATUS_BUSY && is_restore(fd);
    close(fd);

free_path:
    free(path);
    return status;
}

void lock_drop(int fd)
{
    close(fd);
}
