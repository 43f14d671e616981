/* A function of the operator's own decides: true, or false and a reason. It runs in the sandbox, which this
 * room does not see (struct verify_engine); whatever goes wrong in it, the hook is refused. */
#include <stdlib.h>

#include "util/mem.h"
#include "verify/schemes.h"
#include "verify/verify_priv.h"

struct key {
    struct verify_engine engine;
};

static enum status lua_open(const struct value *options, const struct recipe *facts,
                            const struct verify_engine *engine, void **out, struct error *err)
{
    (void)facts;
    if (!value_str(options, "lua", NULL) || !value_str(options, "call", NULL))
        return error_set(err, STATUS_INVALID, "lua: must name a module, and call a function of it");
    struct key *key = mem_zalloc(sizeof *key);
    if (engine)
        key->engine = *engine;
    *out = key;
    return STATUS_OK;
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
    if (key->engine.call)
        verdict = key->engine.call(key->engine.ctx, attempt->envelope, said);
    for (char *c = said; *c; c++) /* it goes to a screen or a log */
        if (*c < ' ' || *c > '~')
            *c = '?';
    if (verdict == VERDICT_GENUINE)
        return verify_passed();
    return verify_failed(verdict == VERDICT_REFUSED ? REASON_SCRIPT_REFUSED : REASON_SCRIPT_ERROR);
}

const struct scheme scheme_lua = {.open = lua_open, .close = lua_close, .check = lua_check};
