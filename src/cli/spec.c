/* lanegate spec: runs a user's busted specs with everything they need found for them. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/args.h"
#include "util/mem.h"

/* Where lanegate/testing.lua and its module are: in lib/lanegate beside the binary (a build), or beside its
 * bin folder (installed). NULL after saying so. */
static char *find_library(void)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    self[len > 0 ? len : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    static const char *const places[] = {"lib/lanegate", "../lib/lanegate"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char *folder = mem_format("%s/%s", self, places[i]),
             *file = mem_format("%s/lanegate/testing.lua", folder);
        bool there = access(file, R_OK) == 0;
        free(file);
        if (there)
            return folder;
        free(folder);
    }
    fprintf(stderr,
            "lanegate spec: lanegate/testing.lua is in neither %s/lib/lanegate nor %s/../lib/lanegate: it "
            "belongs to "
            "the package and to a build from source; copy it with the binary\n",
            self, self);
    return NULL;
}

static char *path_with(const char *variable, const char *folder, const char *ending)
{
    const char *before = getenv(variable);
    return mem_format("%s/?%s;%s", folder, ending, before && *before ? before : ";");
}

/* Every line is one for a shell: `eval "$(lanegate spec --paths)"`. */
static void print_paths(const char *lua_path, const char *lua_cpath)
{
    printf("export LUA_PATH='%s'\nexport LUA_CPATH='%s'\n", lua_path, lua_cpath);
}

/* Comes back only when there is no busted. */
static int run_busted(const char *const *targets, size_t count, const char *name, bool json)
{
    enum { OWN_WORDS = 8 };
    char **words = mem_zalloc((count + OWN_WORDS) * sizeof *words);
    size_t n = 0;
    words[n++] = mem_format("busted");
    words[n++] = mem_format("--lua=luajit");
    if (json)
        words[n++] = mem_format("--output=json");
    if (name)
        words[n++] = mem_format("--filter=%s", name);
    words[n++] = mem_format("--");
    for (size_t i = 0; i < count; i++)
        words[n++] = mem_format("%s", targets[i]);
    fflush(stdout);
    execvp(words[0], words);
    fprintf(stderr,
            "lanegate spec: can't start busted: %s; on Debian it is in lua-busted, LuaJIT in luajit2\n",
            strerror(errno));
    for (size_t i = 0; i < n; i++)
        free(words[i]);
    free(words);
    return CLI_FAILED;
}

static int run(int argc, char **argv)
{
    enum { TARGETS_MAX = 64 };
    const char *targets[TARGETS_MAX], *scripts = NULL, *name = NULL;
    bool json = false, paths = false;
    const struct arg args[] = {{"scripts", ARG_TEXT, {.text = &scripts}},
                               {"filter", ARG_TEXT, {.text = &name}},
                               {"paths", ARG_FLAG, {.flag = &paths}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    size_t count;
    int code = cli_args(&verb_spec, argc, argv, args, targets, TARGETS_MAX, &count);
    if (code != CLI_OK)
        return code;
    for (size_t i = 0; i < count; i++)
        if (access(targets[i], R_OK) != 0)
            return cli_usage(&verb_spec, "can't read %s: %s", targets[i], strerror(errno));
    if (count == 0 && access("spec", R_OK) != 0 && !paths)
        return cli_usage(&verb_spec, "which folder of specs? there is no folder named spec here");
    char *library = find_library();
    if (!library)
        return CLI_FAILED;

    char *lua_path = path_with("LUA_PATH", library, ".lua"),
         *lua_cpath = path_with("LUA_CPATH", library, ".so");
    if (paths) {
        print_paths(lua_path, lua_cpath);
    } else {
        setenv("LUA_PATH", lua_path, true);
        setenv("LUA_CPATH", lua_cpath, true);
        if (scripts)
            setenv("LANEGATE_SCRIPTS", scripts, true);
        if (count == 0)
            targets[count++] = "spec";
        code = run_busted(targets, count, name, json);
    }
    free(lua_path);
    free(lua_cpath);
    free(library);
    return code;
}

const struct cli_verb verb_spec = {
    .name = "spec",
    .summary = "runs specs of key functions with busted, against the resolver and the sandbox",
    .help = "usage: lanegate spec [DIR|FILE ...] [options]\n"
            "       lanegate spec --paths\n"
            "\n"
            "Runs busted under LuaJIT on files named *_spec.lua in DIR (default: spec). In them,\n"
            "  local t = require \"lanegate.testing\"\n"
            "gives t.hook, t.fixture, t.key, t.lanes, t.budget, and assertions about lanes. Modules of keys "
            "are looked\n"
            "for in the folder lua of the working directory.\n"
            "\n"
            "  --scripts DIR   where modules of keys are, as scripts.path says it\n"
            "  --filter TEXT   only specs whose name matches this Lua pattern\n"
            "  --paths         prints what busted needs, for a shell or an editor that runs it by itself:\n"
            "                  eval \"$(lanegate spec --paths)\"; busted --lua=luajit spec\n"
            "  --json          busted's JSON\n"
            "\n"
            "Exit code 0 when all of them hold. busted and LuaJIT have to be there: on Debian, lua-busted "
            "and luajit2.\n",
    .run = run,
};
