#include "cli/key_subject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/config_file.h"

static int find_source(struct key_subject *subject, const char *name)
{
    subject->source = config_source_find(subject->config, bytes_str(name));
    if (subject->source)
        return CLI_OK;
    fprintf(stderr, "lanegate key: there is no source \"%s\" in %s; it has", name, subject->config->path);
    for (size_t i = 0; i < subject->config->source_count; i++)
        fprintf(stderr, "%s %s", i ? "," : "", subject->config->sources[i].name);
    fputc('\n', stderr);
    return CLI_USAGE;
}

static int find_sink(struct key_subject *subject, const char *name, bool proposed)
{
    const struct config_source *source = subject->source;
    size_t ordered = 0, found = source->sink_count;
    for (size_t i = 0; i < source->sink_count; i++) {
        ordered += source->sinks[i].order.ordered;
        if (name ? strcmp(source->sinks[i].name, name) == 0 : source->sinks[i].order.ordered)
            found = i;
    }
    subject->sink = found;
    if (name && found == source->sink_count)
        fprintf(stderr, "lanegate key: the source \"%s\" has no sink \"%s\"\n", source->name, name);
    else if (!name && ordered != 1)
        fprintf(stderr, "lanegate key: which sink? --sink NAME: the source \"%s\" has %zu ordered ones\n",
                source->name, ordered);
    else if (!source->sinks[found].order.ordered && !proposed)
        fprintf(stderr, "lanegate key: the sink \"%s/%s\" is not ordered: it has no lanes\n", source->name,
                name);
    else
        return CLI_OK;
    return CLI_USAGE;
}

/* ---- a configuration around a proposed key ---- */

static void put_quoted(struct buf *out, struct bytes text)
{
    buf_putc(out, '"');
    for (size_t i = 0; i < text.len; i++)
        buf_putf(out, "\\%03u", (unsigned char)text.at[i]);
    buf_putc(out, '"');
}

static void put_value(struct buf *out, const struct value *value)
{
    switch (value->kind) {
    case VALUE_NIL:
        buf_puts(out, "nil");
        break;
    case VALUE_BOOL:
        buf_puts(out, value->boolean ? "true" : "false");
        break;
    case VALUE_NUMBER:
        buf_putf(out, "%.17g", value->number);
        break;
    case VALUE_STRING:
        put_quoted(out, value->string);
        break;
    case VALUE_LIST:
    case VALUE_MAP:
        buf_puts(out, "{ ");
        for (size_t i = 0; i < value->len; i++) {
            if (value->kind == VALUE_MAP) {
                buf_putc(out, '[');
                put_quoted(out, value->names[i]);
                buf_puts(out, "] = ");
            }
            put_value(out, &value->items[i]);
            buf_puts(out, ", ");
        }
        buf_putc(out, '}');
    }
}

static const struct value *sink_tree(const struct key_subject *subject)
{
    const struct value *source =
        value_get(value_get(subject->config->root, "sources"), subject->source->name);
    return &value_get(source, "sinks")->items[subject->sink];
}

/* Paths of the tree are relative to the working directory; those of a file, to the file. */
static void put_scripts(struct buf *out, const struct value *scripts)
{
    buf_puts(out, "{ ");
    for (size_t i = 0; i < scripts->len; i++) {
        buf_putf(out, "%s = ", scripts->names[i].at);
        char *whole =
            strcmp(scripts->names[i].at, "path") == 0 ? realpath(scripts->items[i].string.at, NULL) : NULL;
        if (whole)
            put_quoted(out, bytes_str(whole));
        else
            put_value(out, &scripts->items[i]);
        free(whole);
        buf_puts(out, ", ");
    }
    buf_putc(out, '}');
}

