/* Writes of the log gathered: SQLite hands it to the system in two writes a page (a frame's head, then the
 * page). Each is a system call, and together they cost more than most else that a hook needs. This layer over
 * SQLite's own file system keeps writes to the log that follow each other and gives them on as one.
 *
 * When it is safe to keep one back: nobody else may look for it, and no promise may rest on it. Both begin
 * with the commit's sync: others look for a frame only once the index of the log names it, and that is
 * written after the sync has returned. Whatever comes before on the same file (a sync, a read, a truncate, a
 * question for the size) gives on what was kept. An error of a write then shows one call later, but never
 * after the sync.
 *
 * The database itself is not gathered: a checkpoint that does not reach the end of the log says that its
 * pages are there without a sync, and readers believe it at once. */
#include <stdlib.h>

#include "store/store_priv.h"
#include "util/check.h"

/* SQLite's own layer takes at most 128 KiB - 1 in one write (it masks the length). */
enum { GATHER_MAX = 124 << 10 };

struct gather {
    sqlite3_file base;
    bool log; /* others pass straight through */
    char *kept;
    size_t len;
    sqlite3_int64 at; /* where in the file `kept` goes */
    /* The real file follows, 16 bytes aligned. */
};

enum { REAL_AT = (sizeof(struct gather) + 15) / 16 * 16 };

static sqlite3_vfs *real_vfs;
static sqlite3_vfs gather_vfs;

static sqlite3_file *real_of(sqlite3_file *file)
{
    return (sqlite3_file *)((char *)file + REAL_AT);
}

static int give_on(sqlite3_file *file)
{
    struct gather *gather = (struct gather *)file;
    size_t len = gather->len;
    gather->len = 0;
    return len > 0 ? real_of(file)->pMethods->xWrite(real_of(file), gather->kept, (int)len, gather->at)
                   : SQLITE_OK;
}

static int gather_close(sqlite3_file *file)
{
    int rc = give_on(file);
    free(((struct gather *)file)->kept);
    int closed = real_of(file)->pMethods->xClose(real_of(file));
    return rc == SQLITE_OK ? closed : rc;
}

static int gather_read(sqlite3_file *file, void *out, int len, sqlite3_int64 at)
{
    int rc = give_on(file);
    return rc == SQLITE_OK ? real_of(file)->pMethods->xRead(real_of(file), out, len, at) : rc;
}

static int gather_write(sqlite3_file *file, const void *from, int len, sqlite3_int64 at)
{
    struct gather *gather = (struct gather *)file;
    bool follows = gather->at + (sqlite3_int64)gather->len == at;
    if (gather->len > 0 && (!follows || gather->len + (size_t)len > GATHER_MAX)) {
        int rc = give_on(file);
        if (rc != SQLITE_OK)
            return rc;
    }
    if (!gather->log || len > GATHER_MAX)
        return real_of(file)->pMethods->xWrite(real_of(file), from, len, at);
    if (!gather->kept)
        gather->kept = mem_alloc(GATHER_MAX);
    if (gather->len == 0)
        gather->at = at;
    memcpy(gather->kept + gather->len, from, (size_t)len);
    gather->len += (size_t)len;
    return SQLITE_OK;
}

static int gather_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int rc = give_on(file);
    return rc == SQLITE_OK ? real_of(file)->pMethods->xTruncate(real_of(file), size) : rc;
}

static int gather_sync(sqlite3_file *file, int flags)
{
    int rc = give_on(file);
    return rc == SQLITE_OK ? real_of(file)->pMethods->xSync(real_of(file), flags) : rc;
}

static int gather_size(sqlite3_file *file, sqlite3_int64 *size)
{
    int rc = give_on(file);
    return rc == SQLITE_OK ? real_of(file)->pMethods->xFileSize(real_of(file), size) : rc;
}

static int gather_lock(sqlite3_file *file, int lock)
{
    return real_of(file)->pMethods->xLock(real_of(file), lock);
}

static int gather_unlock(sqlite3_file *file, int lock)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), lock);
}

static int gather_reserved(sqlite3_file *file, int *out)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), out);
}

static int gather_control(sqlite3_file *file, int op, void *arg)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int gather_sector(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int gather_device(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int gather_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **out)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), region, size, extend, out);
}

static int gather_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, n, flags);
}

static void gather_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int gather_shm_unmap(sqlite3_file *file, int remove)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2, /* no memory mapping */
    .xClose = gather_close,
    .xRead = gather_read,
    .xWrite = gather_write,
    .xTruncate = gather_truncate,
    .xSync = gather_sync,
    .xFileSize = gather_size,
    .xLock = gather_lock,
    .xUnlock = gather_unlock,
    .xCheckReservedLock = gather_reserved,
    .xFileControl = gather_control,
    .xSectorSize = gather_sector,
    .xDeviceCharacteristics = gather_device,
    .xShmMap = gather_shm_map,
    .xShmLock = gather_shm_lock,
    .xShmBarrier = gather_shm_barrier,
    .xShmUnmap = gather_shm_unmap,
};

static int gather_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    (void)vfs;
    memset(file, 0, (size_t)gather_vfs.szOsFile);
    ((struct gather *)file)->log = (flags & SQLITE_OPEN_WAL) != 0;
    int rc = real_vfs->xOpen(real_vfs, name, real_of(file), flags, out);
    if (real_of(file)->pMethods)
        file->pMethods = &methods;
    return rc;
}

const char *vfs_register(void)
{
    real_vfs = sqlite3_vfs_find(NULL);
    CHECK(real_vfs);
    gather_vfs = *real_vfs; /* what is not about single files goes straight through: pAppData is the same */
    gather_vfs.zName = "lanegate";
    gather_vfs.szOsFile = REAL_AT + real_vfs->szOsFile;
    gather_vfs.xOpen = gather_open;
    gather_vfs.pNext = NULL;
    CHECK(sqlite3_vfs_register(&gather_vfs, 0) == SQLITE_OK);
    return gather_vfs.zName;
}
