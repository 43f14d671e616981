#include "cli/hook_fetch.h"

#include <stdlib.h>
#include <string.h>

#include "cli/hook_show.h"
#include "cli/show.h"
#include "util/jsonw.h"
#include "util/mem.h"

/* Absent when it is null or not there. */
static struct bytes text_of(const json_t *hook, const char *name, struct arena *arena)
{
    return arena_copy(arena, bytes_str(json_string_value(json_object_get(hook, name))));
}

static void take_headers(struct envelope *envelope, const json_t *list)
{
    struct header *headers = arena_zalloc(envelope->arena, (json_array_size(list) + 1) * sizeof *headers);
    size_t i;
    const json_t *header;
    json_array_foreach(list, i, header)
    {
        const char *name = json_string_value(json_array_get(header, 0));
        const char *value = json_string_value(json_array_get(header, 1));
        headers[i] = (struct header){arena_copy(envelope->arena, bytes_str(name ? name : "")),
                                     arena_copy(envelope->arena, bytes_str(value ? value : ""))};
    }
    envelope->headers = headers;
    envelope->header_count = json_array_size(list);
}

static enum verification verification_of(const char *name)
{
    return strcmp(name, "ok") == 0       ? VERIFICATION_OK
           : strcmp(name, "failed") == 0 ? VERIFICATION_FAILED
                                         : VERIFICATION_SKIPPED;
}

struct envelope *hook_from_json(const json_t *hook, struct bytes body)
{
    struct envelope *envelope = envelope_new(4096 + body.len);
    struct arena *arena = envelope->arena;
    struct buf key = {0};
    uuid_parse(bytes_str(show_text(hook, "id")), &envelope->id);
    envelope->seq = (uint64_t)show_int(hook, "seq");
    envelope->received_at_ms = show_int(hook, "received_at");
    envelope->tenant = text_of(hook, "tenant", arena);
    envelope->source = text_of(hook, "source", arena);
    envelope->method = text_of(hook, "method", arena);
    envelope->path = text_of(hook, "path", arena);
    envelope->query = text_of(hook, "query", arena);
    envelope->remote_ip = text_of(hook, "remote_ip", arena);
    struct bytes shown = text_of(hook, "dedupe_key", arena); /* percent-encoded, as every key */
    if (shown.at && percent_decode(&key, shown))
        envelope->dedupe_key = arena_copy(arena, buf_bytes(&key));
    envelope->verification = verification_of(show_text(hook, "verification"));
    take_headers(envelope, json_object_get(hook, "headers"));
    envelope->content_type = envelope_header(envelope, BYTES("content-type"));
    envelope->body = arena_copy(arena, body);
    buf_free(&key);
    return envelope;
}

int hook_fetch(struct client *client, const char *id, struct envelope **out, json_t **answer)
{
    json_t *hook = NULL;
    struct buf body = {0};
    char *path = mem_format("/v1/hooks/%s", id), *body_path = mem_format("/v1/hooks/%s/body", id);
    int code = client_get(client, path, &hook);
    if (code == CLI_OK)
        code = client_get_bytes(client, body_path, &body);
    if (code == CLI_OK)
        *out = hook_from_json(hook, buf_bytes(&body));
    if (code == CLI_OK && answer)
        *answer = json_incref(hook);
    json_decref(hook);
    buf_free(&body);
    free(path);
    free(body_path);
    return code;
}

int hook_fetch_raw(struct client *client, const char *path, const json_t *hook)
{
    struct buf body = {0};
    char *whole = mem_format("%s/%s/body", path, show_text(hook, "id"));
    int code = client_get_bytes(client, whole, &body);
    if (code == CLI_OK) {
        hook_show_head(hook, body.len, stdout);
        fwrite(body.at ? body.at : "", 1, body.len, stdout);
    }
    free(whole);
    buf_free(&body);
    return code;
}
