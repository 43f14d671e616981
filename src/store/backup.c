/* A backup: one file that is the store as it was at one moment, sealed, looked at as if it were strange, and
 * only then given its name. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "store/tools_priv.h"
#include "util/clock.h"

/* Room for it, and then for the gateway that shares the disk. */
static enum status check_room(const struct store_backup *ask, struct still *still, struct store_copied *out,
                              struct error *err)
{
    struct statvfs there;
    struct stat of_file, of_store;
    char *copy = mem_strdup(ask->file);
    const char *dir = dirname(copy);
    enum status status = STATUS_OK;
    int64_t pages = 0, page_size = 0;
    if (stat(dir, &of_file) != 0 || statvfs(dir, &there) != 0 || stat(still->path, &of_store) != 0) {
        status = error_set(err, STATUS_IO, "%s: %s", dir, strerror(errno));
        goto free_copy;
    }
    if (!db_int(&still->db, "PRAGMA page_count", 0, &pages) ||
        !db_int(&still->db, "PRAGMA page_size", 0, &page_size)) {
        status = error_set(err, STATUS_CORRUPT, "%s can't be read: %s", still->path, db_problem(&still->db));
        goto free_copy;
    }
    out->same_disk = of_file.st_dev == of_store.st_dev;
    int64_t free_bytes = (int64_t)(there.f_bavail * there.f_frsize);
    int64_t left = free_bytes - pages * page_size;
    if (left < (out->same_disk && still->served ? ask->min_free_bytes : 0))
        status = error_set(
            err, STATUS_REFUSED,
            "the backup takes %lld bytes, and %s has %lld free%s: write it to another disk",
            (long long)(pages * page_size), dir, (long long)free_bytes,
            out->same_disk && still->served ? ", of which the gateway needs store.min_free_bytes" : "");

free_copy:
    free(copy);
    return status;
}

static enum status date(const char *path, struct error *err)
{
    struct db db;
    enum status status = db_open(&db, path, DB_MAKE, err);
    if (status != STATUS_OK)
        return status;
    char *sql =
        mem_format("INSERT OR REPLACE INTO meta VALUES('backup_at', %lld)", (long long)clock_unix_ms());
    if (!db_exec(&db, sql))
        status = error_set(err, STATUS_IO, "%s: %s", path, db_problem(&db));
    free(sql);
    db_close(&db);
    return status;
}

/* What was written, as somebody would find it. */
static enum status look_at(const char *path, const struct store_backup *ask, struct store_copied *out,
                           struct error *err)
{
    struct still still;
    enum status status = still_open(&still, path, false, err);
    if (status != STATUS_OK)
        goto close_still;
    out->bytes = still_file_bytes(path, "");
    schema_epoch(&still.db, &out->epoch, NULL);
    status = check_all(&still, &ask->judge, &out->verdict, err);
    if (status == STATUS_OK && out->verdict.faults > 0)
        status = error_set(err, STATUS_CORRUPT, "the store has %llu faults, so that this would be no backup",
                           (unsigned long long)out->verdict.faults);

close_still:
    still_close(&still);
    return status;
}

enum status store_backup(const struct store_backup *ask, struct store_copied *out, struct error *err)
{
    struct still still;
    struct made made;
    struct watching watching;
    *out = (struct store_copied){0};
    enum status status = still_open(&still, ask->data_dir, true, err);
    if (status != STATUS_OK)
        goto close_still;
    out->served = still.served;
    status = check_room(ask, &still, out, err);
    if (status != STATUS_OK)
        goto close_still;
    status = made_begin(&made, ask->file, err);
    if (status != STATUS_OK)
        goto undo;
    watching_begin(&watching, &ask->judge.watch, NULL);
    status = copy_pages(&still.db, made.part, made.fd, &watching, err);
    if (status == STATUS_OK)
        status = date(made.part, err);
    if (status == STATUS_OK)
        status = seal_write(made.part, made.fd, &watching, err);
    if (status == STATUS_OK && fdatasync(made.fd) != 0)
        status = error_set(err, STATUS_IO, "%s: %s", made.part, strerror(errno));
    if (status == STATUS_OK)
        status = look_at(made.part, ask, out, err);
    if (status == STATUS_OK)
        status = made_finish(&made, err);

undo:
    made_undo(&made);
close_still:
    still_close(&still);
    return status;
}
