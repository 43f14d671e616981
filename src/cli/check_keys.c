#include "cli/check_keys.h"

#include <stdlib.h>

#include "cli/hook_fetch.h"
#include "cli/show.h"
#include "util/mem.h"

static bool has_script(const struct key_spec *key)
{
    bool some = key && key->kind == KEY_SCRIPT;
    for (size_t i = 0; key && key->kind == KEY_FIRST && i < key->item_count; i++)
        some |= has_script(&key->items[i]);
    return some;
}

static bool is_scripted(const struct config_source *source)
{
    for (size_t i = 0; i < source->sink_count; i++)
        if (has_script(source->sinks[i].order.key))
            return true;
    return false;
}

/* The first hook that shows it makes the line; a sink has one at most. */
static void try_hook(const struct config *config, const struct config_source *source,
                     const struct envelope *envelope, bool *told, struct buf *faults)
{
    struct envelope seen = *envelope;
    char id[UUID_TEXT];
    uuid_format(&envelope->id, id);
    if (source->store_headers)
        envelope_keep_headers(&seen, source->store_headers, source->store_header_count);
    for (size_t i = 0; i < source->sink_count; i++) {
        struct script_result found;
        if (told[i] || !has_script(source->sinks[i].order.key))
            continue;
        scripts_explain(config->scripts, source->sinks[i].order.key, &seen, seen.arena, true, &found);
        if (!found.nondeterministic)
            continue;
        told[i] = true;
        buf_putf(faults, "%s: sources.%s.sinks.%s.ordering_key: nondeterministic: hook %s: %s\n",
                 config->path, source->name, source->sinks[i].name, id, found.error);
    }
}

static size_t try_source(struct client *client, const struct config *config,
                         const struct config_source *source, struct buf *faults)
{
    struct buf path = {0};
    json_t *list = NULL;
    size_t tried = 0, i;
    const json_t *hook;
    bool *told = mem_zalloc(source->sink_count * sizeof *told);
    buf_puts(&path, "/v1/hooks");
    client_query(&path, "source", bytes_str(source->name));
    int code = client_list(client, path.at, "hooks", CHECK_KEYS_HOOKS, NULL, &list);
    json_array_foreach(json_object_get(code == CLI_OK ? list : NULL, "hooks"), i, hook)
    {
        struct envelope *envelope = NULL;
        if (hook_fetch(client, show_text(hook, "id"), &envelope, NULL) != CLI_OK)
            break;
        try_hook(config, source, envelope, told, faults);
        envelope_unref(envelope);
        tried++;
    }
    json_decref(list);
    buf_free(&path);
    free(told);
    return tried;
}

size_t check_keys(const struct cli_verb *verb, const struct client_where *where, const struct config *config,
                  struct buf *faults)
{
    size_t tried = 0;
    struct client *client = NULL;
    if (!config->scripts || client_open(verb, where, &client) != CLI_OK)
        return 0;
    if (client_answers(client))
        for (size_t i = 0; i < config->source_count; i++)
            if (is_scripted(&config->sources[i]))
                tried += try_source(client, config, &config->sources[i], faults);
    client_close(client);
    return tried;
}
