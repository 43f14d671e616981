/* Lua keys: the set of scripts that a configuration owns. */
#include "config/config_priv.h"

static bool is_script(const struct key_spec *key)
{
    if (key->kind == KEY_SCRIPT)
        return true;
    for (size_t i = 0; key->kind == KEY_FIRST && i < key->item_count; i++)
        if (is_script(&key->items[i]))
            return true;
    return false;
}

static bool open_scripts(struct loading *loading)
{
    struct config *config = loading->config;
    const struct value *scripts = value_get(config->root, "scripts");
    const struct scripts_options options = {
        .path = value_str(scripts, "path", NULL),
        .limits = {.max_result_bytes = (size_t)value_int(scripts, "max_result_bytes", 0),
                   .max_instructions = value_int(scripts, "max_instructions", 0),
                   .max_memory_bytes = (size_t)value_int(scripts, "max_memory_bytes", 0),
                   .max_pattern_steps = value_int(scripts, "max_pattern_steps", 0)},
        .json_max_bytes = (size_t)value_int(value_get(config->root, "ordering"), "max_body_bytes", 0),
    };
    struct error err;
    if (scripts_open(&options, &config->scripts, &err) == STATUS_OK)
        return true;
    config_fault(loading, "scripts.path", err.text);
    return false;
}

bool config_add_script(struct loading *loading, const struct key_spec *key, const char *path)
{
    struct error err;
    if (loading->mode == CONFIG_CLIENT || !key || !is_script(key))
        return true;
    if (loading->scripts_failed)
        return false;
    if (!loading->config->scripts && !open_scripts(loading)) {
        loading->scripts_failed = true;
        return false;
    }
    if (scripts_add_key(loading->config->scripts, key, &err) == STATUS_OK)
        return true;
    config_fault(loading, path, err.text);
    return false;
}
