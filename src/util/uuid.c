#include "util/uuid.h"

#include <openssl/rand.h>
#include <string.h>

#include "util/check.h"

/* One block of random bytes serves many ids: a getrandom per hook would be a system call per hook. */
static __thread struct {
    uint8_t block[2048];
    size_t used;
    bool filled;
    int64_t asked_ms; /* the last time asked for */
    int64_t shown_ms; /* the last one shown: ahead of it after a burst */
    uint16_t count;   /* within shown_ms, 12 bits */
} pool;

struct uuid uuid_new(int64_t unix_ms)
{
    struct uuid id;
    if (!pool.filled || pool.used + 10 > sizeof pool.block) {
        CHECK(RAND_bytes(pool.block, sizeof pool.block) == 1);
        pool.used = 0;
        pool.filled = true;
    }
    memcpy(id.bytes + 6, pool.block + pool.used, 10);
    pool.used += 10;

    bool same = unix_ms >= pool.asked_ms && unix_ms <= pool.shown_ms;
    if (same && pool.count < 0xfff) {
        pool.count++;
    } else {
        /* A burst that has counted to the end borrows the next millisecond. */
        pool.shown_ms = same ? pool.shown_ms + 1 : unix_ms;
        pool.count = (uint16_t)((id.bytes[6] << 8 | id.bytes[7]) & 0x7ff); /* room above for 2,048 more */
    }
    pool.asked_ms = unix_ms;
    for (int i = 0; i < 6; i++)
        id.bytes[i] = (uint8_t)(pool.shown_ms >> (40 - 8 * i));
    id.bytes[6] = (uint8_t)(0x70 | (pool.count >> 8 & 0x0f));
    id.bytes[7] = (uint8_t)pool.count;
    id.bytes[8] = (uint8_t)(0x80 | (id.bytes[8] & 0x3f));
    return id;
}

int64_t uuid_unix_ms(const struct uuid *id)
{
    int64_t ms = 0;
    for (int i = 0; i < 6; i++)
        ms = ms << 8 | id->bytes[i];
    return ms;
}

void uuid_format(const struct uuid *id, char text[UUID_TEXT])
{
    char hex[33];
    hex_encode(id->bytes, 16, hex);
    static const uint8_t groups[] = {8, 4, 4, 4, 12};
    const char *from = hex;
    for (int g = 0; g < 5; g++) {
        memcpy(text, from, groups[g]);
        text += groups[g];
        from += groups[g];
        *text++ = g < 4 ? '-' : 0;
    }
}

bool uuid_parse(struct bytes text, struct uuid *id)
{
    if (text.len != 36)
        return false;
    char hex[32];
    size_t n = 0;
    for (size_t i = 0; i < 36; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash != (text.at[i] == '-'))
            return false;
        if (!dash)
            hex[n++] = text.at[i];
    }
    return hex_decode(bytes_of(hex, 32), id->bytes, 16);
}
