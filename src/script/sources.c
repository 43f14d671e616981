#include "script/sources.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "script/keys.h"
#include "util/arena.h"
#include "util/mem.h"
#include "util/vec.h"

enum { FOLDERS_DEEP_MAX = 16 };

struct sources {
    struct arena *arena;
    const char *folder;
    VEC(struct source) list; /* sorted by module */
};

/* While a folder is being read. */
struct reading {
    struct sources *sources;
    char root[PATH_MAX]; /* resolved */
    size_t entries, bytes;
    struct error *err;
};

static int by_module(const void *a, const void *b)
{
    return strcmp(((const struct source *)a)->module, ((const struct source *)b)->module);
}

/* What may stand between the dots of a module's name. */
static bool is_segment(const char *name, size_t len)
{
    if (len == 0)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
              c == '-'))
            return false;
    }
    return true;
}

/* The file itself, wherever links lead, lies under the folder. */
static bool is_inside(const struct reading *reading, const char *path)
{
    char real[PATH_MAX];
    size_t len = strlen(reading->root);
    return realpath(path, real) && strncmp(real, reading->root, len) == 0 && real[len] == '/';
}

static enum status read_file(struct reading *reading, const char *path, size_t size, struct bytes *text)
{
    struct error *err = reading->err;
    if (size > SCRIPT_FILE_BYTES_MAX)
        return error_set(err, STATUS_TOO_LARGE, "%s: has more than %d KiB", path,
                         SCRIPT_FILE_BYTES_MAX >> 10);
    if ((reading->bytes += size) > SCRIPT_ALL_BYTES_MAX)
        return error_set(err, STATUS_TOO_LARGE, "%s: holds more than %d MiB of Lua", reading->sources->folder,
                         SCRIPT_ALL_BYTES_MAX >> 20);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return error_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
    char *at = arena_alloc(reading->sources->arena, size + 1);
    size_t len = 0;
    ssize_t n = 0;
    while (len < size && (n = read(fd, at + len, size - len)) > 0)
        len += (size_t)n;
    int reason = errno;
    close(fd);
    if (n < 0)
        return error_set(err, STATUS_IO, "%s: %s", path, strerror(reason));
    at[len] = 0;
    *text = bytes_of(at, len);
    return STATUS_OK;
}

static enum status add_file(struct reading *reading, const char *path, const char *module, size_t module_len,
                            size_t size)
{
    struct bytes text;
    if (!is_inside(reading, path))
        return STATUS_OK;
    enum status status = read_file(reading, path, size, &text);
    if (status != STATUS_OK)
        return status;
    struct arena *arena = reading->sources->arena;
    VEC_PUSH(&reading->sources->list, ((struct source){
                                          .module = arena_copy(arena, bytes_of(module, module_len)).at,
                                          .path = arena_strdup(arena, path),
                                          .text = text,
                                      }));
    return STATUS_OK;
}

static enum status read_folder(struct reading *reading, const char *path, const char *module, int depth);

/* One entry of the folder `path`, whose modules begin with `module` ("keys." or ""). */
static enum status read_entry(struct reading *reading, const char *path, const char *module, const char *name,
                              int depth)
{
    char below[PATH_MAX], inner[PATH_MAX];
    size_t len = strlen(name);
    bool lua = len > 4 && strcmp(name + len - 4, ".lua") == 0;
    if (!is_segment(name, lua ? len - 4 : len))
        return STATUS_OK;
    if (++reading->entries > SCRIPT_FILES_MAX)
        return error_set(reading->err, STATUS_TOO_LARGE,
                         "%s: holds more than %d files and folders: give scripts.path a folder of its own",
                         reading->sources->folder, SCRIPT_FILES_MAX);
    struct stat facts;
    if ((size_t)snprintf(below, sizeof below, "%s/%s", path, name) >= sizeof below ||
        (size_t)snprintf(inner, sizeof inner, "%s%.*s", module, (int)(lua ? len - 4 : len), name) >=
            sizeof inner ||
        lstat(below, &facts) != 0)
        return STATUS_OK;
    if (!lua && S_ISDIR(facts.st_mode)) {
        if (depth == FOLDERS_DEEP_MAX)
            return STATUS_OK;
        strncat(inner, ".", sizeof inner - strlen(inner) - 1);
        return read_folder(reading, below, inner, depth + 1);
    }
    if (!lua || stat(below, &facts) != 0 || !S_ISREG(facts.st_mode))
        return STATUS_OK;
    size_t inner_len = strlen(inner);
    static const char init[] = ".init";
    if (inner_len > sizeof init - 1 && strcmp(inner + inner_len - (sizeof init - 1), init) == 0)
        inner_len -= sizeof init - 1;
    return add_file(reading, below, inner, inner_len, (size_t)facts.st_size);
}

static enum status read_folder(struct reading *reading, const char *path, const char *module, int depth)
{
    DIR *folder = opendir(path);
    if (!folder)
        return errno == ENOENT && depth == 0
                   ? STATUS_OK
                   : error_set(reading->err, STATUS_IO, "%s: %s", path, strerror(errno));
    enum status status = STATUS_OK;
    for (struct dirent *entry; status == STATUS_OK && (entry = readdir(folder));)
        status = read_entry(reading, path, module, entry->d_name, depth);
    closedir(folder);
    return status;
}

enum status sources_read(const char *folder, struct sources **out, struct error *err)
{
    struct sources *sources = mem_zalloc(sizeof *sources);
    sources->arena = arena_new(64 * 1024);
    sources->folder = arena_strdup(sources->arena, folder);
    struct reading reading = {.sources = sources, .err = err};
    enum status status = STATUS_OK;
    if (realpath(folder, reading.root))
        status = read_folder(&reading, folder, "", 0);
    else if (errno != ENOENT)
        status = error_set(err, STATUS_IO, "%s: %s", folder, strerror(errno));
    if (status != STATUS_OK) {
        sources_free(sources);
        return status;
    }
    if (sources->list.len)
        qsort(sources->list.at, sources->list.len, sizeof *sources->list.at, by_module);
    *out = sources;
    return STATUS_OK;
}

void sources_free(struct sources *sources)
{
    if (!sources)
        return;
    VEC_FREE(&sources->list);
    arena_free(sources->arena);
    free(sources);
}

const struct source *sources_find(const struct sources *sources, struct bytes module)
{
    size_t low = 0, high = sources->list.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = bytes_cmp(module, bytes_str(sources->list.at[middle].module));
        if (order == 0)
            return &sources->list.at[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const char *sources_folder(const struct sources *sources)
{
    return sources->folder;
}
