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

void scripts_write_found(const struct order_lane *lane, const struct script_result *script,
                         struct jsonw *json)
{
    char hex[2 * LANE_ID_SIZE + 1];
    hex_encode(lane->lane.bytes, LANE_ID_SIZE, hex);
    jsonw_bytes_percent(json, "key", lane->key);
    jsonw_str(json, "lane", lane->ordered ? hex : NULL);
    jsonw_str(json, "reason", lane->missing != MISSING_NOTHING ? missing_reason_name(lane->missing) : NULL);
    jsonw_bool(json, "filtered", lane->filtered);
    jsonw_bool(json, "unordered", lane->unordered_by_word);
    jsonw_bool(json, "nondeterministic", script->nondeterministic);
    if (script->breach != SCRIPT_BREACH_NONE)
        jsonw_str(json, "breach", script_breach_name(script->breach));
    if (*script->error)
        jsonw_str(json, "error", script->error);
    jsonw_object(json, "cost");
    jsonw_int(json, "instructions", script->cost.instructions);
    jsonw_int(json, "pattern_steps", script->cost.pattern_steps);
    jsonw_uint(json, "memory_bytes", script->cost.memory_bytes);
    jsonw_int(json, "time_ns", script->cost.time_ns);
    jsonw_end_object(json);
}
