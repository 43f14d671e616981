/* What the tools share: a store opened without a struct store, a file that is whole or not there, a copy. */
#ifndef STORE_TOOLS_PRIV_H
#define STORE_TOOLS_PRIV_H

#include "store/store_priv.h"
#include "store/tools.h"

/* Beside store.db: a restore writes here first, and renames last. */
#define STORE_FILE "store.db"
#define RESTORING_FILE "store.db.restoring"

/* ---- still.c ---- */

struct still {
    struct db db;
    char *dir;   /* the data directory; NULL: a file of its own */
    char *path;  /* of the database */
    int lock_fd; /* -1: none */
    bool served; /* by somebody else, beside whom it is read */
    int layout;  /* 0: an empty file */
};

/* `path` is a directory or a file. When somebody serves the directory: BUSY, unless `beside`; when a store is
 * being restored there: BUSY. CORRUPT may
 * leave it open (`db.handle`), for check.c to say more: close it in any case. */
enum status still_open(struct still *still, const char *path, bool beside, struct error *err);
void still_close(struct still *still); /* also one that is closed already */
/* The database of a data directory somewhere else, without the log that may have been beside it. One that was
 * stopped has none either; but that one still is where its lock is. */
bool still_lacks_log(const struct still *still);
int64_t still_file_bytes(const char *path, const char *suffix);

/* ---- watch.c ---- */

/* Calls back through SQLite too, so that a long statement can be stopped. */
struct watching {
    const struct store_watch *watch;
    const char *what;
    uint64_t done, total;
    int64_t next_us;
    bool stopped;
};
void watching_begin(struct watching *watching, const struct store_watch *watch, struct db *db);
void watching_end(struct db *db);
/* From here on it is about that. */
void watching_phase(struct watching *watching, const char *what, uint64_t total);
/* Tells when it is time to. False: it was stopped. */
bool watching_tick(struct watching *watching);

/* ---- made.c: a file that is whole or not there ---- */

struct made {
    char *path, *part; /* in the end; until then */
    int fd;            /* of `part`, locked: two can't make the same */
};
/* REFUSED when `path` exists, BUSY when somebody else is making it. */
enum status made_begin(struct made *made, const char *path, struct error *err);
/* Synced, and there under its name, which nobody took meanwhile. */
enum status made_finish(struct made *made, struct error *err);
void made_undo(struct made *made); /* removes it; nothing after made_finish */
/* The names in a directory; in the one that holds `path`. */
enum status sync_dir(const char *dir, struct error *err);
enum status sync_dir_of(const char *path, struct error *err);

/* ---- copy.c ---- */

/* What the head of a database file says: whether it goes with a log. */
bool log_mark(int fd, bool has_log);
/* The source as it is at this moment, whatever is committed meanwhile, into an empty file. A statement of the
 * source must not be under way. */
enum status copy_pages(struct db *from, const char *to, int to_fd, struct watching *watching,
                       struct error *err);

/* ---- seal.c: a digest of a file, inside it ---- */

/* Over all bytes but its own. The file is complete but for this. */
enum status seal_write(const char *path, int fd, struct watching *watching, struct error *err);
/* REFUSED when a byte is another one; OK too for a file without a seal. */
enum status seal_check(struct still *still, struct watching *watching, struct error *err);

/* ---- check.c ---- */

/* store_check of what is open already. */
enum status check_all(struct still *still, const struct store_judge *judge, struct store_verdict *out,
                      struct error *err);

#endif
