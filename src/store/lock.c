/* The lock of a data directory: held by the kernel for as long as the file is open, so a killed process
 * leaves none behind. The pid inside is for people. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "store/store_priv.h"

static long holder_of(int fd)
{
    char text[32] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    return n > 0 ? strtol(text, NULL, 10) : 0;
}

enum status lock_take(const char *data_dir, int *out, struct error *err)
{
    char *path = mem_format("%s/lock", data_dir);
    enum status status = STATUS_OK;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        status = error_set(err, STATUS_IO, "data_dir %s: can't be written: %s", data_dir, strerror(errno));
        goto free_path;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        status = errno == EWOULDBLOCK
                     ? error_set(err, STATUS_BUSY, "%s is served by process %ld", data_dir, holder_of(fd))
                     : error_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
        goto close_fd;
    }
    char text[32];
    int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
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

void lock_drop(int fd)
{
    close(fd);
}
