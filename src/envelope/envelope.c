/* Making and sharing an envelope. */
#include "envelope/envelope.h"

#include "util/check.h"

const char *verification_name(enum verification verification)
{
    switch (verification) {
    case VERIFICATION_SKIPPED:
        return "skipped";
    case VERIFICATION_OK:
        return "ok";
    case VERIFICATION_FAILED:
        return "failed";
    }
    UNREACHABLE();
}

struct envelope *envelope_new(size_t size_hint)
{
    struct arena *arena = arena_new(sizeof(struct envelope) + size_hint);
    struct envelope *envelope = arena_zalloc(arena, sizeof *envelope);
    envelope->arena = arena;
    atomic_init(&envelope->refs, 1);
    return envelope;
}

struct envelope *envelope_ref(struct envelope *envelope)
{
    unsigned before = atomic_fetch_add_explicit(&envelope->refs, 1, memory_order_relaxed);
    CHECK(before > 0);
    return envelope;
}

void envelope_unref(struct envelope *envelope)
{
    if (!envelope)
        return;
    /* Release what this thread did with it; the last one acquires what all others did, then frees. */
    unsigned before = atomic_fetch_sub_explicit(&envelope->refs, 1, memory_order_acq_rel);
    CHECK(before > 0);
    if (before == 1)
        arena_free(envelope->arena);
}

struct bytes envelope_header(const struct envelope *envelope, struct bytes name)
{
    for (size_t i = 0; i < envelope->header_count; i++) {
        if (bytes_eq_nocase(envelope->headers[i].name, name))
            return envelope->headers[i].value;
    }
    return BYTES_NONE;
}

size_t envelope_size(const struct envelope *envelope)
{
    return arena_size(envelope->arena);
}

static bool is_among(struct bytes name, const struct bytes *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes_eq_nocase(names[i], name))
            return true;
    return false;
}

void envelope_keep_headers(struct envelope *envelope, const struct bytes *names, size_t count)
{
    struct header *kept = arena_alloc(envelope->arena, (envelope->header_count + 1) * sizeof *kept);
    size_t n = 0;
    for (size_t i = 0; i < envelope->header_count; i++)
        if (is_among(envelope->headers[i].name, names, count))
            kept[n++] = envelope->headers[i];
    envelope->headers = kept;
    envelope->header_count = n;
}
