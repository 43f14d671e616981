#include "cli/input.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/units.h"

static enum status read_all(FILE *file, const char *name, size_t max, struct buf *out, struct error *err)
{
    char part[65536];
    out->max = max;
    /* An endless one (/dev/zero) ends where the bound is. */
    for (size_t n; !out->overflow && (n = fread(part, 1, sizeof part, file)) > 0;)
        buf_put(out, part, n);
    char most[32];
    units_format_bytes((int64_t)max, most);
    if (out->overflow)
        return error_set(err, STATUS_TOO_LARGE, "can't read %s: it is larger than %s", name, most);
    if (ferror(file))
        return error_set(err, STATUS_IO, "can't read %s: %s", name, strerror(errno));
    return STATUS_OK;
}

enum status input_read(const char *path, size_t max, struct buf *out, struct error *err)
{
    if (strcmp(path, "-") == 0)
        return read_all(stdin, "the standard input", max, out, err);
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set(err, STATUS_NOT_FOUND, "can't read %s: %s", path, strerror(errno));
    enum status status = read_all(file, path, max, out, err);
    fclose(file);
    return status;
}
