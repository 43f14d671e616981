/* A store brought back from a file. It is copied beside its place, given a new epoch and judged there; only
 * then does the old one go, into a folder, and the new one take the name. A directory in which the last step
 * was not reached has the copy and no store: store_open says so, and the same restore again goes on. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/tools_priv.h"
#include "util/clock.h"

static const char *const store_files[] = {STORE_FILE, STORE_FILE "-wal", STORE_FILE "-shm"};
enum { STORE_FILES = sizeof store_files / sizeof store_files[0] };

static bool has_store(const char *dir)
{
    bool has = false;
    for (int i = 0; i < STORE_FILES; i++) {
        char *path = mem_format("%s/%s", dir, store_files[i]);
        struct stat found;
        has |= lstat(path, &found) == 0;
        free(path);
    }
    return has;
}

static enum status make_dir(const char *dir, bool *made, struct error *err)
{
    *made = mkdir(dir, 0700) == 0;
    if (*made)
        return sync_dir_of(dir, err);
    if (errno == EEXIST)
        return STATUS_OK;
    return error_set(err, STATUS_IO, "%s can't be made: %s%s", dir, strerror(errno),
                     errno == ENOENT ? "; its parent must exist" : "");
}

/* One that was made for a restore that came to nothing. */
static void remove_dir(const char *dir)
{
    char *lock_path = mem_format("%s/lock", dir);
    if (!has_store(dir))
        unlink(lock_path);
    rmdir(dir); /* refused when a copy is in it */
    free(lock_path);
}

/* ---- the new one ---- */

static enum status renew(const char *path, struct store_copied *out, struct error *err)
{
    struct db db;
    enum status status = db_open(&db, path, DB_MAKE, err);
    if (status != STATUS_OK)
        return status;
    meta_int(&db, "backup_at", &out->backup_ms);
    status = schema_ensure(&db, err);
    if (status == STATUS_OK)
        status = schema_new_epoch(&db, &out->old_epoch, &out->epoch, err);
    db_close(&db);
    return status;
}

static enum status judge(const char *path, const struct store_restore *ask, struct store_copied *out,
                         struct error *err)
{
    struct still still;
    enum status status = still_open(&still, path, false, err);
    if (status != STATUS_OK && !still.db.handle)
        return status;
    uint64_t before = out->verdict.faults;
    status = check_all(&still, &ask->judge, &out->verdict, err);
    out->verdict.faults += before;
    still_close(&still);
    if (status == STATUS_OK && out->verdict.faults > 0 && !ask->damaged)
        status = error_set(err, STATUS_CORRUPT, "%s has %llu faults; nothing was changed", ask->file,
                           (unsigned long long)out->verdict.faults);
    return status;
}

/* The seal is of the file, and gone in the copy. */
static enum status check_seal(struct still *still, const struct store_restore *ask, struct watching *watching,
                              struct store_copied *out, struct error *err)
{
    struct error why = {""};
    enum status status = seal_check(still, watching, &why);
    if (status != STATUS_REFUSED)
        return status == STATUS_OK ? status : error_set(err, status, "%s", why.text);
    out->verdict.faults++;
    if (ask->judge.fault)
        ask->judge.fault(
            ask->judge.ctx,
            &(struct store_fault){.what = "seal",
                                  .found = why.text,
                                  .expected = "the bytes that the backup wrote",
                                  .action = "take another copy of this backup, or an older backup"});
    return ask->damaged ? STATUS_OK
                        : error_set(err, STATUS_CORRUPT, "%s: %s; nothing was changed", ask->file, why.text);
}

static enum status make_copy(const struct store_restore *ask, const char *to, struct store_copied *out,
                             struct error *err)
{
    struct still still;
    struct watching watching;
    enum status status = still_open(&still, ask->file, false, err);
    if (status == STATUS_OK && still.layout == 0)
        status = error_set(err, STATUS_CORRUPT, "%s is empty", ask->file);
    if (status != STATUS_OK) {
        still_close(&still);
        return status;
    }
    watching_begin(&watching, &ask->judge.watch, NULL);
    status = check_seal(&still, ask, &watching, out, err);
    int fd = -1;
    if (status == STATUS_OK) {
        fd = open(to, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 || fchmod(fd, 0600) != 0)
            status = error_set(err, STATUS_IO, "%s: %s", to, strerror(errno));
    }
    if (status == STATUS_OK)
        status = copy_pages(&still.db, to, fd, &watching, err);
    still_close(&still);
    if (status == STATUS_OK)
        status = renew(to, out, err);
    if (status == STATUS_OK && fsync(fd) != 0)
        status = error_set(err, STATUS_IO, "%s: %s", to, strerror(errno));
    if (fd >= 0)
        close(fd);
    if (status == STATUS_OK)
        status = judge(to, ask, out, err);
    out->bytes = still_file_bytes(to, "");
    return status;
}

/* ---- the old one ---- */

/* Complete in the folder before anything of it is taken away here: by a second name where the file system has
 * that. */
