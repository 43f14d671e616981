/* The verifier of a source, and the function in Lua that it may ask. */
#include "config/config_priv.h"

#include <stdio.h>
#include <string.h>

/* What a verifier of type lua borrows. */
struct function {
    struct scripts *scripts;
    struct key_spec spec;
};

static enum verify_verdict ask(void *ctx, const struct envelope *envelope, char reason[VERIFY_REASON_MAX])
{
    const struct function *function = ctx;
    const char *said;
    if (scripts_verify(function->scripts, &function->spec, envelope, envelope->arena, &said))
        return VERDICT_GENUINE;
    snprintf(reason, VERIFY_REASON_MAX, "%s", said);
    bool broke = strcmp(said, "script_error") == 0 || strcmp(said, "script_breach") == 0 ||
                 strcmp(said, "script_type") == 0;
    return broke ? VERDICT_FAILED : VERDICT_REFUSED;
}

/* NULL when it has none, or after a fault. */
static struct function *function_of(struct loading *loading, const struct value *verify, const char *path)
{
    struct function *function = arena_zalloc(loading->config->arena, sizeof *function);
    const struct value *args = value_get(verify, "args");
    function->spec = (struct key_spec){
        .kind = KEY_SCRIPT,
        .module = value_str(verify, "lua", NULL),
        .function = value_str(verify, "call", NULL),
        .args = args,
    };
    bool named = function->spec.module && function->spec.function; /* placeholders are nil */
    if (!named || !config_add_script(loading, &function->spec, path))
        return NULL;
    function->scripts = loading->config->scripts;
    return function;
}

void config_make_verifier(struct loading *loading, struct config_source *source, const struct value *verify)
{
    char path[128];
    snprintf(path, sizeof path, "sources.%s.verify", source->name);
    struct function *function = NULL;
    if (config_is(verify, "type", "lua")) {
        function = function_of(loading, verify, path);
        if (!function)
            return;
    }
    const struct verify_engine engine = {.ctx = function, .call = ask};
    struct error err;
    if (loading->mode == CONFIG_SERVE &&
        verifier_new(verify, function ? &engine : NULL, &source->verifier, &err) != STATUS_OK)
        config_fault(loading, path, err.text);
}
