/* Evaluates a configuration file: C reads the bytes and lends the machine (host.c), lua/lanegate/config.lua
 * does all the judging, and its result comes back as a tree of values. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "script/host.h"
#include "script/script.h"
#include "script/state.h"
#include "script/tree.h"
#include "util/buf.h"

enum {
    CONFIG_FILE_MAX = 4 * 1024 * 1024,     /* bytes */
    CONFIG_MEMORY_MAX = 256 * 1024 * 1024, /* bytes, checks included */
};

static enum status read_source(const char *path, struct buf *source, struct error *err)
{
    enum status status = STATUS_OK;
    source->max = CONFIG_FILE_MAX;
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set(err, STATUS_IO, "%s: %s", path, strerror(errno));

    struct stat facts;
    char part[16384];
    size_t n;
    if (fstat(fileno(file), &facts) == 0 && S_ISDIR(facts.st_mode)) {
        status = error_set(err, STATUS_IO, "%s: is a directory", path);
        goto close;
    }
    while (!source->overflow && (n = fread(part, 1, sizeof part, file)) > 0)
        buf_put(source, part, n);
    if (ferror(file))
        status = error_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
    else if (source->overflow)
        status = error_set(err, STATUS_IO, "%s: has more than %d MiB", path, CONFIG_FILE_MAX >> 20);
close:
    fclose(file);
    return status;
}

/* What a protected call works on. */
struct load {
    const struct script_config_options *options;
    struct script_host host;
    struct bytes source;
    struct arena *arena;
    struct script_config *out;
    struct bytes *markdown;
};

/* Pushes a function of lua/lanegate/config.lua. */
static void push_config_function(lua_State *lua, const char *name)
{
    lua_getglobal(lua, "require");
    lua_pushliteral(lua, "lanegate.config");
    lua_call(lua, 1, 1);         /* module */
    lua_getfield(lua, -1, name); /* module function */
    lua_remove(lua, -2);         /* function */
}

static const struct value *tree_field(lua_State *lua, int table, const char *name, struct arena *arena)
{
    struct value *value = arena_zalloc(arena, sizeof *value);
    lua_getfield(lua, table, name);
    script_tree_read(lua, -1, arena, value);
    lua_pop(lua, 1);
    return value;
}

static void read_faults(lua_State *lua, int list, struct load *load)
{
    size_t count = lua_objlen(lua, list);
    const char **faults = arena_zalloc(load->arena, (count + 1) * sizeof *faults);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(lua, list, (int)i + 1);
        faults[i] = arena_strdup(load->arena, luaL_checkstring(lua, -1));
        lua_pop(lua, 1);
    }
    load->out->faults = faults;
    load->out->fault_count = count;
}

/* Under lua_cpcall. */
static int load_protected(lua_State *lua)
{
    struct load *load = lua_touserdata(lua, 1);
    lua_settop(lua, 0);
    push_config_function(lua, "load");
    lua_pushlstring(lua, load->source.at, load->source.len);
    lua_pushstring(lua, load->options->path);
    script_host_push(lua, &load->host);
    lua_pushboolean(lua, load->options->resolve);
    lua_call(lua, 4, 2); /* config or nil, faults */
    if (lua_isnil(lua, 1)) {
        read_faults(lua, 2, load);
        return 0;
    }
    load->out->shown = tree_field(lua, 1, "shown", load->arena);
    load->out->lines = tree_field(lua, 1, "lines", load->arena);
    load->out->root = tree_field(lua, 1, "root", load->arena);
    return 0;
}

static int reference_protected(lua_State *lua)
{
    struct load *load = lua_touserdata(lua, 1);
    push_config_function(lua, "reference");
    lua_call(lua, 0, 1);
    size_t len;
    const char *text = luaL_checklstring(lua, -1, &len);
    *load->markdown = arena_copy(load->arena, bytes_of(text, len));
    return 0;
}

/* A Lua error here is a mistake of ours, or the memory of the whole evaluation. */
static enum status run(lua_CFunction function, struct load *load, struct error *err)
{
    struct script_state state;
    enum status status = script_state_open(&state, CONFIG_MEMORY_MAX, err);
    if (status)
        return status;
    if (lua_cpcall(state.lua, function, load) != 0) {
        const char *message = lua_tostring(state.lua, -1);
        status = error_set(err, STATUS_FULL, "the configuration can't be evaluated: %s",
                           message ? message : "no message");
    }
    script_state_close(&state);
    return status;
}

enum status script_load_config(const struct script_config_options *options, struct arena *arena,
                               struct script_config *out, struct error *err)
{
    *out = (struct script_config){0};
    struct buf source = {0};
    enum status status = read_source(options->path, &source, err);
    if (!status) {
        struct load load = {.options = options,
                            .host = {.judges = options->judges, .arena = arena},
                            .source = buf_bytes(&source),
                            .arena = arena,
                            .out = out};
        status = run(load_protected, &load, err);
    }
    buf_free(&source);
    return status;
}

enum status script_config_reference(struct arena *arena, struct bytes *markdown, struct error *err)
{
    struct load load = {.arena = arena, .markdown = markdown};
    return run(reference_protected, &load, err);
}
