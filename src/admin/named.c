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

enum what { SOURCES, SINKS, PATHS };

/* The configured ones: sources, sinks of `source`, or sinks as people name them. Each once, as far as there
 * is room. */
static const char *those(const struct ask *ask, enum what what, struct bytes source)
{
    const struct admin_rules *rules = ask->rules;
    struct buf names = {0};
    const char *before = "";
    buf_puts(&names, "one that there is:");
    for (size_t i = 0; i < rules->sink_count && names.len < NAMES_MAX; i++) {
        const struct admin_sink *sink = &rules->sinks[i];
        const char *name = what == SOURCES ? sink->source : sink->name;
        if (!takes(&source, sink->source) || (what != PATHS && strcmp(name, before) == 0))
            continue;
        buf_putf(&names, " %s%s%s", what == PATHS ? sink->source : "", what == PATHS ? "/" : "", name);
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
                                                 .expected = source ? those(ask, SINKS, query->source)
                                                                    : those(ask, SOURCES, BYTES_NONE)});
    return false;
}

void ask_no_sink(struct ask *ask)
{
    ask_not_found_of(ask, "sink", those(ask, PATHS, BYTES_NONE));
}

void ask_no_source(struct ask *ask)
{
    ask_not_found_of(ask, "source", those(ask, SOURCES, BYTES_NONE));
}
