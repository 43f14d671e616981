/* A file that is whole or not there: written beside its name, synced, and only then named. What an
 * interrupted run left beside the name is taken over by the next one. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/tools_priv.h"

enum status sync_dir(const char *dir, struct error *err)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    enum status status = synced ? STATUS_OK : error_set(err, STATUS_IO, "%s: %s", dir, strerror(errno));
    if (fd >= 0)
        close(fd);
    return status;
}

enum status sync_dir_of(const char *path, struct error *err)
{
    char *copy = mem_strdup(path);
    enum status status = sync_dir(dirname(copy), err);
    free(copy);
    return status;
}

static bool exists(const char *path)
{
    struct stat found;
    return lstat(path, &found) == 0;
}

/* The lock is worth something only while the name still leads to this file: whoever made it may have finished
 * between our opening and our locking it. */
static bool still_named(int fd, const char *path)
{
    struct stat open_file, named;
    return fstat(fd, &open_file) == 0 && lstat(path, &named) == 0 && open_file.st_ino == named.st_ino &&
           open_file.st_dev == named.st_dev;
}

/* In a folder of many, such as /tmp, somebody may have put a file of his own there, to read all hooks in it;
 * or a second name of one of ours, to have it emptied. */
static bool is_ours(int fd)
{
    struct stat found;
    return fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == geteuid() &&
           found.st_nlink <= 1;
}

enum status made_begin(struct made *made, const char *path, struct error *err)
{
    *made = (struct made){.path = mem_strdup(path), .part = mem_format("%s.part", path), .fd = -1};
    if (exists(path))
        return error_set(err, STATUS_REFUSED,
                         "%s is there already, and nothing is overwritten: name another file", path);
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    int fd = open(made->part, flags | O_EXCL, 0600);
    bool was_there = fd < 0 && errno == EEXIST;
    if (was_there)
        fd = open(made->part, flags, 0600);
    if (fd < 0)
        return error_set(err, STATUS_IO, "%s: %s", made->part, strerror(errno));
    if (was_there && !is_ours(fd)) {
        close(fd);
        return error_set(err, STATUS_REFUSED, "%s is there already, and not our own file: name another file",
                         made->part);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || !still_named(fd, made->part)) {
        close(fd);
        return error_set(err, STATUS_BUSY, "%s is being made by another process", path);
    }
    made->fd = fd; /* ours from here on: made_undo removes it */
    if (fchmod(fd, 0600) != 0 || ftruncate(fd, 0) != 0)
        return error_set(err, STATUS_IO, "%s: %s", made->part, strerror(errno));
    return STATUS_OK;
}

enum status made_finish(struct made *made, struct error *err)
{
    if (fsync(made->fd) != 0)
        return error_set(err, STATUS_IO, "%s: %s", made->part, strerror(errno));
    int rc = renameat2(AT_FDCWD, made->part, AT_FDCWD, made->path, RENAME_NOREPLACE);
    /* Some file systems can't promise it; then the look a moment before has to do. */
    if (rc != 0 && (errno == EINVAL || errno == ENOSYS) && !exists(made->path))
        rc = rename(made->part, made->path);
    if (rc != 0)
        return error_set(err, errno == EEXIST ? STATUS_REFUSED : STATUS_IO, "%s: %s", made->path,
                         strerror(errno));
    close(made->fd);
    made->fd = -1;
    return sync_dir_of(made->path, err);
}

void made_undo(struct made *made)
{
    if (made->fd >= 0) {
        unlink(made->part);
        close(made->fd);
    }
    free(made->path);
    free(made->part);
    *made = (struct made){.fd = -1};
}
