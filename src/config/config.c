/* From a file to a configuration: Lua evaluates and checks (script), then the tree is copied into the structs
 * of the rooms. All memory is one arena. */
#include "config/config_priv.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const usual_paths[] = {"config.lua", "/etc/lanegate/config.lua"};

/* Of the option, or of the nearest table around it. */
static int64_t line_of(const struct loading *loading, const char *path)
{
    char around[256];
    snprintf(around, sizeof around, "%s", path);
    int64_t line;
    char *dot;
    while (!(line = value_int(loading->lines, around, 0)) && (dot = strrchr(around, '.')))
        *dot = 0;
    return line;
}

void config_fault(struct loading *loading, const char *path, const char *text)
{
    int64_t line = line_of(loading, path);
    buf_puts(loading->faults, loading->config->path);
    if (line)
        buf_putf(loading->faults, ":%lld", (long long)line);
    buf_putf(loading->faults, ": %s: %s\n", path, text);
    loading->fault_count++;
}

/* The file to load; NULL with a sentence in `faults` when there is none. */
static const char *find(const char *path, struct buf *faults)
{
    if (path) {
        if (access(path, F_OK) == 0)
            return path;
        buf_putf(faults, "%s: there is no such file\n", path);
        return NULL;
    }
    for (size_t i = 0; i < sizeof usual_paths / sizeof *usual_paths; i++)
        if (access(usual_paths[i], F_OK) == 0)
            return usual_paths[i];
    buf_puts(faults, "there is no configuration: neither ./config.lua nor /etc/lanegate/config.lua; "
                     "name one with --config FILE\n");
    return NULL;
}

static struct config *config_new(const char *path)
{
    struct arena *arena = arena_new(16 * 1024);
    struct config *config = arena_zalloc(arena, sizeof *config);
    atomic_init(&config->refs, 1);
    config->arena = arena;
    config->path = arena_strdup(arena, path);
    return config;
}

/* False with `faults` filled. */
static bool fill(struct config *config, enum config_mode mode, struct buf *faults)
{
    struct script_config_options options = {
        .path = config->path, .resolve = mode == CONFIG_SERVE, .judges = &config_judges};
    struct script_config evaluated;
    struct error err;
    if (script_load_config(&options, config->arena, &evaluated, &err) != STATUS_OK) {
        buf_putf(faults, "%s\n", err.text);
        return false;
    }
    for (size_t i = 0; i < evaluated.fault_count; i++)
        buf_putf(faults, "%s\n", evaluated.faults[i]);
    if (evaluated.fault_count)
        return false;

    config->root = evaluated.root;
    config->shown = evaluated.shown;
    struct loading loading = {.config = config, .mode = mode, .lines = evaluated.lines, .faults = faults};
    config_fill_sections(&loading);
    config_fill_sources(&loading);
    config_fill_limits(&loading);
    return loading.fault_count == 0;
}

enum status config_load(const char *path, enum config_mode mode, struct config **out, struct buf *faults)
{
    const char *found = find(path, faults);
    if (!found)
        return STATUS_NOT_FOUND;
    struct config *config = config_new(found);
    if (!fill(config, mode, faults)) {
        config_unref(config);
        return STATUS_INVALID;
    }
    *out = config;
    return STATUS_OK;
}

struct config *config_ref(struct config *config)
{
    atomic_fetch_add_explicit(&config->refs, 1, memory_order_relaxed);
    return config;
}

void config_unref(struct config *config)
{
    if (!config || atomic_fetch_sub_explicit(&config->refs, 1, memory_order_acq_rel) != 1)
        return;
    config_close_sources(config);
    arena_free(config->arena);
}
