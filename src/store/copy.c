/* The pages of a store as they are at one moment. A read transaction is held from the first page to the last:
 * commits go on beside it, into the log, and the copy never begins anew. What is written is synced as it
 * grows, for a sync of all of it at the end would hold up those of the log. */
#include <errno.h>
#include <unistd.h>

#include "store/tools_priv.h"
#include "util/check.h"

enum { STEP_BYTES = 1 << 20, SYNC_BYTES = 4 << 20, HEADER_VERSIONS = 18 };

bool log_mark(int fd, bool has_log)
{
    const uint8_t version = has_log ? 2 : 1, versions[2] = {version, version};
    return pwrite(fd, versions, sizeof versions, HEADER_VERSIONS) == sizeof versions;
}

static int copy_steps(sqlite3_backup *backup, int step_pages, int64_t page_size, int to_fd,
                      struct watching *watching)
{
    int64_t unsynced = 0;
    int rc;
    while ((rc = sqlite3_backup_step(backup, step_pages)) == SQLITE_OK) {
        int all = sqlite3_backup_pagecount(backup);
        watching->total = (uint64_t)all * (uint64_t)page_size;
        watching->done = (uint64_t)(all - sqlite3_backup_remaining(backup)) * (uint64_t)page_size;
        unsynced += STEP_BYTES;
        if (unsynced >= SYNC_BYTES) {
            if (fdatasync(to_fd) != 0)
                return SQLITE_IOERR_FSYNC;
            unsynced = 0;
        }
        if (!watching_tick(watching))
            return SQLITE_INTERRUPT;
    }
    return rc;
}

enum status copy_pages(struct db *from, const char *to, int to_fd, struct watching *watching,
                       struct error *err)
{
    struct db dest;
    int64_t tables, page_size;
    enum status status = db_open(&dest, to, DB_MAKE, err);
    if (status != STATUS_OK)
        return status;
    watching_phase(watching, "copying", 0);
    int rc = SQLITE_ERROR;
    /* The read makes the transaction one: BEGIN alone sees no moment yet. */
    if (!db_exec(from, "BEGIN") || !db_int(from, "SELECT count(*) FROM sqlite_schema", 0, &tables) ||
        !db_int(from, "PRAGMA page_size", 4096, &page_size)) {
        status = error_set(err, db_status(sqlite3_errcode(from->handle)), "the store can't be read: %s",
                           db_problem(from));
        goto close_dest;
    }
    sqlite3_backup *backup = sqlite3_backup_init(dest.handle, "main", from->handle, "main");
    if (backup) {
        rc = copy_steps(backup, (int)(STEP_BYTES / page_size), page_size, to_fd, watching);
        int finished = sqlite3_backup_finish(backup);
        rc = rc == SQLITE_DONE ? finished : rc;
    }
    if (rc == SQLITE_INTERRUPT)
        status = error_set(err, STATUS_DRAINING, "interrupted");
    else if (rc != SQLITE_OK)
        status = error_set(err, db_status(rc), "%s can't be written: %s%s", to, sqlite3_errstr(rc),
                           rc == SQLITE_FULL ? "; no space is left there" : "");

close_dest:
    if (!sqlite3_get_autocommit(from->handle))
        db_exec(from, "COMMIT");
    db_close(&dest);
    /* A copy has no log, and must not be given one by whoever looks. */
    if (status == STATUS_OK && !log_mark(to_fd, false))
        status = error_set(err, STATUS_IO, "%s: %s", to, strerror(errno));
    return status;
}