static enum status copy_names(const char *dir, const char *aside, bool *linked, struct error *err)
{
    *linked = true;
    for (int i = 0; i < STORE_FILES && *linked; i++) {
        char *from = mem_format("%s/%s", dir, store_files[i]),
             *to = mem_format("%s/%s", aside, store_files[i]);
        *linked = link(from, to) == 0 || errno == ENOENT;
        free(from);
        free(to);
    }
    return *linked ? sync_dir(aside, err) : STATUS_OK;
}

static enum status take_away(const char *dir, const char *aside, bool linked, struct error *err)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < STORE_FILES && status == STATUS_OK; i++) {
        char *from = mem_format("%s/%s", dir, store_files[i]),
             *to = mem_format("%s/%s", aside, store_files[i]);
        int rc = linked ? 0 : rename(from, to);
        /* A file that got its second name before the next one didn't stays where it is: rename() sees nothing
         * to do. An old log beside the new store would be read into it. */
        if (rc == 0)
            rc = unlink(from);
        if (rc != 0 && errno != ENOENT)
            status = error_set(err, STATUS_IO, "%s: %s", from, strerror(errno));
        free(from);
        free(to);
    }
    return status == STATUS_OK ? sync_dir(aside, err) : status;
}

/* Run by root, it must be readable by whom the directory belongs to; who must not be able to lead us to
 * another file. */
static void give_to_owner(const char *dir, const char *path)
{
    struct stat owner;
    if (geteuid() == 0 && stat(dir, &owner) == 0 && owner.st_uid != 0 &&
        lchown(path, owner.st_uid, owner.st_gid) != 0)
        return; /* the gateway will say that it can't read it */
}

/* A folder named by the time; by a number too when one of this second is there. */
static char *make_aside(const char *dir, enum status *status, struct error *err)
{
    enum { TRIES = 100 };
    char stamp[32];
    time_t now = (time_t)(clock_unix_ms() / 1000);
    struct tm tm;
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
    char *aside = mem_format("%s/replaced-%s", dir, stamp);
    int made = mkdir(aside, 0700);
    for (int i = 2; made != 0 && errno == EEXIST && i < TRIES; i++) {
        free(aside);
        aside = mem_format("%s/replaced-%s-%d", dir, stamp, i);
        made = mkdir(aside, 0700);
    }
    *status = made == 0 ? STATUS_OK : error_set(err, STATUS_IO, "%s: %s", aside, strerror(errno));
    return aside;
}

static enum status move_aside(const char *dir, struct store_copied *out, struct error *err)
{
    bool linked = false;
    enum status status;
    char *aside = make_aside(dir, &status, err);
    if (status == STATUS_OK)
        status = sync_dir_of(aside, err);
    if (status == STATUS_OK)
        status = copy_names(dir, aside, &linked, err);
    if (status == STATUS_OK)
        status = take_away(dir, aside, linked, err);
    if (status == STATUS_OK) {
        give_to_owner(dir, aside);
        out->aside = true;
        snprintf(out->aside_path, sizeof out->aside_path, "%s", aside);
    }
    free(aside);
    return status;
}

/* ---- all ---- */

static enum status place(const struct store_restore *ask, const char *copy, struct store_copied *out,
                         struct error *err)
{
    char *path = mem_format("%s/" STORE_FILE, ask->data_dir);
    char *lock_path = mem_format("%s/lock", ask->data_dir);
    enum status status = STATUS_OK;
    give_to_owner(ask->data_dir, copy);
    give_to_owner(ask->data_dir, lock_path);
    if (has_store(ask->data_dir))
        status = move_aside(ask->data_dir, out, err);
    if (status == STATUS_OK && rename(copy, path) != 0)
        status = error_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
    if (status == STATUS_OK)
        status = sync_dir_of(path, err);
    free(path);
    free(lock_path);
    return status;
}

enum status store_restore(const struct store_restore *ask, struct store_copied *out, struct error *err)
{
    *out = (struct store_copied){0};
    struct stat found;
    int lock_fd = -1;
    if (stat(ask->file, &found) != 0)
        return error_set(err, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s", ask->file,
                         strerror(errno));
    if (!S_ISREG(found.st_mode))
        return error_set(err, STATUS_REFUSED,
                         "%s is not a file; lanegate store backup makes one of a data directory", ask->file);
    bool made = false;
    enum status status = make_dir(ask->data_dir, &made, err);
    if (status == STATUS_OK)
        status = lock_take(ask->data_dir, true, &lock_fd, err);
    if (status != STATUS_OK)
        return status;
    char *copy = mem_format("%s/" RESTORING_FILE, ask->data_dir);
    if (has_store(ask->data_dir) && !ask->replace)
        status = error_set(err, STATUS_REFUSED,
                           "%s holds a store already; --replace moves it into a folder beside and restores",
                           ask->data_dir);
    if (status == STATUS_OK) {
        status = make_copy(ask, copy, out, err);
        if (status != STATUS_OK)
            unlink(copy);
    }
    if (status == STATUS_OK)
        status = sync_dir_of(copy, err);
    if (status == STATUS_OK)
        status = place(ask, copy, out, err);
    free(copy);
    if (status != STATUS_OK && made)
        remove_dir(ask->data_dir);
    lock_drop(lock_fd);
    return status;
}