/* The same scripts, limits, stored headers, filter and names: what differs is the key. */
static void put_proposal(struct buf *out, const struct key_subject *subject, const char *key)
{
    const struct value *root = subject->config->root;
    const struct config_source *source = subject->source;
    const struct config_sink *sink = &source->sinks[subject->sink];
    buf_puts(out, "local proposed = ");
    buf_puts(out, key);
    buf_puts(out, "\nreturn { scripts = ");
    put_scripts(out, value_get(root, "scripts"));
    buf_puts(out, ", ordering = ");
    put_value(out, value_get(root, "ordering"));
    buf_puts(out, ", sources = { [");
    put_quoted(out, bytes_str(source->name));
    buf_puts(out, "] = { ");
    if (source->store_headers) {
        buf_puts(out, "store_headers = { ");
        for (size_t i = 0; i < source->store_header_count; i++) {
            put_quoted(out, source->store_headers[i]);
            buf_puts(out, ", ");
        }
        buf_puts(out, "}, ");
    }
    buf_puts(out, "sinks = { { type = \"log\", name = ");
    put_quoted(out, bytes_str(sink->name));
    const struct value *only = value_get(sink_tree(subject), "only");
    if (only->kind == VALUE_MAP) {
        bool by_header = value_get(only, "header")->kind == VALUE_STRING;
        buf_puts(out, by_header ? ", only = { header = " : ", only = { json = ");
        put_value(out, value_get(only, by_header ? "header" : "path"));
        buf_puts(out, ", match = ");
        put_value(out, value_get(only, "match"));
        buf_puts(out, " }");
    }
    if (sink->order.missing_is_unordered)
        buf_puts(out, ", on_missing_key = \"unordered\"");
    buf_puts(out, ", ordered = true, ordering_key = proposed } } } } }\n");
}

/* Faults name the file that is made here; people know the key. */
static void say_faults(const char *faults, const char *path)
{
    size_t len = strlen(path);
    for (const char *at = faults; *at;) {
        const char *found = strstr(at, path);
        fprintf(stderr, "%.*s", found ? (int)(found - at) : (int)strlen(at), at);
        if (!found)
            break;
        fputs("--key", stderr);
        at = found + len;
    }
}

static int load_proposal(struct key_subject *subject, const char *key)
{
    char path[] = "/tmp/lanegate-key-XXXXXX";
    struct buf text = {0}, faults = {0};
    put_proposal(&text, subject, key);
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, text.at, text.len) != (ssize_t)text.len) {
        fprintf(stderr, "lanegate key: can't write %s: %s\n", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        buf_free(&text);
        return CLI_FAILED;
    }
    close(fd);
    struct config *proposed = NULL;
    enum status status = config_load(path, CONFIG_OFFLINE, &proposed, &faults);
    unlink(path);
    buf_free(&text);
    if (status != STATUS_OK) {
        say_faults(faults.len ? faults.at : status_text(status), path);
        buf_free(&faults);
        return CLI_BAD_CONFIG;
    }
    buf_free(&faults);
    config_unref(subject->config);
    subject->config = proposed;
    subject->source = &proposed->sources[0];
    subject->sink = 0;
    return CLI_OK;
}

int key_subject_open(const char *config_path, const char *source, const char *sink, const char *key,
                     struct key_subject *out)
{
    *out = (struct key_subject){0};
    int code = config_file_load(config_path, CONFIG_OFFLINE, &out->config);
    if (code == CLI_OK)
        code = find_source(out, source);
    if (code == CLI_OK)
        code = find_sink(out, sink, key != NULL);
    if (code == CLI_OK && key)
        code = load_proposal(out, key);
    if (code != CLI_OK)
        key_subject_close(out);
    return code;
}

void key_subject_close(struct key_subject *subject)
{
    if (subject->config)
        config_unref(subject->config);
    *subject = (struct key_subject){0};
}

void key_subject_find(const struct key_subject *subject, const struct envelope *envelope, bool probe,
                      struct key_finding *out)
{
    struct envelope seen = *envelope;
    const struct config_source *source = subject->source;
    if (source->store_headers)
        envelope_keep_headers(&seen, source->store_headers, source->store_header_count);
    struct order_lane *lanes = arena_zalloc(seen.arena, source->sink_count * sizeof *lanes);
    order_resolve(source->plan, &seen, seen.arena, lanes, NULL);
    *out = (struct key_finding){.lane = lanes[subject->sink]};
    const struct key_spec *key = source->sinks[subject->sink].order.key;
    out->scripted = scripts_explain(subject->config->scripts, key, &seen, seen.arena, probe, &out->script);
}
