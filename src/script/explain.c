/* What the scripts in a key of any form used and said. */
#include "script/keys.h"

/* False when the key has no script. The walk ends with the first script that gives a key or says "unordered",
 * as `first` does; keys that are native give nothing here and end nothing. */
static bool walk(struct scripts *scripts, const struct key_spec *key, const struct envelope *envelope,
                 struct arena *arena, bool probe, struct script_result *out, bool *given)
{
    if (!key)
        return false;
    if (key->kind == KEY_FIRST) {
        bool any = false;
        for (size_t i = 0; i < key->item_count && !*given; i++)
            any = walk(scripts, &key->items[i], envelope, arena, probe, out, given) || any;
        return any;
    }
    if (key->kind != KEY_SCRIPT)
        return false;
    struct script_result one;
    struct script_cost sum = out->cost;
    bool nondeterministic = out->nondeterministic;
    if (probe)
        scripts_probe(scripts, key, envelope, arena, &one);
    else
        scripts_try(scripts, key, envelope, arena, &one);
    sum.instructions += one.cost.instructions;
    sum.pattern_steps += one.cost.pattern_steps;
    sum.time_ns += one.cost.time_ns;
    sum.memory_bytes = one.cost.memory_bytes > sum.memory_bytes ? one.cost.memory_bytes : sum.memory_bytes;
    const char *said = *one.error ? one.error : out->error;
    *out = one;
    out->cost = sum;
    out->error = said;
    out->nondeterministic = nondeterministic || one.nondeterministic;
    *given = one.missing == MISSING_NOTHING;
    return true;
}

bool scripts_explain(struct scripts *scripts, const struct key_spec *key, const struct envelope *envelope,
                     struct arena *arena, bool probe, struct script_result *out)
{
    bool given = false;
    *out = (struct script_result){.error = ""};
    return walk(scripts, key, envelope, arena, probe, out, &given);
}
