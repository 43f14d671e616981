/* From options to a plan: every spec is checked, and every JSON path gets its slot in the one walk. The
 * schema of the configuration has looked at shapes already; this is where a wrong one stops whoever made it.
 */
#include <stdlib.h>

#include "order/order_priv.h"
#include "util/check.h"
#include "util/vec.h"

struct builder {
    struct order_plan *plan;
    VEC(struct json_path) paths;
    struct error *err;
    struct bytes sink; /* being looked at; absent: the source's dedupe */
};

static enum status malformed(const struct builder *b, const char *option, const char *reason)
{
    struct bytes source = b->plan->options.source;
    if (!b->sink.at)
        return error_set(b->err, STATUS_INVALID, "sources.%.*s.%s: %s", BYTES_ARG(source), option, reason);
    return error_set(b->err, STATUS_INVALID, "sources.%.*s.sinks.%.*s.%s: %s", BYTES_ARG(source),
                     BYTES_ARG(b->sink), option, reason);
}

/* RFC 9110's token. */
static bool is_header_name(struct bytes name)
{
    if (name.len == 0)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i], lower = (char)(c | 0x20);
        bool alphanumeric = (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z');
        if (!alphanumeric && (c == 0 || !strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return true;
}

static enum status add_header(struct builder *b, const char *option, struct bytes name)
{
    return is_header_name(name) ? STATUS_OK
                                : malformed(b, option, "must name a header (a token of RFC 9110)");
}

static enum status add_headers(struct builder *b, const char *option, const struct key_spec *spec)
{
    if (b->sink.at)
        return malformed(b, option, "must be one header: a list of them is for dedupe");
    if (spec->header_count == 0)
        return malformed(b, option, "headers must hold at least one name");
    enum status status = STATUS_OK;
    for (size_t i = 0; i < spec->header_count && status == STATUS_OK; i++)
        status = add_header(b, option, spec->headers[i]);
    return status;
}

static enum status add_path(struct builder *b, const char *option, const struct json_path *path, size_t *slot)
{
    if (path->segment_count == 0)
        return malformed(b, option, "a JSON path must not be empty");
    if (path->segment_count > JSON_PATH_SEGMENTS_MAX)
        return malformed(b, option, "a JSON path has at most 64 segments");
    for (size_t i = 0; i < path->segment_count; i++)
        if (path->segments[i].len == 0)
            return malformed(b, option, "a JSON path must not have an empty segment");
    *slot = b->paths.len;
    VEC_PUSH(&b->paths, *path);
    return STATUS_OK;
}

static enum status check_script(struct builder *b, const char *option, const struct key_spec *spec)
{
    if (!b->sink.at)
        return malformed(b, option, "must be a header or a JSON path, not a Lua function");
    if (!spec->module || !*spec->module || !spec->function || !*spec->function)
        return malformed(b, option, "a Lua key needs a module and a function");
    if (spec->args && spec->args->kind != VALUE_LIST && spec->args->kind != VALUE_NIL)
        return malformed(b, option, "args must be a list");
    if (!b->plan->options.engine)
        return malformed(b, option, "a Lua key needs the script engine");
    return STATUS_OK;
}

static enum status fill_key(struct builder *b, const char *option, const struct key_spec *spec, int depth,
                            struct key *key)
{
    key->spec = spec;
    switch (spec->kind) {
    case KEY_HEADER:
        return add_header(b, option, spec->header);
    case KEY_HEADERS:
        return add_headers(b, option, spec);
    case KEY_JSON:
        return add_path(b, option, &spec->path, &key->slot);
    case KEY_SCRIPT:
        return check_script(b, option, spec);
    case KEY_FIRST:
        break;
    default:
        return malformed(b, option, "must be one of header, json, lua, first");
    }
    if (spec->item_count == 0)
        return malformed(b, option, "first must hold at least one key");
    if (depth == KEY_FIRST_DEPTH_MAX)
        return malformed(b, option, "first is nested too deep");
    struct key *items = arena_zalloc(b->plan->arena, spec->item_count * sizeof *items);
    key->items = items;
    for (size_t i = 0; i < spec->item_count; i++) {
        enum status status = fill_key(b, option, &spec->items[i], depth + 1, &items[i]);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status add_key(struct builder *b, const char *option, const struct key_spec *spec,
                           const struct key **out)
{
    if (!spec)
        return STATUS_OK;
    struct key *key = arena_zalloc(b->plan->arena, sizeof *key);
    *out = key;
    return fill_key(b, option, spec, 0, key);
}

static enum status add_filter(struct builder *b, const struct filter_spec *spec, const struct filter **out)
{
    if (!spec)
        return STATUS_OK;
    struct filter *filter = arena_zalloc(b->plan->arena, sizeof *filter);
    filter->spec = spec;
    *out = filter;
    if (spec->glob_count == 0)
        return malformed(b, "only", "match must hold at least one glob");
    if (spec->by_header)
        return add_header(b, "only", spec->header);
    return add_path(b, "only", &spec->path, &filter->slot);
}

static enum status add_sink(struct builder *b, size_t i, struct sink *sink)
{
    const struct order_options *options = &b->plan->options;
    const struct order_sink *spec = &options->sinks[i];
    sink->options = spec;
    b->sink = spec->name;
    if (spec->name.len == 0)
        return error_set(b->err, STATUS_INVALID, "sources.%.*s.sinks: a sink needs a name",
                         BYTES_ARG(options->source));
    for (size_t k = 0; k < i; k++)
        if (bytes_eq(options->sinks[k].name, spec->name))
            return malformed(b, "name", "two sinks of a source need different names");
    if (spec->key && !spec->ordered)
        return malformed(b, "ordering_key", "needs ordered = true");
    if (spec->missing_is_unordered && !spec->ordered)
        return malformed(b, "on_missing_key", "needs ordered = true");
    enum status status = add_filter(b, spec->only, &sink->filter);
    if (status == STATUS_OK)
        status = add_key(b, "ordering_key", spec->key, &sink->key);
    if (spec->ordered)
        sink->keyless = lane_id_of(options->source, spec->name, BYTES_NONE);
    return status;
}

static enum status build(struct builder *b)
{
    struct order_plan *plan = b->plan;
    const struct order_options *options = &plan->options;
    if (options->source.len == 0)
        return error_set(b->err, STATUS_INVALID, "sources: a source needs a name");
    struct sink *sinks = arena_zalloc(plan->arena, options->sink_count * sizeof *sinks);
    plan->sinks = sinks;
    for (size_t i = 0; i < options->sink_count; i++) {
        enum status status = add_sink(b, i, &sinks[i]);
        if (status != STATUS_OK)
            return status;
    }
    b->sink = BYTES_NONE;
    enum status status = add_key(b, "dedupe", options->dedupe, &plan->dedupe);
    if (status == STATUS_OK && b->paths.len)
        plan->paths = json_paths_new(b->paths.at, b->paths.len);
    return status;
}

enum status order_plan_new(const struct order_options *options, struct order_plan **out, struct error *err)
{
    struct arena *arena = arena_new(1024);
    struct order_plan *plan = arena_zalloc(arena, sizeof *plan);
    *plan = (struct order_plan){.arena = arena, .options = *options};
    struct builder b = {.plan = plan, .err = err};
    enum status status = build(&b);
    VEC_FREE(&b.paths);
    if (status != STATUS_OK) {
        order_plan_free(plan);
        plan = NULL;
    }
    *out = plan;
    return status;
}

void order_plan_free(struct order_plan *plan)
{
    if (!plan)
        return;
    json_paths_free(plan->paths);
    arena_free(plan->arena);
}
