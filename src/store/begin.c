/* A data directory, and a store in it where there is none. A new store is made aside, tables and all, and
 * named when it is whole: one sync, where SQLite would take seven to make it in its place, and a crash leaves
 * either all of it or nothing. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/tools_priv.h"

enum status begin_dir(const char *path, struct error *err)
{
    struct stat found;
    if (stat(path, &found) == 0)
        return S_ISDIR(found.st_mode) ? STATUS_OK
                                      : error_set(err, STATUS_IO, "data_dir %s: is not a directory", path);
    if (mkdir(path, 0700) != 0)
        return error_set(err, STATUS_IO, "data_dir %s: can't be made: %s%s", path, strerror(errno),
                         errno == ENOENT ? "; its parent must exist" : "");
    return sync_dir_of(path, err);
}

static enum status make_store(const char *path, struct error *err)
{
    struct made made;
    struct db db;
    enum status status = made_begin(&made, path, err);
    if (status != STATUS_OK)
        goto undo;
    status = db_open(&db, made.part, DB_MAKE, err);
    if (status != STATUS_OK)
        goto undo;
    if (!db_exec(&db, PAGE_SIZE_PRAGMA))
        status = error_set(err, STATUS_IO, "%s: %s", made.part, db_problem(&db));
    else
        status = schema_ensure(&db, err);
    db_close(&db);
    if (status == STATUS_OK && !log_mark(made.fd, true))
        status = error_set(err, STATUS_IO, "%s: %s", made.part, strerror(errno));
    if (status == STATUS_OK)
        status = made_finish(&made, err);

undo:
    made_undo(&made);
    return status;
}

static int64_t size_of(const char *path, const char *suffix)
{
    char *name = mem_format("%s%s", path, suffix);
    struct stat found;
    int64_t size = stat(name, &found) == 0 ? found.st_size : -1;
    free(name);
    return size;
}

/* SQLite takes a log without its database for rubbish and removes it; but what was answered since the last
 * checkpoint may be nowhere else. */
enum status begin_store(const char *path, struct error *err)
{
    int64_t size = size_of(path, "");
    if (size > 0)
        return sync_dir_of(path, err);
    if (size_of(path, ".restoring") >= 0)
        return error_set(
            err, STATUS_CORRUPT,
            "a restore of this store was interrupted: run it again, with --replace. A store that "
            "was here before is in the folder replaced-... beside %s",
            path);
    if (size_of(path, "-wal") > 0)
        return error_set(err, STATUS_CORRUPT,
                         "%s is missing or empty, but its log is not: accepted hooks may be in it. Put the "
                         "database back beside %s-wal, or move both away to begin anew",
                         path, path);
    if (size == 0 && unlink(path) != 0) /* an empty file */
        return error_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
    return make_store(path, err);
}
