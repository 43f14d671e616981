/* A function of the operator's own decides: true, or false and a reason. It runs in the sandbox, which this
 * room does not see (struct verify_engine); whatever goes wrong in it, the hook is refused. */
#include <stdlib.h>

#include "util/mem.h"
#include "verify/schemes.h"
#include "verify/verify_priv.h"

struct key {
    const char *module, *function; /* borrowed from the options, as are args */
    const struct value *args;      /* a list, or NULL */
    struct verify_engine engine;
    bool has_engine;
};

static enum status lua_open(const struct value *options, const struct recipe *facts,
                            const struct verify_engine *engine, void **out, struct error *err)
{
    (void)facts;
    const struct value *args = value_get(options, "args");
    struct key *key = mem_zalloc(sizeof *key);
    key->module = value_str(options, "lua", NULL);
    key->function = value_str(options, "call", NULL);
    key->args = args->kind == VALUE_LIST ? args : NULL;
    if (engine) {
        key->engine = *engine;
        key->has_engine = true;
    }
    *out = key;
    if (key->module && key->function)
        return STATUS_OK;
    free(key);
    return error_set(err, STATUS_INVALID, "lua: must name a module, and call a function of it");
}

static void lua_close(void *key)
{
    free(key);
}

static struct verify_result lua_check(const void *opaque, const struct attempt *attempt)
{
    const struct key *key = opaque;
    char *said = attempt->trace->said;
    enum verify_verdict verdict = VERDICT_FAILED;
    if (key->has_engine)
        verdict =
            key->engine.call(key->engine.ctx, key->module, key->function, key->args, attempt->envelope, said);
    for (char *c = said; *c; c++) /* it goes to a screen or a log */
        if (*c < ' ' || *c > '~')
            *c = '?';
    if (verdict == VERDICT_GENUINE)
        return verify_passed();
    return verify_failed(verdict == VERDICT_REFUSED ? REASON_SCRIPT_REFUSED : REASON_SCRIPT_ERROR);
}

const struct scheme scheme_lua = {.open = lua_open, .close = lua_close, .check = lua_check};
