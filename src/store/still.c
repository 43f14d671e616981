/* A store opened to be looked at: by the directory or the file, beside whoever serves it or instead. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/tools_priv.h"

int64_t still_file_bytes(const char *path, const char *suffix)
{
    char *name = mem_format("%s%s", path, suffix);
    struct stat found;
    int64_t bytes = stat(name, &found) == 0 ? found.st_size : 0;
    free(name);
    return bytes;
}

/* The database of a data directory may be named too: then somebody may serve it all the same. */
static char *dir_of_store(const char *path)
{
    char *name = mem_strdup(path), *at = mem_strdup(path);
    char *dir = strcmp(basename(name), STORE_FILE) == 0 ? mem_strdup(dirname(at)) : NULL;
    free(name);
    free(at);
    return dir;
}

static enum status find(struct still *still, const char *path, struct error *err)
{
    struct stat found;
    if (stat(path, &found) != 0)
        return error_set(err, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s", path,
                         strerror(errno));
    if (!S_ISDIR(found.st_mode) && !S_ISREG(found.st_mode)) /* opening a pipe would wait for its other end */
        return error_set(err, STATUS_INVALID, "%s must be a data directory or a file, and is neither", path);
    still->dir = S_ISDIR(found.st_mode) ? mem_strdup(path) : dir_of_store(path);
    still->path = still->dir ? mem_format("%s/" STORE_FILE, still->dir) : mem_strdup(path);
    if (!still->dir || (stat(still->path, &found) == 0 && S_ISREG(found.st_mode)))
        return STATUS_OK;
    return error_set(err, STATUS_NOT_FOUND, "%s holds no store: there is no %s in it", still->dir,
                     STORE_FILE);
}

/* A database says in its head that it has a log (copy.c). */
static bool is_logged(const char *path)
{
    enum { HEADER_READS = 19 };
    uint8_t version = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool logged = fd >= 0 && pread(fd, &version, 1, HEADER_READS) == 1 && version == 2;
    if (fd >= 0)
        close(fd);
    return logged;
}

bool still_lacks_log(const struct still *still)
{
    char *at = mem_strdup(still->path), *log = mem_format("%s-wal", still->path);
    char *lock = mem_format("%s/lock", dirname(at));
    bool lacks = is_logged(still->path) && access(log, F_OK) != 0 && access(lock, F_OK) != 0;
    free(lock);
    free(log);
    free(at);
    return lacks;
}

enum status still_open(struct still *still, const char *path, bool beside, struct error *err)
{
    *still = (struct still){.lock_fd = -1};
    enum status status = find(still, path, err);
    bool restored = false;
    if (status == STATUS_OK && still->dir)
        status = lock_share(still->dir, &still->lock_fd, &restored, err);
    still->served = status == STATUS_BUSY && beside && !restored;
    if (still->served)
        status = STATUS_OK;
    if (status == STATUS_OK)
        status = db_open(&still->db, still->path, still->served ? DB_BESIDE : DB_STILL, err);
    if (status != STATUS_OK) {
        still_close(still);
        return status;
    }
    status = schema_version(&still->db, &still->layout, err);
    if (status != STATUS_OK && status != STATUS_CORRUPT)
        still_close(still);
    return status;
}

void still_close(struct still *still)
{
    if (still->db.handle)
        db_close(&still->db);
    if (still->lock_fd >= 0)
        lock_drop(still->lock_fd);
    free(still->path);
    free(still->dir);
    *still = (struct still){.lock_fd = -1};
}
