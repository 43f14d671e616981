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
