/* Names that nobody outside can forge: lanes, long keys. */
#include "order/order_priv.h"
#include "util/digest.h"

/* Each part behind its length, so that no text in one of them looks like the border to the next. */
static void length_prefix(uint8_t out[8], size_t len)
{
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)((uint64_t)len >> (56 - 8 * i));
}

struct lane_id lane_id_of(struct bytes source, struct bytes sink, struct bytes key)
{
    uint8_t source_len[8], sink_len[8], key_len[8], digest[SHA256_SIZE];
    length_prefix(source_len, source.len);
    length_prefix(sink_len, sink.len);
    length_prefix(key_len, key.len);
    struct bytes parts[] = {bytes_of(source_len, 8), source, bytes_of(sink_len, 8), sink,
                            bytes_of(key_len, 8),    key};
    /* No key is no third part at all, which no key looks like. */
    sha256(parts, key.at ? 6 : 4, digest);

    struct lane_id id;
    memcpy(id.bytes, digest, sizeof id.bytes);
    return id;
}

struct bytes stamp(struct bytes key, size_t max, struct arena *arena)
{
    static const char prefix[] = "sha256:";
    enum { PREFIX = sizeof prefix - 1, LEN = PREFIX + 2 * SHA256_SIZE };
    if (key.len <= max)
        return arena_copy(arena, key);
    uint8_t digest[SHA256_SIZE];
    sha256(&key, 1, digest);
    char *text = arena_alloc(arena, LEN + 1);
    memcpy(text, prefix, PREFIX);
    hex_encode(digest, sizeof digest, text + PREFIX);
    return bytes_of(text, LEN);
}

struct bytes order_key_stamp(struct bytes key, struct arena *arena)
{
    return stamp(key, ORDER_KEY_MAX, arena);
}

struct bytes order_sink_key(struct bytes key, struct bytes tenant, struct bytes source, struct arena *arena)
{
    if (key.at)
        return arena_copy(arena, key);
    char *text = arena_alloc(arena, tenant.len + 1 + source.len + 1);
    memcpy(text, tenant.at, tenant.len);
    text[tenant.len] = '/';
    memcpy(text + tenant.len + 1, source.at, source.len);
    text[tenant.len + 1 + source.len] = 0;
    return bytes_of(text, tenant.len + 1 + source.len);
}
