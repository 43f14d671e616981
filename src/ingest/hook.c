/* From a complete request to its envelope, and what of it is kept. */
#include "ingest/ingest_priv.h"

#include "util/clock.h"

struct envelope *hook_envelope(const struct route *route, const struct http_request *request, size_t more)
{
    size_t size = more + 1024 + request->target.len + request->body.len;
    for (size_t i = 0; i < request->header_count; i++)
        size += sizeof(struct header) + 32 + request->headers[i].name.len + request->headers[i].value.len;

    struct envelope *envelope = envelope_new(size);
    struct arena *arena = envelope->arena;
    envelope->received_at_ms = clock_unix_ms();
    envelope->id = uuid_new(envelope->received_at_ms);
    envelope->tenant = arena_copy(arena, route->tenant);
    envelope->source = arena_copy(arena, route->entry->name);
    envelope->method = arena_copy(arena, request->method);
    envelope->path = arena_copy(arena, request->path);
    envelope->query = arena_copy(arena, request->query);
    envelope->remote_ip = arena_copy(arena, request->remote_ip);
    envelope->client_cert = arena_copy(arena, request->client_cert);
    envelope->body = arena_copy(arena, request->body);

    struct header *headers = arena_alloc(arena, request->header_count * sizeof *headers);
    for (size_t i = 0; i < request->header_count; i++)
        headers[i] = (struct header){arena_copy(arena, request->headers[i].name),
                                     arena_copy(arena, request->headers[i].value)};
    envelope->headers = headers;
    envelope->header_count = request->header_count;
    envelope->content_type = envelope_header(envelope, BYTES("content-type"));
    return envelope;
}

static void drop_header(struct envelope *envelope, struct bytes name)
{
    struct header *kept = arena_alloc(envelope->arena, (envelope->header_count + 1) * sizeof *kept);
    size_t count = 0;
    for (size_t i = 0; i < envelope->header_count; i++)
        if (!bytes_eq_nocase(envelope->headers[i].name, name))
            kept[count++] = envelope->headers[i];
    envelope->headers = kept;
    envelope->header_count = count;
}

void hook_keep_stored(struct envelope *envelope, const struct ingest_source *source)
{
    struct bytes secret = verify_secret_header(source->verifier);
    if (secret.at)
        drop_header(envelope, secret);
    if (source->store_headers)
        envelope_keep_headers(envelope, source->store_headers, source->store_header_count);
}
