/* Does a function give the same in every state? */
#include "script/scripts_priv.h"

#include <string.h>

#include "util/check.h"
#include "util/jsonw.h"

static bool same(const struct script_result *a, const struct script_result *b)
{
    return a->missing == b->missing && a->breach == b->breach && a->unordered == b->unordered &&
           bytes_eq(a->key, b->key);
}

static void describe(const struct script_result *result, struct buf *out)
{
    if (result->unordered) {
        buf_puts(out, "lanegate.unordered");
    } else if (result->missing) {
        buf_putf(out, "no key (%s)", missing_reason_name(result->missing));
    } else {
        enum { SHOWN = 64 };
        struct bytes head = bytes_of(result->key.at, result->key.len < SHOWN ? result->key.len : SHOWN);
        buf_puts(out, "\"");
        percent_encode(out, head);
        buf_puts(out, head.len < result->key.len ? "...\"" : "\"");
    }
}

static const char *difference(const struct script_result *first, const char *other,
                              const struct script_result *result, struct arena *arena)
{
    struct buf text = {0};
    buf_puts(&text, "gave ");
    describe(first, &text);
    buf_putf(&text, " in a fresh state, and in %s ", other);
    describe(result, &text);
    buf_puts(&text,
             ": a key may depend on the hook and the arguments alone, so not on what a call before has left "
             "in a local of the module, nor on the order in which pairs walks a table");
    const char *copy = arena_copy(arena, buf_bytes(&text)).at;
    buf_free(&text);
    return copy;
}

void scripts_probe(struct scripts *scripts, const struct key_spec *spec, const struct envelope *envelope,
                   struct arena *arena, struct script_result *out)
{
    const struct entry *entry = scripts_entry(scripts, spec);
    size_t module = entry->function->module;
    const struct sources *sources = scripts->sources;
    const struct script_limits *limits = &scripts->options.limits;
    size_t slots = scripts->modules.at[module].function_count;
    struct script_result results[3];
    struct sandbox *fresh[2];
    for (int i = 0; i < 2; i++) {
        struct error err;
        fresh[i] = sandbox_open(sources, scripts->modules.at[module].name, limits, slots, &err);
        scripts_inspect(scripts, &fresh[i], entry, envelope, arena, &results[i]);
    }
    for (int i = 0; i < 2; i++) /* the first time it may be new: then the second is in a used one */
        scripts_inspect(scripts, scripts_place(scripts, module), entry, envelope, arena, &results[2]);
    *out = results[0];
    for (int i = 1; i < 3 && !out->nondeterministic; i++) {
        if (same(&results[0], &results[i]))
            continue;
        out->nondeterministic = true;
        out->error = difference(&results[0], i == 1 ? "another fresh one" : "a used one", &results[i], arena);
    }
    sandbox_close(fresh[0]);
    sandbox_close(fresh[1]);
}
