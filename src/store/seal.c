/* A backup carries a digest of its own bytes, since SQLite notices a changed page but not a changed body. It
 * is a value of the table meta, 32 bytes somewhere in the file, that count as zeros in what they are the
 * digest of; where they are is found by looking for them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/tools_priv.h"
#include "util/digest.h"
#include "util/uuid.h"

enum { PIECE = 1 << 20 };

/* Reads the file once. Where `mark` begins is set in `at` (-1: nowhere); with `digest`, that of all bytes,
 * the mark's as zeros. A mark may lie across two pieces, so the last bytes of one stay for the next. */
static bool walk(int fd, const uint8_t mark[SHA256_SIZE], int64_t *at, uint8_t digest[SHA256_SIZE],
                 struct watching *watching)
{
    struct sha256_run *run = sha256_begin();
    char *piece = mem_alloc(PIECE);
    size_t kept = 0;
    int64_t offset = 0; /* of piece[0] */
    ssize_t n = 0;
    *at = -1;
    while (watching_tick(watching) &&
           (n = pread(fd, piece + kept, PIECE - kept, offset + (int64_t)kept)) > 0) {
        size_t len = kept + (size_t)n;
        char *hit = *at < 0 ? memmem(piece, len, mark, SHA256_SIZE) : NULL;
        if (hit) {
            *at = offset + (hit - piece);
            memset(hit, 0, SHA256_SIZE);
        }
        kept = len < SHA256_SIZE ? len : SHA256_SIZE - 1;
        sha256_add(run, bytes_of(piece, len - kept));
        offset += (int64_t)(len - kept);
        watching->done = (uint64_t)offset;
        memmove(piece, piece + len - kept, kept);
    }
    sha256_add(run, bytes_of(piece, kept));
    sha256_end(run, digest);
    free(piece);
    return n == 0 && !watching->stopped;
}

static enum status failed(const struct watching *watching, const char *path, struct error *err)
{
    if (watching->stopped)
        return error_set(err, STATUS_DRAINING, "interrupted");
    return error_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
}

/* A value that is nowhere else in the file. */
static enum status put_mark(const char *path, uint8_t mark[SHA256_SIZE], struct error *err)
{
    struct db db;
    enum status status = db_open(&db, path, DB_MAKE, err);
    if (status != STATUS_OK)
        return status;
    struct uuid random[4]; /* the last eight bytes of each are random */
    for (size_t i = 0; i < 4; i++) {
        random[i] = uuid_new((int64_t)i);
        memcpy(mark + 8 * i, random[i].bytes + 8, 8);
    }
    char hex[2 * SHA256_SIZE + 1];
    hex_encode(mark, SHA256_SIZE, hex);
    char *sql = mem_format("INSERT OR REPLACE INTO meta VALUES('seal', x'%s')", hex);
    if (!db_exec(&db, sql))
        status = error_set(err, STATUS_IO, "%s: %s", path, db_problem(&db));
    free(sql);
    db_close(&db);
    return status;
}

enum status seal_write(const char *path, int fd, struct watching *watching, struct error *err)
{
    uint8_t mark[SHA256_SIZE], digest[SHA256_SIZE];
    int64_t at;
    enum status status = put_mark(path, mark, err);
    if (status != STATUS_OK)
        return status;
    watching_phase(watching, "sealing", (uint64_t)still_file_bytes(path, ""));
    if (!walk(fd, mark, &at, digest, watching))
        return failed(watching, path, err);
    if (at < 0)
        return error_set(err, STATUS_CORRUPT, "%s: what was written is not there", path);
    if (pwrite(fd, digest, sizeof digest, at) != sizeof digest)
        return failed(watching, path, err);
    return STATUS_OK;
}

enum status seal_check(struct still *still, struct watching *watching, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    uint8_t mark[SHA256_SIZE], digest[SHA256_SIZE];
    int64_t at;
    bool sealed = sqlite3_prepare_v2(still->db.handle, "SELECT value FROM meta WHERE name = 'seal'", -1,
                                     &stmt, NULL) == SQLITE_OK &&
                  sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_bytes(stmt, 0) == SHA256_SIZE;
    if (sealed)
        memcpy(mark, sqlite3_column_blob(stmt, 0), SHA256_SIZE);
    sqlite3_finalize(stmt);
    if (!sealed)
        return STATUS_OK;

    int fd = open(still->path, O_RDONLY | O_CLOEXEC);
    enum status status = STATUS_OK;
    watching_phase(watching, "reading", (uint64_t)still_file_bytes(still->path, ""));
    if (fd < 0 || !walk(fd, mark, &at, digest, watching))
        status = failed(watching, still->path, err);
    else if (at < 0 || memcmp(mark, digest, SHA256_SIZE) != 0)
        status = error_set(err, STATUS_REFUSED, "its bytes are not those that were written");
    if (fd >= 0)
        close(fd);
    return status;
}
