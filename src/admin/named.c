/* A source or a sink that a filter names must be one that there is, in configuration or, as long as the store
 * knows its hooks, was: a list that is empty for a slip of the pen says the opposite of what is so. Tenants
 * are whoever comes. */
#include "admin/admin_priv.h"

enum { NAMES_MAX = 1024 }; /* bytes of them in a refusal */

static bool takes(const struct bytes *wanted, const char *name)
{
    return !wanted->at || bytes_eq(*wanted, bytes_str(name));
}

static bool is_there(const struct ask *ask, struct bytes source, struct bytes sink)
{
    for (size_t i = 0; i < ask->rules->sink_count; i++)
        if (takes(&source, ask->rules->sinks[i].source) && takes(&sink, ask->rules->sinks[i].name))
            return true;
    return store_knows(ask->admin->options.store, source, sink);
}

/* The configured ones: sources, or sinks of `source`. Each once, as far as there is room. */
static const char *those(const struct ask *ask, bool sinks, struct bytes source)
{
    const struct admin_rules *rules = ask->rules;
    struct buf names = {0};
    const char *before = "";
    buf_puts(&names, "one that there is:");
    for (size_t i = 0; i < rules->sink_count && names.len < NAMES_MAX; i++) {
        const char *name = sinks ? rules->sinks[i].name : rules->sinks[i].source;
        if (!takes(&source, rules->sinks[i].source) || strcmp(name, before) == 0)
            continue;
        buf_putf(&names, " %s", name);
        before = name;
    }
    if (names.len >= NAMES_MAX)
        buf_puts(&names, " ...");
    const char *copy = arena_copy(ask->arena, buf_bytes(&names)).at;
    buf_free(&names);
    return copy;
}

bool ask_names_are_there(struct ask *ask)
{
    const struct query *query = &ask->query;
    bool source = !query->source.at || is_there(ask, query->source, BYTES_NONE);
    if (source && (!query->sink.at || is_there(ask, query->source, query->sink)))
        return true;
    ask_refuse_filter(ask, &(struct query_fault){.code = "bad_filter",
                                                 .filter = source ? BYTES("sink") : BYTES("source"),
                                                 .expected = source ? those(ask, true, query->source)
                                                                    : those(ask, false, BYTES_NONE)});
    return false;
}
