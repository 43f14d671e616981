/* A set of scripts: what the configuration names, and who runs it on which thread. */
#include "script/scripts_priv.h"

#include <stdlib.h>
#include <string.h>

#include "util/check.h"
#include "util/mem.h"

enum status scripts_open(const struct scripts_options *options, struct scripts **out, struct error *err)
{
    static atomic_ullong last_id;
    struct sources *sources;
    enum status status = sources_read(options->path, &sources, err);
    if (status != STATUS_OK)
        return status;
    struct scripts *scripts = mem_zalloc(sizeof *scripts);
    scripts->id = atomic_fetch_add(&last_id, 1) + 1;
    scripts->options = *options;
    scripts->options.path = sources_folder(sources);
    scripts->sources = sources;
    scripts->engine = (struct key_engine){.ctx = scripts, .resolve = scripts_resolve};
    CHECK(pthread_mutex_init(&scripts->lock, NULL) == 0);
    *out = scripts;
    return STATUS_OK;
}

static void close_host(struct scripts *scripts, struct host *host)
{
    for (size_t i = 0; i < scripts->modules.len; i++)
        sandbox_close(host->sandboxes[i]);
    free(host->sandboxes);
    free(host);
}

void scripts_close(struct scripts *scripts)
{
    if (!scripts)
        return;
    for (struct host *host = scripts->hosts, *next; host; host = next) {
        next = host->next;
        close_host(scripts, host);
    }
    VEC_EACH (module, &scripts->modules)
        sandbox_close(module->first);
    VEC_EACH (function, &scripts->functions)
        free(*function);
    VEC_FREE(&scripts->modules);
    VEC_FREE(&scripts->functions);
    VEC_FREE(&scripts->entries);
    pthread_mutex_destroy(&scripts->lock);
    sources_free(scripts->sources);
    free(scripts);
}

const struct key_engine *scripts_engine(const struct scripts *scripts)
{
    return &scripts->engine;
}

/* ---- functions ---- */

static size_t place_of(const struct scripts *scripts, const struct key_spec *spec)
{
    size_t low = 0, high = scripts->entries.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)scripts->entries.at[middle].spec < (uintptr_t)spec)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct entry *scripts_entry(const struct scripts *scripts, const struct key_spec *spec)
{
    size_t at = place_of(scripts, spec);
    CHECK(at < scripts->entries.len && scripts->entries.at[at].spec == spec);
    return &scripts->entries.at[at];
}

static size_t module_of(struct scripts *scripts, const char *name)
{
    size_t i = 0;
    while (i < scripts->modules.len && strcmp(scripts->modules.at[i].name, name) != 0)
        i++;
    if (i == scripts->modules.len)
        VEC_PUSH(&scripts->modules, (struct module){.name = name});
    return i;
}

static struct function *function_of(struct scripts *scripts, size_t module, const char *name)
{
    VEC_EACH (function, &scripts->functions)
        if ((*function)->module == module && strcmp((*function)->name, name) == 0)
            return *function;
    struct function *made = mem_zalloc(sizeof *made);
    made->module = module;
    made->slot = scripts->modules.at[module].function_count++;
    made->name = name;
    atomic_init(&made->logged_ms, INT64_MIN);
    VEC_PUSH(&scripts->functions, made);
    return made;
}

/* One more function needs one more slot: the module is loaded again. */
static enum status try_function(struct scripts *scripts, const struct key_spec *spec,
                                const struct function *function, struct error *err)
{
    struct module *module = &scripts->modules.at[function->module];
    if (module->first && module->first->function_count < module->function_count) {
        sandbox_close(module->first);
        module->first = NULL;
    }
    if (!module->first)
        module->first = sandbox_open(scripts->sources, module->name, &scripts->options.limits,
                                     module->function_count, err);
    if (!module->first)
        return STATUS_INVALID;
    return sandbox_find(module->first, &(struct sandbox_call){.spec = spec, .slot = function->slot}, err);
}

