#include "fault_vfs.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

struct fault_file {
    sqlite3_file base;
    bool log;
    /* The real file follows, 16 bytes aligned. */
};

static sqlite3_vfs *real_vfs;
static sqlite3_vfs fault_vfs;
static sqlite3_io_methods fault_methods;
static atomic_int current, given;

enum { REAL_AT = (sizeof(struct fault_file) + 15) / 16 * 16 };

static sqlite3_file *real_of(sqlite3_file *file)
{
    return (sqlite3_file *)((char *)file + REAL_AT);
}

static int give(int rc)
{
    atomic_fetch_add(&given, 1);
    return rc;
}

static int fault_close(sqlite3_file *file)
{
    sqlite3_file *real = real_of(file);
    return real->pMethods ? real->pMethods->xClose(real) : SQLITE_OK;
}

static int fault_read(sqlite3_file *file, void *at, int len, sqlite3_int64 offset)
{
    return real_of(file)->pMethods->xRead(real_of(file), at, len, offset);
}

static int fault_write(sqlite3_file *file, const void *at, int len, sqlite3_int64 offset)
{
    if (((struct fault_file *)file)->log) {
        switch ((enum fault)atomic_load(&current)) {
        case FAULT_LOG_WRITE:
            return give(SQLITE_IOERR_WRITE);
        case FAULT_LOG_FULL:
            return give(SQLITE_FULL);
        case FAULT_LOG_TIGHT:
            if (len > 16 << 10)
                return give(SQLITE_FULL);
            break;
        case FAULT_LOG_WRITE_HALF:
            real_of(file)->pMethods->xWrite(real_of(file), at, len / 2, offset);
            return give(SQLITE_IOERR_WRITE);
        default:
            break;
        }
    }
    return real_of(file)->pMethods->xWrite(real_of(file), at, len, offset);
}

static int fault_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int fault_sync(sqlite3_file *file, int flags)
{
    if (((struct fault_file *)file)->log && atomic_load(&current) == FAULT_LOG_SYNC)
        return give(SQLITE_IOERR_FSYNC);
    bool hangs = ((struct fault_file *)file)->log && atomic_load(&current) == FAULT_LOG_HANG;
    if (hangs)
        give(SQLITE_OK);
    while (hangs && atomic_load(&current) == FAULT_LOG_HANG)
        usleep(1000);
    return real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int fault_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int fault_lock(sqlite3_file *file, int lock)
{
    return real_of(file)->pMethods->xLock(real_of(file), lock);
}

static int fault_unlock(sqlite3_file *file, int lock)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), lock);
}

static int fault_reserved(sqlite3_file *file, int *out)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), out);
}

static int fault_control(sqlite3_file *file, int op, void *arg)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int fault_sector(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int fault_device(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int fault_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, out);
}

static int fault_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, n, flags);
}

static void fault_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int fault_shm_unmap(sqlite3_file *file, int remove)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static int fault_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    (void)vfs;
    struct fault_file *mine = (struct fault_file *)file;
    mine->log = (flags & SQLITE_OPEN_WAL) != 0;
    memset(real_of(file), 0, (size_t)real_vfs->szOsFile);
    int rc = real_vfs->xOpen(real_vfs, name, real_of(file), flags, out);
    file->pMethods = real_of(file)->pMethods ? &fault_methods : NULL;
    return rc;
}

void fault_vfs_install(void)
{
    real_vfs = sqlite3_vfs_find(NULL);
    fault_methods = (sqlite3_io_methods){
        .iVersion = 2,
        .xClose = fault_close,
        .xRead = fault_read,
        .xWrite = fault_write,
        .xTruncate = fault_truncate,
        .xSync = fault_sync,
        .xFileSize = fault_size,
        .xLock = fault_lock,
        .xUnlock = fault_unlock,
        .xCheckReservedLock = fault_reserved,
        .xFileControl = fault_control,
        .xSectorSize = fault_sector,
        .xDeviceCharacteristics = fault_device,
        .xShmMap = fault_shm_map,
        .xShmLock = fault_shm_lock,
        .xShmBarrier = fault_shm_barrier,
        .xShmUnmap = fault_shm_unmap,
    };
    fault_vfs = *real_vfs; /* what is not about single files goes straight through: pAppData is the same */
    fault_vfs.zName = "fault";
    fault_vfs.szOsFile = REAL_AT + real_vfs->szOsFile;
    fault_vfs.xOpen = fault_open;
    fault_vfs.pNext = NULL;
    sqlite3_vfs_register(&fault_vfs, 1);
}

void fault_vfs_set(enum fault fault)
{
    atomic_store(&given, 0);
    atomic_store(&current, fault);
}

int fault_vfs_count(void)
{
    return atomic_load(&given);
}