enum status scripts_add(struct scripts *scripts, const struct key_spec *spec, struct error *err)
{
    CHECK(spec->kind == KEY_SCRIPT && !scripts->hosts);
    size_t at = place_of(scripts, spec);
    if (at < scripts->entries.len && scripts->entries.at[at].spec == spec)
        return STATUS_OK;
    struct function *function = function_of(scripts, module_of(scripts, spec->module), spec->function);
    enum status status = try_function(scripts, spec, function, err);
    if (status != STATUS_OK)
        return status;
    VEC_PUSH(&scripts->entries, (struct entry){0});
    struct entry *entries = scripts->entries.at;
    memmove(&entries[at + 1], &entries[at], (scripts->entries.len - 1 - at) * sizeof *entries);
    entries[at] = (struct entry){.spec = spec, .function = function};
    return STATUS_OK;
}

enum status scripts_add_key(struct scripts *scripts, const struct key_spec *key, struct error *err)
{
    enum status status = STATUS_OK;
    if (key->kind == KEY_SCRIPT)
        return scripts_add(scripts, key, err);
    for (size_t i = 0; key->kind == KEY_FIRST && i < key->item_count && status == STATUS_OK; i++)
        status = scripts_add_key(scripts, &key->items[i], err);
    return status;
}

void scripts_meter(struct scripts *scripts, struct metrics *metrics)
{
    VEC_EACH (each, &scripts->functions) {
        struct function *function = *each;
        const char *module = scripts->modules.at[function->module].name;
        function->duration = metrics_series3(metrics, METRIC_SCRIPT_DURATION, module, function->name, NULL);
        for (int breach = SCRIPT_BREACH_NONE + 1; breach < SCRIPT_BREACH_COUNT; breach++)
            function->breaches[breach] =
                metrics_series3(metrics, METRIC_SCRIPT_BREACHES, module, function->name,
                                script_breach_name((enum script_breach)breach));
    }
}

/* ---- threads ---- */

/* The host this thread used last. A set that is gone may leave a dangling pointer here, with an id that no
 * other set has. */
static _Thread_local struct {
    uint64_t id;
    struct host *host;
} last;

static struct host *host_of_thread(struct scripts *scripts)
{
    CHECK(pthread_mutex_lock(&scripts->lock) == 0);
    struct host *host = scripts->hosts;
    /* A thread that has ended may have left its host to one that bears its number now. */
    while (host && !pthread_equal(host->thread, pthread_self()))
        host = host->next;
    if (!host) {
        host = mem_zalloc(sizeof *host);
        host->thread = pthread_self();
        host->sandboxes = mem_zalloc((scripts->modules.len + 1) * sizeof *host->sandboxes);
        host->next = scripts->hosts;
        scripts->hosts = host;
    }
    CHECK(pthread_mutex_unlock(&scripts->lock) == 0);
    return host;
}

struct sandbox **scripts_place(struct scripts *scripts, size_t module)
{
    if (last.id != scripts->id) {
        last.host = host_of_thread(scripts);
        last.id = scripts->id;
    }
    return &last.host->sandboxes[module];
}

/* The state that scripts_add made serves whoever comes first. */
static struct sandbox *take_first(struct scripts *scripts, struct module *module)
{
    CHECK(pthread_mutex_lock(&scripts->lock) == 0);
    struct sandbox *sandbox = module->first;
    module->first = NULL;
    CHECK(pthread_mutex_unlock(&scripts->lock) == 0);
    return sandbox;
}

bool scripts_ready(struct scripts *scripts, struct sandbox **place, size_t module, struct error *err)
{
    if (*place && !(*place)->spent)
        return true;
    struct module *of = &scripts->modules.at[module];
    sandbox_close(*place);
    *place = NULL;
    *place = take_first(scripts, of);
    if (*place && (*place)->spent) {
        sandbox_close(*place);
        *place = NULL;
    }
    if (!*place)
        *place = sandbox_open(scripts->sources, of->name, &scripts->options.limits, of->function_count, err);
    return *place != NULL;
}
